package solve

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage"
)

// TestCountUndecidedLabels counts the labels, the signs of f, that an error of f may change, with f(z) = k(z, 1) − k(z,
// −1). The label at z = 0 is open for every error since f(0) = 0, and other labels become open as the error bound
// grows.
func TestCountUndecidedLabels(t *testing.T) {
	x, rows := points.NewDense(2, 1, []float64{1, -1}), points.NewDense(4, 1, []float64{0, 0.05, 1, -1})
	d := &datasets.Dataset{Task: datasets.Classification, X: rows, Labels: []string{"a", "b"}, Class: make([]int, 4)}
	s := NewSolution(stage.Header{})
	s.System = newSystem(func(*System) {})
	s.Model = &model.Model{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1, X: x, C: mat.NewDense(2, 1, []float64{1, -1}),
		Labels: d.Labels}
	p := testkit.Must(s.Model.Predict(t.Context(), d, s.PredictOptions()))
	if s.CountUndecidedLabels(p, d); s.CheckedLabels != 0 {
		t.Error("open labels are counted although no error bound is known")
	}
	// f(0.05) = 0.061, and f(1) = 0.86
	for errorBound, wantOpen := range map[float64]int{0: 1, 0.05: 1, 0.1: 2, 1: 4} {
		s.Error = &bound.Errors{Bounds: []float64{errorBound}}
		if s.CountUndecidedLabels(p, d); s.CheckedLabels != 4 || s.UndecidedLabels != wantOpen {
			t.Errorf("error %g: %d of %d labels are open, want %d", errorBound, s.UndecidedLabels, s.CheckedLabels,
				wantOpen)
		}
	}
}

// TestSetTrainingError checks that the training error follows from the decision values y − λc on the rows of the fit if
// the residual is small, and that it is unknown otherwise.
func TestSetTrainingError(t *testing.T) {
	s := NewSolution(stage.Header{})
	x := points.NewDense(4, 1, []float64{0, 1, 2, 3})
	s.Model = &model.Model{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 2, X: x,
		C: mat.NewDense(4, 1, []float64{1, 0, 0, -1}), Labels: []string{"a", "b"}}
	// With y = −1, −1, 1, 1 for the classes, y − λc = −3, −1, 1, 3, and no label is wrong.
	classes := &datasets.Dataset{Task: datasets.Classification, X: x, Labels: s.Model.Labels, Class: []int{0, 0, 1, 1}}
	for residual, known := range map[stage.Number]bool{0.01: true, 0.011: false, stage.Unknown: false} {
		s.TrueResidual, s.TrainError = residual, stage.Unknown
		if s.SetTrainingError(classes); s.TrainError.Known() != known || known && s.TrainError != 0 {
			t.Errorf("residual %g: training error %g, want 0, known: %t", residual, s.TrainError, known)
		}
	}
	s.TrueResidual, s.Model.Labels = 0, nil
	s.SetTrainingError(&datasets.Dataset{Task: datasets.Regression, X: x, Target: []float64{1, 2, 3, 4}})
	testkit.Near(t, float64(s.TrainError), 2/math.Sqrt2, 1e-12) // the RMSE of λc
}
