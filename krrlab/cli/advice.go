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

// reachedText says how far an interrupted solve came; "" if there is none.
func reachedText(sol *krrlab.Solution) string {
	if sol == nil {
		return ""
	}
	text := " after " + plural.Count(sol.Iterations, "iteration")
	if sol.TrueResidual.Known() {
		return text + fmt.Sprintf(", residual %.1e (%s)", sol.TrueResidual, sol.ResidualKind)
	}
	return text + fmt.Sprintf(", residual %.1e by recurrence", sol.History[len(sol.History)-1].Residual)
}

// useless says where a constant predicts the test data no worse than the model; "" where none does.
func (r *fitted) useless() string {
	const again = "; try another --sigma, a larger --lambda, or --scale standard"
	if r2 := r.sol.R2; r2.Known() && r2 <= 0 {
		return "R² is not above 0: the mean of the answers predicts as well" + again
	}
	// class weights and thresholds give up some of the error for the rare class
	other := r.sol.Threshold != nil || r.sol.Weighted && !r.sol.TrainWeighted
	if c := r.sol.Classes; c != nil && !other && c.BaseRate < 1 && float64(r.sol.TestError)+c.BaseRate >= 1-1e-12 {
		return fmt.Sprintf("always %q, the most frequent class, has an error of %.2f %%, no more than the model%s",
			c.Largest, 100-100*c.BaseRate, again)
	}
	return ""
}

// advice says what to try where a solve did not reach the tolerance.
func advice(r *krrlab.Solution) string {
	kind := stage.KindNamed(r.Precond)
	rounding := r.Status == pcg.Inaccurate || r.Status == pcg.Stagnated
	switch {
	case r.Status == pcg.Indefinite && r.Storage != gram.Float64.String() && r.Kernel.Name != "precomputed":
		return fmt.Sprintf("K+λI as stored in %s is not positive definite, so K has an error above λ: try --storage "+
			"float64, or a larger --lambda", r.Storage)
	case r.Status == pcg.Indefinite:
		return "K+λI is not positive definite: rounding exceeds λ, or the kernel is not positive semi-definite; try " +
			"a larger --lambda"
	case kind.Broken != "" && !rounding:
		return kind.Broken
	case r.Status == pcg.IndefinitePreconditioner:
		return "the preconditioner is not positive definite in float64: try " + cmp.Or(kind.Indefinite,
			"a larger --lambda")
	case r.Status == pcg.Breakdown:
		return "a number is not finite: look for huge values in the data, or try --scale standard"
	case rounding && r.Storage == gram.Float32.String():
		return "float32 is too coarse for this tolerance: try --storage float64, or --residual exact"
	case rounding:
		return "rounding keeps the residual up: try a larger --lambda or a larger --tol"
	}
	instead := ""
	if r.Ranks == nil {
		instead = fmt.Sprintf(", or --solver direct, which holds %s",
			accel.Bytes(direct.Need(direct.Float64, r.N, r.T)))
	}
	if r.Solver == krrlab.PCG || r.Solver == krrlab.BlockPCG {
		return "try " + cmp.Or(kind.Slow, "another preconditioner") + ", or a larger --max-iter" + instead
	}
	return "try --solver pcg, or a larger --max-iter" + instead
}
