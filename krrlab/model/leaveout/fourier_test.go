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

// TestFourierScores compares the scores by a Fourier series with those by dense factors, with repeated rows, weights, a
// mean and classes, and compares −2 ln p(Y) with a dense Cholesky factorization.
func TestFourierScores(t *testing.T) {
	n, lambdas := suite.Scale(60, 300, 600), []float64{0.01, 1, 30}
	for seed, c := range []struct{ weighted, repeated, mean, classes bool }{{}, {mean: true}, {weighted: true},
		{weighted: true, repeated: true, mean: true}, {repeated: true, classes: true}} {
		random := rng.New(uint64(seed))
		x, y := points.NewDense(n, 1+seed%2, nil), mat.NewDense(n, 2, nil)
		random.Float64s(x.Data, 0)
		random.Sub("y").Normals(y.RawMatrix().Data, 0)
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
		weight, answers := func(int) float64 { return 1 }, mat.DenseCopyOf(y)
		if c.weighted {
			weight = func(i int) float64 { return 1 + float64(i%3) }
			for i := range n {
				o.Weights = append(o.Weights, weight(i))
			}
		}
		gaussian := kernel.Gaussian{Sigma: 0.4}
		unweightedK := testkit.KernelMatrix(gaussian, x)
		k := mat.NewDense(n, n, nil) // W^½KW^½; y becomes W^½y
		k.Apply(func(i, j int, _ float64) float64 { return unweightedK.At(i, j) * math.Sqrt(weight(i)*weight(j)) }, k)
		y.Apply(func(i, _ int, v float64) float64 { return v * math.Sqrt(weight(i)) }, y)
		fourierSeries := testkit.Must(fourier.New(gaussian, fourier.Options{}, x))
		got := testkit.Must(leaveout.Fourier(t.Context(), fourierSeries, x, y, lambdas, o))
		want := testkit.Must(leaveout.Dense(t.Context(), k, y, lambdas, o))
		for j, lambda := range lambdas {
			name := fmt.Sprintf("%+v, λ = %g", c, lambda)
			series, dense := got[j], want[j]
			if !mat.EqualApprox(series.Residuals, dense.Residuals, 1e-7) || math.Abs(series.S-dense.S) > 1e-6 ||
				math.Abs(series.GCV-dense.GCV) > 1e-7*dense.GCV || !series.Error.Contains(dense.Error.Value) ||
				series.Error.RelativeWidth() > 1e-3 && !c.classes {
				t.Errorf("%s: %+v, by dense factors %+v", name, series, dense)
			}
			if c.mean { // the likelihood is then that of Y minus its mean, which is not computed here
				continue
			}
			a := mat.NewSymDense(n, nil) // K+λW⁻¹
			a.CopySym(unweightedK)
			for i := range n {
				a.SetSym(i, i, 1+lambda/weight(i))
			}
			var factor mat.Cholesky
			var c mat.Dense
			if !factor.Factorize(a) || factor.SolveTo(&c, answers) != nil {
				t.Fatal("K+λW⁻¹ is not positive definite")
			}
			c.MulElem(&c, answers)
			likelihood := mat.Sum(&c) + 2*(factor.LogDet()+float64(n)*math.Log(2*math.Pi))
			testkit.Near(t, series.Minus2LogLikelihood, likelihood, 1e-7*math.Abs(likelihood)+1e-5, name, "−2 ln p")
		}
		o.Groups, o.FirstEqual = o.FirstEqual, nil
		testkit.Fails(t, testkit.ErrOf(leaveout.Fourier(t.Context(), fourierSeries, x, y, lambdas, o)), "no groups")
		o.Groups = nil
		testkit.Fails(t, testkit.ErrOf(leaveout.Fourier(t.Context(), fourierSeries, x, y, []float64{1e-90}, o)), "")
	}
}
