package krrlab

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// TestWeights checks that integer weights give the predictions of a fit to as many equal rows, for centered
// regression, for classes and for every solver. The bounds of a loosely solved fit must cover the exact predictions,
// and Verify must find the same residual. Targets that are numbers cannot be balanced.
func TestWeights(t *testing.T) {
	k := kernel.Gaussian{Sigma: 1.2}
	for _, all := range []*datasets.Dataset{datasets.SyntheticRegression(150, 3, 0.1, 5),
		datasets.SyntheticClasses(150, 3, 3, 0.1, 5)} {
		train, test := all.Slice(0, 120), all.Slice(120, 150)
		var repeated []int
		w := make([]float64, train.Len())
		for i := range w {
			w[i] = float64(1 + i%3)
			for range 1 + i%3 {
				repeated = append(repeated, i)
			}
		}
		repeatedRows := train.Subset(repeated).Center()
		weighted := *train
		weighted.Weights = w
		given := weighted.Center()
		want := predictions(t, mustSolve(t, repeatedRows,
			Config{Kernel: k, Lambda: 0.1, Solver: Direct, Tol: 1e-12}).Model, test)
		for _, cfg := range []Config{
			{Solver: Direct, Tol: 1e-11}, {Solver: CG, Tol: 1e-10}, {Precond: Nystrom{S: 30}, Tol: 1e-10},
			{Precond: RPCholesky{S: 30}, Tol: 1e-10, Solver: BlockPCG}, {Solver: CG, Tol: 0.03},
			{Precond: Vecchia{S: 9}, Tol: 1e-10}, {Precond: Features{S: 40}, Tol: 1e-10},
		} {
			cfg.Kernel, cfg.Lambda = k, 0.1
			sol := mustSolve(t, given, cfg)
			got := predictions(t, sol.Model, test)
			if cfg.Tol < 0.01 && !mat.EqualApprox(got, want, 1e-7) {
				t.Errorf("%v: not the predictions of the fit to repeated rows", cfg.Solver)
			}
			bounds := testkit.Must(sol.Model.DecisionBounds(test))
			for i, v := range got.RawMatrix().Data {
				if b := bounds.RawMatrix().Data[i]; math.Abs(v-want.RawMatrix().Data[i]) > b+1e-9 {
					t.Errorf("%v: value %d has an error of %g, bound %g", cfg.Solver, i, v-want.RawMatrix().Data[i], b)
				}
			}
			if n, d, _ := sol.Model.Dims(); n != 120 || d != 3 || sol.D != 3 || !sol.Weighted ||
				sol.Model.Kernel != kernel.Kernel(k) {
				t.Errorf("%v: a model of %d points in R^%d, report %+v", cfg.Solver, n, d, sol.Header)
			}
			v := testkit.Must(Verify(t.Context(), sol.Model, VerifyOptions{Train: given}))
			if e := math.Abs(float64(v.Residual) - *sol.Model.Origin.TrueResidual); !v.Weighted ||
				!(e <= 1e-12+1e-5*float64(v.Residual)) {
				t.Errorf("%v: residual %g, verified %g", cfg.Solver, *sol.Model.Origin.TrueResidual, v.Residual)
			}
			unknown := *sol.Model
			unknown.Weights = nil
			testkit.Fails(t, testkit.ErrOf(Verify(t.Context(), &unknown, VerifyOptions{})), "weights")
		}
	}
	testkit.Fails(t, testkit.ErrOf(datasets.SyntheticRegression(9, 2, 0, 1).BalanceClasses()),
		"class weights need classes")
}

// TestWeightsFar checks that points far from zero keep their weights when they are shifted before inner products are
// formed. The predictions must be those of the same points near zero.
func TestWeightsFar(t *testing.T) {
	for seed := range uint64(2) {
		near := datasets.SyntheticRegression(120, 3, 0.1, seed)
		near.Weights = make([]float64, near.Len())
		for i := range near.Weights {
			near.Weights[i] = math.Pow(10, float64(i%4)-2)
		}
		far := *near
		far.X = points.Shift(near.X, []float64{-4096, 1 << 14, -1 << 16})
		for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 1.2}, kernel.Matern32{Sigma: 1.2},
			kernel.Laplacian{Sigma: 2}} {
			for _, cfg := range []Config{{Solver: Direct}, {Solver: CG}, {Precond: RPCholesky{S: 40}}} {
				cfg.Kernel, cfg.Lambda, cfg.Tol = k, 0.1, 1e-8
				want, got := mustSolve(t, near, cfg), mustSolve(t, &far, cfg)
				difference := relativeDifference(predictions(t, got.Model, &far), predictions(t, want.Model, near))
				if got.Status != pcg.Converged || difference > 1e-6 {
					t.Errorf("seed %d, %v, %v: %v, predictions %g apart", seed, k, cfg.Solver, got.Status, difference)
				}
			}
		}
	}
}

// withRoots returns the points extended by the roots of their weights, (x_i, √w_i).
func withRoots(train *datasets.Dataset) *points.Dense {
	n, d := train.X.Dims()
	x := points.NewDense(n, d+1, nil)
	points.RowsTo(train.X, x.Data, d+1)
	for i, w := range train.Weights {
		x.Row(i)[d] = math.Sqrt(w)
	}
	return x
}

// TestWeightsDense uses weights from 1e-4 to 1e4. Every solver, preconditioner and storage must solve the dense
// system with the matrix W^½KW^½+λI, report the certificates of a fit without weights, and have error bounds that
// hold, also on ranks.
func TestWeightsDense(t *testing.T) {
	const n, lambda = 150, 0.5
	for name, x := range pointsByFormat(n, 5, 4) {
		train := classification(x, 2)
		train.Weights = make([]float64, n)
		for i := range n {
			train.Weights[i] = math.Pow(10, 4*math.Sin(float64(i*i)))
		}
		for ki, k := range kernels {
			if ki > 0 && name != "float64" {
				continue
			}
			l := newLab(t, train, Config{Kernel: k, Lambda: lambda})
			exact := newReference(t, weightedReference{k}, withRoots(train), lambda, l.Targets())
			for ci, cfg := range []Config{
				{Solver: Direct}, {Solver: Direct, Storage: gram.Float32}, {Precond: Features{S: 90}},
				{Precond: RPCholesky{S: 60}}, {Precond: Nystrom{S: 60, Spectral: true}, Solver: BlockPCG},
				{Precond: Vecchia{S: 20, Neighbors: 20}}, {Precond: RPCholesky{S: 90}, Storage: gram.Recompute},
				{Precond: RPCholesky{S: 90}, Storage: gram.Float32, Exact: ExactResidual},
				{Precond: RPCholesky{S: 90}, Storage: gram.Float64, Exact: StoredResidual},
				{Precond: RPCholesky{S: 90}, Tiles: gram.SparseTiles},
			} {
				// Sparse tiles run with the first two kernels only, and other formats than float64 in every fourth
				// case.
				if cfg.Tiles == gram.SparseTiles && ki > 1 || name != "float64" && ci%4 != 2 {
					continue
				}
				cfg.Kernel, cfg.Lambda, cfg.Tol, cfg.MaxIter = k, lambda, 1e-6, 2000
				check := func(sol *Solution) {
					c := mat.DenseCopyOf(sol.Model.C)
					for i, w := range train.Weights {
						c.Set(i, 0, c.At(i, 0)/math.Sqrt(w))
					}
					description := []any{name, k, cfg.Solver, cfg.Precond, cfg.Storage, cfg.Tiles}
					if r := exact.residuals(c, l.Targets())[0]; sol.Status != pcg.Converged || r > 1e-6*1.001 {
						t.Errorf("%v: %v, residual %g", description, sol.Status, r)
					}
					errorNorm, solutionNorm := exact.energyNorms(c, 0)
					e := sol.Error
					if e == nil || errorNorm > e.Bounds[0]*1.001 || e.SolutionNormBounds[0] > solutionNorm*1.001 ||
						e.Certain != nil && errorNorm > e.Certain[0]*1.001 {
						t.Errorf("%v: ‖e‖_A = %g of %g, bounds %+v", description, errorNorm, solutionNorm, e)
					}
					if certain := e.Certain != nil; certain == (cfg.Exact == StoredResidual) {
						t.Errorf("%v: certain: %v", description, certain)
					}
				}
				check(mustSolve(t, train, cfg))
				if cfg.Solver != Direct && ki == 0 && ci%2 == 0 {
					onRanks(3, func(ranks comm.Comm) { check(solveOn(t, ranks, train, cfg)) })
				}
			}
		}
	}
}

// TestWeightsStages checks that κ and the statistical dimension of a weighted problem are those of the dense W^½KW^½.
func TestWeightsStages(t *testing.T) {
	const n, lambda = 120, 0.5
	train := regression(pointsByFormat(n, 5, 4)["sparse"])
	train.Weights = make([]float64, n)
	for i := range n {
		train.Weights[i] = math.Pow(10, 2*math.Sin(float64(i*i)))
	}
	l := newLab(t, train, Config{Kernel: kernels[0], Lambda: lambda, Solver: PCG, Precond: Features{S: 60, LambdaP: 3}})
	k := testkit.KernelMatrix(weightedReference{kernels[0]}, withRoots(train))
	want := dimension(testkit.Eigenvalues(t, k), lambda)
	for _, m := range []StatDimMethod{ExactStatDim, SLQ} {
		if s := testkit.Must(l.StatDim(t.Context(), StatDimOptions{Method: m})); !s.Estimate.Contains(want) {
			t.Errorf("%v: s_λ = %v, want %g", m, s.Estimate, want)
		}
	}
	nu := denseSpectrum(t, weightedReference{kernels[0]}, withRoots(train), lambda, wholeZ(t, l), 3)
	if q := testkit.Must(l.Quality(t.Context(), QualityOptions{})); !q.Kappa.Contains(nu[n-1] / nu[0]) {
		t.Errorf("κ = %v, want %g", q.Kappa, nu[n-1]/nu[0])
	}
}

// TestWeightsEqual checks that equal weights w with the parameter λw give the predictions of a fit without weights
// with the parameter λ.
func TestWeightsEqual(t *testing.T) {
	all := datasets.SyntheticRegression(150, 3, 0.1, 5)
	train, test := all.Slice(0, 120), all.Slice(120, 150)
	for _, w := range []float64{1e-8, 3, 1e8} {
		weighted := *train
		weighted.Weights = slices.Repeat([]float64{w}, train.Len())
		cfg := Config{Kernel: kernel.Gaussian{Sigma: 1.2}, Lambda: 0.1, Tol: 1e-9, Precond: RPCholesky{S: 60}}
		want := predictions(t, mustSolve(t, train, cfg).Model, test)
		cfg.Lambda *= w
		if got := predictions(t, mustSolve(t, &weighted, cfg).Model, test); relativeDifference(got, want) > 1e-7 {
			t.Errorf("weights %g: predictions are %g apart", w, relativeDifference(got, want))
		}
	}
}

// TestWeightsLeftOut compares weighted leave-one-out residuals and scores with fits to all other rows. Dense factors
// must give the same numbers, and the intervals of the subspace method must cover them.
func TestWeightsLeftOut(t *testing.T) {
	const n = 60
	k, lambda := kernel.Gaussian{Sigma: 1.2}, 0.3
	for _, all := range []*datasets.Dataset{datasets.SyntheticRegression(n, 3, 0.1, 5),
		datasets.SyntheticClasses(n, 3, 3, 0.1, 5)} {
		train := *all
		train.Weights = make([]float64, n)
		for i := range n {
			train.Weights[i] = math.Pow(10, float64(i%5)-2)
		}
		var sum, mean, wrong float64
		var residuals []float64
		coding := datasets.Coding{Labels: train.Labels}
		y := testkit.Must(coding.EncodeForFit(&train))
		for i := range n {
			var others []int
			for j := range n {
				if j != i {
					others = append(others, j)
				}
			}
			refit := mustSolve(t, train.Subset(others),
				Config{Kernel: k, Lambda: lambda, Solver: Direct, Tol: 1e-11})
			p := testkit.Must(refit.Model.Predict(t.Context(), train.Slice(i, i+1), &model.Options{Float64: true}))
			r := y.At(i, 0) - p.Decision.At(0, 0)
			residuals = append(residuals, r)
			sum, mean = sum+train.Weights[i], mean+train.Weights[i]*r*r
			if train.Class != nil && p.Class[0] != train.Class[i] {
				wrong += train.Weights[i]
			}
		}
		want := mean / sum
		if train.Class != nil {
			want = wrong / sum
		}
		for _, exactBelow := range []int{0, -1} {
			r := testkit.Must(newLab(t, &train, Config{Kernel: k, Lambda: lambda}).LeaveOneOut(t.Context(),
				LeaveOneOutOptions{Lambdas: []float64{lambda}, MaxExactN: exactBelow, Residuals: true}))
			s := r.Scores[0]
			if s.Error.Lo > want*(1+1e-6) || s.Error.Hi < want*(1-1e-6) ||
				exactBelow == 0 && math.Abs(s.Error.Value-want) > 1e-6*want {
				t.Errorf("%v, exact below %d: %v, want %g", train.Task, exactBelow, s.Error, want)
			}
			if !strings.Contains(r.String(), "krrlab tune") { // tune supports weights
				t.Errorf("no advice in %v", r)
			}
			if exactBelow == 0 {
				for i, v := range residuals {
					if math.Abs(s.Residuals.At(i, 0)-v) > 1e-6 {
						t.Fatalf("residual %d: %g, want %g", i, s.Residuals.At(i, 0), v)
					}
				}
			}
		}
	}
}

// TestWeightsRefused checks that weights that are not positive numbers, or not as many as rows, are refused.
func TestWeightsRefused(t *testing.T) {
	train := *datasets.SyntheticRegression(4, 2, 0.1, 1)
	for _, c := range []struct {
		data datasets.Dataset
		w    []float64
		cfg  Config
		want string
	}{
		{train, []float64{1, 2, 0, 1}, Config{}, "the weight of row 2 (counted from 0) is 0"},
		{train, []float64{1, math.NaN(), 0, 1}, Config{}, "the weight of row 1 (counted from 0) is NaN"},
		{train, []float64{1, 2}, Config{}, "2 weights for 4 points"},
	} {
		c.data.Weights = c.w
		c.cfg.Kernel, c.cfg.Lambda = kernel.Gaussian{Sigma: 1}, 1
		testkit.Fails(t, testkit.ErrOf(New(&c.data, c.cfg)), c.want)
	}
}

// predictions returns the decision values of a model at the points of d, computed in float64.
func predictions(t *testing.T, m *model.Model, d *datasets.Dataset) *mat.Dense {
	t.Helper()
	p := testkit.Must(m.Predict(t.Context(), d, &model.Options{Float64: true}))
	return p.Decision
}

// TestWeightsRounding checks that the bound of the rounding error of a weighted residual covers the distance to a
// residual in twice the digits, for up to 20,000 features. The features are equal numbers, so that their rounding
// errors have one sign.
func TestWeightsRounding(t *testing.T) {
	for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 0.5}, kernel.Laplacian{Sigma: 70},
		kernel.Matern32{Sigma: 1}, kernel.Matern52{Sigma: 1}, kernel.Polynomial{Gamma: 1, Degree: 3}} {
		for _, d := range []int{20000, 6000, 3} {
			for seed := range uint64(3) {
				const n = 3
				x := points.NewDense(n, d, nil)
				for i := range x.Data { // sums of equal numbers, whose rounding goes one way
					x.Data[i] = math.Sqrt(float64(i/d)*(0.3+0.1*float64(seed))) / math.Sqrt(float64(d))
				}
				train := regression(x)
				train.Weights = []float64{1, 2.5, 0.3}
				for _, cfg := range []Config{{Solver: Direct, Tol: 1e-12},
					{Solver: CG, Tol: 1e-12, Exact: ExactResidual}} {
					cfg.Kernel, cfg.Lambda = k, 1e-6
					sol := mustSolve(t, train, cfg)
					c := mat.DenseCopyOf(sol.Model.C)
					for i, w := range train.Weights {
						c.Set(i, 0, c.At(i, 0)/math.Sqrt(w))
					}
					l := sol.System
					exact := trueResiduals(weightedReference{l.Kernel}, rows(withRoots(train)), l.Lambda, c, l.Y)[0]
					v, rounding := sol.ColumnTrueResiduals[0], sol.ColumnRoundings[0]
					if !(math.Abs(v-exact) <= rounding) {
						t.Errorf("%v, d = %d, %v: residual %g ± %g, and it is %g", k, d, cfg.Solver, v, rounding, exact)
					}
				}
			}
		}
	}
}
