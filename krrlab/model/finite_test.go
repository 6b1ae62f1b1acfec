package model

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestDecisionOverflow checks that a row whose features overflow the kernel is an error that names the row, for classes
// and numbers. Such a row must not silently become one of the first class.
func TestDecisionOverflow(t *testing.T) {
	z := points.NewDense(300, 3, nil)
	z.Row(271)[1] = 1e200
	for _, labels := range [][]string{nil, {"a", "b"}} {
		m := randomModel(kernel.Polynomial{Gamma: 1, Coef0: 1, Degree: 3}, pointsInFormats(30, 3, 1)["float64"], 1,
			labels...)
		for _, o := range []*Options{nil, {Float64: true}} {
			testkit.Fails(t, testkit.ErrOf(m.Predict(t.Context(), &datasets.Dataset{X: z}, o)),
				"the prediction of row 271 (counted from 0)")
		}
	}
	for i, v := range []float64{math.NaN(), math.Inf(-1)} {
		f := mat.NewDense(3, 2, nil)
		f.Set(2, i, v)
		testkit.Fails(t, CheckDecision(f), "row 2 ")
	}
	testkit.OK(t, CheckDecision(mat.NewDense(1, 1, []float64{math.MaxFloat64})))
}

// TestFloat32AtRequestedAccuracy checks that float32 tiles are used if and only if they are accurate enough. They must
// be used at an accuracy 1 % above their error and not at one 1 % below it.
func TestFloat32AtRequestedAccuracy(t *testing.T) {
	x := pointsInFormats(60, 4, 1)["float64"]
	for _, k := range kernels {
		m := randomModel(k, x, 1)
		exact := decide(t, m, x, &Options{Float64: true})
		single := decide(t, m, x, &Options{Accuracy: 1})
		// The model tries the same 60 points, so it finds this error.
		float32Error := testkit.RelativeDifference(single, exact)
		if float32Error == 0 {
			t.Fatalf("%v: float32 tiles are exact", k)
		}
		if !mat.Equal(decide(t, m, x, &Options{Accuracy: 1.01 * float32Error}), single) {
			t.Errorf("%v: float64 tiles are used at 1.01 times the error of float32 tiles", k)
		}
		if !mat.Equal(decide(t, m, x, &Options{Accuracy: 0.99 * float32Error}), exact) {
			t.Errorf("%v: float32 tiles are used at 0.99 times their error", k)
		}
	}
}

// TestChooseArithmetic checks the choice between inner products and differences of coordinates for a required accuracy.
// Differences must be used if the error bound of inner products is too large for the predicted points, even if it is
// small enough for the points of the fit. Inner products must be used if the accuracy is 1 % above their bound.
func TestChooseArithmetic(t *testing.T) {
	x, z := points.NewDense(30, 1, floats.Span(make([]float64, 30), 0, 100)),
		points.NewDense(30, 1, floats.Span(make([]float64, 30), 0, 200))
	m := randomModel(kernel.Gaussian{Sigma: 20}, x, 1)
	scale := 100 * mat.Norm(m.C, 1) / testkit.MaxAbs(decide(t, m, z, &Options{Float64: true}))
	// bound returns the relative error that inner products with the points p certainly do not exceed.
	bound := func(p points.Points) float64 {
		return scale * kernel.EntryError(m.Kernel, kernel.Float64, kernel.SummaryOf(points.NewPanel(p)))
	}
	for accuracy, want := range map[float64]kernel.Arithmetic{1.01 * bound(z): kernel.Float64,
		0.99 * bound(z): kernel.Differences, 1.01 * bound(x): kernel.Differences} {
		placement := kernel.NewPlacement(m.Kernel, x)
		p := &predictor{m: m, n: 30, t: 1, placement: placement, x: placement.Panel, z: placement.Apply(z),
			scratch: make([]scratchMemory, accel.Threads())}
		p.setBlocks(nil)
		if err := p.chooseArithmetic(t.Context(), &Options{Accuracy: accuracy, Float64: true}); err != nil ||
			p.arith != want {
			t.Errorf("accuracy %g: %v is chosen, want %v; error %v", accuracy, p.arith, want, err)
		}
	}
}
