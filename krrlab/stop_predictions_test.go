package krrlab

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// noisyProblem returns problem number i, drawn at random. It is a regression with one to three targets and noise of
// size 0 to 1, with or without weights, or has two to four classes. Problems with i%7 = 3 have a constant target.
func noisyProblem(i int) (*datasets.Dataset, Config) {
	random := rng.New(91).Sub("problem", uint64(i))
	n := 60 + random.Sub("n").IntN(0, 100)
	x := points.NewDense(n, 2+i%3, nil)
	random.Sub("x").Normals(x.Data, 0)
	noise := make([]float64, 3*n)
	random.Sub("noise").Normals(noise, 0)
	data := regression(x)
	noiseSize := []float64{0, 1e-7, 1e-3, 0.1, 1}[i%5]
	for row := range n {
		data.Target[row] = data.Target[row] + noiseSize*noise[row]
		if i%7 == 3 {
			data.Target[row] = 2.5
		}
	}
	switch {
	case i%4 == 1:
		data = classification(x, 2+i%3)
		for row := range n {
			if noise[row] < 0.5 {
				data.Class[row] = min(len(data.Labels)-1, int(math.Abs(x.Row(row)[0])))
			}
		}
	case i%4 == 2: // a second and a third target: one without noise, one of noise alone
		smooth := make([]float64, n)
		for row := range n {
			smooth[row] = 100 * math.Cos(x.Row(row)[1])
		}
		data.TargetNames, data.MoreTargets = []string{"a", "b", "c"}, [][]float64{smooth, noise[2*n:]}
	case i%4 == 3:
		data.Weights = make([]float64, n)
		for row := range n {
			data.Weights[row] = math.Exp(noise[n+row])
		}
	}
	if i%2 == 0 {
		data = data.Center()
	}
	cfg := Config{
		Kernel: []kernel.Kernel{kernel.Gaussian{Sigma: math.Pow(10, 1.2*random.Sub("sigma").Float64(0)-0.6)},
			kernel.Laplacian{Sigma: 2}}[i/3%2],
		Lambda:  math.Pow(10, -4*random.Sub("lambda").Float64(0)),
		Precond: []Preconditioner{None{}, Nystrom{S: 20}, RPCholesky{S: 20}, Vecchia{S: 10}}[i/2%4],
		Solver:  []Solver{PCG, BlockPCG}[i/5%2],
		Storage: []gram.Storage{gram.Float64, gram.Float32, gram.Fixed16}[i/7%3],
		Exact:   ExactResidual, Seed: uint64(i), MaxIter: 5000,
	}
	if cfg.Storage == gram.Fixed16 { // its error must be below λ/2
		cfg.Lambda = max(cfg.Lambda, 0.02)
	}
	return data, cfg
}

// TestStopPredictions compares answers of the default stopping rule with dense float64 solutions. The error of the
// fitted values must be at most the certified residual. The residual must be at most 0.03 of the noise estimate of
// the exact solution by generalized cross-validation with the measured trace, and that trace may be at most 30 %
// below the true one. The long suite has 500 problems.
func TestStopPredictions(t *testing.T) {
	criteria := map[string]int{}
	var smallest, largest float64 = math.Inf(1), 0 // measured trace over the true one
	for i := range suite.Scale(24, 60, 500) {
		data, cfg := noisyProblem(i)
		lab := newLab(t, data, cfg)
		sol := solveLab(t, lab)
		cfg.Stop = bound.Stop{Rule: bound.ByResidual}
		full := mustSolve(t, data, cfg)
		checkDeciding(t, i, data.Task, sol)
		if !sol.CriterionMet() || sol.Criterion != "predictions" && sol.Criterion != "residual" ||
			(sol.Noise != nil) != (sol.Criterion == "predictions") || sol.Iterations > full.Iterations {
			t.Errorf("problem %d: %v by %q after %d iterations, %d to τ", i, sol.Status, sol.Criterion, sol.Iterations,
				full.Iterations)
			continue
		}
		criteria[sol.Criterion]++
		a := denseSystem(lab)
		n := lab.train.Len()
		var chol mat.Cholesky
		var exact, difference, fittedDifference, inverse mat.Dense
		if !chol.Factorize(a) {
			t.Fatalf("problem %d: K+λI of the reference is not positive definite", i)
		}
		testkit.OK(t, chol.SolveTo(&exact, lab.y))
		unscaled := mat.DenseCopyOf(sol.Model.C)
		if lab.weighted() { // back to the unknowns of the weighted problem
			_, roots := points.SplitFactors(lab.train.X)
			for row, root := range roots {
				floats.Scale(1/root, unscaled.RawRowView(row))
			}
		}
		difference.Sub(&exact, unscaled)
		fittedDifference.Mul(a, &difference)
		for row := range n {
			for j, value := range difference.RawRowView(row) {
				fittedDifference.Set(row, j, fittedDifference.At(row, j)-cfg.Lambda*value) // K(c*−c)
			}
		}
		trace := 0.
		if sol.Noise != nil && sol.Noise.Products > 0 {
			identity := mat.NewDiagDense(n, slices.Repeat([]float64{1}, n))
			testkit.OK(t, chol.SolveTo(&inverse, identity))
			trace = cfg.Lambda * mat.Trace(&inverse) / float64(n)
			smallest, largest = min(smallest, sol.Noise.Trace/trace), max(largest, sol.Noise.Trace/trace)
		}
		for j := range lab.columns() {
			norm := mat.Norm(lab.y.ColView(j), 2)
			fittedError, slack := mat.Norm(fittedDifference.ColView(j), 2), 1e-9*norm
			certain := (sol.ColumnTrueResiduals[j] + sol.ColumnRoundings[j]) * norm
			if fittedError > certain+slack {
				t.Errorf("problem %d, column %d: fitted values differ by %.3g, certain %.3g", i, j, fittedError,
					certain)
			}
			if certain > float64(sol.Tol)*norm*(1+1e-9) {
				t.Errorf("problem %d, column %d: residual %.3g, τ %.3g", i, j, certain/norm, sol.Tol)
			}
			noise := cfg.Lambda * mat.Norm(exact.ColView(j), 2) / norm
			if estimate := sol.Noise; estimate != nil && data.Task == datasets.Regression &&
				sol.ColumnTrueResiduals[j] > 1e-5 && sol.ColumnTrueResiduals[j] > 0.03*noise/estimate.Trace*1.001 {
				t.Errorf("problem %d, column %d: residual %.3g, noise %.3g, trace %.3g", i, j,
					sol.ColumnTrueResiduals[j],
					noise, estimate.Trace)
			}
		}
	}
	t.Logf("%v; measured trace %.3g to %.3g of the true one", criteria, smallest, largest)
	if criteria["predictions"] == 0 || criteria["residual"] == 0 || smallest < 0.7 {
		t.Errorf("criteria %v, want both; measured trace from %.3g of the true one, want 0.7", criteria, smallest)
	}
}

// denseSystem returns K+λI of the lab's problem with its weights, formed with Eval.
func denseSystem(l *Lab) *mat.SymDense {
	k := testkit.KernelMatrix(l.cfg.Kernel, l.data.X)
	if l.weighted() {
		_, roots := points.SplitFactors(l.train.X)
		for i := range roots {
			for j := range i + 1 {
				k.SetSym(i, j, roots[i]*k.At(i, j)*roots[j])
			}
		}
	}
	return testkit.AddRidge(k, l.cfg.Lambda)
}

// TestStopDefault checks that the default stopping rule is predictions unless a tolerance, a direct solver or another
// rule is configured, also after With. The answer of the rule, with a measured trace, must have the same bits for any
// number of threads.
func TestStopDefault(t *testing.T) {
	data, gaussian := datasets.SyntheticClasses(700, 4, 3, 0.05, 5), kernel.Gaussian{Sigma: 0.3}
	cfg := Config{Kernel: gaussian, Lambda: 1e-3, Precond: Nystrom{S: 20}, Seed: 3}
	rule := func(cfg Config) bound.Rule { return newLab(t, data, cfg).Config().Stop.Rule }
	lab := newLab(t, data, cfg)
	testkit.Equal(t, lab.Config().Stop.Rule, bound.ByPredictions)
	testkit.Equal(t, rule(Config{Kernel: gaussian, Lambda: 1, Tol: 1e-3, Precond: Nystrom{}}), bound.ByResidual)
	testkit.Equal(t, rule(Config{Kernel: gaussian, Lambda: 1}), bound.ByResidual) // solved directly
	testkit.Equal(t, rule(Config{Kernel: gaussian, Lambda: 1, Stop: bound.Stop{Rule: bound.ByPredictions}}),
		bound.ByPredictions)
	for want, change := range map[bound.Rule]func(*Config){
		bound.ByPredictions: func(c *Config) { c.Precond = RPCholesky{S: 30} },
		bound.ByResidual:    func(c *Config) { c.Tol = 1e-8 },
		bound.ByANorm:       func(c *Config) { c.Stop = bound.Stop{Rule: bound.ByANorm} },
	} {
		testkit.Equal(t, testkit.Must(lab.With(change)).Config().Stop.Rule, want)
	}
	lab = newLab(t, data, Config{Kernel: gaussian, Lambda: 1, Solver: CG})
	testkit.Equal(t, lab.Config().Stop.Rule, bound.ByPredictions)
	testkit.Equal(t, testkit.Must(lab.With(func(c *Config) { c.Solver = Direct })).Config().Stop.Rule, bound.ByResidual)
	defer accel.SetThreads(accel.Threads())
	var oneThread *Solution
	for _, threads := range []int{1, 3} {
		accel.SetThreads(threads)
		sol := mustSolve(t, data, cfg)
		if sol.Noise == nil || sol.Noise.Products == 0 || !(sol.Noise.Trace < 0.9) ||
			!strings.Contains(sol.String(), "certain") {
			t.Fatalf("%+v: %v", sol.Noise, sol)
		}
		testkit.Equal(t, sol.Model.Origin.Tol, float64(sol.Tol))
		if oneThread == nil {
			oneThread = sol
		}
		testkit.Equal(t, sameAnswer(sol, oneThread), "", threads)
	}
	if oneThread.Status != pcg.Converged || oneThread.Criterion != "predictions" || !(oneThread.Tol > 1e-3) {
		t.Errorf("%v", oneThread)
	}
}

// checkDeciding checks that the tolerance is 0.03 of the deciding noise, rounded down to two digits. The deciding
// noise is the root mean square over the columns of classes, and the noise of one of the targets of a regression.
func checkDeciding(t *testing.T, problem int, task datasets.Task, sol *Solution) {
	t.Helper()
	if sol.Noise == nil {
		return
	}
	deciding, relative := sol.Noise.Deciding, sol.Noise.Relative
	squares, columns := 0.0, 0.0
	for _, noise := range relative {
		if noise > 0 {
			squares, columns = squares+noise*noise, columns+1
		}
	}
	switch task {
	case datasets.Classification:
		testkit.Near(t, deciding, min(1, math.Sqrt(squares/columns)), 1e-9*deciding, "problem", problem, relative)
	case datasets.Regression:
		if !slices.Contains(relative, deciding) && deciding != 1 {
			t.Errorf("problem %d: deciding noise %g, want 1 or one of %v", problem, deciding, relative)
		}
	}
	if tol := 0.03 * deciding; sol.Tol > tol*(1+1e-9) || sol.Tol < 0.9*tol {
		t.Errorf("problem %d: τ = %g, want 0.03 of %g", problem, sol.Tol, deciding)
	}
}
