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
	gaussian := kernel.Gaussian{Sigma: 1.2}
	for _, all := range []*datasets.Dataset{datasets.SyntheticRegression(150, 3, 0.1, 5),
		datasets.SyntheticClasses(150, 3, 3, 0.1, 5)} {
		train, test := all.Slice(0, 120), all.Slice(120, 150)
		var repeated []int
		weights := make([]float64, train.Len())
		for i := range weights {
			weights[i] = float64(1 + i%3)
			for range 1 + i%3 {
				repeated = append(repeated, i)
			}
		}
		repeatedRows := train.Subset(repeated).Center()
		weighted := *train
		weighted.Weights = weights
		weightedTrain := weighted.Center()
		want := predictions(t, mustSolve(t, repeatedRows,
			Config{Kernel: gaussian, Lambda: 0.1, Solver: Direct, Tol: 1e-12}).Model, test)
		for _, cfg := range []Config{
			{Solver: Direct, Tol: 1e-11}, {Solver: CG, Tol: 1e-10}, {Precond: Nystrom{S: 30}, Tol: 1e-10},
			{Precond: RPCholesky{S: 30}, Tol: 1e-10, Solver: BlockPCG}, {Solver: CG, Tol: 0.03},
			{Precond: Vecchia{S: 9}, Tol: 1e-10}, {Precond: Features{S: 40}, Tol: 1e-10},
		} {
			cfg.Kernel, cfg.Lambda = gaussian, 0.1
			sol := mustSolve(t, weightedTrain, cfg)
			got := predictions(t, sol.Model, test)
			if cfg.Tol < 0.01 && !mat.EqualApprox(got, want, 1e-7) {
				t.Errorf("%v: not the predictions of the fit to repeated rows", cfg.Solver)
			}
			bounds := testkit.Must(sol.Model.DecisionBounds(test))
			for i, value := range got.RawMatrix().Data {
				if allowed := bounds.RawMatrix().Data[i]; math.Abs(value-want.RawMatrix().Data[i]) > allowed+1e-9 {
					t.Errorf("%v: value %d has an error of %g, bound %g", cfg.Solver, i, value-want.RawMatrix().Data[i],
						allowed)
				}
			}
			if n, d, _ := sol.Model.Dims(); n != 120 || d != 3 || sol.D != 3 || !sol.Weighted ||
				sol.Model.Kernel != kernel.Kernel(gaussian) {
				t.Errorf("%v: a model of %d points in R^%d, report %+v", cfg.Solver, n, d, sol.Header)
			}
			verified := testkit.Must(Verify(t.Context(), sol.Model, VerifyOptions{Train: weightedTrain}))
			difference := math.Abs(float64(verified.Residual) - *sol.Model.Origin.TrueResidual)
			if !verified.Weighted || !(difference <= 1e-12+1e-5*float64(verified.Residual)) {
				t.Errorf("%v: residual %g, verified %g", cfg.Solver, *sol.Model.Origin.TrueResidual, verified.Residual)
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
	for i, weight := range train.Weights {
		x.Row(i)[d] = math.Sqrt(weight)
	}
	return x
}

// TestWeightsDense uses weights from 1e-4 to 1e4. Every solver, preconditioner and storage must solve the dense
// system with the matrix W^½KW^½+λI, report the certificates of a fit without weights, and have error bounds that
// hold, also on ranks.
func TestWeightsDense(t *testing.T) {
	const n, lambda = 150, 0.5
	for format, x := range pointsByFormat(n, 5, 4) {
		train := classification(x, 2)
		train.Weights = make([]float64, n)
		for i := range n {
			train.Weights[i] = math.Pow(10, 4*math.Sin(float64(i*i)))
		}
		for kernelIndex, k := range kernels {
			if kernelIndex > 0 && format != "float64" {
				continue
			}
			lab := newLab(t, train, Config{Kernel: k, Lambda: lambda})
			exact := newReference(t, weightedReference{k}, withRoots(train), lambda, lab.Targets())
			for configIndex, cfg := range []Config{
				{Solver: Direct}, {Solver: Direct, Storage: gram.Float32}, {Precond: Features{S: 90}},
				{Precond: RPCholesky{S: 60}}, {Precond: Nystrom{S: 60, Spectral: true}, Solver: BlockPCG},
				{Precond: Vecchia{S: 20, Neighbors: 20}}, {Precond: RPCholesky{S: 90}, Storage: gram.Recompute},
				{Precond: RPCholesky{S: 90}, Storage: gram.Float32, Exact: ExactResidual},
				{Precond: RPCholesky{S: 90}, Storage: gram.Float64, Exact: StoredResidual},
				{Precond: RPCholesky{S: 90}, Tiles: gram.SparseTiles},
			} {
				// Sparse tiles run with the first two kernels only, and other formats than float64 in every fourth
				// case.
				if cfg.Tiles == gram.SparseTiles && kernelIndex > 1 || format != "float64" && configIndex%4 != 2 {
					continue
				}
				cfg.Kernel, cfg.Lambda, cfg.Tol, cfg.MaxIter = k, lambda, 1e-6, 2000
				check := func(sol *Solution) {
					c := mat.DenseCopyOf(sol.Model.C)
					for i, weight := range train.Weights {
						c.Set(i, 0, c.At(i, 0)/math.Sqrt(weight))
					}
					description := []any{format, k, cfg.Solver, cfg.Precond, cfg.Storage, cfg.Tiles}
					if residual := exact.residuals(c, lab.Targets())[0]; sol.Status != pcg.Converged ||
						residual > 1e-6*1.001 {
						t.Errorf("%v: %v, residual %g", description, sol.Status, residual)
					}
					errorNorm, solutionNorm := exact.energyNorms(c, 0)
					bounds := sol.Error
					if bounds == nil || errorNorm > bounds.Bounds[0]*1.001 ||
						bounds.SolutionNormBounds[0] > solutionNorm*1.001 ||
						bounds.Certain != nil && errorNorm > bounds.Certain[0]*1.001 {
						t.Errorf("%v: ‖e‖_A = %g of %g, bounds %+v", description, errorNorm, solutionNorm, bounds)
					}
					if certain := bounds.Certain != nil; certain == (cfg.Exact == StoredResidual) {
						t.Errorf("%v: certain: %v", description, certain)
					}
				}
				check(mustSolve(t, train, cfg))
				if cfg.Solver != Direct && kernelIndex == 0 && configIndex%2 == 0 {
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
	lab := newLab(t, train,
		Config{Kernel: kernels[0], Lambda: lambda, Solver: PCG, Precond: Features{S: 60, LambdaP: 3}})
	k := testkit.KernelMatrix(weightedReference{kernels[0]}, withRoots(train))
	want := dimension(testkit.Eigenvalues(t, k), lambda)
	for _, method := range []StatDimMethod{ExactStatDim, SLQ} {
		if result := testkit.Must(lab.StatDim(t.Context(),
			StatDimOptions{Method: method})); !result.Estimate.Contains(want) {
			t.Errorf("%v: s_λ = %v, want %g", method, result.Estimate, want)
		}
	}
	spectrum := denseSpectrum(t, weightedReference{kernels[0]}, withRoots(train), lambda, wholeZ(t, lab), 3)
	if quality := testkit.Must(lab.Quality(t.Context(),
		QualityOptions{})); !quality.Kappa.Contains(spectrum[n-1] / spectrum[0]) {
		t.Errorf("κ = %v, want %g", quality.Kappa, spectrum[n-1]/spectrum[0])
	}
}

// TestWeightsEqual checks that equal weights w with the parameter λw give the predictions of a fit without weights
// with the parameter λ.
func TestWeightsEqual(t *testing.T) {
	all := datasets.SyntheticRegression(150, 3, 0.1, 5)
	train, test := all.Slice(0, 120), all.Slice(120, 150)
	for _, weight := range []float64{1e-8, 3, 1e8} {
		weighted := *train
		weighted.Weights = slices.Repeat([]float64{weight}, train.Len())
		cfg := Config{Kernel: kernel.Gaussian{Sigma: 1.2}, Lambda: 0.1, Tol: 1e-9, Precond: RPCholesky{S: 60}}
		want := predictions(t, mustSolve(t, train, cfg).Model, test)
		cfg.Lambda *= weight
		if got := predictions(t, mustSolve(t, &weighted, cfg).Model, test); relativeDifference(got, want) > 1e-7 {
			t.Errorf("weights %g: predictions are %g apart", weight, relativeDifference(got, want))
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
		var weightSum, squareSum, wrongWeight float64
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
			predicted := testkit.Must(refit.Model.Predict(t.Context(), train.Slice(i, i+1),
				&model.Options{Float64: true}))
			residual := y.At(i, 0) - predicted.Decision.At(0, 0)
			residuals = append(residuals, residual)
			weightSum, squareSum = weightSum+train.Weights[i], squareSum+train.Weights[i]*residual*residual
			if train.Class != nil && predicted.Class[0] != train.Class[i] {
				wrongWeight += train.Weights[i]
			}
		}
		want := squareSum / weightSum
		if train.Class != nil {
			want = wrongWeight / weightSum
		}
		for _, maxExactN := range []int{0, -1} {
			result := testkit.Must(newLab(t, &train, Config{Kernel: k, Lambda: lambda}).LeaveOneOut(t.Context(),
				LeaveOneOutOptions{Lambdas: []float64{lambda}, MaxExactN: maxExactN, Residuals: true}))
			score := result.Scores[0]
			if score.Error.Lo > want*(1+1e-6) || score.Error.Hi < want*(1-1e-6) ||
				maxExactN == 0 && math.Abs(score.Error.Value-want) > 1e-6*want {
				t.Errorf("%v, exact below %d: %v, want %g", train.Task, maxExactN, score.Error, want)
			}
			if !strings.Contains(result.String(), "krrlab tune") { // tune supports weights
				t.Errorf("no advice in %v", result)
			}
			if maxExactN == 0 {
				for i, residual := range residuals {
					if math.Abs(score.Residuals.At(i, 0)-residual) > 1e-6 {
						t.Fatalf("residual %d: %g, want %g", i, score.Residuals.At(i, 0), residual)
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
		data    datasets.Dataset
		weights []float64
		cfg     Config
		want    string
	}{
		{train, []float64{1, 2, 0, 1}, Config{}, "the weight of row 2 (counted from 0) is 0"},
		{train, []float64{1, math.NaN(), 0, 1}, Config{}, "the weight of row 1 (counted from 0) is NaN"},
		{train, []float64{1, 2}, Config{}, "2 weights for 4 points"},
	} {
		c.data.Weights = c.weights
		c.cfg.Kernel, c.cfg.Lambda = kernel.Gaussian{Sigma: 1}, 1
		testkit.Fails(t, testkit.ErrOf(New(&c.data, c.cfg)), c.want)
	}
}

// predictions returns the decision values of a model at the points of the data, computed in float64.
func predictions(t *testing.T, m *model.Model, data *datasets.Dataset) *mat.Dense {
	t.Helper()
	predicted := testkit.Must(m.Predict(t.Context(), data, &model.Options{Float64: true}))
	return predicted.Decision
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
					for i, weight := range train.Weights {
						c.Set(i, 0, c.At(i, 0)/math.Sqrt(weight))
					}
					system := sol.System
					exact := trueResiduals(weightedReference{system.Kernel}, rows(withRoots(train)), system.Lambda, c,
						system.Y)[0]
					residual, rounding := sol.ColumnTrueResiduals[0], sol.ColumnRoundings[0]
					if !(math.Abs(residual-exact) <= rounding) {
						t.Errorf("%v, d = %d, %v: residual %g ± %g, and it is %g", k, d, cfg.Solver, residual, rounding,
							exact)
					}
				}
			}
		}
	}
}
