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
	for _, test := range []struct{ sign, x, sum float64 }{{1, 5, 56.25}, {-1, 0, 2.5}} {
		if christoffelExceeds(alpha, beta, test.sign, test.x, test.sum) ||
			!christoffelExceeds(alpha, beta, test.sign, test.x, test.sum*(1-1e-15)) {
			t.Errorf("sign %g, x = %g: the sum is not %g", test.sign, test.x, test.sum)
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
			bound := outerBound(alpha, beta, sign, theta, mass)
			// At a mass of ½ the sum is above the limit at once.
			if step := 1e-9 * (bound - theta); !(bound >= theta) || mass < 0.5 &&
				christoffelExceeds(alpha, beta, sign, bound-step, 1/mass) || !christoffelExceeds(alpha, beta, sign,
				bound, 1/mass) {
				t.Errorf("sign %g, mass %g: bound %g for the Ritz value %g", sign, mass, bound, theta)
			}
		}
	}
	for _, tiny := range []float64{5e-324, 1e-320, 1e-310, 1e-300, math.NaN()} { // outerBound must end
		if bound := outerBound([]float64{tiny, tiny}, []float64{tiny, tiny}, 1, 2*tiny, 0.1); bound < 2*tiny {
			t.Errorf("T with entries %g: outer bound %g below the Ritz value", tiny, bound)
		}
	}
	testkit.Equal(t, outerBound([]float64{0, 0}, []float64{0, 0}, 1, 0, 0.1), 0)
}

// TestSampleFactor compares sampleFactor for k steps with √(ν/χ²) and the 1 % quantiles χ² of published tables.
func TestSampleFactor(t *testing.T) {
	for k, chiSquared := range map[int]float64{2: 0.000157088, 3: 0.114832, 4: 0.872090, 5: 2.558212, 6: 5.229349} {
		nu := float64(k*(k-1)) / 2
		if got, want := sampleFactor(k), math.Sqrt(nu/chiSquared); math.Abs(got-want) > 1e-5*want {
			t.Errorf("%d steps: %g, want %g", k, got, want)
		}
	}
	if sampleFactor(0) != 1 || sampleFactor(1) != 1 {
		t.Errorf("sampleFactor of 0 and 1 steps: %g, %g, want 1", sampleFactor(0), sampleFactor(1))
	}
}

// TestCondOfSingular checks that κ is unbounded if λ_min is 0, and that the matrix is then not called indefinite.
func TestCondOfSingular(t *testing.T) {
	result := &Result{Min: estimate.Interval{}, Max: estimate.Interval{Value: 2, Lo: 2, Hi: 3}}
	if kappa := result.Cond(); !math.IsNaN(kappa.Value) || kappa.Lo != 1 || !math.IsInf(kappa.Hi, 1) ||
		result.Indefinite() {
		t.Errorf("%+v, indefinite %v", kappa, result.Indefinite())
	}
	result.Min = estimate.Interval{Value: 0.5, Lo: 0.25, Hi: 1}
	if kappa := result.Cond(); kappa.Value != 4 || kappa.Lo != 2 || kappa.Hi != 12 {
		t.Errorf("%+v", kappa)
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
	for _, test := range []struct {
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
		p := &process{n: test.n, alpha: test.alpha, squaredDefect: test.squaredDefect, res: &Result{}}
		p.extendT(test.beta)
		result := p.res
		if result.Steps != 1 || result.Alpha[0] != test.alpha || result.Beta[0] != test.wantBeta ||
			math.Abs(result.Slack-test.wantSlack) > 1e-14*test.wantSlack {
			t.Errorf("%+v: β = %g, slack %g in %d steps", test, result.Beta[0], result.Slack, result.Steps)
		}
	}
}
