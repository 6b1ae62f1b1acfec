package model

import (
	"math"
	"strings"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestAccuracyFor checks that the accuracy of predictions is a quarter of the tolerance, but at least 1e-6 and at
// most 2.5e-4.
func TestAccuracyFor(t *testing.T) {
	for tol, want := range map[float64]float64{1e-4: 2.5e-5, 1e-3: 2.5e-4, 1e-2: 2.5e-4, 4e-6: 1e-6, 1e-10: 1e-6} {
		testkit.Near(t, AccuracyFor(tol), want, 1e-15, tol)
	}
}

// TestScoreOfZeroTargets checks the relative figures of a score for targets that are all zero: RelErr and R2 are 0 and
// 1 without an error, and otherwise +Inf and −Inf.
func TestScoreOfZeroTargets(t *testing.T) {
	d := &datasets.Dataset{Task: datasets.Regression, X: points.NewDense(2, 1, nil), Target: []float64{0, 0}}
	if s := (&Prediction{Value: []float64{0, 0}}).Score(d); s.RelErr != 0 || s.R2 != 1 || s.RMSE != 0 {
		t.Errorf("predictions without an error: %+v", s)
	}
	if s := (&Prediction{Value: []float64{3, 4}}).Score(d); !math.IsInf(s.RelErr, 1) || !math.IsInf(s.R2, -1) ||
		math.Abs(s.RMSE-math.Sqrt(12.5)) > 1e-15 || !strings.Contains(s.String(), "R² undefined") {
		t.Errorf("wrong predictions: %+v", s)
	}
}
