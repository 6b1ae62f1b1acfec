package loo

import (
	"math"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/model/leaveout"
)

// TestPlot checks that the band of a regression shows the square roots of the intervals of the mean square.
func TestPlot(t *testing.T) {
	r := &Result{Best: 1}
	for i, hi := range []float64{math.Inf(1), 3, 7} {
		r.Scores = append(r.Scores, leaveout.Score{Lambda: float64(i + 1),
			Error: estimate.Interval{Value: 2, Lo: 1, Hi: hi, Confidence: 0.95}})
	}
	if s := r.Plot().Series[0]; !math.IsInf(s.Hi[0], 1) || s.Hi[1] != math.Sqrt(3) || s.Lo[0] != 1 {
		t.Errorf("band %v to %v", s.Lo, s.Hi)
	}
}

// TestLines checks the line with the recommended λ, and the note if it is at an end of the grid.
func TestLines(t *testing.T) {
	r := &Result{Best: 1}
	for i, hi := range []float64{math.Inf(1), 4.5, 1.23456e9} {
		r.Scores = append(r.Scores, leaveout.Score{Lambda: float64(i + 1),
			Error: estimate.Interval{Value: 4, Lo: 1, Hi: hi, Confidence: 1}})
	}
	text := r.String()
	testkit.Contains(t, text, "--lambda 2: RMSE 2 by leave-one-out", "λ = 2          2 ") // the root of 4
	for best, want := range map[int]string{0: "it is the smallest λ of the grid", 2: "it is the largest λ of the grid"} {
		if r.Best = best; !strings.Contains(r.String(), want) {
			t.Errorf("no %q in %s", want, r)
		}
	}
	r.Best, r.T = 1, 2
	testkit.Contains(t, r.String(), "RMSE of all targets together; by")
	r.Classification, r.Scores[1].Error.Value = true, 0.25
	testkit.Contains(t, r.String(), "--lambda 2: error 25.00 % by")
}
