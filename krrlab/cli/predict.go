package cli

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/internal/atomicfile"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/interval"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage"
)

// predictFlags are the flags of krrlab predict.
type predictFlags struct {
	modelFlag
	rankFlags
	textFlags
	data, in, target, out     string
	drop, keep                []string
	decision, bound, probable bool
	interval, method          string
}

func (a *app) predictCommand() *cobra.Command {
	f := &predictFlags{}
	cmd := &cobra.Command{
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
with symmetric intervals, or sets of classes. gp uses a Gaussian process. The default is
what fit --calibrate kept in the model, else jackknife+, and jackknife for classes.

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
		RunE:        func(cmd *cobra.Command, _ []string) error { return a.predict(cmd.Context(), cmd.Flags(), f) },
	}
	p := cmd.Flags()
	f.modelFlag.add(p)
	p.StringVar(&f.data, "data", "", "points of a named data set: NAME:test or NAME:train")
	p.StringVar(&f.in, "in", "", "points in a file, or the rows of K(test, train) in a .npy file")
	f.textFlags.add(p)
	p.StringVar(&f.target, "target", "", `target column of a csv file --in: 0-based, -1 the last, a header name, or "none" (default: the one of the fit, if it is there)`)
	p.StringSliceVar(&f.drop, "drop", nil, "columns of a csv file --in that are no features: names or numbers (default: those of the fit)")
	p.StringSliceVar(&f.keep, "keep", nil, "columns of a csv file --in, such as an id, that are copied to the output: names or numbers, separated by commas")
	p.StringVar(&f.out, "out", "", "file to write, as CSV, or as the numbers of its columns but row if it is named .npy (default: CSV to the output stream)")
	p.BoolVar(&f.decision, "decision", false, "write the decision values too")
	p.BoolVar(&f.bound, "bound", false, "write bounds of the distance to the predictions of the exact solution")
	p.BoolVar(&f.probable, "probabilities", false, "write the probability of each class by Platt's method, fitted to rows that were left out (those that fit --calibrate kept in the model, else by leave-one-out, which factors K again)")
	p.StringVar(&f.interval, "interval", "", "write intervals that contain the answers at this level, such as 90%")
	p.StringVar(&f.method, "method", "auto", "method of --interval: auto, "+strings.Join(interval.Methods, ", "))
	wantOneOf(p, append([]string{"auto"}, interval.Methods...), "method")
	f.rankFlags.add(p)
	p.SortFlags = false
	return cmd
}

func (f *predictFlags) check(set *pflag.FlagSet) error {
	switch {
	case (f.data == "") == (f.in == ""):
		return usagef("nothing to predict: want --data NAME:test or --in FILE")
	case f.interval == "" && set.Changed("method"):
		return usagef("--method goes with --interval")
	case f.data != "" && (f.changed(set) != "" || set.Changed("target") || set.Changed("drop") || set.Changed("keep")):
		return usagef("--drop, --keep, --separator, --header, --comment, --format and --target go with --in; --data has its own")
	}
	if _, err := parseLevel(f.interval); f.interval != "" && err != nil {
		return err
	}
	if name, part, _ := strings.Cut(f.data, ":"); f.data != "" && part != "test" && part != "train" {
		return usagef("--data %s: want NAME:test or NAME:train", f.data)
	} else if err := knownData(name); err != nil {
		return err
	}
	return nil
}

func (a *app) predict(ctx context.Context, set *pflag.FlagSet, f *predictFlags) error {
	if err := f.check(set); err != nil {
		return err
	}
	if err := a.join(ctx, set, &f.rankFlags); err != nil {
		return err
	}
	if err := a.mayWrite(ctx, []namedFile{{"--model", f.model}, {"--in", f.in}}, []namedFile{{"--out", f.out}}); err != nil {
		return err
	}
	m, err := model.Load(f.model)
	if err = a.agree(ctx, err); err != nil {
		return err
	}
	data, err := a.points(ctx, f, m)
	if err = a.agree(ctx, err); err != nil {
		return err
	}
	if err := a.sameData(ctx, &loaded{train: data}); err != nil {
		return err
	}
	var bounds *mat.Dense
	if f.bound {
		if bounds, err = m.Bounds(data); err != nil {
			return fmt.Errorf("%s: %w", f.model, err)
		}
	}
	progress := a.newProgress()
	defer progress.clear()
	pred, err := m.Predict(ctx, data, &model.Options{Float64: f.bound, Accuracy: model.AccuracyFor(m.Origin.Tol), Comm: a.group(), Progress: func(done, total int) {
		progress.show(krrlab.Event{Stage: stage.Predict, Done: done, Total: total, Remaining: -1})
	}})
	if err != nil {
		return err
	}
	var within *interval.Intervals
	if f.interval != "" && a.first() {
		within, err = a.intervals(ctx, f, m, data, pred)
	}
	var prob *mat.Dense
	if f.probable && a.first() && err == nil {
		prob, err = a.probabilities(ctx, f, m, pred)
	}
	if err = a.agree(ctx, err); err != nil {
		return err
	}
	progress.clear()
	if err := a.agree(ctx, a.putPredictions(f, data.Kept, pred, bounds, prob, within)); err != nil {
		return err
	}
	if f.out == "" { // where the predictions are printed
		if data.Read != nil && a.first() && !a.quiet {
			fmt.Fprintf(a.env.Stderr, "krrlab: read: %v\n", data.Read)
		}
		return nil
	}
	if data.Read != nil {
		a.printf("%-12s %s\n", "read", data.Read)
	}
	if data.HasAnswers() && data.Task == m.Task() && len(data.More)+1 == max(1, len(m.Targets)) {
		lines := stage.Lines{Width: 12}
		lines.Score(map[bool]string{true: "training", false: "test"}[m.FittedOn(data)], pred.Score(data))
		a.printf("%s", lines.String())
	}
	if f.bound {
		a.printf("%-12s %s\n", "bound", boundText(m, pred, bounds))
	}
	if prob != nil {
		a.printf("%-14s%s\n", "probabilities", probableText(prob, m, data))
	}
	if within != nil {
		a.printf("%-12s %s\n", "interval", intervalText(within, pred, data))
	}
	a.printf("%-12s %s (%s)\n", "wrote", f.out, plural.Count(data.Len(), "row"))
	return nil
}

// putPredictions writes the predictions to the file or the output stream.
func (a *app) putPredictions(f *predictFlags, kept [][]string, pred *model.Prediction, bounds, prob *mat.Dense, within *interval.Intervals) error {
	switch {
	case !a.first():
		return nil
	case f.out == "":
		return writePredictions(a.env.Stdout, kept, pred, bounds, prob, within, f.decision)
	}
	return atomicfile.Write(f.out, asNamed(f.out, func(w io.Writer) error {
		return writePredictions(w, kept, pred, bounds, prob, within, f.decision)
	}))
}

func (a *app) points(ctx context.Context, f *predictFlags, m *model.Model) (*datasets.Dataset, error) {
	if kernel.Given(m.Kernel) != nil {
		if f.keep != nil {
			return nil, usagef("--keep is for csv files; --in of a precomputed K has no columns of text")
		}
		return f.rows(ctx, m)
	}
	if f.data == "" {
		data, err := readFor(ctx, m, f.in, f.textFlags, f.target, f.drop, f.keep...)
		if err != nil {
			return nil, err
		}
		note, err := data.KnownLabels(m.Labels)
		if err != nil {
			data.Class, data.Labels, data.Read.Unjudged = nil, nil, err.Error()
		} else if note != "" {
			data.Read.Notes = append(data.Read.Notes, note)
		}
		if text := unknownText(data); text != "" && a.first() && !a.quiet {
			fmt.Fprintf(a.env.Stderr, "krrlab: note: %s\n", text)
		}
		return data, nil
	}
	name, part, _ := strings.Cut(f.data, ":")
	pair, err := datasets.Load(ctx, name, &datasets.LoadOptions{Dirs: a.dirs(), Scale: "none"})
	if err != nil {
		return nil, err
	}
	if part == "train" {
		return pair.Train, nil
	}
	if pair.Test == nil {
		return nil, fmt.Errorf("%s has no test rows", name)
	}
	return pair.Test, nil
}

// readFor reads a file for a model. Features are found by their names where both have them, and the target is in the column
// of the fit, if the file has it, unless another is asked for.
func readFor(ctx context.Context, m *model.Model, file string, f textFlags, target string, drop []string, keep ...string) (*datasets.Dataset, error) {
	o := f.options()
	o.Target, o.Task, o.Drop, o.Categorical = target, m.Task().String(), m.Origin.Drop, m.Origin.Categorical
	o.Columns, o.DimOf, o.KeepMissing = m.Columns, "the model", m.Scaling.Fills()
	if _, o.Dim, _ = m.Dims(); drop != nil {
		o.Drop = drop
	}
	o.Keep = keep
	if target == "" { // what the fit's was goes for a csv file only
		o.Target, o.TargetOptional = m.Origin.Target, true
		if m.Targets != nil {
			o.More = m.Targets[1:]
		}
	}
	return datasets.ReadFile(ctx, file, &o)
}

// settled reports whether the label of row i is that of all decision values within their bounds.
func settled(p *model.Prediction, bounds *mat.Dense, i int) bool {
	one := mat.NewDense(1, bounds.RawMatrix().Cols, p.Decision.RawRowView(i))
	return bound.Open(one, []float64{1}, bounds.RawRowView(i)) == 0
}

func certainty(e *model.Error) string {
	if e.Certain {
		return "certain"
	}
	return "not certain"
}

func boundText(m *model.Model, p *model.Prediction, bounds *mat.Dense) string {
	rows := p.Decision.RawMatrix().Rows
	text := fmt.Sprintf("decision values are within %.3g of the exact solution's (%s)", mat.Max(bounds), certainty(m.Error))
	if p.Labels != nil {
		count := 0
		for i := range rows {
			if settled(p, bounds, i) {
				count++
			}
		}
		text += fmt.Sprintf("; %d of %d labels are settled", count, rows)
	}
	return text
}

// writePredictions writes the header and a line a row, with the columns kept after its number.
func writePredictions(w io.Writer, kept [][]string, p *model.Prediction, bounds, prob *mat.Dense, within *interval.Intervals, decision bool) error {
	c := csv.NewWriter(w)
	rows, t := p.Decision.Dims()
	record := []string{"row"}
	for _, column := range kept {
		record = append(record, column[0])
	}
	for _, name := range p.Targets {
		record = append(record, "prediction_"+name)
	}
	if p.Targets == nil {
		record = append(record, "prediction")
	}
	if decision {
		for j := range t {
			record = append(record, decisionName(p, j, t))
		}
	}
	if bounds != nil {
		if record = append(record, "bound"); p.Labels != nil {
			record = append(record, "settled")
		}
	}
	if prob != nil {
		for _, label := range p.Labels {
			record = append(record, "p_"+label)
		}
	}
	if err := c.Write(append(record, intervalNames(within)...)); err != nil {
		return err
	}
	for i := range rows {
		record = append(record[:0], strconv.Itoa(i))
		for _, column := range kept {
			record = append(record, column[i+1])
		}
		record = append(record, p.Text(i))
		for j := 1; j < len(p.Targets); j++ {
			record = append(record, fmt.Sprint(p.Decision.At(i, j)))
		}
		if decision {
			for j := range t {
				record = append(record, strconv.FormatFloat(p.Decision.At(i, j), 'g', -1, 64))
			}
		}
		if bounds != nil {
			record = append(record, strconv.FormatFloat(slices.Max(bounds.RawRowView(i)), 'g', -1, 64))
			if p.Labels != nil {
				record = append(record, strconv.FormatBool(settled(p, bounds, i)))
			}
		}
		if prob != nil {
			for _, v := range prob.RawRowView(i) {
				record = append(record, strconv.FormatFloat(v, 'g', -1, 64))
			}
		}
		if err := c.Write(append(record, intervalCells(within, p, i)...)); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// decisionName names column j: by its class where there is one a class.
func decisionName(p *model.Prediction, j, t int) string {
	switch {
	case p.Targets != nil:
		return "decision_" + p.Targets[j]
	case t > 1:
		return "decision_" + p.Labels[j]
	}
	return "decision"
}
