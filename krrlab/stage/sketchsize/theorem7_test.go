package sketchsize

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestUpperAndLower compares Upper and Lower, the extremes of two functions of t ≥ 0, with those on a fine grid, and
// the bound of κ with their ratio.
func TestUpperAndLower(t *testing.T) {
	for _, constants := range []ConditionConstants{PaperConstants, Kappa5Constants, Kappa10Constants,
		{Theta: 0.3, Alpha: 0.5, Gamma: 0.2}, {Theta: 0, Alpha: 0, Gamma: 0.5}, {Theta: 3, Alpha: 0.01, Gamma: 0.9},
		{Theta: 5, Alpha: 4, Gamma: 0}} {
		hiAt := func(x float64) float64 {
			return (1 + math.Pow(math.Sqrt((1+constants.Gamma)*x)+math.Sqrt(constants.Alpha), 2)) / (1 + x)
		}
		loAt := func(x float64) float64 {
			return (1 + math.Pow(max(math.Sqrt((1-constants.Gamma)*x)-math.Sqrt(constants.Alpha), 0), 2)) /
				(1 + constants.Theta + x)
		}
		largest, smallest := max(hiAt(0), 1+constants.Gamma), min(loAt(0), 1-constants.Gamma)
		highest, lowest := 0., 0. // logarithms of the t at which the extremes lie
		for _, step := range []float64{1e-3, 1e-6} {
			nearHighest, nearLowest := highest, lowest
			for k := range 40001 { // e^−20 … e^20, then about the extremes
				offset := float64(k-20000) * step
				if value := hiAt(math.Exp(nearHighest + offset)); value > largest {
					largest, highest = value, nearHighest+offset
				}
				if value := loAt(math.Exp(nearLowest + offset)); value < smallest {
					smallest, lowest = value, nearLowest+offset
				}
			}
		}
		hi, lo := constants.Upper(), constants.Lower()
		// At an extreme a step of 1e-6 in log t changes the quotient by its curvature only, about 1e-12.
		if math.Abs(hi-largest) > 1e-11*largest || math.Abs(lo-smallest) > 1e-11*smallest {
			t.Errorf("%+v: hi %.15g and lo %.15g, on a grid %.15g and %.15g", constants, hi, lo, largest, smallest)
		}
		if bound := constants.Bound(); math.Abs(bound-hi/lo) > 1e-14*bound {
			t.Errorf("%+v: bound %g of %g/%g", constants, bound, hi, lo)
		}
	}
}

// TestMargin compares the margin, and the factor that follows from it, with values computed by hand.
func TestMargin(t *testing.T) {
	for _, test := range []struct {
		constants ConditionConstants
		want      float64
	}{
		{ConditionConstants{Theta: 1, Alpha: 3, Gamma: 0.5}, 0.2},           // min(1 − 2/4, 0.5/2.5)
		{ConditionConstants{Theta: 1, Alpha: 1.5, Gamma: 0.5}, 0.2},         // min(1 − 2/2.5, 0.2)
		{ConditionConstants{Theta: 1, Alpha: 1.25, Gamma: 0.5}, 1 - 2/2.25}, // condition 1 decides
		{ConditionConstants{Theta: 0.25, Alpha: 9, Gamma: 0.5}, 0.5 / 5.5},  // condition 2 decides
		{ConditionConstants{Theta: 1, Alpha: 0.5, Gamma: 0.5}, 1 - 2/1.5},   // negative: no ε suffices
	} {
		testkit.Near(t, test.constants.Margin(), test.want, 1e-15, test.constants)
		want := math.Inf(1)
		if test.want > 0 {
			want = 0.25 / (test.want * test.want)
		}
		if got := test.constants.FeatureFactor(); got != want && math.Abs(got-want) > 1e-13*want {
			t.Errorf("%+v: %g times the features of Theorem 1, want %g", test.constants, got, want)
		}
	}
}
