package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/model/interval"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// rowsFlags are the flags of commands that apply a model to rows.
type rowsFlags struct {
	modelFlag
	Data string `flag:"data" not:"in" help:"points of a named data set: NAME:test or NAME:train"`
	In   string `flag:"in" file:"read" help:"points in a file, or the rows of K(test, train) in a .npy file"`
	datasets.ReadOptions
	Memory int64 `flag:"memory" check:">=0" unit:"bytes" help:"memory limit, such as 20GB (default: what is available)"`

	flags *schema.Schema // all options of the command; its IsSet reports which of them were set
}

// predictFlags are the flags of krrlab predict.
type predictFlags struct {
	rowsFlags
	Out           string `flag:"out" file:"write"`
	Decision      bool   `flag:"decision" help:"write the decision values too"`
	Bound         bool   `flag:"bound" help:"write bounds on the distance to the predictions of the exact solution"`
	Probabilities bool   `flag:"probabilities"`
	Interval      level  `flag:"interval" help:"write intervals that contain the answers at this level, such as 90%"`

	Method string `flag:"method" default:"auto" check:"one of auto split jackknife jackknife+ posterior" with:"interval"`
	Digits string `flag:"digits" default:"auto" check:"one of auto full"`
	pictureFlags
	rankFlags
}

// Help returns the help texts of flags whose tags have none.
func (rowsFlags) Help() map[string]string {
	return map[string]string{
		"target": `target column of the csv file --in: a number from 0, -1 for the last, a header name, or "none" ` +
			"(default: the target column of the fit, if the file has it)",
		"drop": "columns of the csv file --in that are no features: names or numbers (default: those of the fit)",
	}
}

// Help returns the help texts of flags whose tags have none.
func (predictFlags) Help() map[string]string {
	return map[string]string{
		"out": "file to write: CSV, or, if the name ends in .npy, the numbers of all columns except row (default: CSV " +
			"to the output stream)",
		"probabilities": "write the probability of each class by Platt's method, fitted to the errors that fit " +
			"--calibrate saved in the model, or else to leave-one-out errors, for which K is factored again",
		"digits": "full, or auto: predictions in CSV are rounded to a hundredth of half the width of a 90% interval, " +
			"or of that of --interval, if the model knows it; .npy files, --decision, --bound and krrlab serve have " +
			"all digits",
		"method": "method of --interval: auto, " + strings.Join(interval.Methods, ", "),
		"plot":   "draw " + qualityText + " to this file" + plotFormats,
	}
}

// level is a probability between 0 and 1, such as 90% or 0.9; 0 if it is not set.
type level float64

// Set parses a percentage or a number.
func (l *level) Set(text string) error {
	number, percent := strings.CutSuffix(strings.ReplaceAll(text, " ", ""), "%")
	value, err := strconv.ParseFloat(number, 64)
	if percent {
		value /= 100
	}
	if err != nil || !(value > 0 && value < 1) {
		return errors.New("want a level between 0 and 1, such as 90% or 0.9")
	}
	*l = level(value)
	return nil
}

// predictCommand returns the command krrlab predict.
func (a *app) predictCommand() *cobra.Command {
	f := &predictFlags{rankFlags: rankFlags{comm.DefaultLimit}}
	f.flags = schema.Of(f).Remove(fixedReadOptions...)
	return flagCommand(&cobra.Command{
		Use:   "predict MODEL (--data NAME:test | --in FILE) [--out FILE]",
		Short: "Predict with a saved model",
		Long: `Predict writes a csv file with the columns row (numbered from 0) and prediction (the label
or the value). With several targets there is a column prediction_NAME for each. These flags
add columns:

  --decision       the decision values f_j(x)
  --bound          bound, a bound on the distance of all decision values (for regression, of
                   the prediction) from those of the exact solution of (K+λI)c = y; for
                   classes also settled, whether the exact solution certainly gives the same
                   label
  --interval 90%   for regression lo and hi, an interval for the answer; for classes set,
                   the possible labels, separated by |; labels that contain | are in quotes
  --keep id        columns of the file, copied; blanks at the ends of cells are left out
  --probabilities  p_LABEL, the probability of each class

--method chooses how intervals are computed. split uses the test rows of the fit; its
intervals contain the answer at least as often as stated. jackknife+ uses leave-one-out and
factors K again. jackknife does the same with symmetric intervals, or with sets of classes.
posterior takes the answers for a Gaussian process: its intervals grow with the distance to
the data, and it adds std, the standard deviation of f without noise; for points in one to
three dimensions it works for millions of rows.
The default is the method for which fit --calibrate saved errors in the model, else
jackknife+ for regression and jackknife for classes.

If both the csv file --in and the training file have a header, features are found by name:
the order of the columns may differ, and additional columns are ignored with a note. If the
file contains the targets, in the column of the fit or of --target, the predictions are
compared with them, unless the targets cannot be read or none is a label of the model.

For a model with --kernel precomputed, --in is the matrix K(test, train), m×n, in a .npy
file. It has a column for each row of the K of the fit, including rows that were held out.`,
		Example: `  krrlab predict --model m.krr --data mnist:test --out pred.csv
  krrlab predict --model m.krr --in new.csv --decision
  krrlab predict --model m.krr --in new.csv --interval 90%`,
		Args:        f.takeModelArg,
		Annotations: onRanks,
	}, f.flags, f, a.predict)
}

// fixedReadOptions lists the options of reading that commands with a model do not have, because the model determines
// them or because they are for training rows.
var fixedReadOptions = []string{"task", "space", "weights", "repeats", "groups", "dim", "n"}

// check returns an error if the flags are invalid for any model.
func (f *rowsFlags) check() error {
	name, subset, _ := strings.Cut(f.Data, ":")
	switch {
	case f.Data == "" && f.In == "":
		return usagef("nothing to predict: want --data NAME:test or --in FILE")
	case f.Data != "" && subset != "test" && subset != "train":
		return usagef("--data %s: want NAME:test or NAME:train", f.Data)
	}
	return checkDataName(name)
}

// predict runs krrlab predict, on all ranks together. The first rank adds the further columns and writes the files.
func (a *app) predict(ctx context.Context, f *predictFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	if err := a.startRun(ctx, &f.rankFlags, f.flags); err != nil {
		return err
	}
	m, err := a.loadModel(ctx, f.Model, f.Memory)
	if err != nil {
		return err
	}
	data, err := a.predictionPoints(ctx, &f.rowsFlags, m)
	if err = a.agree(ctx, err); err != nil {
		return err
	}
	if err := a.requireSameData(ctx, data); err != nil {
		return err
	}

	p := &predictions{keptColumns: data.CopiedColumns, writesDecision: f.Decision}
	if f.Bound {
		if p.bounds, err = m.DecisionBounds(data); err != nil {
			return fmt.Errorf("%s: %w", f.Model, err)
		}
	}
	// The bound is for predictions in float64.
	options := &model.Options{Float64: f.Bound, Accuracy: model.AccuracyFor(m.Origin.Tol), Comm: a.comm(),
		Progress: a.showPredicted}
	if p.Prediction, err = m.Predict(ctx, data, options); err != nil {
		return err
	}

	if a.isFirstRank() {
		err = a.addOutputs(ctx, f, m, data, p)
	}
	if err = a.agree(ctx, err); err != nil {
		return err
	}
	if a.isFirstRank() {
		err = p.write(a.env.Stdout, f.Out)
	}
	err = cmp.Or(err, a.writeOutput(f.Plot, func(file string) error { return f.save(p.figure, file) }))
	if err = a.agree(ctx, err); err == nil {
		a.reportPredictions(f, m, data, p)
	}
	return err
}

// addOutputs sets the fields of p that the flags select: intervals, probabilities, the unit of rounding and the
// picture. It also finds, among the rows of data, the rows of the fit and those far from them.
func (a *app) addOutputs(ctx context.Context, f *predictFlags, m *model.Model, data *datasets.Dataset,
	p *predictions) (err error) {
	if f.Interval > 0 {
		if p.intervals, err = a.intervals(ctx, f, m, data, p.Prediction); err != nil {
			return err
		}
	}
	if f.Probabilities {
		if p.probabilities, err = a.probabilities(ctx, f, m, p.Prediction); err != nil {
			return err
		}
	}
	if f.Digits == "auto" && !f.Decision && !f.Bound && filepath.Ext(f.Out) != ".npy" {
		p.setUnit(m.Calibration)
	}
	p.farRowsNote = m.FarRowsNote(data)
	if canScore(p.Prediction, data) && (f.Out != "" || f.Plot != "") {
		p.fittedRows = m.CountFittedRows(data)
	}
	p.isCalibrationData = canScore(p.Prediction, data) && interval.IsCalibratedOn(m.Calibration, p.Prediction, data)
	if f.Plot != "" {
		probabilities := p.probabilities
		// Without probabilities, the picture calibrates each half of the rows by the other half.
		if p.isCalibrationData {
			probabilities = nil
		}
		p.figure, err = qualityFigure(m.Origin.Dataset, p.Prediction, data, probabilities, p.fittedRows)
	}
	return err
}

// reportPredictions prints the file that was read, the scores of the predictions if the answers are known, and the
// file that was written. If the predictions went to the output stream, it prints only notes, to the error stream.
func (a *app) reportPredictions(f *predictFlags, m *model.Model, data *datasets.Dataset, p *predictions) {
	var notes []string
	if p.fittedRows > 0 && p.fittedRows < data.Len() {
		notes = append(notes, fmt.Sprintf("%d of %d rows are of the fit, whose errors say little about new rows",
			p.fittedRows, data.Len()))
	}
	if p.probabilities != nil || p.intervals != nil {
		const noTest = ", so that they do not test its intervals and probabilities"
		switch {
		case p.isCalibrationData:
			notes = append(notes, "the model was calibrated on these rows"+noTest)
		case p.fittedRows == data.Len():
			notes = append(notes, "the model was fitted to these rows"+noTest)
		}
	}
	if p.farRowsNote != "" {
		notes = append(notes, p.farRowsNote)
	}
	if f.Out == "" { // the predictions were written to the output stream
		for _, text := range notes {
			a.notef("note: %s", text)
		}
		if data.ReadReport != nil {
			a.notef("read: %v", data.ReadReport)
		}
		if p.unit > 0 {
			a.notef("note: predictions are rounded to %g; --digits full writes all digits", p.unit)
		}
		return
	}
	lines := stage.Lines{Width: labelWidth}
	if data.ReadReport != nil {
		lines.Add("read", "%s", data.ReadReport)
	}
	if canScore(p.Prediction, data) {
		subset := "test"
		if p.fittedRows == data.Len() {
			subset = "training"
		}
		lines.AddScore(subset, p.Score(data))
	}
	for _, text := range notes {
		lines.Add("note", "%s", text)
	}
	if p.bounds != nil {
		lines.Add("bound", "%s", p.boundText(m))
	}
	if p.probabilities != nil {
		lines.Add("probabilities", "%s", probabilityText(p.probabilities, m, data))
	}
	if p.intervals != nil {
		lines.Add("interval", "%s", intervalText(p.intervals, p.Prediction, data))
	}
	if p.unit > 0 {
		lines.Add("digits", "predictions are rounded to %g, at most a hundredth of half an interval's width; "+
			"--digits full writes all", p.unit)
	}
	lines.Add("wrote", "%s (%s)", f.Out, plural.Count(data.Len(), "row"))
	a.printf("%s", lines.String())
	a.printWritten(labelWidth, nil)
}

// predictionPoints reads the rows that the flags name, without scaling, and groups them by the rule f.Repeats, if that
// is not "" and they have no groups of their own. It sets f.TestPart for rows of a file. If the answers in that file
// cannot be compared with predictions, it removes the classes.
func (a *app) predictionPoints(ctx context.Context, f *rowsFlags, m *model.Model) (*datasets.Dataset, error) {
	if kernel.AsPrecomputed(m.Kernel) != nil {
		return f.kernelRows(ctx, m)
	}
	if f.Data == "" {
		f.TestPart, f.ReadOptions.Memory = true, f.Memory
		data, err := readForModel(ctx, m, f.In, f.ReadOptions)
		if err != nil {
			return nil, err
		}
		if data.ReadReport.NoAnswersReason != "" {
			data.Class, data.Labels = nil, nil
		}
		if text := unknownWordsWarning(data); text != "" {
			a.notef("note: %s", text)
		}
		return data, nil
	}
	name, subset, _ := strings.Cut(f.Data, ":")
	pair, err := datasets.Load(ctx, name, &datasets.LoadOptions{Dirs: a.dirs(), Scale: "none", Memory: f.Memory})
	if err != nil {
		return nil, err
	}
	data := pair.Train
	if subset == "test" {
		data = pair.Test
	}
	switch {
	case data == nil:
		return nil, fmt.Errorf("%s has no test rows", name)
	case f.flags.IsSet("repeats"), f.Repeats != "" && (data.Repeats == nil || data.Repeats.Rule != "groups"):
		return data.GroupByRule(f.Repeats, nil)
	}
	return data, nil
}

// setGrouping sets the options by which repeated rows are grouped to those of the fit of m. It leaves Repeats as it is
// if the model does not name a rule.
func setGrouping(options *datasets.ReadOptions, m *model.Model) {
	switch {
	case m.Origin.Groups != "":
		// The groups replace any rule, and the reader refuses another.
		options.Groups, options.Repeats = m.Origin.Groups, "auto"
	case m.Repeats != nil && m.Repeats.Rule != "groups": // groups without a column are those of a caller in Go
		options.Repeats = m.Repeats.Rule
	}
}

// readForModel reads a file whose columns are those of the model's training data. If the predictions cannot be compared
// with the answers in the file, because these cannot be read or have no label of the model, it returns no error but
// sets the reason, ReadReport.NoAnswersReason.
func readForModel(ctx context.Context, m *model.Model, file string, options datasets.ReadOptions) (*datasets.Dataset,
	error) {
	options = m.ReadOptions(options)
	d, err := datasets.ReadFile(ctx, file, &options)
	if err != nil {
		return nil, err
	}
	switch note, err := d.CheckLabels(m.Labels); {
	case err != nil:
		d.ReadReport.NoAnswersReason = cmp.Or(d.ReadReport.NoAnswersReason, err.Error())
	case note != "":
		d.ReadReport.Notes = append(d.ReadReport.Notes, note)
	}
	return d, nil
}

// kernelRows reads the matrix K(test, train) of --in, m×n, for a model with a precomputed kernel matrix. It returns an
// error if flags are set that describe a table.
func (f *rowsFlags) kernelRows(ctx context.Context, m *model.Model) (*datasets.Dataset, error) {
	if f.In == "" || f.flags.IsSet("target", "drop", "keep", "format", "separator", "header", "comment") {
		return nil, usagef("%s is a model of a precomputed K: want --in FILE, K(test, train) in a .npy file, which "+
			"has no columns of text: leave --target, --keep and --format out", f.Model)
	}
	x, err := datasets.ReadMatrix(ctx, f.In, f.Memory)
	if err == nil {
		if err = points.CheckFinite(x); err != nil {
			err = fmt.Errorf("%s: %w", f.In, err)
		}
	}
	return &datasets.Dataset{Name: f.In, Source: f.In, Task: m.Task(), X: x}, err
}

// isSettled reports whether the label of row i is the same for all decision values within their bounds. The bounds must
// have been computed.
func (p *predictions) isSettled(i int) bool {
	row := mat.NewDense(1, p.bounds.RawMatrix().Cols, p.Decision.RawRowView(i))
	return bound.UndecidedRows(row, []float64{1}, p.bounds.RawRowView(i)) == 0
}

// certainty returns "certain" if the error bounds are proved, and otherwise "not certain".
func certainty(bounds *model.ErrorBounds) string {
	if bounds.Certain {
		return "certain"
	}
	return "not certain"
}

// boundText describes the largest of the bounds and, for classes, the number of settled labels.
func (p *predictions) boundText(m *model.Model) string {
	text := fmt.Sprintf("decision values are within %.3g of the exact solution's (%s)", mat.Max(p.bounds),
		certainty(m.ErrorBounds))
	if p.Labels == nil {
		return text
	}
	settled, rows := 0, p.Decision.RawMatrix().Rows
	for i := range rows {
		if p.isSettled(i) {
			settled++
		}
	}
	return text + fmt.Sprintf("; %d of %d labels are settled", settled, rows)
}
