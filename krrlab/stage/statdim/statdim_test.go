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

// method is one of the randomized methods.
type method struct {
	name string
	run  func(ctx context.Context, p *problem, o *Options) (*Estimates, error)
}

var methods = []method{{"hutchinson", withDefaults(hutchinson)}, {"slq", withDefaults(slq)}}

// withDefaults returns the method for options whose zeros are replaced by the defaults, and which may have any
// MaxProbes.
func withDefaults(run func(context.Context, *problem, *Options) (*Estimates, error)) func(context.Context, *problem,
	*Options) (*Estimates, error) {
	return func(ctx context.Context, p *problem, o *Options) (*Estimates, error) {
		maxProbes := o.MaxProbes
		o.MaxProbes, o.progress = 0, func(int, int, estimate.Interval) {}
		if err := o.setDefaults(); err != nil {
			return nil, err
		}
		o.MaxProbes = cmp.Or(maxProbes, o.MaxProbes)
		return run(ctx, p, o)
	}
}

// TestCoverage checks that the 95 % interval covers the exact value for enough seeds (minCovered), for matrices with
// given spectra, with and without a control variate. It also checks that the requested width is reached unless the
// probes are used up.
func TestCoverage(t *testing.T) {
	const n = 200
	for _, s := range spectra {
		d := s.newMatrix(n, 3)
		for _, controlled := range []bool{false, true} {
			for _, m := range methods {
				p := &problem{K: d.k, Lambda: s.lambda}
				name := s.name + "/" + m.name
				if controlled {
					p.Control = controlVariate(t, d.features(30, 0.1, 5), 2*s.lambda)
					name += "/with control variate"
				}
				t.Run(name, func(t *testing.T) {
					covered, reached, probes, count := 0, 0, 0, suite.Scale(10, 10, 100)
					for seed := range count {
						r := testkit.Must(m.run(t.Context(), p, &Options{stream: rng.New(uint64(seed))}))
						if r.Estimate.Contains(d.statDim) {
							covered++
						}
						if r.WidthReached {
							reached++
						}
						probes += r.Probes
						if r.WidthReached != (r.Estimate.RelativeWidth() <= 0.1) || !r.WidthReached &&
							r.Probes < min(256, n/2) {
							t.Errorf("seed %d: %v of width %.3g with %d probes, reached %v", seed, r.Estimate,
								r.Estimate.RelativeWidth(), r.Probes, r.WidthReached)
						}
					}
					t.Logf("s_λ = %.4g: %d of %d covered, %d reached 10 %%, %.1f probes", d.statDim, covered, count,
						reached, float64(probes)/float64(count))
					if covered < minCovered(count) {
						t.Errorf("the 95 %% interval covers s_λ = %.6g in %d of %d seeds, want %d", d.statDim, covered,
							count, minCovered(count))
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
	for _, s := range spectra {
		d := s.newMatrix(n, 7)
		var chol mat.Cholesky
		if !chol.Factorize(testkit.AddRidge(d.k, s.lambda)) {
			t.Fatalf("%s: K+λI is not positive definite", s.name)
		}
		z := estimate.RandomSigns(n, 0, m, rng.New(1))
		var x mat.Dense
		testkit.OK(t, chol.SolveTo(&x, z))
		exact := dots(z, &x) // zᵀA⁻¹z
		p := &problem{K: d.k, Lambda: s.lambda}
		o := &Options{progress: func(int, int, estimate.Interval) {}}
		checkForm := func(how string, j int, y, half float64) {
			want := float64(n) - s.lambda*exact[j] // zᵀK(K+λI)⁻¹z, as zᵀz = n
			if slack := 1e-9 * n; math.Abs(y-want) > half+slack {
				t.Errorf("%s, %s: the quadratic form is %.9g ± %.3g, want %.9g", s.name, how, y, half, want)
			}
		}
		for _, tol := range []float64{0.3, 0.01, 1e-6} {
			q := testkit.Must(p.solveProbes(t.Context(), z, tol, o, estimate.Interval{}))
			y, half := q.quadraticForms(p)
			for j := range m {
				checkForm("solve", j, y[j], half[j])
			}
		}
		forEachStep(t, d.k, z, 40, func(j int, r *lanczos.Result) {
			y, half := p.quadraticForm(r)
			checkForm(fmt.Sprintf("%d Lanczos steps", r.Steps), j, y, half)
			if r.Steps == 40 && half > 0.05*n {
				t.Errorf("%s: 40 steps leave ± %.3g, want at most %g", s.name, half, 0.05*n)
			}
		})
	}
}

// forEachStep runs count steps of a Lanczos process from each column of z, and calls check after each step of process
// j.
func forEachStep(t *testing.T, k dense, z *mat.Dense, count int, check func(j int, r *lanczos.Result)) {
	t.Helper()
	var results []*lanczos.Result
	testkit.Must(lanczos.RunFrom(t.Context(), shifted{k, 0}, z, &lanczos.Options{Steps: count,
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
	d := spectrum{"steep", func(i, n int) float64 { return 1e6 * float64(n) * math.Exp(-float64(i)/1.5) },
		lambda}.newMatrix(n, 3)
	z := estimate.RandomSigns(n, 0, m, rng.New(1))
	var uz mat.Dense
	uz.Mul(d.u.T(), z)
	p := &problem{K: d.k, Lambda: lambda}
	if r := rounding(d.mu[0], n); r < lambda {
		t.Fatalf("the rounding error %g of ‖K‖ is below λ: the test needs other parameters", r)
	}
	forEachStep(t, d.k, z, 12, func(j int, r *lanczos.Result) {
		var want float64
		for i, mu := range d.mu {
			want += uz.At(i, j) * uz.At(i, j) * mu / (mu + lambda)
		}
		y, half := p.quadraticForm(r)
		if difference := math.Abs(y - want); difference > half+1e-6*n || half < 0 {
			t.Errorf("%d steps: form %.6g ± %.3g, want %.6g", r.Steps, y, half, want)
		}
	})
}

// TestFeatureCurve checks that the certain interval covers s_λ of any K within a known distance of ZZᵀ, and that it
// shrinks with the distance. If the distance is unknown, it is as wide as the trace allows.
func TestFeatureCurve(t *testing.T) {
	const n, lambda = 50, 0.3
	g := rng.New(8)
	for trial := range 200 {
		sigma2, mu := make([]float64, 20), make([]float64, n)
		trialStream := g.Sub("trial", uint64(trial))
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
		for _, m := range mu {
			exact += m / (m + lambda)
		}
		width := math.Inf(1)
		for _, d := range []distance{unknownDistance, {2 * eta, 2 * eta}, {eta, eta}} {
			c := featureCurve(n, trace, sigma2, d, []float64{lambda})
			e := c[0].Estimate
			if !e.Contains(exact) || e.Hi-e.Lo > width*(1+1e-9) {
				t.Fatalf("trial %d: s_λ = %.6g, %v at distance %v", trial, exact, e, d)
			}
			width = e.Hi - e.Lo
		}
	}
	lo, hi := traceBounds(n, 7, lambda)
	c := featureCurve(n, 7, []float64{1}, unknownDistance, []float64{lambda})
	if math.Abs(c[0].Estimate.Lo-lo) > 1e-9 || math.Abs(c[0].Estimate.Hi-hi) > 1e-9 {
		t.Errorf("%v, want the trace's bounds [%g, %g]", c, lo, hi)
	}
}

// TestProductRounding checks that the interval allows for the rounding of products, which is the only error for K = I.
func TestProductRounding(t *testing.T) {
	const n, u, lambda = 40, 1e-3, 0.5
	k := dense{testkit.AddRidge(mat.NewSymDense(n, nil), 1)}
	for _, m := range methods {
		r := testkit.Must(m.run(t.Context(), &problem{K: scaledDown{k, u}, Lambda: lambda, ProductRounding: u,
			Control: controlVariate(t, points.NewDense32(n, 1, nil), lambda)}, &Options{stream: rng.New(1)}))
		if want := n / (1 + lambda); !r.Estimate.Contains(want) || math.Abs(r.Estimate.Value-want) < u*want/10 ||
			r.Storage > 2*u*want {
			t.Errorf("%s: [%.8g, %.8g], want %.8g", m.name, r.Estimate.Lo, r.Estimate.Hi, want)
		}
	}
}

// scaledDown is the operator (1−u)·K, whose products have the relative error u.
type scaledDown struct {
	dense
	u float64
}

func (r scaledDown) KMulTo(ctx context.Context, dst, src *mat.Dense) error {
	err := r.dense.KMulTo(ctx, dst, src)
	dst.Scale(1-r.u, dst)
	return err
}

// TestStorageError checks that the allowance for the storage error covers the change of s_λ of perturbed matrices.
func TestStorageError(t *testing.T) {
	const n = 80
	for _, s := range spectra {
		d := s.newMatrix(n, 4)
		e := mat.NewSymDense(n, nil)
		for i := range n {
			for j := range i {
				e.SetSym(i, j, rng.New(6).Normal(uint64(i*n+j)))
			}
		}
		e.ScaleSym(0.01*s.lambda/mat.Norm(e, 2), e)
		p := &problem{K: d.k, Lambda: s.lambda, Error: mat.Norm(e, 2)}
		var perturbed mat.SymDense
		perturbed.AddSym(d.k.SymDense, e)
		got := degreesAt(testkit.Eigenvalues(t, &perturbed), []float64{s.lambda})[0]
		if math.Abs(got-d.statDim) > p.storageError(d.statDim) {
			t.Errorf("%s: s_λ moves from %.8g to %.8g, allowance %.3g", s.name, d.statDim, got,
				p.storageError(d.statDim))
		}
	}
}
