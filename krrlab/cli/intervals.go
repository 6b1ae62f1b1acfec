package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/model/interval"
)

// intervals returns the prediction intervals of --interval and --method for the predictions p of the rows d. It uses
// the scores in the model if they are for this method. Otherwise the jackknife methods factor K+λI for leave-one-out
// errors, and method posterior computes the variances of the points. intervals returns an error for a model of several
// targets, and for method split if the model has no scores of test rows.
func (a *app) intervals(ctx context.Context, f *predictFlags, m *model.Model, d *datasets.Dataset,
	p *model.Prediction) (*interval.Intervals, error) {
	if m.Targets != nil {
		return nil, fmt.Errorf("%s has %d targets: --interval is for models with one target", f.Model, len(m.Targets))
	}
	level, calibration, method := float64(f.Interval), m.Calibration, f.Method
	switch {
	case method == "auto" && calibration != nil:
		method = calibration.Method
	case method == "auto" && m.Labels == nil:
		method = interval.JackknifePlus
	case method == "auto":
		method = interval.Jackknife
	case method == interval.Split && (calibration == nil || calibration.Method != interval.Split):
		return nil, fmt.Errorf("%s has no scores of rows that it was not fitted on: fit with --holdout or --test, or "+
			"take --method jackknife+", f.Model)
	}
	if calibration != nil && calibration.Method == method {
		return interval.FromScores(calibration, p, level)
	}
	if method == interval.GaussianProcess {
		posterior, err := interval.NewPosterior(ctx, m, p, d, accel.AvailableMemory(f.Memory, 1))
		if err != nil {
			return nil, err
		}
		return posterior.Intervals(level)
	}
	system, err := a.factorSystem(ctx, m, f.Memory)
	if err != nil {
		return nil, err
	}
	if method == interval.Jackknife {
		return interval.FromScores(interval.CalibrateJackknife(system), p, level)
	}
	return interval.JackknifePlusIntervals(ctx, system, p, d, level)
}

// probabilities returns the probability of each class (column) for each point (row). It uses the calibration in the
// model. If there is none, it computes one from leave-one-out errors and stores it in m. It returns an error if the
// model is a regression.
func (a *app) probabilities(ctx context.Context, f *predictFlags, m *model.Model,
	p *model.Prediction) (*mat.Dense, error) {
	if m.Labels == nil {
		return nil, usagef("--probabilities: %s is for regression; --interval says how far its predictions may be off",
			f.Model)
	}
	if m.Calibration == nil || m.Calibration.Slope == nil {
		system, err := a.factorSystem(ctx, m, f.Memory)
		if err != nil {
			return nil, err
		}
		m.Calibration = interval.CalibrateJackknife(system)
	}
	return interval.Probabilities(m.Calibration, p)
}

// probabilityText describes the rows that the probabilities were fitted to. If the classes of the rows d are known, it
// adds the log loss and the calibration error of the probabilities of d.
func probabilityText(probabilities *mat.Dense, m *model.Model, d *datasets.Dataset) string {
	rows, _ := m.Calibration.Scores.Dims()
	source := map[string]string{interval.Split: "test rows of the fit",
		interval.Jackknife: "training rows, each left out"}[m.Calibration.Method]
	text := fmt.Sprintf("by %d %s", rows, source)
	if d.HasAnswers() && d.Task == datasets.Classification {
		loss, calibrationError := interval.Reliability(probabilities, m.Labels, d)
		text += fmt.Sprintf("; log loss %.4g, calibration error %.3g %%", loss, 100*calibrationError)
	}
	return text
}

// factorSystem returns a Cholesky factorization of the model's K+λI, from which package interval computes leave-one-out
// errors. memory is its limit in bytes, 0 for the available memory. factorSystem returns an error for a model that was
// fitted with weights, and for one of a precomputed K that is not in the file.
func (a *app) factorSystem(ctx context.Context, m *model.Model, memory int64) (*interval.FactoredSystem, error) {
	if m.Weighted {
		return nil, errors.New("the model was fitted with weights, with which leave-one-out errors are not those of " +
			"new rows: fit with --holdout or --test, whose rows are then used; for a regression --method posterior " +
			"takes weights")
	}
	if p := kernel.AsPrecomputed(m.Kernel); p != nil && p.Bytes() == 0 {
		return nil, errors.New("the model holds no K: fit with --holdout or --calibrate loo, whose scores are then " +
			"used")
	}
	return interval.NewFactoredSystem(ctx, m, accel.AvailableMemory(memory, 1))
}

// errNoTestRows is the error of --calibrate test without test rows.
var errNoTestRows = usagef("--calibrate test: there are no test rows: want --test FILE or --holdout SHARE")

// calibrate stores scores in the model for later prediction intervals and probabilities. The mode is the value of
// --calibrate; auto stores scores only if there are test rows and one target, because intervals are for one target.
// memory is the value of --memory. calibrate does nothing on a rank other than the first.
func (a *app) calibrate(ctx context.Context, mode string, memory int64, r *fitResult) (err error) {
	m := r.sol.Model
	switch {
	case !a.isFirstRank() || mode == "none" || mode == "auto" && (r.test == nil || m.Targets != nil):
		return nil
	case mode == "loo":
		system, err := a.factorSystem(ctx, m, memory)
		if err != nil {
			return err
		}
		m.Calibration = interval.CalibrateJackknife(system)
		return nil
	case r.test == nil:
		return errNoTestRows
	}
	m.Calibration, err = interval.CalibrateSplit(r.data.train, r.test, r.data.test)
	return err
}

// intervalText describes the intervals of the predictions p: level, method, guarantee, mean width or mean number of
// labels, and, if the answers of the rows d are known, the share of answers that they contain.
func intervalText(iv *interval.Intervals, p *model.Prediction, d *datasets.Dataset) string {
	text := fmt.Sprintf("%.6g %% by %s, %s; ", 100*iv.Level, iv.Method, iv.Guarantee())
	rows, _ := p.Decision.Dims()
	var size float64
	for i := range rows {
		if iv.Sets != nil {
			size += float64(len(iv.Sets[i])) / float64(rows)
		} else {
			size += (iv.Hi.At(i, 0) - iv.Lo.At(i, 0)) / float64(rows)
		}
	}
	if iv.Sets != nil {
		text += fmt.Sprintf("%.3g labels a set", size)
		if iv.UnknownShare > 0 {
			text += fmt.Sprintf("; %.3g %% of the rows of the scores have labels that the model does not know",
				100*iv.UnknownShare)
			if slices.Contains(iv.Sets[0], len(p.Labels)) {
				text += fmt.Sprintf(", too many for sets of known labels: each set has all of these and %q",
					otherLabel(p.Labels))
			}
		}
	} else {
		text += "mean width " + outward.Plain(size, 4)
	}
	if d.HasAnswers() && (d.Task == datasets.Classification) == (iv.Sets != nil) {
		text += fmt.Sprintf("; %.4g %% of the %d answers are inside", 100*iv.Coverage(p, d), rows)
	}
	return text
}

// otherLabel returns a text that stands for any label that the model does not know. It differs from all labels.
func otherLabel(labels []string) string {
	text := "another label"
	for slices.Contains(labels, text) {
		text = "(" + text + ")"
	}
	return text
}

// labelSet returns the labels of a set of classes, separated by |. The index len(labels) stands for any other label.
func labelSet(set []int, labels []string) string {
	all := append(labels[:len(labels):len(labels)], otherLabel(labels))
	var names []string
	for _, j := range set {
		name := all[j]
		if strings.ContainsAny(name, `|"`) { // quote as in a csv file with the separator |
			name = `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
		}
		names = append(names, name)
	}
	return strings.Join(names, "|")
}
