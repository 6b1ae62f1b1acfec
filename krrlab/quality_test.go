package krrlab

import (
	"cmp"
	"math"
	"os"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
)

// denseSpectrum returns the eigenvalues of M⁻¹A in ascending order. It forms A = K+λI with Eval and M = ZZᵀ+λ_pI with
// the entries of Z.
func denseSpectrum(t testing.TB, k kernel.Kernel, x points.Points, lambda float64, z *points.Dense32,
	lambdaP float64) []float64 {
	t.Helper()
	var m mat.SymDense
	m.SymOuterK(1, toFloat64(z))
	return testkit.PencilEigenvalues(t, testkit.AddRidge(testkit.KernelMatrix(k, x), lambda),
		testkit.AddRidge(&m, lambdaP))
}

// TestQualityAgainstDense compares κ, the extreme eigenvalues and the exact spectrum with a dense reference, and the
// predicted number of iterations with that of a solve, for three kernels.
func TestQualityAgainstDense(t *testing.T) {
	x := pointsByFormat(150, 5, 4)["float64"]
	for _, kernelFunc := range kernels[2:] {
		cfg := Config{Kernel: kernelFunc, Lambda: 0.05, Solver: PCG, Precond: Features{S: 60, LambdaP: 0.3}, Tol: 1e-6,
			Seed: 3}
		lab := newLab(t, regression(x), cfg)
		quality := testkit.Must(lab.Quality(t.Context(), QualityOptions{Width: 0.05}))
		z := wholeZ(t, lab)
		want := denseSpectrum(t, kernelFunc, x, 0.05, z, 0.3)
		for i, eigenvalue := range quality.Nodes {
			testkit.Near(t, eigenvalue, want[i], 1e-9*want[149], kernelFunc, i)
		}
		if kappa := want[149] / want[0]; !quality.Kappa.Contains(kappa) || !quality.Exact.Contains(kappa) ||
			!quality.Min.Contains(want[0]) || !quality.Max.Contains(want[149]) {
			t.Errorf("%v: κ = %v, ends %v and %v\n%v", kernelFunc, kappa, want[0], want[149], quality)
		}
		if !quality.WidthReached || quality.Kappa.RelativeWidth() > 0.051 || quality.Kappa.Confidence != 0.95 ||
			len(quality.Trace) != quality.Steps || len(quality.Alpha) != quality.Steps {
			t.Errorf("%v: %v", kernelFunc, quality)
		}
		if iterations := *quality.Iterations; quality.Status != pcg.Converged ||
			quality.IterationBound < iterations/4 ||
			math.Abs(float64(quality.Predicted-iterations)) > 0.3*float64(iterations)+3 {
			t.Errorf("%v: %d iterations, bound %d, predicted %d", kernelFunc, iterations, quality.IterationBound,
				quality.Predicted)
		}
	}
}

// TestQualityOfAuto checks that the quality of the preconditioner of Auto says that a plan might choose another one,
// and that the quality of a named preconditioner does not.
func TestQualityOfAuto(t *testing.T) {
	train := regression(pointsByFormat(DirectBelow+1, 2, 5)["float32"])
	for _, p := range []Preconditioner{Auto{S: 20}, Features{S: 20}} {
		cfg := Config{Kernel: gauss, Lambda: 1, Solver: PCG, Precond: p}
		quality := testkit.Must(newLab(t, train, cfg).Quality(t.Context(), QualityOptions{Steps: 2, NoSolve: true}))
		_, isAuto := p.(Auto)
		if quality.Precond != "features" || quality.S != 20 || quality.Unplanned != isAuto ||
			strings.Contains(quality.String(), "fixed rule") != isAuto {
			t.Errorf("%v: %v", p, quality)
		}
	}
}

// kappaCoverage runs Quality with several seeds. It returns how often the interval of κ covers the exact value, how
// often its upper end is at most 1.5 times its lower end, and the largest exact κ. Of every seedsPerDraw seeds, the
// first draws new features and the others change only the start vector of Lanczos.
func kappaCoverage(t *testing.T, train *datasets.Dataset, cfg Config, seeds, seedsPerDraw int,
	baseOptions QualityOptions) (covered, narrow int, largestKappa float64) {
	t.Helper()
	baseOptions.NoSolve = true
	drawnPrecond, exact := cfg.Precond, 0.0
	for i := range seeds {
		cfg.Seed = uint64(i)
		options := baseOptions
		if i%seedsPerDraw > 0 {
			options.MaxExactN = -1
		} else if seedsPerDraw > 1 {
			cfg.Precond = drawnPrecond
			lab := newLab(t, train, cfg)
			z := testkit.Must(lab.Z(t.Context()))
			cfg.Precond = Given{M: testkit.Must(precond.New(t.Context(), z, ridge(lab),
				&precond.Options{Form: precond.FormLInv}))}
		}
		quality := testkit.Must(newLab(t, train, cfg).Quality(t.Context(), options))
		if quality.Exact != nil {
			exact = quality.Exact.Value
		}
		if quality.Kappa.Contains(exact) {
			covered++
		}
		if quality.Kappa.Hi <= 1.5*quality.Kappa.Lo {
			narrow++
		}
		largestKappa = max(largestKappa, exact)
	}
	return covered, narrow, largestKappa
}

// TestQualityCoverage checks that the 95 % interval covers the exact κ for at least 9 of 10 seeds, and that for κ ≤
// 100 its ends are as often within a factor of 1.5. The long suite uses 2,000 points of MNIST and of IJCNN1, and the
// others use 20 seeds of a small data set.
func TestQualityCoverage(t *testing.T) {
	check := func(name string, train *datasets.Dataset, cfg Config, seeds, seedsPerDraw int) {
		covered, narrow, kappa := kappaCoverage(t, train, cfg, seeds, seedsPerDraw, QualityOptions{})
		t.Logf("%s: covered %d of %d, hi/lo ≤ 1.5 in %d, κ ≤ %.4g", name, covered, seeds, narrow, kappa)
		if 10*covered < 9*seeds {
			t.Errorf("%s: covered in %d of %d", name, covered, seeds)
		}
		if kappa <= 100 && 10*narrow < 9*seeds {
			t.Errorf("%s: hi/lo ≤ 1.5 in %d of %d at κ ≤ %.4g", name, narrow, seeds, kappa)
		}
	}
	dir := os.Getenv("KRRLAB_DATA")
	if suite.Scale(0, 0, 1) == 0 || dir == "" {
		x := pointsByFormat(250, 6, 2)["float32"]
		check("small", regression(x), Config{Kernel: kernel.Gaussian{Sigma: 3}, Lambda: 0.01, Solver: PCG,
			Precond: Features{S: 100, LambdaP: 0.1}}, 20, 2)
		return
	}
	if library, err := accel.OpenBLAS(); err == nil {
		testkit.UseBLAS(t, library)
	}
	for name, cfg := range map[string]Config{
		"mnist":  {Kernel: kernel.Gaussian{Sigma: 8.5}, Precond: Features{S: 1000, LambdaP: 0.1}},
		"ijcnn1": {Kernel: kernel.Gaussian{Sigma: 0.3}, Precond: Features{S: 1000, LambdaP: 0.02}},
	} {
		pair := testkit.Must(datasets.Load(t.Context(), name, &datasets.LoadOptions{Dirs: []string{dir}, N: 2000}))
		cfg.Lambda, cfg.Solver = 0.01, PCG
		check(name, pair.Train, cfg, 100, 5)
	}
}

// TestVecchiaCoverage checks that the intervals of κ of the sparse inverse cover the exact value at the stated
// confidence, less three standard deviations of the count. It runs with pivots, with neighbors and with both, and
// with few and many Lanczos steps.
func TestVecchiaCoverage(t *testing.T) {
	starts := suite.Scale(20, 60, 200)
	train := regression(pointsByFormat(150, 3, 2)["float32"])
	for _, p := range []Vecchia{{S: 10, Neighbors: 6, Damping: 0.5}, {Neighbors: 6, Damping: 1},
		{S: 10, Neighbors: -1}} {
		for _, options := range []QualityOptions{{}, {Confidence: 0.6, Steps: 12}} {
			cfg := Config{Kernel: kernel.Matern32{Sigma: 1}, Lambda: 0.01, Precond: p, Storage: gram.Float64}
			covered, _, kappa := kappaCoverage(t, train, cfg, starts, 1, options)
			n, confidence := float64(starts), cmp.Or(options.Confidence, 0.95)
			t.Logf("%v: %g covered in %d of %d, κ ≤ %.4g", p, confidence, covered, starts, kappa)
			if least := confidence*n - 3*math.Sqrt(n*confidence*(1-confidence)); float64(covered) < least {
				t.Errorf("%v: %g covered in %d of %d, want %.0f", p, confidence, covered, starts, least)
			}
		}
	}
}
