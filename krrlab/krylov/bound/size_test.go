package bound

import (
	"math"
	"math/big"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
)

// TestSolutionNormBound checks the lower bound of ‖c*‖_A if yᵀc suffers from cancellation, and that it does not
// depend on the unit of y.
func TestSolutionNormBound(t *testing.T) {
	const n = 100
	for trial := range uint64(50) {
		stream := rng.New(trial)
		y, c := mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
		stream.Normals(y.RawVector().Data, 0)
		stream.Normals(c.RawVector().Data, n)
		yNorm := mat.Norm(y, 2)
		factor := math.Pow(10, -float64(trial%17)) - mat.Dot(y, c)/(yNorm*yNorm)
		c.AddScaledVec(c, factor, y) // yᵀc is about 10^−k times the terms that cancel
		exact := new(big.Float).SetPrec(300)
		for i := range n {
			v := new(big.Float).SetPrec(300).SetFloat64(y.AtVec(i))
			exact.Add(exact, v.Mul(v, big.NewFloat(c.AtVec(i))))
		}
		if exact.Sign() < 0 {
			continue
		}
		v, _ := exact.Sqrt(exact).Float64() // ‖c*‖_A of y = Ac
		if got := solutionNormBound(c, y, yNorm, 0); !(got <= v) || trial%17 < 8 && !(got > 0.999*v) {
			t.Errorf("trial %d: ‖c*‖_A ≥ %g, and it is %g", trial, got, v)
		}
	}
	for _, exponent := range []int{0, -300, 300} { // binary exponent of y, and so of c
		y, c := mat.NewDense(2, 1, []float64{math.Ldexp(3, exponent), math.Ldexp(4, exponent)}),
			mat.NewDense(2, 1, []float64{math.Ldexp(1, exponent), math.Ldexp(2, exponent)})
		system := &Problem{Lambda: 1, Norms: []float64{math.Ldexp(5, exponent)}}
		errorBounds := system.AnswerErrors(&Answer{C: c, Y: y, Residuals: []float64{0}, Rounding: []float64{0}})
		got := errorBounds.SolutionNormBounds[0]
		if want := math.Ldexp(math.Sqrt(11), exponent); !(got <= want && got > (1-1e-7)*want) {
			t.Errorf("y of 2^%d: ‖c*‖_A ≥ %g, want %g", exponent, got, want)
		}
	}
}
