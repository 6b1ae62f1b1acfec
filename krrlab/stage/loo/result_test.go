package loo

import (
	"math"

	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/model/leaveout"
)

// resultWithUpperEnds returns the result of a regression for λ = 1, 2, … whose mean squares have the value 4, the lower
// end 1 and the given upper ends. The second λ is the best.
func resultWithUpperEnds(upperEnds ...float64) *Result {
	r := &Result{Best: 1}
	for i, hi := range upperEnds {
		r.Scores = append(r.Scores, leaveout.Score{Lambda: float64(i + 1),
			Error: estimate.Interval{Value: 4, Lo: 1, Hi: hi, Confidence: 1}})
	}
	return r
}

// TestPlotOfRegression checks that the band of a regression shows the square roots of the intervals of the mean square.
func TestPlotOfRegression(t *testing.T) {
	errorSeries := resultWithUpperEnds(math.Inf(1), 9, 7).Plot().Series[0]
	if errorSeries.Lo[0] != 1 || errorSeries.Y[1] != 2 || errorSeries.Hi[1] != 3 || !math.IsInf(errorSeries.Hi[0], 1) {
		t.Errorf("RMSE %v in a band from %v to %v; want 2, from 1 to +Inf and to 3", errorSeries.Y, errorSeries.Lo,
			errorSeries.Hi)
	}
}

// TestReportOfBest checks the line with the recommended λ, and the note if it is at an end of the grid.
func TestReportOfBest(t *testing.T) {
	r := resultWithUpperEnds(math.Inf(1), 4.5, 1.23456e9)
	text := r.String()
	testkit.Contains(t, text, "--lambda 2: RMSE 2 by leave-one-out", "λ = 2          2 ") // the root of 4
	for best, want := range map[int]string{0: "it is the smallest λ of the grid",
		2: "it is the largest λ of the grid"} {
		r.Best = best
		testkit.Contains(t, r.String(), want)
	}
	r.Best, r.T = 1, 2
	testkit.Contains(t, r.String(), "RMSE of all targets together; by")
	r.Classification, r.Scores[1].Error.Value = true, 0.25
	testkit.Contains(t, r.String(), "--lambda 2: error 25.00 % by")
}
