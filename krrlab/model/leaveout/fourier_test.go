package leaveout_test

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/fourier"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model/leaveout"
)

// TestFourier compares the scores by a Fourier series with those by dense factors, with repeated rows, weights, a
// mean and classes, and compares −2 ln p(Y) with a dense Cholesky factorization.
func TestFourier(t *testing.T) {
	n, lambdas := suite.Scale(60, 300, 600), []float64{0.01, 1, 30}
	for seed, c := range []struct{ weighted, repeated, mean, classes bool }{{}, {mean: true}, {weighted: true},
		{weighted: true, repeated: true, mean: true}, {repeated: true, classes: true}} {
		g := rng.New(uint64(seed))
		x, y := points.NewDense(n, 1+seed%2, nil), mat.NewDense(n, 2, nil)
		g.Float64s(x.Data, 0)
		g.Sub("y").Normals(y.RawMatrix().Data, 0)
		o := &leaveout.Problem{Classification: c.classes, SubtractsMean: c.mean, ComputeResiduals: true}
		o.FirstEqual = make([]int, n)
		for i := range n {
			if o.FirstEqual[i] = i; c.repeated && i%7 == 3 {
				copy(x.Row(i), x.Row(i-1))
				o.FirstEqual[i] = i - 1
			}
		}
		if c.classes {
			y.Apply(func(_, _ int, v float64) float64 { return math.Copysign(1, v) }, y)
		}
		k, weight := mat.NewDense(n, n, nil), func(int) float64 { return 1 }
		if c.weighted {
			weight = func(i int) float64 { return 1 + float64(i%3) }
			for i := range n {
				o.Weights = append(o.Weights, weight(i))
				for j := range 2 {
					y.Set(i, j, y.At(i, j)*math.Sqrt(weight(i)))
				}
			}
		}
		gauss := kernel.Gaussian{Sigma: 0.4}
		for i := range n {
			for j := range n {
				k.Set(i, j, gauss.Eval(x.Row(i), x.Row(j))*math.Sqrt(weight(i)*weight(j)))
			}
		}
		s := testkit.Must(fourier.New(gauss, fourier.Options{}, x))
		got := testkit.Must(leaveout.Fourier(t.Context(), s, x, y, lambdas, o))
		want := testkit.Must(leaveout.Dense(t.Context(), k, y, lambdas, o))
		for q, lambda := range lambdas {
			name := fmt.Sprintf("%+v, λ = %g", c, lambda)
			a, b := got[q], want[q]
			if !mat.EqualApprox(a.Residuals, b.Residuals, 1e-7) || math.Abs(a.S-b.S) > 1e-6 ||
				math.Abs(a.GCV-b.GCV) > 1e-7*b.GCV || !a.Error.Contains(b.Error.Value) ||
				a.Error.RelativeWidth() > 1e-3 && !c.classes {
				t.Errorf("%s: %+v, want %+v", name, a, b)
			}
			if c.mean { // the likelihood is then that of Y minus its mean, which is not computed here
				continue
			}
			sym, likelihood := mat.NewSymDense(n, nil), 0.0
			for i := range n {
				for j := range i + 1 {
					sym.SetSym(i, j, gauss.Eval(x.Row(i), x.Row(j)))
				}
				sym.SetSym(i, i, 1+lambda/weight(i))
			}
			answers := mat.DenseCopyOf(y)
			answers.Apply(func(i, _ int, v float64) float64 { return v / math.Sqrt(weight(i)) }, answers)
			var factor mat.Cholesky
			var c mat.Dense
			if !factor.Factorize(sym) || factor.SolveTo(&c, answers) != nil {
				t.Fatal("K+λW⁻¹ is not positive definite")
			}
			c.MulElem(&c, answers)
			likelihood = mat.Sum(&c) + 2*(factor.LogDet()+float64(n)*math.Log(2*math.Pi))
			if math.Abs(a.Minus2LogLikelihood-likelihood) > 1e-7*math.Abs(likelihood)+1e-5 {
				t.Errorf("%s: −2 ln p = %.10g, want %.10g", name, a.Minus2LogLikelihood, likelihood)
			}
		}
		o.Groups, o.FirstEqual = o.FirstEqual, nil
		testkit.Fails(t, testkit.ErrOf(leaveout.Fourier(t.Context(), s, x, y, lambdas, o)), "no groups")
		o.Groups = nil
		testkit.Fails(t, testkit.ErrOf(leaveout.Fourier(t.Context(), s, x, y, []float64{1e-90}, o)), "")
	}
}
