package statdim

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
)

// TestVarianceExplained checks that features close to K explain nearly all of the variance of the probes and narrow the
// interval. Without a control variate nothing is explained.
func TestVarianceExplained(t *testing.T) {
	spectrum := spectra[1] // exponential
	testMatrix := spectrum.newMatrix(150, 3)
	for _, method := range methods {
		var widths [2]float64
		for i := range widths { // without and with a control variate
			p := &problem{K: testMatrix.k, Lambda: spectrum.lambda}
			if i == 1 {
				p.Control = controlVariate(t, testMatrix.features(100, 1e-3, 5), spectrum.lambda)
			}
			estimates := testkit.Must(method.run(t.Context(), p, &Options{probes: 16, MaxProbes: 16, Width: 1e-5,
				stream: rng.New(2)}))
			widths[i] = estimates.Estimate.RelativeWidth()
			if i == 0 && estimates.VarianceExplained != 0 || i == 1 && !(estimates.VarianceExplained > 0.99) {
				t.Errorf("%s, with a control variate: %v; the explained share of the variance is %g", method.name,
					i == 1, estimates.VarianceExplained)
			}
		}
		if !(widths[1] < widths[0]/5) {
			t.Errorf("%s: width %g with a control variate, %g without; want a fifth", method.name, widths[1], widths[0])
		}
	}
}

// TestTraceBoundsAttained checks the bounds of Σ μ_i/(μ_i+λ) for 10 eigenvalues μ_i ≥ 0 with the sum 20: one nonzero
// eigenvalue attains the lower bound, and equal eigenvalues attain the upper one.
func TestTraceBoundsAttained(t *testing.T) {
	lo, hi := traceBounds(10, 20, 0.5)
	testkit.Near(t, lo, 20/20.5, 1e-15, "lower bound")
	testkit.Near(t, hi, 10*2/2.5, 1e-13, "upper bound")
	if lo, hi := traceBounds(10, 0, 0.5); lo != 0 || hi != 0 {
		t.Errorf("a trace of 0 gives [%g, %g], want [0, 0]", lo, hi)
	}
}

// TestRadauPivot checks inverseBounds if rounding makes the last pivot of T − aI zero or negative, where T is the
// Lanczos matrix and a = 0 the node of the Gauss–Radau rule, a lower bound of the eigenvalues. The upper bound must
// then be 1/(a+λ), as for an eigenvalue at a.
func TestRadauPivot(t *testing.T) {
	const lambda = 0.5
	for _, lastDiagonal := range []float64{1, 0.5} { // the pivots are 1 and lastDiagonal − 1
		lo, hi := inverseBounds(&lanczos.Result{Alpha: []float64{1, lastDiagonal}, Beta: []float64{1, 0.5}}, lambda, 0)
		if want := 1 / (1 + lambda - 1/(lastDiagonal+lambda)); math.Abs(lo-want) > 1e-14*want || hi != 1/lambda {
			t.Errorf("last diagonal %g: [%g, %g], want [%g, %g]", lastDiagonal, lo, hi, want, 1/lambda)
		}
	}
}

// TestEqualRows checks that the 95 % interval covers s_λ for at least 94 % of the seeds if a group of equal rows is the
// only source of variance, which a few probes may miss.
func TestEqualRows(t *testing.T) {
	const seeds, lambda = 200, 0.01
	for _, test := range []struct{ n, groupSize int }{{30, 3}, {60, 50}, {2, 2}} {
		k := mat.NewSymDense(test.n, nil)
		for i := range test.n {
			for j := range i + 1 {
				if i == j || i < test.groupSize {
					k.SetSym(i, j, 1)
				}
			}
		}
		// The group has one nonzero eigenvalue, its size, and each other row the eigenvalue 1.
		groupSize, others := float64(test.groupSize), float64(test.n-test.groupSize)
		want := groupSize/(groupSize+lambda) + others/(1+lambda)
		for _, method := range methods {
			covered := 0
			for seed := range seeds {
				estimates := testkit.Must(method.run(t.Context(), &problem{K: dense{k}, Lambda: lambda},
					&Options{probes: 8, MaxProbes: 32, stream: rng.New(uint64(seed))}))
				if estimates.Estimate.Contains(want) {
					covered++
				}
			}
			if covered < seeds*94/100 {
				t.Errorf("%s, %d equal rows of %d: %d of %d intervals cover s_λ", method.name, test.groupSize, test.n,
					covered, seeds)
			}
		}
	}
}
