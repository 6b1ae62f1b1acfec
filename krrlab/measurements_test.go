package krrlab

import (
	"context"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/stage/sketchsize"
)

// dimension returns the statistical dimension Σ μ/(μ+λ) for the eigenvalues μ of K.
func dimension(mu []float64, lambda float64) (s float64) {
	for _, eigenvalue := range mu {
		s += eigenvalue / (eigenvalue + lambda)
	}
	return s
}

// TestStatDimCoverage counts on subsets of real data how often the default interval of the statistical dimension
// covers the exact value. It takes some minutes and runs only with KRRLAB_LONG.
func TestStatDimCoverage(t *testing.T) {
	dir := suite.RealData(t)
	if library, err := accel.OpenBLAS(); err == nil { // makes the test faster
		testkit.UseBLAS(t, library)
	}
	for name, sigma := range map[string]float64{"mnist": 8.5, "ijcnn1": 0.3} {
		pair := testkit.Must(datasets.Load(t.Context(), name, &datasets.LoadOptions{Dirs: []string{dir}, N: 2000}))
		first := newLab(t, pair.Train, Config{Kernel: kernel.Gaussian{Sigma: sigma}, Lambda: 0.01, Solver: PCG})
		exact := dimension(testkit.Eigenvalues(t, testkit.KernelMatrix(first.cfg.Kernel, first.train.X)), 0.01)
		for _, method := range []StatDimMethod{Hutchinson, SLQ} {
			covered, reached, start := 0, 0, time.Now()
			for seed := range 100 {
				lab := testkit.Must(first.With(func(c *Config) { c.Seed = uint64(seed) }))
				result := testkit.Must(lab.StatDim(t.Context(), StatDimOptions{Method: method}))
				if result.Estimate.Contains(exact) {
					covered++
				}
				if result.WidthReached {
					reached++
				}
			}
			t.Logf("%s, %v: s_λ = %.5g covered in %d of 100 seeds, width reached in %d, %.0f s", name, method, exact,
				covered, reached, time.Since(start).Seconds())
			if covered < 90 || reached < 90 {
				t.Errorf("%s, %v: covered %d, reached %d of 100", name, method, covered, reached)
			}
		}
	}
}

// lambdaPConfig returns the configuration of the tests of LambdaP.
func lambdaPConfig() Config {
	return Config{Kernel: kernel.Gaussian{Sigma: 2}, Lambda: 0.01, Solver: PCG, Precond: Features{S: 60}, Tol: 1e-4,
		Seed: 2, Storage: gram.Float64}
}

// TestLambdaP compares κ and its bound at each λ_p of a sweep with dense spectra, for random features of two kernels
// and for landmarks.
func TestLambdaP(t *testing.T) {
	x := pointsByFormat(200, 5, 3)["float32"]
	polynomial := lambdaPConfig()
	polynomial.Kernel = kernel.Polynomial{Gamma: 0.2, Coef0: 1, Degree: 2}
	landmarks := lambdaPConfig()
	landmarks.Precond = RPCholesky{S: landmarks.Precond.(Features).S}
	for name, cfg := range map[string]Config{"gaussian": lambdaPConfig(), "polynomial": polynomial,
		"landmarks": landmarks} {
		lab := newLab(t, regression(x), cfg)
		z := wholeZ(t, lab)
		for _, point := range testkit.Must(lab.LambdaP(t.Context(), LambdaPOptions{Points: 6})).Sweeps[0].Points {
			spectrum := denseSpectrum(t, cfg.Kernel, x, 0.01, z, point.LambdaP)
			if kappa := spectrum[199] / spectrum[0]; !point.Kappa.Contains(kappa) || point.Bound < kappa*(1-1e-9) {
				t.Errorf("%s: λ_p = %g: κ %v, bound %g, is %g", name, point.LambdaP, point.Kappa, point.Bound, kappa)
			}
		}
	}
}

// TestLambdaPMap checks the map of κ over s and λ_p. All rows must use one grid, κ at the best λ_p must fall as s
// grows, and the row of one s must equal a sweep with that s alone.
func TestLambdaPMap(t *testing.T) {
	lab := newLab(t, regression(pointsByFormat(300, 4, 3)["float64"]), lambdaPConfig())
	sweepMap := testkit.Must(lab.LambdaP(t.Context(), LambdaPOptions{Points: 5, Sizes: []int{80, 20, 40}}))
	if len(sweepMap.Sweeps) != 3 || sweepMap.Sweeps[0].S != 20 || sweepMap.Sweeps[2].S != 80 {
		t.Fatalf("%v", sweepMap)
	}
	var grid []float64
	for _, sweep := range sweepMap.Sweeps {
		var lambdas []float64
		for _, point := range sweep.Points {
			lambdas = append(lambdas, point.LambdaP)
			if point.Iterations != nil || point.Predicted > 0 != (point.Seconds > 0) {
				t.Errorf("s = %d: %+v", sweep.S, point)
			}
		}
		if grid == nil {
			grid = lambdas
		} else if !reflect.DeepEqual(lambdas, grid) {
			t.Errorf("s = %d: grid %v, want %v of the first row", sweep.S, lambdas, grid)
		}
	}
	if fewest, most := sweepMap.Sweeps[0].Points[sweepMap.Sweeps[0].Best].Kappa.Value,
		sweepMap.Sweeps[2].Points[sweepMap.Sweeps[2].Best].Kappa.Value; most >= fewest {
		t.Errorf("κ %g with 20 features, %g with 80", fewest, most)
	}
	cfg := lambdaPConfig()
	cfg.Precond = Features{S: 40}
	singleSweep := testkit.Must(newLab(t, lab.train, cfg).LambdaP(t.Context(),
		LambdaPOptions{Grid: grid, NoSolve: true}))
	for i, point := range singleSweep.Sweeps[0].Points {
		if mapPoint := sweepMap.Sweeps[1].Points[i]; point.Kappa.Value != mapPoint.Kappa.Value ||
			point.Kappa.Hi != mapPoint.Kappa.Hi {
			t.Errorf("λ_p = %g: κ %v alone, %v in the map", point.LambdaP, point.Kappa, mapPoint.Kappa)
		}
	}
}

// sketchLab returns a lab with 500 points for the tests of SketchSize.
func sketchLab(t testing.TB, cfg Config) *Lab {
	t.Helper()
	return newLab(t, datasets.SyntheticRegression(500, 3, 0.1, 1), cfg)
}

// TestSketchSizeChoosesZ checks with dense linear algebra that the features of the chosen s give a κ within the
// target and that half as many features do not.
func TestSketchSizeChoosesZ(t *testing.T) {
	ctx := context.Background()
	k := kernel.Gaussian{Sigma: 1}
	lab := sketchLab(t, Config{Kernel: k, Lambda: 0.3, Seed: 4})
	got := testkit.Must(lab.SketchSize(ctx, SketchSizeOptions{First: 16, Target: 20}))
	if got.Status != sketchsize.Found || got.S <= 16 {
		t.Fatalf("%v", got)
	}
	for _, s := range []int{got.S, got.S / 2} {
		z := testkit.Must(sketchLab(t, Config{Kernel: k, Lambda: 0.3, Seed: 4, Precond: Features{S: s}}).Z(ctx))
		spectrum := denseSpectrum(t, k, lab.train.X, 0.3, z, 0.3)
		if kappa := spectrum[z.N-1] / spectrum[0]; (kappa <= 20) != (s == got.S) {
			t.Errorf("s = %d: κ = %g, target 20, chosen %d", s, kappa, got.S)
		}
	}
}

// TestSketchSizePlot checks the numbers in the picture of SketchSize for the two tests that SketchSize offers, the
// target κ and Theorem 7.
func TestSketchSizePlot(t *testing.T) {
	ctx := context.Background()
	for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 1}, kernel.Polynomial{Gamma: 1, Coef0: 1, Degree: 2}} {
		lab := sketchLab(t, Config{Kernel: k, Lambda: 0.3, Seed: 4})
		for _, options := range []SketchSizeOptions{
			{First: 16, Max: 64, Target: 1.5},
			{First: 16, Max: 64, Test: sketchsize.Theorem7, Constants: sketchsize.PaperConstants},
			{First: 16, Max: 64, Test: sketchsize.Theorem7, Eigen: 32},
		} {
			result := testkit.Must(lab.SketchSize(ctx, options))
			figure := result.Plot()
			curve := figure.Series[len(figure.Series)-1]
			if want := result.Rungs[1].Kappa.Lo; len(curve.X) != len(result.Rungs) || options.Test == "" &&
				(curve.Lo[1] != want || figure.HLines[0].At != 1.5) || options.Test == sketchsize.Theorem7 &&
				math.Abs(curve.Y[1]*result.Constants.Bound()/result.Rungs[1].Kappa.Value-1) > 1e-12 {
				t.Errorf("κ is drawn as %+v", curve)
			}
			if options.Test == sketchsize.Theorem7 {
				conditions := result.Rungs[0].Conditions
				if got, want := figure.Series[0].Y[0], conditions.Norm.Value/result.Constants.Alpha; got != want {
					t.Errorf("condition 1 is drawn at %g, want %g", got, want)
				}
				if _, isPolynomial := k.(kernel.Polynomial); isPolynomial != strings.Contains(result.Coverage,
					"covers this kernel") {
					t.Errorf("%v: coverage %q", k, result.Coverage)
				}
			}
		}
	}
}
