package fourier

import (
	"math"
	"runtime"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// TestThreads checks that the coefficients, predictions, leverages, ln det and statistical dimension have the same
// bits for any number of threads, in each dimension, by a factorization and by conjugate gradients, with each BLAS.
// The products are large enough to be divided among threads.
func TestThreads(t *testing.T) { testkit.EachBLAS(t, checkThreads) }

// forEachProblem calls visit for problems in each dimension that are solved by a factorization and by conjugate
// gradients.
func forEachProblem(visit func(k kernel.Kernel, x *points.Dense, opts Options)) {
	for i, sigma := range []float64{0.01, 0.25, 4} {
		for _, opts := range []Options{{EntryError: 1e-4}, {EntryError: 1e-4, DirectModes: 1, exactModes: 40}} {
			// Some cells have more than blockRows points, so that they are processed in several blocks.
			visit(kernel.Gaussian{Sigma: sigma}, pointSets(2200, i+1, 4)["clusters"], opts)
		}
	}
}

// checkThreads runs TestThreads with the BLAS in use.
func checkThreads(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	defer accel.SetThreads(accel.Threads())
	forEachProblem(func(k kernel.Kernel, x *points.Dense, opts Options) {
		var first map[string][]float64
		for _, threads := range []int{1, 2, 3, 8} {
			runtime.GOMAXPROCS(threads)
			accel.SetThreads(threads)
			got := allResults(t, k, x, opts)
			if first == nil {
				first = got
			}
			for name, v := range got {
				if !slices.EqualFunc(v, first[name], sameBits) {
					t.Errorf("d = %d, %+v: %s differs between 1 and %d threads", x.D, opts, name, threads)
				}
			}
		}
	})
}

// TestRanks checks that the results of TestThreads have the same bits on all ranks of any number of ranks, also on
// ranks without a row of cells.
func TestRanks(t *testing.T) {
	forEachProblem(func(k kernel.Kernel, x *points.Dense, opts Options) {
		want := allResults(t, k, x, opts)
		for _, size := range []int{2, 3, 50} {
			comm.RunLocal(size, func(rank comm.Comm) {
				opts := opts
				opts.Comm = rank
				for name, v := range allResults(t, k, x, opts) {
					if !slices.EqualFunc(v, want[name], sameBits) {
						t.Errorf("d = %d, %d ranks: %s differs on rank %d", x.D, size, name, rank.Rank())
					}
				}
			})
		}
	})
}

// TestRanksError checks that every rank returns the error of the first rank, the only one that factors the matrix.
func TestRanksError(t *testing.T) {
	x := pointSets(50, 2, 4)["clusters"]
	comm.RunLocal(3, func(rank comm.Comm) {
		s := testkit.Must(New(kernel.Gaussian{Sigma: 1}, Options{Comm: rank}, x))
		normal, _, err := s.NormalEquations(t.Context(), x, nil, mat.NewDense(x.N, 1, nil))
		if err == nil {
			_, err = normal.Factor(t.Context(), -1e9)
		}
		testkit.Fails(t, err, "not positive definite")
	})
}

// sameBits reports whether a and b have the same bits.
func sameBits(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }

// allResults returns every number that a series computes for two targets at the points x, with weights. On ranks it
// omits the statistical dimension and the leverages.
func allResults(t *testing.T, k kernel.Kernel, x *points.Dense, opts Options) map[string][]float64 {
	t.Helper()
	ctx := t.Context()
	y, weights := mat.NewDense(x.N, 2, nil), make([]float64, x.N)
	rng.New(5).Normals(y.RawMatrix().Data, 0)
	for i := range weights {
		weights[i] = 1 + float64(i%3)
	}
	s := testkit.Must(New(k, opts, x))
	normal, b, err := s.NormalEquations(ctx, x, weights, y)
	testkit.OK(t, err)
	factor := testkit.Must(normal.Factor(ctx, 0.1))
	beta, iterations, err := factor.Solve(ctx, b, 0.2)
	testkit.OK(t, err)
	if s.Direct() != (iterations == 0) || iterations == 1 {
		t.Errorf("%d modes, direct %v: %d iterations", s.Modes(), s.Direct(), iterations)
	}
	updated := mat.NewDense(x.N, 2, nil)
	projected := testkit.Must(s.EvalProject(ctx, x, beta, func(i, j int, value float64) float64 {
		updated.Set(i, j, value)
		return y.At(i, j) - value
	}))
	results := map[string][]float64{
		"ΦᵀY":                       b.RawMatrix().Data,
		"Project":                   testkit.Must(s.Project(ctx, x, y)).RawMatrix().Data,
		"β":                         beta.RawMatrix().Data,
		"Φβ":                        testkit.Must(s.Eval(ctx, x, beta)).RawMatrix().Data,
		"EvalProject":               updated.RawMatrix().Data,
		"projection of EvalProject": projected.RawMatrix().Data,
		"ln det":                    {factor.LogDet},
		"iterations":                {float64(iterations)},
	}
	if opts.Comm != nil {
		return results
	}
	if results["s_λ"] = []float64{testkit.Must(factor.StatDim(ctx))}; s.Direct() {
		testkit.OK(t, factor.Leverages(ctx, x, beta, func(_ int, values []float64, h float64) {
			results["leverages"] = append(append(results["leverages"], values...), h)
		}))
	}
	return results
}
