package lambdap

import (
	"math"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/krrlab/pcg"
)

// TestOptionBounds: the least values that are allowed, and the first that are not.
func TestOptionBounds(t *testing.T) {
	for _, c := range []struct {
		o  Options
		ok bool
	}{
		{Options{Points: 2}, true}, {Options{Points: 1}, false}, {Options{Steps: 1}, true}, {Options{MaxIter: 1}, true},
		{Options{Tol: 0.999}, true}, {Options{Tol: 1}, false}, {Options{Tol: 1.05}, false}, {Options{Tol: math.NaN()}, false},
		{Options{Width: math.Inf(1)}, false}, {Options{Width: 1e-9}, true}, {Options{LambdaP: []float64{math.Inf(1)}}, false},
		{Options{LambdaP: []float64{math.NaN()}}, false}, {Options{LambdaP: []float64{1e-300}}, true},
	} {
		if err := c.o.Check(); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
	if s := (*Options)(nil).settled(); s.Points != 13 || s.Steps != 150 || s.Columns != 1 || s.MaxIter != 200 || s.Confidence != 0.95 || s.Width != 0.3 || s.Tol != 1e-3 {
		t.Errorf("defaults %+v", s)
	}
	if h := (&Options{Confidence: 0.9}).half(); math.Abs(h-0.95) > 1e-15 {
		t.Errorf("half of 0.9 is %g", h)
	}
}

// TestFinish checks the predicted times and the choice: the least time, the smaller κ where times are
// equal, and no point that is unknown or has not converged.
func TestFinish(t *testing.T) {
	its := func(n int) *int { return &n }
	point := func(predicted int, iterations *int, status pcg.Status, kappa float64) Point {
		return Point{Predicted: predicted, Iterations: iterations, Status: status, Kappa: estimate.Exact(kappa, 0, "")}
	}
	for name, c := range map[string]struct {
		points []Point
		best   int
		second float64 // of the best
	}{
		"the least":            {[]Point{point(20, nil, 0, 1), point(10, nil, 0, 9), point(30, nil, 0, 1)}, 1, 3 + 10*0.5},
		"the first":            {[]Point{point(10, nil, 0, 1), point(20, nil, 0, 1)}, 0, 8},
		"one iteration":        {[]Point{point(1, nil, 0, 1), point(20, nil, 0, 1)}, 0, 3.5},
		"equal, the smaller κ": {[]Point{point(10, nil, 0, 5), point(10, nil, 0, 4), point(10, nil, 0, 4)}, 1, 8},
		"unknown":              {[]Point{point(0, nil, 0, 1), point(50, nil, 0, 1)}, 1, 28},
		"measured":             {[]Point{point(10, its(40), pcg.Converged, 1), point(30, nil, 0, 1)}, 1, 18},
		"not converged":        {[]Point{point(10, its(5), pcg.MaxIterations, 1), point(30, its(30), pcg.Converged, 1)}, 1, 18},
		"none":                 {[]Point{point(0, nil, 0, 1)}, -1, 0},
	} {
		s := &sweep{res: &Result{Points: c.points, Best: -1, SetUp: 3, PerIter: 0.5}}
		s.finish()
		if s.res.Best != c.best {
			t.Errorf("%s: %d, want %d", name, s.res.Best, c.best)
			continue
		}
		if c.best >= 0 && s.res.Points[c.best].Seconds != c.second {
			t.Errorf("%s: %g s, want %g", name, s.res.Points[c.best].Seconds, c.second)
		}
	}
}

// TestRitzBounds checks the prediction for a T of one row by hand, and the tolerances that make no
// sense.
func TestRitzBounds(t *testing.T) {
	// α = 2, β = 1: after one step the residual is 1/2.
	for _, c := range []struct{ tau, kappa, want float64 }{
		{0.5, 4, 1}, {0.6, 4, 1},
		{0.1, 4, math.Ceil(1 + (math.Log(0.1)-math.Log(0.5))/math.Log(1.0/3))}, // (√4−1)/(√4+1) = 1/3
		{0.1, math.Inf(1), math.Inf(1)}, {0.1, math.NaN(), math.Inf(1)},
	} {
		if got := RitzIterations([]float64{2}, []float64{1}, c.tau, c.kappa); got != c.want {
			t.Errorf("τ = %g, κ = %g: %g iterations, want %g", c.tau, c.kappa, got, c.want)
		}
	}
	if r, ok := Residuals([]float64{2, 1, 3}, []float64{1, 0.25, 0}); !ok || len(r) != 3 || r[0] != 0.5 || r[1] != 0.25 || r[2] != 0 { // d = 2, 1/2
		t.Errorf("residuals %v, definite %v", r, ok)
	}
	if r, ok := Residuals([]float64{1, 0.5}, []float64{1, 1}); ok || len(r) != 1 {
		t.Errorf("residuals of an indefinite T: %v, definite %v", r, ok)
	}
	if got := RitzIterations([]float64{2, 3}, []float64{0, 1}, 1e-9, 4); got != 1 {
		t.Errorf("an invariant space after one step: %g iterations", got)
	}
	if got := RitzIterations([]float64{1, 0.5}, []float64{1, 1}, 1e-9, 4); !math.IsInf(got, 1) {
		t.Errorf("an indefinite T: %g iterations", got)
	}
	for _, tau := range []float64{0, 1, -1, 2, math.NaN()} {
		func() {
			defer func() {
				if v, _ := recover().(string); !strings.Contains(v, "residual of") {
					t.Errorf("τ = %g: panic %q", tau, v)
				}
			}()
			RitzIterations([]float64{2}, []float64{1}, tau, 4)
		}()
	}
}
