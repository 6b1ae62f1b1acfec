package cli

import (
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/stage/solve"
)

// TestAdvice checks that the advice after an unsuccessful solve fits its cause. For example, more features cannot make
// an indefinite matrix definite, so they are not advised then.
func TestAdvice(t *testing.T) {
	for _, c := range []struct {
		status  pcg.Status
		storage gram.Storage
		want    string // a part of the advice
		not     string // what the advice must not contain
	}{
		{pcg.Indefinite, gram.Float32, "--storage float64", "features="},
		{pcg.Indefinite, gram.Fixed16, "--storage float64", "features="},
		{pcg.Indefinite, gram.Float64, "--lambda", "--storage"},
		{pcg.IndefinitePreconditioner, gram.Float64, "lambda-p=", "features="},
		{pcg.Breakdown, gram.Float64, "not finite", "features="},
		{pcg.Inaccurate, gram.Float64, "--tol", "features="},
		{pcg.MaxIterations, gram.Float32, "features=", "--storage"},
	} {
		if c.status == pcg.Indefinite { // no flag can improve a precomputed K
			precomputed := &krrlab.Solution{Header: krrlab.Header{Kernel: kernel.Spec{Name: "precomputed"}},
				Outcome:      solve.Outcome{Status: c.status},
				KernelMatrix: solve.KernelMatrix{Storage: gram.Recompute.String()}}
			if got := advice(precomputed); !strings.Contains(got, "not positive semi-definite") ||
				strings.Contains(got, "--storage") {
				t.Errorf("a precomputed K that is indefinite: the advice is %q", got)
			}
		}
		solution := &krrlab.Solution{Outcome: solve.Outcome{Status: c.status},
			KernelMatrix: solve.KernelMatrix{Storage: c.storage.String()},
			Approach:     solve.Approach{Solver: krrlab.PCG, Precond: "features"}}
		got := advice(solution)
		if !strings.Contains(got, c.want) || strings.Contains(got, c.not) || strings.Contains(got, "\n") {
			t.Errorf("%v in %v: %q, want %q and not %q", c.status, c.storage, got, c.want, c.not)
		}
		solution.Precond = "process:./m"
		// After a solve with the user's own preconditioner, the advice is to compare it with others, unless the matrix
		// or the residual is the cause.
		blamesMatrix := c.status == pcg.Indefinite || c.status == pcg.Inaccurate
		if got := advice(solution); blamesMatrix == strings.Contains(got, "compare --with") ||
			strings.Contains(got, "features=") || strings.Contains(got, "lambda-p=") {
			t.Errorf("%v with a process: %q, want to compare it: %v, and no option of features", c.status, got,
				!blamesMatrix)
		}
	}
	// The residual is below the tolerance, but its rounding error may be above it, so float64 cannot decide.
	belowRounding := &krrlab.Solution{Outcome: solve.Outcome{Status: pcg.Inaccurate},
		Residuals: solve.Residuals{TrueResidual: 5e-13, Rounding: 3e-9}}
	belowRounding.Tol = 1e-10
	testkit.Contains(t, advice(belowRounding), "by 3e-09, so that float64 cannot tell")
	// The preconditioner of another program stops the iteration at a residual far above rounding if it is singular.
	singular := &krrlab.Solution{Outcome: solve.Outcome{Status: pcg.Stagnated},
		Residuals: solve.Residuals{TrueResidual: 1e-3, Rounding: 2e-11}}
	for _, c := range []struct{ precond, storage, want string }{{"process:./m", "float64", "compare --with"},
		{"process:./m", "float32", "--storage float64"}, {"nystrom", "float64", "rounding keeps"}} {
		singular.Precond, singular.Storage = c.precond, c.storage
		testkit.Contains(t, advice(singular), c.want)
	}
	// A Fourier series is advised against if its truncation error may be the cause.
	series := &krrlab.Solution{Outcome: solve.Outcome{Status: pcg.Inaccurate},
		KernelMatrix: solve.KernelMatrix{KernelErrorBound: 4e-6}, Approach: solve.Approach{Solver: krrlab.Fourier}}
	series.TrueResidual = 1
	testkit.Contains(t, advice(series), "‖E‖₂ ≲ 4e-06", "--solver")
}
