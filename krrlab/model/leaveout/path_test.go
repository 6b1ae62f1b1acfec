package leaveout

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
)

// testProblem has the kernel matrix of some points, and targets, which are numbers or classes.
type testProblem struct {
	name    string
	classes bool
	y       *mat.Dense
	k       *gram.Matrix
}

// testProblems returns three problems with n points: normal points with a smooth function, points with heavy tails and
// outliers, and classes in clusters. The bandwidth σ is about the root mean square distance divided by √2.
func testProblems(t *testing.T, n int) (problems []testProblem) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		name       string
		classes    bool                     // whether the targets are classes
		targets, d int                      // number of columns of Y, and dimension of the points
		draw       func(x []float64, i int) // draws point i
	}{
		{"smooth", false, 2, 8, func(x []float64, _ int) {
			for j := range x {
				x[j] = random.NormFloat64()
			}
		}},
		{"heavy tails", false, 1, 6, func(x []float64, _ int) {
			s := math.Sqrt(random.ExpFloat64() * 2)
			for j := range x {
				x[j] = random.NormFloat64() / (0.3 + s)
			}
		}},
		{"clusters", true, 3, 5, func(x []float64, i int) {
			for j := range x {
				x[j] = 2*float64((i*(j+3))%7)/3 + 0.5*random.NormFloat64()
			}
		}},
	} {
		x, y := points.NewDense(n, c.d, nil), mat.NewDense(n, c.targets, nil)
		var sq float64
		for i := range n {
			row := x.Row(i)
			c.draw(row, i)
			f := y.RawRowView(i)
			for j := range f {
				f[j] = math.Sin(2*row[0]+2*float64(j)) + row[1]*row[2]/2 + 0.3*random.NormFloat64()
			}
			if c.classes {
				encodeClass(f, datasets.PredictedClass(f))
			}
			for j := range row {
				sq += (row[j] - x.Row(0)[j]) * (row[j] - x.Row(0)[j]) / float64(n)
			}
		}
		k := testkit.Must(gram.New(context.Background(), kernel.Gaussian{Sigma: math.Sqrt(sq / 2)}, x, 1e-3,
			&gram.Options{Storage: gram.Float64}))
		problems = append(problems, testProblem{c.name, c.classes, y, k})
	}
	return problems
}

// rpCholeskyPrecond returns the preconditioner FFᵀ+I from s landmarks of randomly pivoted Cholesky, and a number e with
// FFᵀ ≼ K+eI.
func rpCholeskyPrecond(t *testing.T, k *gram.Matrix, s int, seed uint64) (*precond.Woodbury, float64) {
	factor := testkit.Must(lowrank.RPCholesky(context.Background(), k.Exact(0), s, rng.New(seed), nil))
	woodbury := testkit.Must(precond.New(context.Background(), factor.F, 1, &precond.Options{Form: precond.FormEigen}))
	return woodbury, factor.Rounding
}

// TestPathCoverage checks that the intervals of Path cover the value of Dense for each λ at the stated rate. Intervals
// that are proved bounds must cover always. The long suite uses 100 seeds.
func TestPathCoverage(t *testing.T) {
	n, seeds := suite.Scale(150, 300, 800), suite.Scale(8, 8, 100)
	lambdas := []float64{10, 1, 0.1, 0.01}
	ctx := context.Background()
	for _, problem := range testProblems(t, n) {
		dense := mat.NewDense(n, n, nil)
		testkit.OK(t, problem.k.DenseTo(ctx, dense))
		want := testkit.Must(Dense(ctx, dense, problem.y, lambdas,
			&Problem{Classification: problem.classes, ComputeResiduals: true}))
		covered, claimed := make([]int, len(lambdas)), make([]int, len(lambdas))
		width, bias := make([]float64, len(lambdas)), make([]float64, len(lambdas))
		for seed := range seeds {
			woodbury, sketchExcess := rpCholeskyPrecond(t, problem.k, n/8, uint64(seed))
			got := testkit.Must(Path(ctx, problem.k, woodbury, problem.y, lambdas,
				&Problem{Classification: problem.classes, ComputeResiduals: true, SketchExcess: sketchExcess,
					Stream: rng.New(uint64(seed))}))
			for j, score := range got {
				truth := want[j].Error.Value
				if score.Error.Contains(truth) {
					covered[j]++
				} else if score.Error.Method == "bounds" {
					t.Errorf("%s, seed %d, λ = %g: %v misses %g", problem.name, seed, lambdas[j], score.Error, truth)
				}
				if score.Error.Method == "probes" {
					claimed[j]++
					if v := score.Error; !problem.classes && !(v.Hi-v.Value > v.Value-v.Lo) {
						t.Errorf("%s, seed %d, λ = %g: %v allows for no skewness", problem.name, seed, lambdas[j], v)
					}
				}
				width[j] += (score.Error.Hi - score.Error.Lo) / 2 / truth / float64(seeds)
				bias[j] += (score.Error.Value/truth - 1) / float64(seeds)
			}
		}
		t.Logf("%s: λ = %v, covered %v of %d, %v by probes; half-widths %.4f, bias %.4f", problem.name, lambdas,
			covered, seeds, claimed, width, bias)
		for j, count := range covered {
			if count < minCovered(seeds) {
				t.Errorf("%s, λ = %g: %d of %d intervals cover, want %d", problem.name, lambdas[j], count, seeds,
					minCovered(seeds))
			}
		}
	}
}

// minCovered returns how many 95 % intervals must cover among the given number of seeds. A correct method has fewer
// with a probability of about 1e-4.
func minCovered(seeds int) int { return seeds - 3 - seeds/10 }

// TestPathWithLargeStorageError checks that no bound is claimed if the error of K may be 0.6λ or more, because neither
// (K+λI)⁻¹ nor C is then known.
func TestPathWithLargeStorageError(t *testing.T) {
	for _, problem := range testProblems(t, 120) {
		woodbury, sketchExcess := rpCholeskyPrecond(t, problem.k, 30, 1)
		for _, kError := range []float64{0.6, 1, 3, 100} {
			got := testkit.Must(Path(context.Background(), problem.k, woodbury, problem.y, []float64{1},
				&Problem{Classification: problem.classes, SketchExcess: sketchExcess + kError, KError: kError}))
			hi := math.Inf(1)
			if problem.classes {
				hi = 1
			}
			if v := got[0].Error; v.Method != "bounds" || v.Lo != 0 || v.Hi != hi {
				t.Errorf("%s, λ = 1, storage error %g: %v by %s, want [0, %g]", problem.name, kError, v, v.Method, hi)
			}
		}
	}
}

// TestPathWithOutliers checks coverage for points far from all others and from the landmarks, which the statistical
// model of the probes does not describe. The intervals must cover the exact error all the same.
func TestPathWithOutliers(t *testing.T) {
	const n, outliers = 300, 30
	random := rand.New(rand.NewPCG(8, 9))
	x, y := points.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		x.Row(i)[0] = random.NormFloat64()
		if i < outliers {
			x.Row(i)[0] = 100 * float64(i+1)
		}
		y.Set(i, 0, math.Sin(x.Row(i)[0]))
	}
	k := testkit.Must(gram.New(context.Background(), kernel.Gaussian{Sigma: 2}, x, 1e-3,
		&gram.Options{Storage: gram.Float64}))
	dense := mat.NewDense(n, n, nil)
	testkit.OK(t, k.DenseTo(context.Background(), dense))
	lambdas := []float64{1e-2, 1e-4}
	want := testkit.Must(Dense(context.Background(), dense, y, lambdas, nil))
	claimed := 0
	for seed := range uint64(10) {
		woodbury, sketchExcess := rpCholeskyPrecond(t, k, 10, seed)
		got := testkit.Must(Path(context.Background(), k, woodbury, y, lambdas,
			&Problem{SketchExcess: sketchExcess, Stream: rng.New(seed)}))
		for j, score := range got {
			if !score.Error.Contains(want[j].Error.Value) {
				t.Errorf("seed %d, λ = %g: %v misses %g", seed, lambdas[j], score.Error, want[j].Error.Value)
			}
			if score.Error.Method == "probes" {
				claimed++
			}
		}
	}
	t.Logf("%d of %d intervals by probes", claimed, 10*len(lambdas))
}

// TestPathWithWeights checks classes whose rows have unequal weights. Proved bounds must contain the weighted share of
// wrong labels of Dense for every seed, and all intervals together at the stated rate.
func TestPathWithWeights(t *testing.T) {
	const n, seeds = 120, 12
	lambdas, covered, proved := []float64{3, 0.03}, 0, 0
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 11))
		x, y := points.NewDense(n, 3, nil), mat.NewDense(n, 3, nil)
		weights := make([]float64, n)
		for i := range n {
			for j := range x.Row(i) {
				x.Row(i)[j] = random.NormFloat64()
			}
			weights[i] = 0.01 + 20*math.Pow(random.Float64(), 6)
			encodeClass(y.RawRowView(i), int(math.Abs(2*x.Row(i)[0]+random.NormFloat64()))%3)
			floats.Scale(math.Sqrt(weights[i]), y.RawRowView(i))
		}
		k := testkit.Must(gram.New(t.Context(), kernel.Laplacian{Sigma: 1.5},
			testkit.Must(points.NewWeighted(x, weights)), 1e-3,
			&gram.Options{Storage: gram.Float64}))
		dense := mat.NewDense(n, n, nil)
		testkit.OK(t, k.DenseTo(t.Context(), dense))
		o := &Problem{Classification: true, Weights: weights, Stream: rng.New(seed)}
		want := testkit.Must(Dense(t.Context(), dense, y, lambdas, o))
		woodbury, sketchExcess := rpCholeskyPrecond(t, k, n/8, seed)
		o.SketchExcess = sketchExcess
		for j, score := range testkit.Must(Path(t.Context(), k, woodbury, y, lambdas, o)) {
			if score.Error.Contains(want[j].Error.Value) {
				covered++
			} else if score.Error.Method == "bounds" {
				t.Errorf("seed %d, λ = %g: %v misses %g", seed, lambdas[j], score.Error, want[j].Error.Value)
			}
			if score.Error.Method == "bounds" {
				proved++
			}
		}
	}
	t.Logf("%d of %d intervals cover, %d of them proved", covered, seeds*len(lambdas), proved)
	if want := minCovered(seeds * len(lambdas)); covered < want || proved == 0 {
		t.Errorf("%d of %d intervals cover, want %d; %d are proved", covered, seeds*len(lambdas), want, proved)
	}
}
