package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel"
)

// dataFlags say which data to fit.
type dataFlags struct {
	textFlags
	data, train, test        string
	target, task, scale      string
	center, weights, classes string
	impute                   string
	words                    []string            // categorical columns
	values                   []datasets.Category // of a model that is fitted on, in place of words
	missing                  bool                // values may be missing: a model fills them in
	lengths                  []float64           // of each feature, of --sigma
	holdout                  float64
	drop                     []string
	n, dim                   int
	readLimit                string // --memory of the command, which bounds the reading too
	matrix                   string // file of K, of --kernel precomputed
}

// textFlags say how a file is read, where that is not to be decided by its first rows.
type textFlags struct{ format, separator, header, comment string }

func (f *textFlags) add(p *pflag.FlagSet) {
	p.StringVar(&f.format, "format", "auto", "format of the files: "+strings.Join(datasets.Formats, ", "))
	p.StringVar(&f.separator, "separator", "auto", "what separates the cells of a csv file: a character, or comma, semicolon, tab, pipe or blank (auto: by the first rows)")
	p.StringVar(&f.header, "header", "auto", "whether the first row of a csv file is a header: yes, no, or auto, by the first rows")
	p.StringVar(&f.comment, "comment", "", "character that begins lines to be skipped, or none (default: # before the first row)")
	wantOneOf(p, datasets.Formats, "format")
	wantOneOf(p, datasets.Headers, "header")
	want(p, func(_ *pflag.Flag, value string) error {
		_, err := datasets.ParseSeparator(value)
		if err != nil {
			return usagef("--%w", err)
		}
		return nil
	}, "separator")
}

// changed returns the first of the flags that was given; "" for none.
func (f *textFlags) changed(set *pflag.FlagSet) string {
	for _, name := range []string{"format", "separator", "header", "comment"} {
		if set.Changed(name) {
			return name
		}
	}
	return ""
}

// options are those of the flags.
func (f *textFlags) options() datasets.ReadOptions {
	return datasets.ReadOptions{Format: f.format, Separator: f.separator, Header: f.header, Comment: f.comment}
}

// add adds the flags of training and test data.
func (f *dataFlags) add(p *pflag.FlagSet) {
	f.addTraining(p)
	p.StringVar(&f.test, "test", "", "test data, a file of the same form as --train")
	p.Float64Var(&f.holdout, "holdout", 0, "hold out this share of the training rows as test rows, such as 0.2: drawn at random, the same every time, equal rows together")
}

// addTraining adds those of training data, which is all that a stage reads.
func (f *dataFlags) addTraining(p *pflag.FlagSet) {
	p.StringVar(&f.data, "data", "", "data set by name (krrlab data list)")
	p.StringVar(&f.train, "train", "", "training data, a file (.gz, .bz2, .xz, .zst and a .zip of one file are unpacked)")
	f.textFlags.add(p)
	p.StringVar(&f.target, "target", "-1", "target column of a csv file: a number counted from 0, -1 for the last, or a header name; several, separated by commas (quoted as in csv where a name has one), for a regression with several targets; other formats have a separate place for it")
	p.StringSliceVar(&f.drop, "drop", nil, "columns of a csv file that are not features, such as an index: names or numbers as for --target, separated by commas")
	p.StringVar(&f.task, "task", "auto", "auto, classification or regression; auto takes as classes words, and whole numbers with at most 20 values, each in 5 rows or more on average")
	p.IntVar(&f.dim, "dim", 0, "number of features of a libsvm file, if its last columns are all zero (default: its largest index)")
	p.IntVar(&f.n, "n", 0, "use only the first N training rows")
	p.StringVar(&f.scale, "scale", "", "scaling of the features: auto, none, unit or standard (fitted on the training rows), or pixel (x/255); auto is none for bytes, sparse points and features of similar spread, else standard (default: auto for --train, the registry's for --data)")
	p.StringVar(&f.center, "center", "auto", "subtract the mean from the targets, and add it to predictions: auto (for regression), yes, or no (the paper's problem)")
	p.StringVar(&f.weights, "weights", "", "column of a csv file with the weights of the rows: 2 counts as two equal rows")
	p.StringVar(&f.classes, "class-weights", "none", "balanced: equal total weight for all classes, by row weights n/(classes·rows of the class); or none")
	p.StringSliceVar(&f.words, "categorical", nil, "columns of words in a csv file, by name or number, each coded by one 0/1 feature per value (one-hot)")
	p.StringVar(&f.impute, "impute", "none", "how to fill missing values of features in a csv file (empty, NA, NaN, ?): none, which refuses them, or the median or mean of the column over the training rows, kept in the model")
	wantAtLeast(p, 2, "n")
	wantAtLeast(p, 1, "dim")
	wantOneOf(p, datasets.Tasks, "task")
	wantOneOf(p, datasets.Scalings, "scale")
	wantOneOf(p, []string{"auto", "yes", "no"}, "center")
	wantOneOf(p, []string{"none", "balanced"}, "class-weights")
	wantOneOf(p, datasets.Imputations, "impute")
}

func (f *dataFlags) check(set *pflag.FlagSet) error {
	switch {
	case f.data == "" && f.train == "":
		return usagef("no data: want --data NAME or --train FILE (krrlab data list shows the names)")
	case f.data != "" && f.train != "":
		return usagef("--data and --train exclude each other")
	case f.data != "" && f.test != "":
		return usagef("--test goes with --train; --data has its own test rows")
	case set.Changed("holdout") && f.data != "":
		return usagef("--holdout goes with --train; --data has its own test rows")
	case set.Changed("holdout") && f.test != "":
		return usagef("--holdout and --test exclude each other")
	case set.Changed("holdout") && !(f.holdout > 0 && f.holdout < 1):
		return usagef("--holdout %g: want a share between 0 and 1, such as 0.2", f.holdout)
	}
	for _, name := range []string{f.changed(set), "target", "task", "drop", "dim", "weights", "impute", "categorical"} {
		if f.data != "" && name != "" && set.Changed(name) {
			return usagef("--%s goes with --train; --data has its own", name)
		}
	}
	return nil
}

// loaded is data ready to fit, training and test points scaled.
type loaded struct {
	train, test   *datasets.Dataset // test is nil if there is none
	note          string
	target        string   // csv column
	drop          []string // csv columns left out
	rows          int      // read, of which holdout is the share that is the test data; 0 without one
	holdout       float64
	sigma, lambda float64 // the registry's settings; 0 if it has none
	hints         []string
	given         *kernel.Precomputed // K, where it is precomputed
}

// hint notes what a user may want to know before the work begins.
func (d *loaded) hint(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != "" {
		d.hints = append(d.hints, text)
	}
}

// readMemory returns what a file may take while it is read: what --memory allows, or 0, the
// reader's default.
func (f *dataFlags) readMemory() (int64, error) {
	if f.readLimit == "" {
		return 0, nil
	}
	return memoryLimit(f.readLimit)
}

// load reads the data the flags name.
func (a *app) load(ctx context.Context, f *dataFlags) (*loaded, error) {
	read := a.loadFiles
	if f.data != "" {
		read = a.loadNamed
	}
	d, err := read(ctx, f)
	if err == nil {
		d.train, d.test, err = datasets.Stretch(f.lengths, d.train, d.test)
	}
	if err == nil && f.classes == "balanced" {
		d.train, err = d.train.Balance()
	}
	if err != nil || f.center == "no" {
		return d, err
	}
	if f.center == "yes" && d.train.Task == datasets.Classification {
		return nil, usagef("--center yes: the answers are classes, which are not centered")
	}
	d.train = d.train.Center()
	return d, nil
}

func (a *app) loadNamed(ctx context.Context, f *dataFlags) (*loaded, error) {
	memory, err := f.readMemory()
	if err != nil {
		return nil, err
	}
	p, err := datasets.Load(ctx, f.data, &datasets.LoadOptions{Dirs: a.dirs(), Scale: f.scale, N: f.n, Memory: memory})
	if err != nil {
		return nil, err
	}
	d := &loaded{train: p.Train, test: p.Test, note: p.Note(), sigma: p.Info.Sigma, lambda: p.Info.Lambda}
	d.fewer(f.n, f.data)
	return d, nil
}

// fewer notes that there are fewer rows than were asked for.
func (d *loaded) fewer(asked int, name string) {
	if n := d.train.Len(); asked > n {
		d.hint("--n %d: %s has %d training rows; all are used", asked, name, n)
	}
}

func (a *app) loadFiles(ctx context.Context, f *dataFlags) (*loaded, error) {
	memory, err := f.readMemory()
	if err != nil {
		return nil, err
	}
	o := f.options()
	o.Target, o.Task, o.MaxRows, o.Dim, o.Drop, o.Weights = f.target, f.task, f.n, f.dim, f.drop, f.weights
	o.Categorical, o.KeepMissing, o.AnswersOnly, o.Memory = f.categorical(), f.keepMissing(), f.matrix != "", memory
	train, err := datasets.ReadFile(ctx, f.train, &o)
	if err != nil {
		return nil, err
	}
	d := &loaded{train: train, target: f.target, drop: f.drop}
	if train.Columns != nil && train.Read.Target != "" { // so that other files have it by its name
		d.target = train.Read.Target
	} else if train.Targets != nil {
		d.target = train.Targets[0]
	}
	if f.weights != "" { // no feature of other files
		d.drop = append(f.drop[:len(f.drop):len(f.drop)], f.weights)
	}
	d.fewer(f.n, f.train)
	d.hint("%s", train.IDHint())
	if f.task == "auto" && train.Targets == nil {
		d.hint("%s", train.TaskHint())
	}
	d.hint("%s", unknownText(train))
	if f.matrix != "" {
		if err := d.precomputed(ctx, f, memory); err != nil {
			return nil, err
		}
		if a.party != nil {
			return nil, usagef("--kernel precomputed is for one process: K is not distributed over ranks")
		}
	}
	if f.holdout > 0 {
		d.rows, d.holdout = train.Len(), f.holdout
		if d.train, d.test, err = train.Holdout(f.holdout, holdoutSeed); err != nil {
			return nil, fmt.Errorf("%s: %w", f.train, err)
		}
	}
	if f.test != "" {
		if err := d.readTest(ctx, f, train, o); err != nil {
			return nil, err
		}
	}
	if d.train, err = d.filled(f.impute); err != nil {
		return nil, err
	}
	if d.given != nil {
		return d, nil
	}
	scale := cmp.Or(f.scale, "auto")
	if scale == "auto" {
		var why string
		scale, why = d.train.AutoScaling()
		if why != "" {
			d.hint("--scale auto: %s, since %s", scale, why)
		}
	}
	d.train, d.test, err = datasets.Scale(scale, d.train, d.test)
	return d, err
}

// readTest reads the test file. The training data say what the task is, and which features there are.
func (d *loaded) readTest(ctx context.Context, f *dataFlags, train *datasets.Dataset, o datasets.ReadOptions) (err error) {
	o.Target, o.Task, o.Drop, o.Categorical = d.target, train.Task.String(), d.drop, train.Categories
	o.Columns, o.Dim, o.DimOf = train.Columns, train.Dim(), f.train
	if o.MaxRows, o.Weights, o.AnswersOnly = 0, "", false; train.Targets != nil {
		o.More = train.Targets[1:]
	}
	if d.test, err = datasets.ReadFile(ctx, f.test, &o); err != nil {
		return err
	}
	d.hint("%s", unknownText(d.test))
	note, err := d.test.KnownLabels(train.Labels)
	d.hint("%s", note)
	return err
}

// keepMissing reports whether missing values are read, to be filled in.
func (f *dataFlags) keepMissing() bool { return f.missing || f.impute != "none" }

// categorical returns the columns of words, whose values are those found or a model's.
func (f *dataFlags) categorical() (all []datasets.Category) {
	if f.values != nil {
		return f.values
	}
	for _, name := range f.words {
		all = append(all, datasets.Category{Column: name})
	}
	return all
}

// unknownText warns of words that the training rows do not have; "" without any.
func unknownText(d *datasets.Dataset) string {
	if d.Unknown == 0 {
		return ""
	}
	if d.Unknown == 1 {
		return fmt.Sprintf("1 word of a categorical column in %s is not in the training data: its features are all 0", d.Source)
	}
	return fmt.Sprintf("%d words of categorical columns in %s are not in the training data: their features are all 0", d.Unknown, d.Source)
}

// filled returns the training data with missing values filled in, and notes how many there were.
func (d *loaded) filled(how string) (*datasets.Dataset, error) {
	train, count, err := d.train.Impute(how)
	cells, columns := 0, 0
	for _, k := range count {
		if cells += k; k > 0 {
			columns++
		}
	}
	if cells > 0 {
		d.hint("--impute %s: filled %s in the training rows, in %d of %s", how, plural.Count(cells, "missing value"), columns, plural.Count(len(count), "feature"))
	}
	return train, err
}

// holdoutSeed draws the rows that are held out: the same whatever the fit's --seed is, so that fits
// are judged alike and verify finds them again.
const holdoutSeed = 1

// showHints prints what was noted while the data were read.
func (a *app) showHints(d *loaded, progress *progress) {
	if len(d.hints) == 0 {
		return
	}
	progress.clear()
	for _, text := range d.hints {
		a.printf("note: %s\n", text)
	}
}
