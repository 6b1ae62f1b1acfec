package kernel

import (
	"math"
	"testing"
)

// TestSlope: the bound of |∂k/∂r²| is what the difference quotient comes to near r = 0, and nowhere less than it.
func TestSlope(t *testing.T) {
	for _, sigma := range []float64{0.5, 1, 3} {
		for _, k := range []Radial{Gaussian{sigma}, Matern32{sigma}, Matern52{sigma}} {
			steepest := 0.0
			for i := range 2000 {
				s := sigma * sigma * 1e-5 * math.Pow(1.008, float64(i)) // r²
				at := func(s float64) float64 { return k.Eval([]float64{math.Sqrt(s)}, []float64{0}) }
				steepest = max(steepest, (at(s)-at(1.001*s))/(0.001*s))
			}
			if b := k.Slope(); steepest > b*(1+1e-6) || steepest < 0.99*b {
				t.Errorf("%v: slope %g, bound %g", k, steepest, b)
			}
		}
	}
}
