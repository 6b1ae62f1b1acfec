package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel"
)

// dataFlags say which data to fit.
type dataFlags struct {
	Data  string `flag:"data" not:"train|holdout" help:"data set by name (krrlab data list), or folder of krrlab data pack"`
	Train string `flag:"train" file:"read"`
	datasets.ReadOptions
	Words   []string `flag:"categorical" with:"train|in"`
	Dates   []string `flag:"dates" with:"train"`
	Order   string   `flag:"date-order" default:"auto" check:"one of auto day month" with:"dates"`
	Impute  string   `flag:"impute" default:"none" check:"one of none median mean" with:"train"`
	Scale   string   `flag:"scale" check:"one of auto none unit standard pixel"`
	Center  string   `flag:"center" default:"auto" check:"one of auto yes no"`
	Classes string   `flag:"class-weights" default:"none" check:"one of none balanced"`
	Test    string   `flag:"test" file:"read" with:"train" not:"holdout"`
	Holdout float64  `flag:"holdout" check:"(0,1)" with:"train"`
}

func (dataFlags) Help() map[string]string {
	return map[string]string{
		"train": "training data, a file (.gz, .bz2, .xz, .zst and a .zip of one file are unpacked)",
		"categorical": "columns of words in a csv file, by name or number, each coded by one 0/1 feature per value " +
			"(one-hot)",
		"dates": "columns of dates or times in a csv file, by name or number, each coded by days since the first, time " +
			"of day, weekday and day of the year",
		"date-order": "what comes first in dates such as 31/12/2024: day, month, or auto, by the dates themselves",
		"impute": "how to fill missing values of features in a csv file (empty, NA, NaN, ?): none, which refuses " +
			"them, or the median or mean of the column over the training rows, kept in the model",
		"scale": "scaling of the features: auto, none, unit or standard (fitted on the training rows), or pixel " +
			"(x/255); auto is none for bytes, sparse points and features of similar spread, else standard (default: " +
			"auto for --train, the registry's for --data)",
		"center": "subtract the mean from the targets, and add it to predictions: auto (for regression), yes, or no " +
			"(the paper's problem)",
		"class-weights": "balanced: equal total weight for all classes, by row weights n/(classes·rows of the " +
			"class); or none",
		"test": "test data, a file of the same form as --train",
		"holdout": "hold out this share of the training rows as test rows, such as 0.2: drawn at random, the same " +
			"every time, groups of rows together (--repeats, --groups)",
	}
}

func (f *dataFlags) check() error {
	if f.Data == "" && f.Train == "" {
		return errors.New("no data: want --data NAME or --train FILE (krrlab data list shows the names)")
	}
	_, err := datasets.ParseSeparator(f.Separator)
	return cmp.Or(knownData(f.Data), err)
}

// loaded is data ready to fit, training and test points scaled.
type loaded struct {
	train, test   *datasets.Dataset // test is nil if there is none
	target        string            // csv column
	drop          []string          // csv columns left out
	groups        string            // csv column of the groups
	rows          int               // read, of which holdout is the share that is the test data; 0 without one
	holdout       float64
	sigma, lambda float64 // the registry's settings; 0 if it has none
	hints         []string
	given         *kernel.Precomputed // K of --matrix; nil: the kernel is that of the flags
}

// hint notes what a user may want to know before the work begins.
func (d *loaded) hint(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != "" {
		d.hints = append(d.hints, text)
	}
}

// load reads the data the flags name.
func (a *app) load(ctx context.Context, f *labFlags) (*loaded, error) {
	d, err := a.read(ctx, f)
	if err == nil {
		_, lengths := f.Sigma.split()
		d.train, d.test, err = datasets.Stretch(lengths, d.train, d.test)
	}
	if err == nil && f.Classes == "balanced" {
		d.train, err = d.train.Balance()
	}
	if err != nil || f.Center == "no" {
		return d, err
	}
	if f.Center == "yes" && d.train.Task == datasets.Classification {
		return nil, usagef("--center yes: the answers are classes, which are not centered")
	}
	d.train = d.train.Center()
	return d, nil
}

// read reads and scales the data.
func (a *app) read(ctx context.Context, f *labFlags) (*loaded, error) {
	if f.Memory > 0 { // for what the reading counts, and for garbage
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(f.Memory))
	}
	if f.Data == "" {
		return a.loadFiles(ctx, f)
	}
	return a.loadNamed(ctx, f)
}

func (a *app) loadNamed(ctx context.Context, f *labFlags) (*loaded, error) {
	o := &datasets.LoadOptions{Dirs: a.dirs(), Scale: f.Scale, N: f.MaxRows, Memory: f.Memory}
	p, err := datasets.Load(ctx, f.Data, o)
	if err != nil {
		return nil, err
	}
	if has := p.Train.Scaling.String(); datasets.IsPacked(f.Data) &&
		!slices.Contains([]string{"", "auto", has}, f.Scale) {
		return nil, usagef("--scale %s: %s is packed with --scale %s: pack the data again, or leave it out", f.Scale,
			f.Data, has)
	}
	d := &loaded{train: p.Train, test: p.Test, target: p.Target, drop: p.Drop, sigma: p.Info.Sigma,
		lambda: p.Info.Lambda}
	if f.flags != nil && f.flags.Given("repeats") {
		if d.train, err = d.train.Group(f.Repeats, nil); err != nil {
			return nil, err
		}
	}
	d.fewer(f.MaxRows, f.Data)
	return d, nil
}

// fewer notes that there are fewer rows than were asked for.
func (d *loaded) fewer(asked int, name string) {
	if n := d.train.Len(); asked > n {
		d.hint("--n %d: %s has %d training rows; all are used", asked, name, n)
	}
}

func (a *app) loadFiles(ctx context.Context, f *labFlags) (*loaded, error) {
	o := f.ReadOptions
	o.Memory, o.AnswersOnly = f.Memory, f.Matrix != ""
	o.KeepMissing = o.KeepMissing || f.Impute != "none"
	for _, name := range f.Words {
		o.Categorical = append(o.Categorical, datasets.Category{Column: name})
	}
	for _, name := range f.Dates {
		o.Categorical = append(o.Categorical, datasets.Category{Column: name, Dates: &datasets.Dates{Order: f.Order}})
	}
	train, err := datasets.ReadFile(ctx, f.Train, &o)
	if err != nil {
		return nil, err
	}
	d := &loaded{train: train, target: f.Target, drop: f.Drop, groups: f.Groups}
	if train.Columns != nil && train.Read.Target != "" { // so that other files have it by its name
		d.target = train.Read.Target
	} else if train.Targets != nil {
		d.target = train.Targets[0]
	}
	for _, column := range []string{f.Weights, f.Groups} { // no features of other files
		if column != "" {
			d.drop = append(d.drop[:len(d.drop):len(d.drop)], column)
		}
	}
	d.fewer(f.MaxRows, f.Train)
	d.hint("%s", train.IDHint())
	if f.Task == "auto" && train.Targets == nil {
		d.hint("%s", train.TaskHint())
	}
	if f.Matrix != "" {
		if err := d.precomputed(ctx, f); err != nil {
			return nil, err
		}
		if a.party != nil {
			return nil, usagef("--kernel precomputed is for one process: K is not distributed over ranks")
		}
	}
	if f.Holdout > 0 {
		d.rows, d.holdout = train.Len(), f.Holdout
		if d.train, d.test, err = train.Holdout(f.Holdout, holdoutSeed); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Train, err)
		}
		note, err := d.test.KnownLabels(d.train.Labels)
		if d.hint("%s", note); err != nil {
			return nil, err
		}
	}
	if f.Test != "" {
		if err := d.readTest(ctx, f, train, o); err != nil {
			return nil, err
		}
	}
	if d.train, err = d.filled(f.Impute); err != nil || d.given != nil {
		return d, err
	}
	scale := cmp.Or(f.Scale, "auto")
	if scale == "auto" {
		var why string
		if scale, why = d.train.AutoScaling(); why != "" {
			d.hint("--scale auto: %s, since %s", scale, why)
		}
	}
	d.train, d.test, err = datasets.Scale(scale, d.train, d.test)
	return d, err
}

// readTest reads the test file. The training data say what the task is, and which features there are.
func (d *loaded) readTest(ctx context.Context, f *labFlags, train *datasets.Dataset,
	o datasets.ReadOptions) (err error) {
	o.Target, o.Task, o.Categorical = d.target, train.Task.String(), train.Categories
	o.Columns, o.Dim, o.DimOf, o.TestPart = train.Columns, train.Dim(), f.Train, true
	o.Drop = slices.DeleteFunc(slices.Clone(d.drop), func(name string) bool { return name == f.Weights })
	o.MaxRows, o.Groups, o.AnswersOnly = 0, "", false
	if train.Targets != nil {
		o.More = train.Targets[1:]
	}
	if d.test, err = datasets.ReadFile(ctx, f.Test, &o); err != nil {
		return err
	}
	if f.Weights != "" && d.test.Weights == nil {
		d.hint("%s has no column %s: each test row counts once", f.Test, f.Weights)
	}
	d.hint("%s", unknownText(d.test))
	note, err := d.test.KnownLabels(train.Labels)
	d.hint("%s", note)
	return err
}

// unknownText warns of words that the training rows do not have; "" without any.
func unknownText(d *datasets.Dataset) string {
	var each []string
	for _, u := range d.Unknown {
		each = append(each, u.String())
	}
	if each == nil {
		return ""
	}
	return fmt.Sprintf("%s: words that are not in the training data, whose features are all 0, with their rows, in %s",
		d.Source, strings.Join(each, "; in "))
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
		d.hint("--impute %s: filled %s in the training rows, in %d of %s", how, plural.Count(cells, "missing value"),
			columns, plural.Count(len(count), "feature"))
	}
	return train, err
}

// holdoutSeed draws the rows that are held out: the same whatever the fit's --seed is, so that fits
// are judged alike and verify finds them again.
const holdoutSeed = 1

// showHints prints what was noted while the data were read.
func (a *app) showHints(d *loaded, progress *progress) {
	progress.clear()
	for _, text := range d.hints {
		a.printf("note: %s\n", text)
	}
}
