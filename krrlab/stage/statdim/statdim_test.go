package statdim

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
)

// method is one of the randomized methods, with its defaults.
type method struct {
	name string
	run  func(ctx context.Context, p *problem, o *Options) (*Estimates, error)
}

var methods = []method{{"hutchinson", withDefaults(hutchinson)}, {"slq", withDefaults(slq)}}

// withDefaults returns the method for options whose zeros are replaced by the defaults, and which may have any
// MaxProbes.
func withDefaults(run func(context.Context, *problem, *Options) (*Estimates, error)) func(context.Context, *problem,
	*Options) (*Estimates, error) {
	return func(ctx context.Context, problem *problem, options *Options) (*Estimates, error) {
		maxProbes := options.MaxProbes
		options.MaxProbes, options.progress = 0, func(int, int, estimate.Interval) {}
		if err := options.setDefaults(); err != nil {
			return nil, err
		}
		options.MaxProbes = cmp.Or(maxProbes, options.MaxProbes)
		return run(ctx, problem, options)
	}
}

// TestCoverage checks that the 95 % interval covers the exact value for enough seeds (minCovered), for matrices with
// given spectra, with and without a control variate. It also checks that the requested width is reached unless the
// probes are used up.
func TestCoverage(t *testing.T) {
	const n = 200
	for _, spectrum := range spectra {
		testMatrix := spectrum.newMatrix(n, 3)
		for _, withControl := range []bool{false, true} {
			for _, method := range methods {
				problem := &problem{K: testMatrix.k, Lambda: spectrum.lambda}
				name := spectrum.name + "/" + method.name
				if withControl {
					problem.Control = controlVariate(t, testMatrix.features(30, 0.1, 5), 2*spectrum.lambda)
					name += "/with control variate"
				}
				t.Run(name, func(t *testing.T) {
					covered, reachedWidth, probes, count := 0, 0, 0, suite.Scale(10, 10, 100)
					for seed := range count {
						options := &Options{stream: rng.New(uint64(seed))}
						estimates := testkit.Must(method.run(t.Context(), problem, options))
						if estimates.Estimate.Contains(testMatrix.statDim) {
							covered++
						}
						if estimates.WidthReached {
							reachedWidth++
						}
						probes += estimates.Probes
						if estimates.WidthReached != (estimates.Estimate.RelativeWidth() <= 0.1) ||
							!estimates.WidthReached && estimates.Probes < min(256, n/2) {
							t.Errorf("seed %d: %v of width %.3g with %d probes, reached %v", seed, estimates.Estimate,
								estimates.Estimate.RelativeWidth(), estimates.Probes, estimates.WidthReached)
						}
					}
					t.Logf("s_λ = %.4g: %d of %d covered, %d reached 10 %%, %.1f probes", testMatrix.statDim, covered,
						count, reachedWidth, float64(probes)/float64(count))
					if covered < minCovered(count) {
						t.Errorf("the 95 %% interval covers s_λ = %.6g in %d of %d seeds, want %d", testMatrix.statDim,
							covered, count, minCovered(count))
					}
				})
			}
		}
	}
}

// TestQuadraticForms checks that the quadratic form of each probe lies within its certain bounds, however early the
// solve or the Lanczos process ends.
func TestQuadraticForms(t *testing.T) {
	const n, m = 120, 6
	for _, spectrum := range spectra {
		testMatrix := spectrum.newMatrix(n, 7)
		var cholesky mat.Cholesky
		if !cholesky.Factorize(testkit.AddRidge(testMatrix.k, spectrum.lambda)) {
			t.Fatalf("%s: K+λI is not positive definite", spectrum.name)
		}
		z := estimate.RandomSigns(n, 0, m, rng.New(1))
		var x mat.Dense
		testkit.OK(t, cholesky.SolveTo(&x, z))
		exact := columnDots(z, &x) // zᵀA⁻¹z
		problem := &problem{K: testMatrix.k, Lambda: spectrum.lambda}
		options := &Options{progress: func(int, int, estimate.Interval) {}}
		checkForm := func(method string, j int, y, halfWidth float64) {
			want := float64(n) - spectrum.lambda*exact[j] // zᵀK(K+λI)⁻¹z, as zᵀz = n
			const rounding = 1e-9 * n
			if math.Abs(y-want) > halfWidth+rounding {
				t.Errorf("%s, %s: the quadratic form is %.9g ± %.3g, want %.9g", spectrum.name, method, y, halfWidth,
					want)
			}
		}
		for _, tol := range []float64{0.3, 0.01, 1e-6} {
			solution := testkit.Must(problem.solveProbes(t.Context(), z, tol, options, estimate.Interval{}))
			y, halfWidths := solution.quadraticForms(problem)
			for j := range m {
				checkForm("solve", j, y[j], halfWidths[j])
			}
		}
		forEachStep(t, testMatrix.k, z, 40, func(j int, r *lanczos.Result) {
			y, halfWidth := problem.quadraticForm(r)
			checkForm(fmt.Sprintf("%d Lanczos steps", r.Steps), j, y, halfWidth)
			if r.Steps == 40 && halfWidth > 0.05*n {
				t.Errorf("%s: 40 steps leave ± %.3g, want at most %g", spectrum.name, halfWidth, 0.05*n)
			}
		})
	}
}

// forEachStep runs count steps of a Lanczos process from each column of z, and calls check after each step of process
// j.
func forEachStep(t *testing.T, k dense, z *mat.Dense, count int, check func(j int, r *lanczos.Result)) {
	t.Helper()
	var results []*lanczos.Result
	testkit.Must(lanczos.RunFrom(t.Context(), shiftedMatrix{k, 0}, z, &lanczos.Options{Steps: count,
		Quantity: lanczos.TridiagonalOnly,
		Monitor: func(r *lanczos.Result) error {
			if r.Steps == 1 {
				results = append(results, r)
			}
			check(slices.Index(results, r), r)
			return nil
		}}))
}

// TestTinyRidge checks the bounds of the quadratic forms for a λ below the rounding error of ‖K‖.
func TestTinyRidge(t *testing.T) {
	const n, m, lambda = 60, 4, 1e-7
	testMatrix := spectrum{"steep", func(i, n int) float64 { return 1e6 * float64(n) * math.Exp(-float64(i)/1.5) },
		lambda}.newMatrix(n, 3)
	z := estimate.RandomSigns(n, 0, m, rng.New(1))
	var coefficients mat.Dense
	coefficients.Mul(testMatrix.u.T(), z)
	problem := &problem{K: testMatrix.k, Lambda: lambda}
	if rounding := lanczosRounding(testMatrix.mu[0], n); rounding < lambda {
		t.Fatalf("the rounding error %g of ‖K‖ is below λ: the test needs other parameters", rounding)
	}
	forEachStep(t, testMatrix.k, z, 12, func(j int, r *lanczos.Result) {
		var want float64
		for i, mu := range testMatrix.mu {
			want += coefficients.At(i, j) * coefficients.At(i, j) * mu / (mu + lambda)
		}
		y, halfWidth := problem.quadraticForm(r)
		if difference := math.Abs(y - want); difference > halfWidth+1e-6*n || halfWidth < 0 {
			t.Errorf("%d steps: form %.6g ± %.3g, want %.6g", r.Steps, y, halfWidth, want)
		}
	})
}

// TestFeatureCurve checks that the certain interval covers s_λ of any K whose eigenvalues are within a known distance
// of those of ZZᵀ, and that the interval shrinks with the distance. If the distance is unknown, the ends of the
// interval are the bounds that the trace gives.
func TestFeatureCurve(t *testing.T) {
	const n, lambda = 50, 0.3
	stream := rng.New(8)
	for trial := range 200 {
		sigma2, mu := make([]float64, 20), make([]float64, n)
		trialStream := stream.Sub("trial", uint64(trial))
		eta := 0.5 * trialStream.Float64(0)
		var trace float64
		for i := range n {
			if i < len(sigma2) {
				sigma2[i] = 5 * math.Exp(-float64(i)/4) * trialStream.Sub("s").Float64(uint64(i))
				mu[i] = sigma2[i]
			}
			// If the eigenvalues differ by at most η in this order, they also do in descending order.
			mu[i] = max(0, mu[i]+eta*(2*trialStream.Sub("m").Float64(uint64(i))-1))
			trace += mu[i]
		}
		var exact float64
		for _, eigenvalue := range mu {
			exact += eigenvalue / (eigenvalue + lambda)
		}
		width := math.Inf(1)
		for _, distance := range []eigenvalueDistance{unknownDistance, {2 * eta, 2 * eta}, {eta, eta}} {
			curve := featureCurve(n, trace, sigma2, distance, []float64{lambda})
			interval := curve[0].Estimate
			if !interval.Contains(exact) || interval.Hi-interval.Lo > width*(1+1e-9) {
				t.Fatalf("trial %d: s_λ = %.6g, %v at distance %v", trial, exact, interval, distance)
			}
			width = interval.Hi - interval.Lo
		}
	}
	lo, hi := traceBounds(n, 7, lambda)
	curve := featureCurve(n, 7, []float64{1}, unknownDistance, []float64{lambda})
	if math.Abs(curve[0].Estimate.Lo-lo) > 1e-9 || math.Abs(curve[0].Estimate.Hi-hi) > 1e-9 {
		t.Errorf("%v, want the trace's bounds [%g, %g]", curve, lo, hi)
	}
}

// TestProductRounding checks that the interval allows for the rounding of products, which is the only error for K = I.
func TestProductRounding(t *testing.T) {
	const n, u, lambda = 40, 1e-3, 0.5
	k := dense{testkit.AddRidge(mat.NewSymDense(n, nil), 1)}
	for _, method := range methods {
		p := &problem{K: scaledDown{k, u}, Lambda: lambda, ProductRounding: u,
			Control: controlVariate(t, points.NewDense32(n, 1, nil), lambda)}
		estimates := testkit.Must(method.run(t.Context(), p, &Options{stream: rng.New(1)}))
		if want := n / (1 + lambda); !estimates.Estimate.Contains(want) ||
			math.Abs(estimates.Estimate.Value-want) < u*want/10 || estimates.Storage > 2*u*want {
			t.Errorf("%s: [%.8g, %.8g], want %.8g", method.name, estimates.Estimate.Lo, estimates.Estimate.Hi, want)
		}
	}
}

// scaledDown is the operator (1−u)·K, whose products have the relative error u.
type scaledDown struct {
	dense
	u float64
}

func (s scaledDown) KMulTo(ctx context.Context, dst, src *mat.Dense) error {
	err := s.dense.KMulTo(ctx, dst, src)
	dst.Scale(1-s.u, dst)
	return err
}

// TestStorageError checks that the allowance for the storage error is at least the change of s_λ if K is perturbed by a
// symmetric matrix of that 2-norm with a diagonal of zeros.
func TestStorageError(t *testing.T) {
	const n = 80
	for _, spectrum := range spectra {
		testMatrix := spectrum.newMatrix(n, 4)
		storageError := mat.NewSymDense(n, nil)
		for i := range n {
			for j := range i {
				storageError.SetSym(i, j, rng.New(6).Normal(uint64(i*n+j)))
			}
		}
		storageError.ScaleSym(0.01*spectrum.lambda/mat.Norm(storageError, 2), storageError)
		problem := &problem{K: testMatrix.k, Lambda: spectrum.lambda, Error: mat.Norm(storageError, 2)}
		var perturbed mat.SymDense
		perturbed.AddSym(testMatrix.k.SymDense, storageError)
		perturbedStatDim := statDims(testkit.Eigenvalues(t, &perturbed), []float64{spectrum.lambda})[0]
		if math.Abs(perturbedStatDim-testMatrix.statDim) > problem.storageError(testMatrix.statDim) {
			t.Errorf("%s: s_λ moves from %.8g to %.8g, allowance %.3g", spectrum.name, testMatrix.statDim,
				perturbedStatDim, problem.storageError(testMatrix.statDim))
		}
	}
}
