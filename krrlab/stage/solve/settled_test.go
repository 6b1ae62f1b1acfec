package solve

import (
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

// TestCountOpenLabels uses f(z) = k(z, 1) − k(z, −1), which is zero at z = 0. The label there is open for every error,
// and other labels become open as the error bound grows.
func TestCountOpenLabels(t *testing.T) {
	x, rows := points.NewDense(2, 1, []float64{1, -1}), points.NewDense(4, 1, []float64{0, 0.05, 1, -1})
	d := &datasets.Dataset{Task: datasets.Classification, X: rows, Labels: []string{"a", "b"}, Class: make([]int, 4)}
	s := NewSolution(stage.Header{})
	s.System = system(func(*System) {})
	s.Model = &model.Model{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 1, X: x, C: mat.NewDense(2, 1, []float64{1, -1}),
		Labels: d.Labels}
	p := testkit.Must(s.Model.Predict(t.Context(), d, s.PredictOptions()))
	if s.CountOpenLabels(p, d); s.LabelsCounted != 0 {
		t.Error("labels are settled by an error that is not known")
	}
	for e, open := range map[float64]int{0: 1, 0.05: 1, 0.1: 2, 1: 4} { // f(0.05) = 0.061, f(1) = 0.86
		s.Error = &bound.Errors{Bounds: []float64{e}}
		if s.CountOpenLabels(p, d); s.LabelsCounted != 4 || s.LabelsOpen != open {
			t.Errorf("error %g: %d of %d labels are open, want %d", e, s.LabelsOpen, s.LabelsCounted, open)
		}
	}
}

// TestSetTraining checks that y − λc gives the decision values on the rows of the fit if the residual is small, and
// that the training error is unknown otherwise.
func TestSetTraining(t *testing.T) {
	s := NewSolution(stage.Header{})
	x := points.NewDense(4, 1, []float64{0, 1, 2, 3})
	s.Model = &model.Model{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 2, X: x, C: mat.NewDense(4, 1, []float64{1, 0, 0, -1}),
		Labels: []string{"a", "b"}}
	classes := &datasets.Dataset{Task: datasets.Classification, X: x, Labels: s.Model.Labels, Class: []int{0, 0, 1, 1}}
	for residual, known := range map[stage.Number]bool{0.01: true, 0.011: false, stage.Unknown: false} {
		s.TrueResidual, s.TrainError = residual, stage.Unknown
		if s.SetTrainingError(classes); s.TrainError.Known() != known {
			t.Errorf("residual %g: training error %g", residual, s.TrainError)
		}
	}
	s.TrueResidual, s.Model.Labels = 0, nil
	s.SetTrainingError(&datasets.Dataset{Task: datasets.Regression, X: x, Target: []float64{1, 2, 3, 4}})
	testkit.Near(t, float64(s.TrainError), 2/1.4142135623730951, 1e-12) // errors λc
}
