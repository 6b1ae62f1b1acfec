package lanczos

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
)

// TestChristoffel compares Σ p_j(x)² with values worked out by hand for T with the diagonal 1, 2, 3 and β = 1, 2, 1:
// the p_j are 1, 4, 5½, 3 at x = 5, and 1, 1, ½, −½ for −T at 0. Beyond the Ritz values the sum must reach the limit
// at the documented bound. outerBound must end for entries near the smallest float64.
func TestChristoffel(t *testing.T) {
	alpha, beta := []float64{1, 2, 3}, []float64{1, 2, 1}
	for _, c := range []struct{ sign, x, sum float64 }{{1, 5, 56.25}, {-1, 0, 2.5}} {
		if christoffelExceeds(alpha, beta, c.sign, c.x, c.sum) ||
			!christoffelExceeds(alpha, beta, c.sign, c.x, c.sum*(1-1e-15)) {
			t.Errorf("sign %g, x = %g: the sum is not %g", c.sign, c.x, c.sum)
		}
	}
	if christoffelExceeds(alpha, beta, 1, 1, 0.5) { // x is the first diagonal entry
		t.Error("christoffelExceeds is true at the first diagonal entry")
	}
	ritz := Ritz(alpha, beta)
	for _, mass := range []float64{0.5, 0.01, 1e-6} {
		for _, sign := range []float64{1, -1} {
			theta := ritz[2]
			if sign < 0 {
				theta = -ritz[0]
			}
			u := outerBound(alpha, beta, sign, theta, mass)
			// At a mass of ½ the sum is above the limit at once.
			if step := 1e-9 * (u - theta); !(u >= theta) || mass < 0.5 &&
				christoffelExceeds(alpha, beta, sign, u-step, 1/mass) || !christoffelExceeds(alpha, beta, sign, u, 1/mass) {
				t.Errorf("sign %g, mass %g: bound %g for the Ritz value %g", sign, mass, u, theta)
			}
		}
	}
	for _, tiny := range []float64{5e-324, 1e-320, 1e-310, 1e-300, math.NaN()} { // outerBound must end
		if u := outerBound([]float64{tiny, tiny}, []float64{tiny, tiny}, 1, 2*tiny, 0.1); u < 2*tiny {
			t.Errorf("T with entries %g: outer bound %g below the Ritz value", tiny, u)
		}
	}
	testkit.Equal(t, outerBound([]float64{0, 0}, []float64{0, 0}, 1, 0, 0.1), 0)
}

// TestSampleFactor compares sampleFactor with √(ν/χ²) and the 1 % quantiles of the usual tables.
func TestSampleFactor(t *testing.T) {
	for k, chi := range map[int]float64{2: 0.000157088, 3: 0.114832, 4: 0.872090, 5: 2.558212, 6: 5.229349} {
		nu := float64(k*(k-1)) / 2
		if got, want := sampleFactor(k), math.Sqrt(nu/chi); math.Abs(got-want) > 1e-5*want {
			t.Errorf("%d steps: %g, want %g", k, got, want)
		}
	}
	if sampleFactor(0) != 1 || sampleFactor(1) != 1 {
		t.Errorf("sampleFactor of 0 and 1 steps: %g, %g, want 1", sampleFactor(0), sampleFactor(1))
	}
}

// TestCondOfSingular checks that κ is unbounded if λ_min is 0, and that the matrix is then not called indefinite.
func TestCondOfSingular(t *testing.T) {
	r := &Result{Min: estimate.Interval{}, Max: estimate.Interval{Value: 2, Lo: 2, Hi: 3}}
	if k := r.Cond(); !math.IsNaN(k.Value) || k.Lo != 1 || !math.IsInf(k.Hi, 1) || r.Indefinite() {
		t.Errorf("%+v, indefinite %v", k, r.Indefinite())
	}
	r.Min = estimate.Interval{Value: 0.5, Lo: 0.25, Hi: 1}
	if k := r.Cond(); k.Value != 4 || k.Lo != 2 || k.Hi != 12 {
		t.Errorf("%+v", k)
	}
}

// TestSquaredError compares the squared error of step 3 for order 12 with 12/3·((h₂−β₂)²+h₁²+h₀²).
func TestSquaredError(t *testing.T) {
	p := &process{n: 12, h: []float64{0.5, -1, 3, 9}, res: &Result{Beta: []float64{7, 8, 1}}}
	testkit.Equal(t, p.squaredError(3), 4*(4+1+0.25))
	testkit.Equal(t, p.squaredError(0), 0)
}

// TestExtendT compares the slack of a step with its formula. β is replaced by 0 in the last step and if it is at the
// level of rounding.
func TestExtendT(t *testing.T) {
	for _, c := range []struct {
		n              int
		beta, wantBeta float64
		alpha          float64
		squaredDefect  float64
		wantSlack      float64
	}{
		{9, 2, 2, -3, 0, 4 * unitRoundoff * 3},
		{9, 24 * unitRoundoff, 0, -3, 0, 4 * unitRoundoff * 3}, // 8u·3
		{9, 25 * unitRoundoff, 25 * unitRoundoff, -3, 0, 4 * unitRoundoff * 3},
		{9, 2, 2, 1, 0.25, 2*0.5*(1+1.0/3) + 4*unitRoundoff*2},
		{1, 2, 0, 3, 0, 4 * unitRoundoff * 3},
	} {
		p := &process{n: c.n, alpha: c.alpha, squaredDefect: c.squaredDefect, res: &Result{}}
		p.extendT(c.beta)
		r := p.res
		if r.Steps != 1 || r.Alpha[0] != c.alpha || r.Beta[0] != c.wantBeta ||
			math.Abs(r.Slack-c.wantSlack) > 1e-14*c.wantSlack {
			t.Errorf("%+v: β = %g, slack %g in %d steps", c, r.Beta[0], r.Slack, r.Steps)
		}
	}
}
