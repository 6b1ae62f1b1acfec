package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/model/explain"
	"github.com/krrlab/lab/plots"
)

// qualityText describes the picture of explain.Quality in help texts.
const qualityText = "predicted against actual, or ROC, confusion and calibration,"

// qualityFigure draws the predictions p against the answers of d, under a title with the name of the data and the
// error. probabilities has a row for each point and a column for each class; it may be nil. fittedRows is the number of
// rows of d to which the model was fitted. qualityFigure returns an error if d has no answers of the predicted kind, or
// if the picture cannot be drawn.
func qualityFigure(name string, p *model.Prediction, d *datasets.Dataset, probabilities *mat.Dense,
	fittedRows int) (*plots.Figure, error) {
	if !canScore(p, d) {
		return nil, fmt.Errorf("--plot: there are no answers to compare the predictions with")
	}
	score := p.Score(d)
	quality := fmt.Sprintf("RMSE %s, R² %.3f", outward.Plain(score.RMSE, 4), score.R2)
	if p.Labels != nil {
		quality = fmt.Sprintf("error %.2f %%", 100*score.ErrorRate)
	} else if score.TargetRMSEs != nil {
		quality = "RMSE " + outward.PlainList(score.TargetRMSEs, 3)
	}
	title := fmt.Sprintf("%s: %s on %s", name, quality, explain.RowsText(score.N, score.N, fittedRows))
	figure := explain.Quality(title, p, d, probabilities, fittedRows)
	return figure, figure.Validate()
}

// canScore reports whether d has answers that can be compared with the predictions p: labels if labels are predicted,
// and otherwise as many targets as are predicted.
func canScore(p *model.Prediction, d *datasets.Dataset) bool {
	return d.HasAnswers() && (d.Class != nil) == (p.Labels != nil) && len(d.MoreTargets)+1 == max(1, len(p.Targets))
}

// plotPredictions sets r.plot to the picture of the test rows, or of a part of the training rows if there are no test
// rows.
func (r *fitResult) plotPredictions(ctx context.Context) (err error) {
	rows, p, fittedRows := r.data.test, r.test, 0
	if p == nil { // there are no test rows
		rows = r.data.train.Subset(explain.SpacedRows(r.data.train.Len()))
		if p, err = r.sol.Model.Predict(ctx, rows, r.sol.PredictOptions()); err != nil {
			return err
		}
		fittedRows = rows.Len()
	}
	r.plot, err = qualityFigure(r.sol.Dataset, p, rows, nil, fittedRows)
	return err
}

// explainFlags are the flags of krrlab explain.
type explainFlags struct {
	rowsFlags
	explain.Options
	stageFiles
}

// Help returns the help texts of flags whose tags have none.
func (explainFlags) Help() map[string]string {
	return map[string]string{
		"json": "write the importance of all columns and the partial dependence as JSON to this file",
		"groups": "column of the csv file --in whose equal values form groups, which count once in the standard errors " +
			"(default: that of the fit)",
		"repeats": "which rows of equal features count once in the standard errors: copies (auto), all (together) or none " +
			"(apart) (default: the rule of the fit)",
		"plot": "draw importance and partial dependence to this file" + plotFormats,
	}
}

// explainCommand returns the command krrlab explain.
func (a *app) explainCommand() *cobra.Command {
	f := &explainFlags{}
	f.flags = schema.Of(f).Remove("task", "space", "weights", "dim", "n", "keep")
	return flagCommand(&cobra.Command{
		Use:   "explain MODEL (--in FILE | --data NAME:test)",
		Short: "Show which columns the predictions of a saved model depend on",
		Long: `Explain measures, on rows with answers, by how much the error increases if the cells of one
column are permuted among the rows, with its standard error over the rows, and for the leading
columns the mean prediction as a function of their values (partial dependence). A column of
words or dates counts as one. Rows are grouped as in the fit (--repeats, --groups), and a group
counts once in the standard errors. Take rows that the fit has not seen. Columns that carry the same
information share its importance.`,
		Example: `  krrlab explain m.krr --in rows.csv
  krrlab explain m.krr --in rows.csv --permutations 30 --plot explain.html --json explain.json`,
		Args: f.takeModelArg,
	}, f.flags, f, a.explain)
}

// explain runs krrlab explain. It returns an error if the rows have no answers.
func (a *app) explain(ctx context.Context, f *explainFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	m, err := model.LoadWithin(f.Model, accel.AvailableMemory(f.Memory, 1))
	if err != nil {
		return err
	}
	if !f.flags.IsSet("repeats", "groups") {
		setGrouping(&f.ReadOptions, m)
		// The column may have another number in this file.
		if _, err := strconv.Atoi(f.Groups); err == nil && m.Columns != nil {
			f.Groups = ""
			a.notef("note: the groups of the fit are in column %s of its file, which may have another number in %s: its rows "+
				"are not grouped by it; --groups NAME does", m.Origin.Groups, cmp.Or(f.In, f.Data))
		}
	}
	rows, err := a.predictionPoints(ctx, &f.rowsFlags, m)
	if err == nil && f.Groups != "" && (rows.Repeats == nil || rows.Repeats.Rule != "groups") {
		a.notef("note: %s has no column %s: each of its rows counts as a group", cmp.Or(f.In, f.Data), f.Groups)
	}
	if err == nil && rows.ReadReport != nil && rows.ReadReport.NoAnswersReason != "" {
		err = errors.New(rows.ReadReport.NoAnswersReason)
	}
	if err != nil {
		return err
	}
	options := f.Options
	options.Progress = a.showPredicted
	explanation, err := explain.Run(ctx, m, rows, options)
	if err != nil {
		return err
	}
	err = a.printAndWrite(&f.stageFiles, explanation)
	a.printWritten(stageLabelWidth, nil)
	return err
}
