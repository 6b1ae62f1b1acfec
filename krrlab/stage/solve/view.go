package solve

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

func (s *Solution) String() string {
	if s.Model == nil && s.N == 0 {
		return "a solution without a problem; Lab.Solve makes one\n"
	}
	var b stage.Lines
	b.Width = 12
	b.AddProblem(&s.Header)
	form := ""
	if s.LambdaP.Known() {
		form = ", form " + s.Form
	}
	b.Add("solver", "%s%s", s.Method(), form)
	if s.Appended != nil {
		b.Add("appended", "%v", s.Appended)
	}
	b.AddText("K", s.kernelText())
	b.Add("result", "%v%s%s", s.Status, s.iterationText(), s.residualText())
	if s.Error != nil {
		b.Add("error", "%v%s", s.Error, s.uncertaintyReason())
	}
	if s.Stop.Rule > bound.ByResidual {
		b.AddText("stop", s.stopText())
	}
	if s.Kappa.Known() {
		b.Add("κ(M⁻¹A)", "≈ %.3g (from the iteration's α, β)", s.Kappa)
	}
	s.addScores(&b)
	t := s.Seconds
	b.AddSeconds(t.Total, "load", t.Load, "kernel", t.Kernel, "features", t.Features, "factor", t.Factor,
		"solve", t.Solve, "residual", t.Residual, "predict", t.Predict)
	s.addPlan(&b)
	if s.Ranks != nil {
		b.Add("ranks", "%v", s.Ranks)
	}
	b.Add("machine", "%s, %s, peak memory %s", s.BLAS, plural.Count(s.Threads, "thread"),
		accel.FormatBytes(s.PeakBytes))
	if s.MixedArithmetic != "" {
		b.AddText("checkpoint", fmt.Sprintf("iterations with %s: the last digits differ from those of an "+
			"uninterrupted run", s.MixedArithmetic))
	}
	return b.String()
}

// Summary returns the report for a reader who wants a model rather than its numerics: the data, the choice of kernel
// and λ, the status of the solve, and the errors next to that of a constant prediction. String also has the method and
// the certainty of the solution.
func (s *Solution) Summary() string {
	b, fit, choice := stage.Lines{Width: 12}, stage.Lines{Width: 12}, ""
	b.AddData(&s.Header)
	if s.Tune != nil {
		choice = s.Tune.Short()
	}
	fit.Add("fitted", "kernel %s, λ = %g: %v, residual %.1e, asked %.4g; %.3g s", s.Kernel.Short(), s.Lambda, s.Status,
		s.TrueResidual, s.Tol, s.Seconds.Total)
	if s.Status == pcg.Undecided && s.Rounding.Known() {
		fit.AddText("", fmt.Sprintf("undecided: rounding may add %.0e to the residual, so float64 cannot prove that "+
			"it is below %.4g; it can for a larger --lambda or --tol", s.Rounding, s.Tol))
	}
	if s.KeptShare.Known() {
		fit.AddText("", fmt.Sprintf("sparse tiles keep %s of the entries of K",
			outward.Percent(float64(s.KeptShare), 2)))
	}
	if s.Appended != nil {
		fit.Add("appended", "%v", s.Appended)
	}
	s.addScores(&fit)
	if s.TestN > 0 && s.R2 < 1 {
		fit.Add("baseline", "RMSE %s of the mean of the test answers",
			outward.Plain(float64(s.RMSE)/math.Sqrt(1-float64(s.R2)), 4))
	}
	return b.String() + choice + fit.String()
}

// addScores adds the threshold, and the errors on test rows, in cross-validation and on training rows.
func (s *Solution) addScores(b *stage.Lines) {
	isClassification := s.Task == datasets.Classification.String()
	if s.Threshold != nil {
		b.Add("threshold", "%v", s.Threshold)
	}
	if s.TestN > 0 {
		b.AddScore("test", &model.Score{N: s.TestN, Weighted: s.TestWeighted, ErrorRate: float64(s.TestError),
			RMSE: float64(s.RMSE), TargetRMSEs: s.TargetRMSE, RelErr: float64(s.RelErr), R2: float64(s.R2),
			BestError: float64(s.BestError), Classes: s.Classes})
	}
	if f := s.Folds; f != nil {
		text := fmt.Sprintf("RMSE %s ± %s", outward.Plain(f.Mean, 4), outward.Plain(f.StandardError, 2))
		if isClassification {
			text = fmt.Sprintf("error %.2f ± %.2f %%", 100*f.Mean, 100*f.StandardError)
		} else if s.T > 1 {
			text += " over all targets"
		}
		b.Add("folds", "%s%s (mean and its standard error, which is too small), each of %d folds predicted by a fit to "+
			"the others", text, map[bool]string{true: ", weighted"}[s.TrainWeighted], len(f.Errors))
		switch {
		case s.Tune != nil && s.Threshold != nil:
			b.AddText("", "kernel, λ and threshold were chosen on all these rows, so the error is optimistic")
		case s.Tune != nil:
			b.AddText("", "kernel and λ were chosen on all these rows, so the error is optimistic")
		case s.Threshold != nil && s.Threshold.Metric != "":
			b.AddText("", "the threshold was chosen on all these rows, so the error is optimistic")
		}
	}
	if s.FoldsFailed != "" {
		b.Add("folds", "none: %s", s.FoldsFailed)
	}
	if s.TrainError.Known() && s.TrueResidual.Known() {
		text := "RMSE " + outward.Plain(float64(s.TrainError), 4)
		if isClassification {
			text = fmt.Sprintf("error %.2f %%", 100*s.TrainError)
		}
		b.Add("training", "%s on the %s of the fit%s", text, plural.Count(s.N, "point"),
			map[bool]string{true: ", weighted"}[s.TrainWeighted])
	}
}

// kernelText describes the storage of K and its error.
func (s *Solution) kernelText() string {
	text := s.Storage + ", " + accel.FormatBytes(s.KBytes) + stage.StorageErrorText(s.KBound)
	if s.Kernel.Name == "precomputed" {
		return text + "; given: the residual is of its entries, and no error is bounded, as K is not known to be " +
			"positive semi-definite"
	}
	if s.KExactProducts {
		text += ", points in bytes, products exact in integers"
	}
	if s.KeptShare > 0 {
		text += fmt.Sprintf(", sparse: %s of the entries, ‖·‖₂ of the others at most %.1e",
			outward.Percent(float64(s.KeptShare), 2), s.DroppedBound)
	}
	return text
}

// uncertaintyReason returns the end of the sentence "the error bound is estimated": the reason why the bound is not
// certain, or "" if it is.
func (s *Solution) uncertaintyReason() string {
	switch {
	case s.Error.Certain != nil:
		return ""
	case s.Rounding.Known():
		return ", as nothing proves that the kernel is positive semi-definite"
	}
	return ", as the residual is not"
}

// addPlan adds the predicted costs next to the measured ones.
func (s *Solution) addPlan(b *stage.Lines) {
	p, t := s.Plan, s.Seconds
	if p == nil {
		return
	}
	// without stages that the plan does not predict
	took := t.Kernel + t.Features + t.Factor + t.Solve + t.Residual + t.Predict
	b.Add("plan", "chosen in %.2g s, predicted %.3g s and %s, took %.3g s; on another machine it may differ: %s asks "+
		"for it by name", t.Plan, p.Seconds.Total, accel.FormatBytes(p.Bytes), took, p.Flags)
	predicted, iterations := p.Seconds, fmt.Sprintf("; iterations %d, %d", p.Choice.Iterations, s.Iterations)
	if s.Solver == Direct {
		iterations = ""
	}
	b.Add("", "predicted, taken: kernel %.2g, %.2g s; features and factor %.2g, %.2g s; solve %.2g, %.2g s; "+
		"residual %.2g, %.2g s%s",
		predicted.Kernel, t.Kernel, predicted.Features+predicted.Factor, t.Features+t.Factor, predicted.Solve, t.Solve,
		predicted.Residual, t.Residual,
		iterations)
	for i := range p.Race {
		b.Add([]string{"race", ""}[min(i, 1)], "%v", &p.Race[i])
	}
	if p.Switched != "" {
		b.Add("", "over to %s", p.Switched)
	}
}

// noiseText describes the tolerance that stop rule predictions took, and the error of the fitted values Kc. From
// K(c*−c) = KA⁻¹r and ‖KA⁻¹‖₂ ≤ 1 follows that they differ from Kc*, for the exact solution c*, by at most the residual
// r. The error is certain if the bounds of the residual are.
func (s *Solution) noiseText() string {
	source, certainty, largest := "the trace of A⁻¹ taken as n/λ", "estimated", 0.
	if s.Noise.Products > 0 {
		source = fmt.Sprintf("λ·tr(A⁻¹)/n ≈ %.2g by %s", s.Noise.Trace, plural.Count(s.Noise.Products, "product"))
	} else if s.Noise.Trace < 1 {
		source = fmt.Sprintf("λ·tr(A⁻¹)/n ≈ %.2g by that of the first rows", s.Noise.Trace)
	}
	text := fmt.Sprintf("%v: τ is 0.03 of the noise, measured as %.2g of RMS(y) (%s)", s.Stop, s.Noise.Deciding, source)
	switch {
	case s.Criterion == "":
		return text + "; not met"
	case s.ColumnTrueResiduals == nil:
		return text
	}
	for j, v := range s.ColumnTrueResiduals {
		largest = max(largest, v)
		if s.ColumnRoundings != nil {
			largest = max(largest, v+s.ColumnRoundings[j])
		}
	}
	if s.Error != nil && s.Error.Certain != nil {
		certainty = "certain"
	}
	return fmt.Sprintf("%s; fitted values within %s of RMS(y), %s", text, outward.Percent(largest, 2), certainty)
}

func (s *Solution) stopText() string {
	if s.Noise != nil {
		return s.noiseText()
	}
	text := fmt.Sprintf("%v: not met", s.Stop)
	if s.Criterion != "" {
		text = fmt.Sprintf("%v: %s", s.Stop, map[string]string{"residual": "the residual met the tolerance first",
			"anorm": "met by the bound of the error", "labels": "met by the labels of a sample"}[s.Criterion])
	}
	if s.LabelsCounted > 0 {
		text += fmt.Sprintf("; %d of %d labels are settled, %s open", s.LabelsCounted-s.LabelsOpen, s.LabelsCounted,
			outward.Percent(float64(s.LabelsOpen)/float64(s.LabelsCounted), 2))
	}
	return text
}

// Method names the solver and the preconditioner, if there is one.
func (s *Solution) Method() string {
	switch {
	case s.LambdaP.Known():
		return fmt.Sprintf("%v, %s, s = %d, λ_p = %.6g", s.Solver, s.precondText(), s.S, s.LambdaP)
	case s.Precond != "":
		return fmt.Sprintf("%v, preconditioner %s", s.Solver, s.precondText())
	}
	return s.Solver.String()
}

func (s *Solution) precondText() string {
	text := cmp.Or(stage.KindNamed(s.Precond).Title, s.Precond)
	if s.Features != "" {
		text = s.Kernel.Shorten(s.Features)
	}
	if s.PrecondReason != "" {
		text += " (" + s.PrecondReason + ")"
	}
	return text
}

func (s *Solution) iterationText() string {
	if s.Iterations == 0 {
		return ""
	}
	return " after " + plural.Count(s.Iterations, "iteration")
}

func (s *Solution) residualText() string {
	if !s.TrueResidual.Known() {
		if s.ResidualKind != ResidualRecursive || len(s.History) == 0 {
			return ""
		}
		return fmt.Sprintf(", residual %.2e by recurrence, asked %.4g", s.History[len(s.History)-1].Residual, s.Tol)
	}
	text := fmt.Sprintf(", true residual %.2e", s.TrueResidual)
	if s.Rounding.Known() {
		text += fmt.Sprintf(" ± %.0e", s.Rounding)
	}
	text += fmt.Sprintf(" (%s", s.ResidualKind)
	if s.SampledResidual.Known() && s.StorageResidual.Known() {
		text += fmt.Sprintf("; about %.1e, off by %.0e, by %s in float64", s.SampledResidual, s.StorageResidual,
			plural.Count(s.SampledRows, "row"))
	}
	if text += fmt.Sprintf("), asked %.4g", s.Tol); s.Status == pcg.Undecided {
		text += ": met as computed, and no more can be proved in float64"
	}
	return text
}

// Table has one row for each known property of the answer.
func (s *Solution) Table() *plots.Table {
	t := &plots.Table{
		Title:   fmt.Sprintf("%s: %v", s.Dataset, s.Solver),
		Columns: plots.ParseColumns("quantity", "value %.4g", "how"),
	}
	tested, checked := plural.Count(s.TestN, "point"), plural.Count(s.SampledRows, "row")+" in float64"
	t.Add("iterations", s.Iterations, s.Status.String())
	baseRate, auc := stage.Unknown, stage.Unknown
	if c := s.Classes; c != nil {
		if baseRate = stage.Number(c.BaseRate); c.AUC != nil {
			auc = stage.Number(*c.AUC)
		}
	}
	for _, v := range []struct {
		name  string
		value stage.Number
		how   string
		cell  func(float64) plots.Cell
	}{
		{"true residual", s.TrueResidual, s.ResidualKind, plots.Number},
		{"its rounding", s.Rounding, "certain bound", plots.AtMost},
		{"sampled residual", s.SampledResidual, checked, plots.Number},
		{"off by K as stored", s.StorageResidual, checked, plots.Number},
		{"κ(M⁻¹A)", s.Kappa, "from α, β", plots.Number},
		{"κ(M⁻¹A) at most", s.KappaBound, "certain, from the trace of K−FFᵀ", plots.AtMost},
		{"s_{λ_p}(ZZᵀ)", s.StatDim, "‖U‖_F²", plots.Number},
		{"test error", s.TestError, tested, plots.Number},
		{"share of the largest class", baseRate, tested, plots.Number},
		{"AUC", auc, "test", plots.Number},
		{"training error", s.TrainError, plural.Count(s.N, "point"), plots.Number},
		{"RMSE", s.RMSE, tested, plots.Number},
		{"R²", s.R2, tested, plots.Number},
		{"seconds", stage.Number(s.Seconds.Total), "in all", plots.Number},
	} {
		if v.value.Known() {
			t.Add(v.name, v.cell(float64(v.value)), v.how)
		}
	}
	return t
}

// ConvergenceSeries returns the largest relative residual of all columns, against the iteration.
func (s *Solution) ConvergenceSeries() plots.Series {
	c := plots.Series{Name: s.Solver.String()}
	for _, h := range s.History {
		c.Add(float64(h.Iteration), h.Residual)
	}
	return c
}

// boundSeries returns the known error bounds, against the iteration.
func (s *Solution) boundSeries() plots.Series {
	b := plots.Series{Name: "bound of ‖c−c*‖_{A}/‖c*‖_{A}"}
	for _, h := range s.History {
		if h.Bound.Known() {
			b.Add(float64(h.Iteration), float64(h.Bound))
		}
	}
	return b
}

// Plot draws the convergence of the solve against the iteration: the relative residual ‖y_j−Ac_j‖₂/‖y_j‖₂ of the worst
// column, updated recursively, and the bound of its error ‖c_j−c_j*‖_A/‖c_j*‖_A. A direct solve has no iterations; Plot
// draws its final residual as one point.
func (s *Solution) Plot() *plots.Figure {
	c := s.ConvergenceSeries()
	if len(c.X) == 0 && s.TrueResidual.Known() {
		c.X, c.Y, c.Style = []float64{0}, []float64{float64(s.TrueResidual)}, plots.Points
	}
	series := []plots.Series{c}
	if b := s.boundSeries(); len(b.X) > 0 {
		series = append(series, b)
	}
	f := plots.Convergence(fmt.Sprintf("%s: %s, λ = %g", s.Dataset, s.Kernel.Prose(), s.Lambda), s.Tol, series...)
	// An answer of zeros has the residual 0, which a logarithmic axis cannot show.
	f.Y.Log = slices.ContainsFunc(c.Y, func(v float64) bool { return v > 0 })
	return f
}

// HTML returns the lines, the convergence plot if the solver iterated, and the table.
func (s *Solution) HTML() string {
	if len(s.History) < 2 {
		return plots.PreformattedHTML(s.String()) + plots.FoldedHTML("the numbers", s.Table().HTML())
	}
	return stage.HTML(s)
}

func (r *Ranks) String() string {
	s := fmt.Sprintf("%d", r.Count)
	if r.OnNode > 0 {
		s += fmt.Sprintf(" (%d on this machine)", r.OnNode)
	}
	return s + fmt.Sprintf("; %s sent by each, %.1f s in collectives", accel.FormatBytes(r.Bytes), r.Seconds)
}
