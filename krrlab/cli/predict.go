package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
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

// predictFlags are the flags of krrlab predict.
type predictFlags struct {
	modelFlag
	Data string `flag:"data" not:"in" help:"points of a named data set: NAME:test or NAME:train"`
	In   string `flag:"in" file:"read" help:"points in a file, or the rows of K(test, train) in a .npy file"`
	datasets.ReadOptions
	Out           string `flag:"out" file:"write"`
	Decision      bool   `flag:"decision" help:"write the decision values too"`
	Bound         bool   `flag:"bound" help:"write bounds of the distance to the predictions of the exact solution"`
	Probabilities bool   `flag:"probabilities"`
	Interval      level  `flag:"interval" help:"write intervals that contain the answers at this level, such as 90%"`

	Method string `flag:"method" default:"auto" check:"one of auto split jackknife jackknife+" with:"interval"`
	rankFlags

	flags *schema.Schema
}

func (predictFlags) Help() map[string]string {
	return map[string]string{
		"target": `target column of a csv file --in: 0-based, -1 the last, a header name, or "none" (default: the ` +
			"one of the fit, if it is there)",
		"drop": "columns of a csv file --in that are no features: names or numbers (default: those of the fit)",
		"out": "file to write, as CSV, or as the numbers of its columns but row if it is named .npy (default: CSV to " +
			"the output stream)",
		"probabilities": "write the probability of each class by Platt's method, fitted to rows that were left out " +
			"(those that fit --calibrate kept in the model, else by leave-one-out, which factors K again)",
		"method": "method of --interval: auto, " + strings.Join(interval.Methods, ", "),
	}
}

// level is a probability such as 90% or 0.9; 0 is none.
type level float64

func (l *level) Set(text string) error {
	number, percent := strings.CutSuffix(strings.ReplaceAll(text, " ", ""), "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v > 0 && v < 1) {
		return errors.New("want a level between 0 and 1, such as 90% or 0.9")
	}
	*l = level(v)
	return nil
}

func (a *app) predictCommand() *cobra.Command {
	f := &predictFlags{rankFlags: rankFlags{comm.DefaultLimit}}
	f.flags = schema.Of(f).Without("task", "weights", "repeats", "groups", "dim", "n")
	return withOptions(&cobra.Command{
		Use:   "predict MODEL (--data NAME:test | --in FILE) [--out FILE]",
		Short: "Predict with a saved model",
		Long: `Predict writes a csv file with the columns row (counted from 0) and prediction, the label or
the value; several targets have a column prediction_NAME each. More columns on request:

  --decision       the decision values f_j(x)
  --bound          bound, the largest distance of any decision value (for regression the
                   prediction) from that of the exact solution of (K+λI)c = y; for classes
                   also settled, whether the exact solution certainly has the same label
  --interval 90%   lo and hi, an interval for the answer; for classes set, the possible
                   classes, separated by |, a label that contains | in quotes
  --keep id        columns of the file, as they stand in it
  --probabilities  p_LABEL, the probability of each class, fitted to rows that were left out

--method chooses the intervals. split uses the test rows of the fit and covers at least as
often as stated. jackknife+ uses leave-one-out, and factors K again; jackknife does the same
with symmetric intervals, or sets of classes. The default is what fit --calibrate kept in the
model, else jackknife+, and jackknife for classes.

If both the csv file --in and the training file have a header, features are found by their
names: their order may be another, and other columns are left out, which a line says. The file
may contain the targets, in the column of the fit or of --target: the predictions are then
judged, unless they cannot be read or have none of the model's labels.

For a model of --kernel precomputed, --in is K(test, train) in a .npy file, m×n, with a column
for each row of the K of the fit, including rows that were held out.`,
		Example: `  krrlab predict --model m.krr --data mnist:test --out pred.csv
  krrlab predict --model m.krr --in new.csv --decision
  krrlab predict --model m.krr --in new.csv --interval 90%`,
		Args:        f.take,
		Annotations: onRanks,
	}, f.flags, func(ctx context.Context, _ []string) error { return a.predict(ctx, f) })
}

func (f *predictFlags) check() error {
	name, part, _ := strings.Cut(f.Data, ":")
	switch {
	case f.Data == "" && f.In == "":
		return usagef("nothing to predict: want --data NAME:test or --in FILE")
	case f.Data != "" && part != "test" && part != "train":
		return usagef("--data %s: want NAME:test or NAME:train", f.Data)
	}
	return knownData(name)
}

func (a *app) predict(ctx context.Context, f *predictFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	m, err := a.opened(ctx, f.Model, &f.rankFlags, f.flags)
	if err != nil {
		return err
	}
	data, err := a.points(ctx, f, m)
	if err = a.agree(ctx, err); err != nil {
		return err
	}
	if err := a.sameData(ctx, data); err != nil {
		return err
	}
	p := &predictions{kept: data.Kept, decision: f.Decision}
	if f.Bound {
		if p.bounds, err = m.Bounds(data); err != nil {
			return fmt.Errorf("%s: %w", f.Model, err)
		}
	}
	progress := a.newProgress()
	defer progress.clear()
	o := &model.Options{Float64: f.Bound, Accuracy: model.AccuracyFor(m.Origin.Tol), Comm: a.group()}
	o.Progress = func(done, total int) {
		progress.show(krrlab.Event{Stage: stage.Predict, Done: done, Total: total, Remaining: -1})
	}
	if p.Prediction, err = m.Predict(ctx, data, o); err != nil {
		return err
	}
	if f.Interval > 0 && a.first() {
		p.within, err = a.intervals(ctx, f, m, data, p.Prediction)
	}
	if f.Probabilities && a.first() && err == nil {
		p.prob, err = a.probabilities(ctx, f, m, p.Prediction)
	}
	if err = a.agree(ctx, err); err != nil {
		return err
	}
	progress.clear()
	if a.first() {
		err = p.write(a.env.Stdout, f.Out)
	}
	if err = a.agree(ctx, err); err == nil {
		a.reportPredictions(f, m, data, p)
	}
	return err
}

// reportPredictions says what was read, how good the predictions are, and where they are written.
func (a *app) reportPredictions(f *predictFlags, m *model.Model, data *datasets.Dataset, p *predictions) {
	if f.Out == "" { // where the predictions are printed
		if data.Read != nil {
			a.note("read: %v", data.Read)
		}
		return
	}
	lines := stage.Lines{Width: 12}
	if data.Read != nil {
		lines.Add("read", "%s", data.Read)
	}
	if data.HasAnswers() && data.Task == m.Task() && len(data.More)+1 == max(1, len(m.Targets)) {
		lines.Score(map[bool]string{true: "training", false: "test"}[m.FittedOn(data)], p.Score(data))
	}
	if p.bounds != nil {
		lines.Add("bound", "%s", p.boundText(m))
	}
	if p.prob != nil {
		lines.Add("probabilities", "%s", probableText(p.prob, m, data))
	}
	if p.within != nil {
		lines.Add("interval", "%s", intervalText(p.within, p.Prediction, data))
	}
	lines.Add("wrote", "%s (%s)", f.Out, plural.Count(data.Len(), "row"))
	a.printf("%s", lines.String())
}

func (a *app) points(ctx context.Context, f *predictFlags, m *model.Model) (*datasets.Dataset, error) {
	if kernel.AsPrecomputed(m.Kernel) != nil {
		return f.rows(ctx, m)
	}
	if f.Data == "" {
		f.TestPart = true
		data, err := readFor(ctx, m, f.In, f.ReadOptions)
		if err != nil {
			return nil, err
		}
		if data.Read.Unjudged != "" {
			data.Class, data.Labels = nil, nil
		}
		if text := unknownText(data); text != "" {
			a.note("note: %s", text)
		}
		return data, nil
	}
	name, part, _ := strings.Cut(f.Data, ":")
	pair, err := datasets.Load(ctx, name, &datasets.LoadOptions{Dirs: a.dirs(), Scale: "none"})
	switch {
	case err != nil:
		return nil, err
	case part == "train":
		return pair.Train, nil
	case pair.Test == nil:
		return nil, fmt.Errorf("%s has no test rows", name)
	}
	return pair.Test, nil
}

// readFor reads a file for a model. Read.Unjudged says what is wrong with the answers.
func readFor(ctx context.Context, m *model.Model, file string, o datasets.ReadOptions) (*datasets.Dataset, error) {
	o = m.ReadOptions(o)
	d, err := datasets.ReadFile(ctx, file, &o)
	if err != nil {
		return nil, err
	}
	switch note, err := d.KnownLabels(m.Labels); {
	case err != nil:
		d.Read.Unjudged = cmp.Or(d.Read.Unjudged, err.Error())
	case note != "":
		d.Read.Notes = append(d.Read.Notes, note)
	}
	return d, nil
}

// rows reads K(test, train) for a model of a precomputed K.
func (f *predictFlags) rows(ctx context.Context, m *model.Model) (*datasets.Dataset, error) {
	if f.In == "" || f.flags.Given("target", "drop", "keep", "format", "separator", "header", "comment") {
		return nil, usagef("%s is a model of a precomputed K: want --in FILE, K(test, train) in a .npy file, which "+
			"has no columns of text: leave --target, --keep and --format out", f.Model)
	}
	x, err := datasets.ReadMatrix(ctx, f.In, 0)
	if err == nil {
		if err = points.CheckFinite(x); err != nil {
			err = fmt.Errorf("%s: %w", f.In, err)
		}
	}
	return &datasets.Dataset{Name: f.In, Source: f.In, Task: m.Task(), X: x}, err
}

// settled reports whether the label of row i is that of all decision values within their bounds.
func (p *predictions) settled(i int) bool {
	one := mat.NewDense(1, p.bounds.RawMatrix().Cols, p.Decision.RawRowView(i))
	return bound.Open(one, []float64{1}, p.bounds.RawRowView(i)) == 0
}

func certainty(e *model.Error) string {
	if e.Certain {
		return "certain"
	}
	return "not certain"
}

func (p *predictions) boundText(m *model.Model) string {
	text := fmt.Sprintf("decision values are within %.3g of the exact solution's (%s)", mat.Max(p.bounds),
		certainty(m.Error))
	if p.Labels == nil {
		return text
	}
	count, rows := 0, p.Decision.RawMatrix().Rows
	for i := range rows {
		if p.settled(i) {
			count++
		}
	}
	return text + fmt.Sprintf("; %d of %d labels are settled", count, rows)
}
