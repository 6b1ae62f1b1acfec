package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
)

// dataFlags are the flags that select the data and describe how to prepare them.
type dataFlags struct {
	Data  string `flag:"data" not:"train|holdout" help:"data set by name (krrlab data list), or folder of krrlab data pack"`
	Train string `flag:"train" file:"read"`
	datasets.ReadOptions
	Words   []string `flag:"categorical" with:"train|in"`
	Dates   []string `flag:"dates" with:"train"`
	Order   string   `flag:"date-order" in:"dates order" default:"auto" check:"one of auto day month" with:"dates"`
	Impute  string   `flag:"impute" default:"none" check:"one of none median mean" with:"train"`
	Scale   string   `flag:"scale" check:"one of auto none unit standard pixel"`
	Center  string   `flag:"center" default:"auto" check:"one of auto yes no"`
	Classes string   `flag:"class-weights" default:"none"`
	Test    string   `flag:"test" file:"read" with:"train" not:"holdout"`
	Holdout float64  `flag:"holdout" check:"(0,1)" with:"train"`
}

// Help returns the help texts of flags whose tags have none.
func (dataFlags) Help() map[string]string {
	return map[string]string{
		"train":       "file of training data (.gz, .bz2, .xz, .zst, and a .zip of one file, are unpacked)",
		"categorical": "columns of words in a csv file; each becomes one 0/1 feature per value (one-hot)",
		"dates": "columns of dates or times in a csv file; each becomes features for the days since the first date, " +
			"the time of day, the weekday and the day of the year; order=day or order=month after them says what " +
			"comes first in 31/12/2024",
		"impute": "what replaces missing features in a csv file (empty, NA, NaN, ?): median or mean of the column in " +
			"the training rows; none refuses them",
		"scale": "scaling of the features: none, unit, standard, pixel (x/255), or auto: none for bytes, sparse points " +
			"and features of similar spread, else standard (default: auto for --train, the registry's for --data)",
		"center": "subtract the mean from the targets and add it to the predictions: yes, no, or auto (yes for " +
			"regression)",
		"class-weights": "balanced gives the rows of a class a weight in inverse proportion to their number, none all " +
			"rows the same weight, and yes=10,no=1 the rows of these labels these weights; they multiply --weights, and " +
			"count in fits, not in scores",
		"test":    "test data, a file of the same form as --train",
		"holdout": "share of the training rows that become test rows, such as 0.2; the same rows in every run",
	}
}

// check returns an error if the flags are invalid for any data.
func (f *dataFlags) check() error {
	if f.Data == "" && f.Train == "" {
		return errors.New("no data: want --data NAME or --train FILE (krrlab data list shows the names)")
	}
	_, separatorErr := datasets.ParseSeparator(f.Separator)
	_, weightsErr := datasets.ParseClassWeights(f.Classes)
	return cmp.Or(checkDataName(f.Data), separatorErr, weightsErr)
}

// problemData contains the training and test data of a problem after scaling, and where they come from.
type problemData struct {
	train, test   *datasets.Dataset // test is nil if there are no test data
	target        string            // target column of the csv file, by name if it has names
	drop          []string          // columns of the csv file that are neither features nor targets
	groups        string            // column of the csv file that says which rows belong together; "" for none
	holdout       float64           // share of the rows read that are test data; 0 without --holdout
	sourceRows    int               // number of rows that were divided into training and test rows; 0 without --holdout
	sigma, lambda float64           // σ and λ of the registry, or λ of the model of --extend; 0 if not known
	hints         []string          // notes to print before the work begins
	kernel        kernel.Kernel     // precomputed K, or the kernel of the model of --extend; nil if the flags choose it
	extended      *model.Model      // model of --extend, whose coefficients are those of the first rows; nil without it
}

// addHint adds a note for the user, which is printed before the work begins. An empty text is ignored.
func (d *problemData) addHint(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != "" {
		d.hints = append(d.hints, text)
	}
}

// loadData reads the data that the flags select and scales their features. If the flags request it, loadData then
// transforms the features for the distance of --sigma, balances the classes and centers the targets.
func (a *app) loadData(ctx context.Context, f *labFlags) (*problemData, error) {
	data, err := a.readData(ctx, f)
	if err == nil {
		_, distance := f.Sigma.scaleAndDistance()
		memory := accel.AvailableMemory(f.Memory, a.processesHere())
		data.train, data.test, err = datasets.ChangeDistanceWithin(memory, distance, data.train, data.test)
		if err == nil && distance != nil {
			data.addHint("%s", data.lengthScaleHint())
		}
	}
	if err == nil {
		data.train, err = data.train.WeighClasses(f.Classes)
	}
	if err != nil || f.Center == "no" {
		return data, err
	}
	if f.Center == "yes" && data.train.Task == datasets.Classification {
		return nil, usagef("--center yes: the answers are classes, which are not centered")
	}
	data.train = data.train.Center()
	return data, nil
}

// lengthScaleHint says which features the numbers of --sigma belong to, if longitude and latitude were projected: the
// projected features come first, whatever the order of --space.
func (d *problemData) lengthScaleHint() string {
	space := d.train.Space
	if space == nil || space.Projection == datasets.PlaneProjection || d.train.Columns == nil {
		return ""
	}
	return fmt.Sprintf("--sigma: the numbers are for %s, in this order", joinNames(d.train.Columns))
}

// readData reads the data that the flags select and scales their features. With --memory it limits the memory of the
// whole process while it reads.
func (a *app) readData(ctx context.Context, f *labFlags) (*problemData, error) {
	if f.Memory > 0 { // the limit makes Go collect garbage in time
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(f.Memory))
	}
	if f.Data == "" {
		return a.loadFiles(ctx, f)
	}
	return a.loadNamed(ctx, f)
}

// loadNamed reads the data set or the packed folder of --data. It returns an error if a packed folder was scaled in
// another way than --scale asks for.
func (a *app) loadNamed(ctx context.Context, f *labFlags) (*problemData, error) {
	options := &datasets.LoadOptions{Dirs: a.dirs(), Scale: f.Scale, N: f.MaxRows, Memory: f.Memory}
	pair, err := datasets.Load(ctx, f.Data, options)
	if err != nil {
		return nil, err
	}
	if packedScale := pair.Train.Scaling.String(); datasets.IsPacked(f.Data) &&
		!slices.Contains([]string{"", "auto", packedScale}, f.Scale) {
		return nil, usagef("--scale %s: %s is packed with --scale %s: pack the data again, or leave it out", f.Scale,
			f.Data, packedScale)
	}
	data := &problemData{train: pair.Train, test: pair.Test, target: pair.Target, drop: pair.Drop,
		sigma: pair.Info.Sigma, lambda: pair.Info.Lambda}
	if f.flags != nil && f.flags.IsSet("repeats") {
		if data.train, err = data.train.GroupByRule(f.Repeats, nil); err != nil {
			return nil, err
		}
	}
	data.hintFewerRows(f.MaxRows, f.Data)
	return data, nil
}

// hintFewerRows adds a hint if there are fewer training rows than --n requests.
func (d *problemData) hintFewerRows(requested int, name string) {
	if n := d.train.Len(); requested > n {
		d.addHint("--n %d: %s has %d training rows; all are used", requested, name, n)
	}
}

// loadFiles reads the files of --train and --test and the precomputed K of --kernel, or holds out test rows, fills in
// missing values and scales the features. It adds a hint about every decision that it makes from the data.
func (a *app) loadFiles(ctx context.Context, f *labFlags) (*problemData, error) {
	options := f.ReadOptions
	options.Memory, options.AnswersOnly = f.Memory, f.Matrix != "" // K takes the place of the features
	options.KeepMissing = options.KeepMissing || f.Impute != "none"
	for _, name := range f.Words {
		options.ColumnCodings = append(options.ColumnCodings, datasets.ColumnCoding{Column: name})
	}
	for _, name := range f.Dates {
		dates := &datasets.DateCoding{Order: f.Order}
		options.ColumnCodings = append(options.ColumnCodings, datasets.ColumnCoding{Column: name, Dates: dates})
	}
	train, err := datasets.ReadFile(ctx, f.Train, &options)
	if err != nil {
		return nil, err
	}

	data := &problemData{train: train, target: f.Target, drop: f.Drop, groups: f.Groups}
	if train.Columns != nil && train.ReadReport.Target != "" { // in other files the column may have another number
		data.target = train.ReadReport.Target
	} else if train.TargetNames != nil {
		data.target = train.TargetNames[0]
	}
	for _, column := range []string{f.Weights, f.Groups} { // they are not features in other files either
		if column != "" && train.Space == nil { // with coordinates, all other columns are left out anyway
			data.drop = append(data.drop[:len(data.drop):len(data.drop)], column) // never into the array of f.Drop
		}
	}
	data.hintFewerRows(f.MaxRows, f.Train)
	data.addHint("%s", train.IDHint())
	if f.Task == "auto" && train.TargetNames == nil {
		data.addHint("%s", train.TaskHint())
	}

	if f.Matrix != "" {
		if err := data.usePrecomputed(ctx, f); err != nil {
			return nil, err
		}
		if a.ranks != nil {
			return nil, usagef("--kernel precomputed is for one process: K is not distributed over ranks")
		}
	}
	if f.Holdout > 0 {
		data.sourceRows, data.holdout = train.Len(), f.Holdout
		if data.train, data.test, err = train.Holdout(f.Holdout, holdoutSeed); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Train, err)
		}
		note, err := data.test.CheckLabels(data.train.Labels)
		if data.addHint("%s", note); err != nil {
			return nil, err
		}
	}
	if f.Test != "" {
		if err := data.readTest(ctx, f, train, options); err != nil {
			return nil, err
		}
	}

	memory := accel.AvailableMemory(f.Memory, a.processesHere())
	return data, data.imputeAndScale(f.Impute, cmp.Or(f.Scale, "auto"), memory)
}

// imputeAndScale fills in missing values by the rule --impute, and scales the features by the rule --scale. For auto it
// adds a hint with the scaling that it chooses. Scaled sparse points have to fit the memory budget. A precomputed K has
// no features to scale.
func (d *problemData) imputeAndScale(imputation, scale string, memory accel.Budget) (err error) {
	if d.train, err = d.impute(imputation); err != nil || d.kernel != nil {
		return err
	}
	if scale == "auto" {
		var reason string
		if scale, reason = d.train.AutoScaling(); reason != "" {
			d.addHint("--scale auto: %s, since %s", scale, reason)
		}
	}
	d.train, d.test, err = datasets.ScaleWithin(memory, scale, d.train, d.test)
	return err
}

// readTest reads the test file into d.test, with the task, the columns and the categories of the training rows train,
// which were read with the given options. readTest adds hints about differences between the two files, and returns an
// error if the labels do not match.
func (d *problemData) readTest(ctx context.Context, f *labFlags, train *datasets.Dataset,
	options datasets.ReadOptions) (err error) {
	options.Target, options.Task, options.ColumnCodings, options.Space = d.target, train.Task.String(),
		train.ColumnCodings, train.Space
	options.Columns, options.Dim, options.DimSource, options.TestPart = train.Columns, train.Dim(), f.Train, true
	options.Drop = slices.DeleteFunc(slices.Clone(d.drop), func(name string) bool { return name == f.Weights })
	options.MaxRows, options.AnswersOnly = 0, false
	if _, err := strconv.Atoi(f.Groups); err == nil && train.Columns != nil { // the column may have another number
		options.Groups = ""
	}
	if train.TargetNames != nil {
		options.MoreTargets = train.TargetNames[1:]
	}
	if d.test, err = datasets.ReadFile(ctx, f.Test, &options); err != nil {
		return err
	}
	if f.Weights != "" && d.test.Weights == nil {
		d.addHint("%s has no column %s: each test row counts once", f.Test, f.Weights)
	}
	switch repeats := d.test.Repeats; {
	case f.Groups == "":
	case options.Groups == "":
		d.addHint("each row of %s counts as a group, since the column may have another number there: --groups NAME "+
			"finds it", f.Test)
	case repeats == nil || repeats.Rule != "groups":
		d.addHint("%s has no column %s: each of its rows counts as a group", f.Test, f.Groups)
	default:
		d.addHint("groups are not compared between files: the test error is of new groups only if %s has no row of a "+
			"group in %s", f.Test, f.Train)
	}
	d.addHint("%s", unknownWordsWarning(d.test))
	note, err := d.test.CheckLabels(train.Labels)
	d.addHint("%s", note)
	return err
}

// unknownWordsWarning returns a warning about words in categorical columns of d that do not occur in the training rows,
// or "" if there are none.
func unknownWordsWarning(d *datasets.Dataset) string {
	var descriptions []string
	for _, words := range d.UnknownWords {
		descriptions = append(descriptions, words.String())
	}
	if descriptions == nil {
		return ""
	}
	return fmt.Sprintf("%s: words that are not in the training data, whose features are all 0, with their rows, in %s",
		d.Source, strings.Join(descriptions, "; in "))
}

// impute returns the training data with missing values filled in by the rule, and adds a hint with their number.
func (d *problemData) impute(rule string) (*datasets.Dataset, error) {
	train, missing, err := d.train.Impute(rule) // missing[j] is the number of missing values of feature j
	cells, columns := 0, 0
	for _, count := range missing {
		if count > 0 {
			cells += count
			columns++
		}
	}
	if cells > 0 {
		d.addHint("--impute %s: filled %s in the training rows, in %d of %s", rule,
			plural.Count(cells, "missing value"), columns, plural.Count(len(missing), "feature"))
	}
	return train, err
}

// holdoutSeed is the seed for drawing the rows of --holdout. It does not depend on --seed, so that all fits are tested
// on the same rows and verify can draw them again.
const holdoutSeed = 1

// showHints prints the hints that were added while the data were read.
func (a *app) showHints(d *problemData) {
	for _, text := range d.hints {
		a.printf("note: %s\n", text)
	}
}
