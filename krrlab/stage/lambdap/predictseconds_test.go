package lambdap

import (
	"testing"

	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/krylov/pencil"
)

// TestPredictSeconds checks the predicted times, 3 s of preparation and 0.5 s for each iteration, and the choice: the
// point with the least time, or of equal times the one with the smaller κ. Points whose number of iterations is unknown
// or that have not converged are not chosen.
func TestPredictSeconds(t *testing.T) {
	measured := func(iterations int) *int { return &iterations }
	point := func(predicted int, iterations *int, status pcg.Status, kappa float64) Point {
		return Point{Row: pencil.Row{Iteration: pencil.Iteration{Predicted: predicted, Iterations: iterations,
			Status: status}, Spectrum: pencil.Spectrum{Kappa: estimate.Certain(kappa, 0, "")}}}
	}
	for name, test := range map[string]struct {
		points  []Point
		best    int
		seconds float64 // predicted seconds of the best point
	}{
		"the least time is in the middle": {[]Point{point(20, nil, 0, 1), point(10, nil, 0, 9), point(30, nil, 0, 1)},
			1, 3 + 10*0.5},
		"the first has the least time": {[]Point{point(10, nil, 0, 1), point(20, nil, 0, 1)}, 0, 8},
		"one iteration":                {[]Point{point(1, nil, 0, 1), point(20, nil, 0, 1)}, 0, 3.5},
		"equal times, two of equal κ": {[]Point{point(10, nil, 0, 5), point(10, nil, 0, 4), point(10, nil, 0, 4)}, 1,
			8},
		"unknown iterations": {[]Point{point(0, nil, 0, 1), point(50, nil, 0, 1)}, 1, 28},
		"more measured than predicted": {[]Point{point(10, measured(40), pcg.Converged, 1), point(30, nil, 0, 1)}, 1,
			18},
		"the quicker has not converged": {[]Point{point(10, measured(5), pcg.MaxIterations, 1),
			point(30, measured(30), pcg.Converged, 1)}, 1, 18},
		"no point has known iterations": {[]Point{point(0, nil, 0, 1)}, -1, 0},
	} {
		state := &sweepState{Sweep: &Sweep{Points: test.points, Best: -1, SetUpSeconds: 3, IterationSeconds: 0.5}}
		state.predictSeconds()
		if state.Best != test.best {
			t.Errorf("%s: point %d is chosen, want %d", name, state.Best, test.best)
			continue
		}
		if test.best >= 0 && state.Points[test.best].Seconds != test.seconds {
			t.Errorf("%s: %g s, want %g", name, state.Points[test.best].Seconds, test.seconds)
		}
	}
}
