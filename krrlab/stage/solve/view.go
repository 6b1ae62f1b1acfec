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

// String returns the report: the problem, the method, the residual and error of the answer, the scores and the times.
func (s *Solution) String() string {
	if s.Model == nil && s.N == 0 {
		return "a solution without a problem; Lab.Solve makes one\n"
	}
	var lines stage.Lines
	lines.Width = 12
	lines.AddProblem(&s.Header)
	form := ""
	if s.LambdaP.Known() {
		form = ", form " + s.Form
	}
	lines.Add("solver", "%s%s", s.Method(), form)
	if s.Appended != nil {
		lines.Add("appended", "%v", s.Appended)
	}
	lines.AddText("K", s.kernelText())
	lines.Add("result", "%v%s%s", s.Status, s.iterationText(), s.residualText())
	if s.Error != nil {
		lines.Add("error", "%v%s", s.Error, s.uncertaintyReason())
	}
	if s.Stop.Rule > bound.ByResidual {
		lines.AddText("stop", s.stopText())
	}
	if s.Kappa.Known() {
		lines.Add("κ(M⁻¹A)", "≈ %.3g (from the iteration's α, β)", s.Kappa)
	}
	s.addScores(&lines)
	seconds := s.Seconds
	lines.AddSeconds(seconds.Total, "load", seconds.Load, "kernel", seconds.Kernel, "features", seconds.Features,
		"factor", seconds.Factor, "solve", seconds.Solve, "residual", seconds.Residual, "predict", seconds.Predict)
	s.addPlan(&lines)
	if s.Ranks != nil {
		lines.Add("ranks", "%v", s.Ranks)
	}
	lines.Add("machine", "%s, %s, peak memory %s", s.BLAS, plural.Count(s.Threads, "thread"),
		accel.FormatBytes(s.PeakBytes))
	if s.MixedArithmetic != "" {
		lines.AddText("checkpoint", fmt.Sprintf("iterations with %s: the last digits differ from those of an "+
			"uninterrupted run", s.MixedArithmetic))
	}
	return lines.String()
}

// Summary returns the report for a reader who wants a model rather than its numerics: the data, the choice of kernel
// and λ, the status of the solve, and the errors next to the error of a constant prediction. The report of String also
// has the method and the certainty of the solution.
func (s *Solution) Summary() string {
	data, fit, choice := stage.Lines{Width: 12}, stage.Lines{Width: 12}, ""
	data.AddData(&s.Header)
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
	return data.String() + choice + fit.String()
}

// addScores adds the threshold, and the errors on test rows, in cross-validation and on training rows.
func (s *Solution) addScores(lines *stage.Lines) {
	isClassification := s.Task == datasets.Classification.String()
	if s.Threshold != nil {
		lines.Add("threshold", "%v", s.Threshold)
	}
	if s.TestN > 0 {
		lines.AddScore("test", &model.Score{N: s.TestN, Weighted: s.TestWeighted, ErrorRate: float64(s.TestError),
			RMSE: float64(s.RMSE), TargetRMSEs: s.TargetRMSE, RelErr: float64(s.RelErr), R2: float64(s.R2),
			BestError: float64(s.BestError), Classes: s.Classes})
	}
	if folds := s.Folds; folds != nil {
		text := fmt.Sprintf("RMSE %s ± %s", outward.Plain(folds.Mean, 4), outward.Plain(folds.StandardError, 2))
		if isClassification {
			text = fmt.Sprintf("error %.2f ± %.2f %%", 100*folds.Mean, 100*folds.StandardError)
		} else if s.T > 1 {
			text += " over all targets"
		}
		lines.Add("folds", "%s%s (mean and its standard error, which is too small), each of %d folds predicted by "+
			"a fit to the others", text, map[bool]string{true: ", weighted"}[s.TrainWeighted], len(folds.Errors))
		switch {
		case s.Tune != nil && s.Threshold != nil:
			lines.AddText("", "kernel, λ and threshold were chosen on all these rows, so the error is optimistic")
		case s.Tune != nil:
			lines.AddText("", "kernel and λ were chosen on all these rows, so the error is optimistic")
		case s.Threshold != nil && s.Threshold.Metric != "":
			lines.AddText("", "the threshold was chosen on all these rows, so the error is optimistic")
		}
	}
	if s.FoldsFailed != "" {
		lines.Add("folds", "none: %s", s.FoldsFailed)
	}
	if s.TrainError.Known() && s.TrueResidual.Known() {
		text := "RMSE " + outward.Plain(float64(s.TrainError), 4)
		if isClassification {
			text = fmt.Sprintf("error %.2f %%", 100*s.TrainError)
		}
		lines.Add("training", "%s on the %s of the fit%s", text, plural.Count(s.N, "point"),
			map[bool]string{true: ", weighted"}[s.TrainWeighted])
	}
}

// kernelText describes the storage of K and its error.
func (s *Solution) kernelText() string {
	text := s.Storage + ", " + accel.FormatBytes(s.KBytes) + stage.StorageErrorText(s.KernelErrorBound)
	if s.Kernel.Name == "precomputed" {
		return text + "; given: the residual is of its entries, and no error is bounded, as K is not known to be " +
			"positive semi-definite"
	}
	if s.HasExactProducts {
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
func (s *Solution) addPlan(lines *stage.Lines) {
	plan, measured := s.Plan, s.Seconds
	if plan == nil {
		return
	}
	// Loading the data and tuning are not part of the plan's prediction.
	measuredTotal := measured.Kernel + measured.Features + measured.Factor + measured.Solve + measured.Residual +
		measured.Predict
	lines.Add("plan", "chosen in %.2g s, predicted %.3g s and %s, took %.3g s; on another machine it may differ: %s "+
		"asks for it by name", measured.Plan, plan.Seconds.Total, accel.FormatBytes(plan.Bytes), measuredTotal,
		plan.Flags)
	predicted, iterations := plan.Seconds, fmt.Sprintf("; iterations %d, %d", plan.Choice.Iterations, s.Iterations)
	if s.Solver == Direct {
		iterations = ""
	}
	lines.Add("", "predicted, taken: kernel %.2g, %.2g s; features and factor %.2g, %.2g s; solve %.2g, %.2g s; "+
		"residual %.2g, %.2g s%s",
		predicted.Kernel, measured.Kernel, predicted.Features+predicted.Factor, measured.Features+measured.Factor,
		predicted.Solve, measured.Solve, predicted.Residual, measured.Residual, iterations)
	for i := range plan.Race {
		lines.Add([]string{"race", ""}[min(i, 1)], "%v", &plan.Race[i])
	}
	if plan.Switched != "" {
		lines.Add("", "over to %s", plan.Switched)
	}
}

// noiseText describes the tolerance that stop rule predictions chose, and the error of the fitted values Kc. With
// A = K+λI, the exact solution c* and the residual r of c, K(c*−c) = KA⁻¹r and ‖KA⁻¹‖₂ ≤ 1, so that ‖Kc*−Kc‖₂ ≤ ‖r‖₂.
// The error is certain if the bounds of the residual are certain.
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

// stopText describes the stopping rule, which criterion was met, and how many labels are settled.
func (s *Solution) stopText() string {
	if s.Noise != nil {
		return s.noiseText()
	}
	text := fmt.Sprintf("%v: not met", s.Stop)
	if s.Criterion != "" {
		text = fmt.Sprintf("%v: %s", s.Stop, map[string]string{"residual": "the residual met the tolerance first",
			"anorm": "met by the bound of the error", "labels": "met by the labels of a sample"}[s.Criterion])
	}
	if s.CheckedLabels > 0 {
		text += fmt.Sprintf("; %d of %d labels are settled, %s open", s.CheckedLabels-s.UndecidedLabels,
			s.CheckedLabels, outward.Percent(float64(s.UndecidedLabels)/float64(s.CheckedLabels), 2))
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

// precondText describes the preconditioner, and why it was chosen if there is a reason.
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

// iterationText returns the end of the phrase "converged after 12 iterations", or "" without iterations.
func (s *Solution) iterationText() string {
	if s.Iterations == 0 {
		return ""
	}
	return " after " + plural.Count(s.Iterations, "iteration")
}

// residualText describes the residual of the answer, its error and the tolerance.
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
	table := &plots.Table{
		Title:   fmt.Sprintf("%s: %v", s.Dataset, s.Solver),
		Columns: plots.ParseColumns("quantity", "value %.4g", "how"),
	}
	tested, checked := plural.Count(s.TestN, "point"), plural.Count(s.SampledRows, "row")+" in float64"
	table.Add("iterations", s.Iterations, s.Status.String())
	baseRate, auc := stage.Unknown, stage.Unknown
	if classes := s.Classes; classes != nil {
		if baseRate = stage.Number(classes.BaseRate); classes.AUC != nil {
			auc = stage.Number(*classes.AUC)
		}
	}
	for _, property := range []struct {
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
		if property.value.Known() {
			table.Add(property.name, property.cell(float64(property.value)), property.how)
		}
	}
	return table
}

// ConvergenceSeries returns the largest relative residual of all columns, against the iteration.
func (s *Solution) ConvergenceSeries() plots.Series {
	series := plots.Series{Name: s.Solver.String()}
	for _, row := range s.History {
		series.Add(float64(row.Iteration), row.Residual)
	}
	return series
}

// boundSeries returns the known error bounds, against the iteration.
func (s *Solution) boundSeries() plots.Series {
	series := plots.Series{Name: "bound of ‖c−c*‖_{A}/‖c*‖_{A}"}
	for _, row := range s.History {
		if row.Bound.Known() {
			series.Add(float64(row.Iteration), float64(row.Bound))
		}
	}
	return series
}

// Plot draws the convergence of the solve against the iteration: the relative residual ‖y_j−Ac_j‖₂/‖y_j‖₂ of the worst
// column, updated recursively, and the bound of its error ‖c_j−c_j*‖_A/‖c_j*‖_A. A direct solve has no iterations; Plot
// draws its final residual as one point.
func (s *Solution) Plot() *plots.Figure {
	residuals := s.ConvergenceSeries()
	if len(residuals.X) == 0 && s.TrueResidual.Known() {
		residuals.X, residuals.Y, residuals.Style = []float64{0}, []float64{float64(s.TrueResidual)}, plots.Points
	}
	series := []plots.Series{residuals}
	if bounds := s.boundSeries(); len(bounds.X) > 0 {
		series = append(series, bounds)
	}
	figure := plots.Convergence(fmt.Sprintf("%s: %s, λ = %g", s.Dataset, s.Kernel.Prose(), s.Lambda), s.Tol, series...)
	// An answer of zeros has the residual 0, which a logarithmic axis cannot show.
	figure.Y.Log = slices.ContainsFunc(residuals.Y, func(v float64) bool { return v > 0 })
	return figure
}

// HTML returns the lines, the convergence plot if the solver iterated, and the table.
func (s *Solution) HTML() string {
	if len(s.History) < 2 {
		return plots.PreformattedHTML(s.String()) + plots.FoldedHTML("the numbers", s.Table().HTML())
	}
	return stage.HTML(s)
}

func (r *Ranks) String() string {
	text := fmt.Sprintf("%d", r.Count)
	if r.OnNode > 0 {
		text += fmt.Sprintf(" (%d on this machine)", r.OnNode)
	}
	return text + fmt.Sprintf("; %s sent by each, %.1f s in collectives", accel.FormatBytes(r.Bytes), r.Seconds)
}
