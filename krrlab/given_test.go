package krrlab

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage/tune"
)

// precomputedProblem returns a data set, the same data set with the row numbers of K as points, and K as a precomputed
// matrix. K is stored in float32 if inFloat32 is set, and in float64 otherwise.
func precomputedProblem(t *testing.T, n int, kernelFunc kernel.Kernel, inFloat32 bool) (byPoints,
	byRows *datasets.Dataset, precomputed *kernel.Precomputed) {
	t.Helper()
	x := testkit.RandomPoints(3, n, 3)
	data := &datasets.Dataset{X: x, Target: make([]float64, n)}
	for i := range n {
		data.Target[i] = math.Sin(x.Row(i)[0]) + x.Row(i)[1]
	}
	dense := points.NewDense(n, n, mat.DenseCopyOf(testkit.KernelMatrix(kernelFunc, x)).RawMatrix().Data)
	if precomputed = testkit.Must(kernel.NewPrecomputed(dense)); inFloat32 {
		precomputed = testkit.Must(kernel.NewPrecomputed(testkit.RoundToFloat32(dense)))
	}
	withRowNumbers := *data
	withRowNumbers.X = kernel.PrecomputedPoints(n)
	return data, &withRowNumbers, precomputed
}

// TestPrecomputedK checks that every solver finds the same answer with a precomputed K as with the kernel. Residuals
// must be certified, no error bounds may be reported, and K must not be stored a second time.
func TestPrecomputedK(t *testing.T) {
	const n = 150
	gauss := kernel.Gaussian{Sigma: 2}
	for name, cfg := range map[string]Config{
		"direct": {Solver: Direct}, "pcg": {Solver: PCG}, "nystrom": {Solver: PCG, Precond: Nystrom{S: 30}},
		"block": {Solver: BlockPCG, Precond: RPCholesky{S: 30}}, "vecchia": {Precond: Vecchia{S: 9}},
		"cg": {Solver: CG}, "float32 tiles": {Solver: PCG, Storage: gram.Float32}, "auto": {},
	} {
		for _, inFloat32 := range []bool{false, true} {
			byPoints, byRows, precomputed := precomputedProblem(t, n, gauss, inFloat32)
			if name != "auto" {
				byPoints.Weights = make([]float64, n)
				for i := range n {
					byPoints.Weights[i] = 1 + float64(i%3)
				}
				byRows.Weights = byPoints.Weights
			}
			cfg.Lambda, cfg.Tol = 0.1, 1e-6
			cfg.Kernel = gauss
			kernelSol := mustSolve(t, byPoints, cfg)
			cfg.Kernel = precomputed
			sol := mustSolve(t, byRows, cfg)
			tolerance := 1e-4
			if inFloat32 {
				// Rounding K to float32 changes K by E with ‖E‖₂ ≈ 2√n·2⁻²⁵. It changes the coefficients by about
				// ‖E‖₂/λ times their norm.
				tolerance = 1e-3
			}
			var delta mat.Dense
			delta.Sub(sol.Model.C, kernelSol.Model.C)
			if !sol.Converged() || !(float64(sol.TrueResidual+sol.Rounding) <= 1e-6) ||
				mat.Norm(&delta, 2) > tolerance*mat.Norm(sol.Model.C, 2) {
				t.Errorf("%s: the coefficients of norm %.2g differ by %.2g from those with the kernel: %v", name,
					mat.Norm(sol.Model.C, 2), mat.Norm(&delta, 2), sol)
			}
			if sol.Error != nil || sol.Model.ErrorBounds != nil || sol.KappaBound.Known() ||
				sol.History != nil && sol.History[len(sol.History)-1].Bound.Known() {
				t.Errorf("%s: error bounds %v and κ %v are reported, although K may be indefinite", name, sol.Error,
					sol.KappaBound)
			}
			if name == "pcg" && sol.Weighted && sol.Storage != "recompute" {
				t.Errorf("a precomputed K is stored a second time as %s", sol.Storage)
			}
			// The model of a precomputed K takes new points as rows of their kernel values with the training points.
			newPoints, z := testkit.RandomPoints(4, 5, 3), points.NewDense(5, n, nil)
			for i := range 5 {
				for j := range n {
					z.Row(i)[j] = gauss.Eval(newPoints.Row(i), byPoints.X.(*points.Dense).Row(j))
				}
			}
			predicted := testkit.Must(sol.Model.Decision(t.Context(), z, nil))
			want := testkit.Must(kernelSol.Model.Decision(t.Context(), newPoints, nil))
			delta.Reset()
			delta.Sub(predicted, want)
			if difference := mat.Norm(&delta, 2); difference > tolerance*mat.Norm(want, 2) {
				t.Errorf("%s: predictions differ by %.2g from those with the kernel", name, difference)
			}
		}
	}
}

// TestStagesOfPrecomputedK checks that the leave-one-out score, the statistical dimension and the quality with a
// precomputed K agree with those of the kernel within their intervals.
func TestStagesOfPrecomputedK(t *testing.T) {
	byPoints, byRows, precomputed := precomputedProblem(t, 120, kernel.Gaussian{Sigma: 1}, false)
	labs := map[string]*Lab{}
	for name, data := range map[string]*datasets.Dataset{"points": byPoints, "rows": byRows} {
		cfg := Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Solver: PCG, Precond: Nystrom{S: 20}, Tol: 1e-3}
		if name == "rows" {
			cfg.Kernel = precomputed
		}
		labs[name] = newLab(t, data, cfg)
	}
	for _, maxExactN := range []int{0, -1} { // 0 uses dense factors for a small problem, −1 the subspace method
		want := testkit.Must(labs["points"].LeaveOneOut(t.Context(), LeaveOneOutOptions{MaxExactN: 0}))
		got := testkit.Must(labs["rows"].LeaveOneOut(t.Context(), LeaveOneOutOptions{MaxExactN: maxExactN}))
		for i, score := range got.Scores {
			if exact := want.Scores[i].Error.Value; exact < score.Error.Lo || exact > score.Error.Hi {
				t.Errorf("λ = %g: %.6g is not in %v", score.Lambda, exact, score.Error)
			}
		}
	}
	for _, method := range []StatDimMethod{ExactStatDim, SLQ} {
		want := testkit.Must(labs["points"].StatDim(t.Context(), StatDimOptions{Method: ExactStatDim}))
		got, err := labs["rows"].StatDim(t.Context(), StatDimOptions{Method: method})
		if err != nil || want.Estimate.Value < got.Estimate.Lo*(1-1e-9) ||
			want.Estimate.Value > got.Estimate.Hi*(1+1e-9) {
			t.Errorf("%v: %v is not in %v, %v", method, want.Estimate, got.Estimate, err)
		}
	}
	want := testkit.Must(labs["points"].Quality(t.Context(), QualityOptions{}))
	got, err := labs["rows"].Quality(t.Context(), QualityOptions{})
	if err != nil || got.KappaUpperBound != 0 || got.Kappa.Hi < want.Kappa.Lo || got.Kappa.Lo > want.Kappa.Hi {
		t.Errorf("κ with a precomputed K is %v, with the kernel %v; error %v", got.Kappa, want.Kappa, err)
	}
	lab := labs["rows"] // only K+shift·I is known to be positive semi-definite
	if storageError := lab.k.value.Choice().Error; !(lab.shift > 0) || got.KError != storageError+lab.shift ||
		!(got.Exact.Hi > got.Exact.Value*(1+lab.shift/lab.cfg.Lambda)) {
		t.Errorf("storage error %g, error in all %g, shift %g; exactly κ is %v", storageError, got.KError, lab.shift,
			got.Exact)
	}
}

// TestIndefinitePrecomputedK uses a K that is not positive semi-definite. The certified residual is compared with sums
// in 200-bit numbers, and stages that need K ≽ 0 must refuse it.
func TestIndefinitePrecomputedK(t *testing.T) {
	const n = 80
	_, data, _ := precomputedProblem(t, n, kernel.Gaussian{Sigma: 1}, false)
	k := points.NewDense(n, n, nil) // a diagonal of 0
	for i := range n {
		for j := range i {
			k.Row(i)[j] = math.Sin(float64(i*n + j))
			k.Row(j)[i] = k.Row(i)[j]
		}
	}
	precomputed := testkit.Must(kernel.NewPrecomputed(k))
	for _, solver := range []Solver{Direct, CG} {
		lab := newLab(t, data, Config{Kernel: precomputed, Lambda: 2 * n, Solver: solver, Tol: 1e-10})
		sol, err := lab.Solve(t.Context())
		if err != nil || !sol.Converged() || sol.Error != nil {
			t.Fatalf("%v: %v, %v", solver, err, sol)
		}
		var sqResidual, sqNorm float64
		for i := range n {
			sum := new(big.Float).SetPrec(200).SetFloat64(lab.Targets().At(i, 0))
			for j := range n {
				entry := k.Row(i)[j]
				if i == j {
					entry += 2 * n
				}
				term := new(big.Float).SetPrec(200).SetFloat64(entry)
				sum.Sub(sum, term.Mul(term, new(big.Float).SetFloat64(sol.Model.C.At(j, 0))))
			}
			residual, _ := sum.Float64()
			sqResidual, sqNorm = sqResidual+residual*residual, sqNorm+lab.Targets().At(i, 0)*lab.Targets().At(i, 0)
		}
		residual := math.Sqrt(sqResidual / sqNorm)
		if !(math.Abs(residual-float64(sol.TrueResidual)) <= float64(sol.Rounding)) {
			t.Errorf("%v: residual %.3g, reported %.3g ± %.1g", solver, residual, sol.TrueResidual, sol.Rounding)
		}
		testkit.Fails(t, testkit.ErrOf(lab.LeaveOneOut(t.Context(), LeaveOneOutOptions{})),
			"not positive semi-definite")
		testkit.Fails(t, testkit.ErrOf(lab.Compare(t.Context(), CompareOptions{})), "not positive semi-definite")
	}
	// The diagonal of K is 0, so it does not bound the entries. The bound of the rounding error must still be positive.
	exact := testkit.Must(gram.NewExact(precomputed, data.X, 0, 0, nil))
	c := mat.NewDense(n, 1, nil)
	for i := range n {
		c.Set(i, 0, 1)
	}
	if rounding := exact.Rounding(c)[0]; !(rounding > 1e-16*n) {
		t.Errorf("the bound of the rounding error of a product is %g, want a positive one", rounding)
	}
}

// TestPrecomputedKWithNegativeDiagonal uses a K with a negative diagonal, which gives no bound of its entries and no
// norm from its trace. Solves must still converge with a known residual, with and without weights.
func TestPrecomputedKWithNegativeDiagonal(t *testing.T) {
	const n = 40
	_, data, _ := precomputedProblem(t, n, kernel.Gaussian{Sigma: 1}, false)
	k := points.NewDense(n, n, nil)
	for i := range n {
		for j := range n {
			k.Row(i)[j] = math.Sin(float64(i*j)) - 1
		}
	}
	precomputed := testkit.Must(kernel.NewPrecomputed(k))
	for _, weights := range [][]float64{nil, slices.Repeat([]float64{2, 0.5}, n/2)} {
		for _, policy := range []ResidualPolicy{ExactResidual, StoredResidual} {
			data.Weights = weights
			sol := mustSolve(t, data, Config{Kernel: precomputed, Lambda: 4 * n, Solver: CG, Storage: gram.Float64,
				Exact: policy, Tol: 1e-6})
			if !sol.Converged() || !(sol.KernelErrorBound >= 0) {
				t.Errorf("%v: %v, ‖E‖₂ at most %v", policy, sol, sol.KernelErrorBound)
			}
		}
	}
}

// TestRefusedForPrecomputedK checks that everything that needs a kernel function is refused if K is precomputed, and
// that the memory of K is counted.
func TestRefusedForPrecomputedK(t *testing.T) {
	_, data, precomputed := precomputedProblem(t, 30, kernel.Gaussian{Sigma: 1}, false)
	for want, cfg := range map[string]Config{
		"no random features": {Precond: Features{}}, "stop residual": {Stop: bound.Stop{Rule: bound.ByANorm}},
		"neither Comm": {Comm: comm.Alone()},
	} {
		cfg.Kernel, cfg.Lambda, cfg.Solver = precomputed, 1, PCG
		testkit.Fails(t, testkit.ErrOf(New(data, cfg)), want)
	}
	lab := newLab(t, data, Config{Kernel: precomputed, Lambda: 1})
	testkit.Fails(t, testkit.ErrOf(lab.Tune(t.Context(), tune.Options{})), "leaves only λ to choose")
	if bytes, want := lab.pointBytes(), int64(8*30+8*30*30); bytes != want {
		t.Errorf("points and K hold %d bytes, want %d", bytes, want)
	}
	for _, missingBytes := range []int64{0, 1} { // memory for dense factors in addition to K, and one byte less
		lab.cfg.Memory = 16*30*30 + lab.memory().Used - missingBytes
		_, _, err := (&bench{Lab: lab}).Dense(t.Context(), 16)
		if _, tooLarge := errors.AsType[*accel.MemoryError](err); tooLarge != (missingBytes == 1) || !tooLarge &&
			err != nil {
			t.Errorf("dense factors with a limit of %d bytes, %d too few: error %v", lab.cfg.Memory, missingBytes, err)
		}
	}
	// With less memory than K needs, only two rows are checked.
	lab = newLab(t, data, Config{Kernel: precomputed, Lambda: 1, Memory: 1})
	if err := lab.checkSemidefinite(t.Context()); err != nil || !strings.Contains(lab.note, "as 2 rows of it are") {
		t.Errorf("want a note on 2 checked rows: error %v, note %q", err, lab.note)
	}
}

// TestPrecomputedGroups checks that the model of a precomputed K has the groups of rows that the caller gives. Without
// them, it has those of the rows of K that are equal.
func TestPrecomputedGroups(t *testing.T) {
	const n = 40
	byPoints, data, _ := precomputedProblem(t, n, gauss, false)
	x := byPoints.X.(*points.Dense)
	for i := n / 2; i < n; i++ {
		copy(x.Row(i), x.Row(i-n/2))
	}
	k := points.NewDense(n, n, mat.DenseCopyOf(testkit.KernelMatrix(gauss, x)).RawMatrix().Data)
	cfg := Config{Kernel: testkit.Must(kernel.NewPrecomputed(k)), Lambda: 1}
	if repeats := mustSolve(t, data, cfg).Model.Repeats; repeats.Rule != "auto" || repeats.Repeated != n/2 {
		t.Errorf("without groups: %+v", repeats)
	}
	data.Groups = make([]int, n)
	if repeats := mustSolve(t, data, cfg).Model.Repeats; repeats.Rule != "groups" || repeats.Grouped != n-1 {
		t.Errorf("with groups: %+v", repeats)
	}
}
