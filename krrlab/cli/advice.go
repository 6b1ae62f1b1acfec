package cli

import (
	"cmp"
	"fmt"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/direct"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/stage"
)

// interruptedText returns the end of the message about an interrupted solve: the iterations and the residual that it
// reached. The residual is the true one if it was computed, and else the one that the iteration updates recursively.
// interruptedText returns "" if sol is nil.
func interruptedText(sol *krrlab.Solution) string {
	if sol == nil {
		return ""
	}
	text := " after " + plural.Count(sol.Iterations, "iteration")
	if sol.TrueResidual.Known() {
		return text + fmt.Sprintf(", residual %.1e (%s)", sol.TrueResidual, sol.ResidualKind)
	}
	return text + fmt.Sprintf(", recursive residual %.1e", sol.History[len(sol.History)-1].Residual)
}

// noSkillWarning returns a warning if a constant predicts the test data at least as well as the model, and ""
// otherwise. The constant is the mean answer for a regression and the most frequent class for a classification.
// noSkillWarning does not judge a classifier with class weights or with another threshold than 0, which accepts more
// errors in favor of the rare class.
func (r *fitResult) noSkillWarning() string {
	const suggestion = "; try another --sigma, a larger --lambda, or --scale standard"
	if r2 := r.sol.R2; r2.Known() && r2 <= 0 {
		return "R² is not above 0: the mean of the answers predicts as well" + suggestion
	}
	const rounding = 1e-12 // two error rates that differ by less are equal
	otherObjective := r.sol.Threshold != nil || r.sol.Weighted && !r.sol.TrainWeighted
	if classes := r.sol.Classes; classes != nil && !otherObjective && classes.BaseRate < 1 &&
		float64(r.sol.TestError)+classes.BaseRate >= 1-rounding {
		return fmt.Sprintf("always %q, the most frequent class, has an error of %.2f %%, no more than the model%s",
			classes.Largest, 100-100*classes.BaseRate, suggestion)
	}
	return ""
}

// advice returns a sentence with options to try, for a solve that did not reach the tolerance. The cases are ordered by
// how precisely they identify the cause, and the first case that applies decides.
func advice(sol *krrlab.Solution) string {
	kind := stage.KindNamed(sol.Precond)
	// stoppedByM reports that the preconditioner, and not rounding, prevents a smaller residual: the residual is far
	// above the one that rounding errors alone explain.
	stoppedByM := kind.AdviceIfBroken != "" && sol.Storage != gram.Float32.String() &&
		sol.TrueResidual > 1e3*sol.Rounding
	limitedByRounding := sol.Status == pcg.Inaccurate || sol.Status == pcg.Stagnated && !stoppedByM
	switch {
	case sol.Status == pcg.Indefinite && sol.Storage != gram.Float64.String() && sol.Kernel.Name != "precomputed":
		return fmt.Sprintf("K+λI as stored in %s is not positive definite, so K has an error above λ: try --storage "+
			"float64, or a larger --lambda", sol.Storage)
	case sol.Status == pcg.Indefinite:
		return "K+λI is not positive definite: rounding exceeds λ, or the kernel is not positive semi-definite; try " +
			"a larger --lambda"
	case kind.AdviceIfBroken != "" && !limitedByRounding:
		return kind.AdviceIfBroken
	case sol.Status == pcg.IndefinitePreconditioner:
		return "the preconditioner is not positive definite in float64: try " + cmp.Or(kind.AdviceIfIndefinite,
			"a larger --lambda")
	case sol.Status == pcg.Breakdown:
		return "a number is not finite: look for huge values in the data, or try --scale standard"
	case limitedByRounding && sol.Storage == gram.Float32.String():
		return "float32 is too coarse for this tolerance: try --storage float64, or --residual exact"
	case limitedByRounding && sol.Rounding.Known() && sol.TrueResidual <= stage.Number(sol.Tol):
		return fmt.Sprintf("rounding may change this residual by %.0e, so that float64 cannot tell whether it meets "+
			"the tolerance: try a larger --lambda or a larger --tol", sol.Rounding)
	case limitedByRounding && sol.Solver == krrlab.Fourier:
		return fmt.Sprintf("the Fourier series (‖E‖₂ ≲ %.2g) and rounding keep the residual up: try another "+
			"--solver, or a larger --lambda or a larger --tol", float64(sol.KernelErrorBound))
	case limitedByRounding:
		return "rounding keeps the residual up: try a larger --lambda or a larger --tol"
	}
	alternative := ""
	if sol.Ranks == nil {
		alternative = fmt.Sprintf(", or --solver direct, which needs %s of memory",
			accel.FormatBytes(direct.MemoryNeeded(direct.Float64, sol.N, sol.T)))
	}
	if sol.Solver == krrlab.PCG || sol.Solver == krrlab.BlockPCG {
		return "try " + cmp.Or(kind.AdviceIfSlow, "another preconditioner") + ", or a larger --max-iter" + alternative
	}
	return "try --solver pcg, or a larger --max-iter" + alternative
}
