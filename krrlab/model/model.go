package model

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
)

// Model is the fitted function f(x) = Σ_i c_i k(x_i, x) with all it takes to use it.
type Model struct {
	Kernel kernel.Kernel
	Lambda float64       // ridge λ of the fit
	X      points.Points // training points after Scaling, n×d
	C      *mat.Dense    // coefficients, n×t
	// Labels holds the original labels of the classes; nil for regression.
	// With two labels t = 1 and f(x) > 0 stands for Labels[1]; otherwise t is the
	// number of labels and the largest f_j(x) wins.
	Labels  []string
	Scaling *datasets.Scaling // from raw features to X's, that of the training data; nil means none
	Columns []string          // names of the features; nil where the data had none
	Origin  Origin
}

// Origin says where a model comes from. It informs; nothing is computed from it.
type Origin struct {
	Dataset      string   `json:"dataset"`
	Target       string   `json:"target,omitempty"`  // csv column of the target at the fit
	Drop         []string `json:"drop,omitempty"`    // csv columns that were left out at the fit
	Rows         int      `json:"rows,omitempty"`    // of the training file that were read, where a part of them was held out
	Holdout      float64  `json:"holdout,omitempty"` // that part: what was not trained on
	Solver       string   `json:"solver"`
	Status       string   `json:"status"`
	Tol          float64  `json:"tol"`
	TrueResidual float64  `json:"true_residual"` // worst ‖y−Ac‖₂/‖y‖₂ of the columns
	Seed         uint64   `json:"seed"`
	Version      string   `json:"krrlab_version"`
	Created      string   `json:"created"` // RFC 3339
}

// Task returns what the model predicts.
func (m *Model) Task() datasets.Task {
	if m.Labels == nil {
		return datasets.Regression
	}
	return datasets.Classification
}

// Dims returns the number n of training points, their dimension d and the number
// t of columns of C.
func (m *Model) Dims() (n, d, t int) {
	n, d = m.X.Dims()
	_, t = m.C.Dims()
	return n, d, t
}

// Coding returns the coding that turns the columns of f back into labels.
func (m *Model) Coding() datasets.Coding { return datasets.Coding{Labels: m.Labels} }

// String describes the model in one line.
func (m *Model) String() string {
	n, d, t := m.Dims()
	return fmt.Sprintf("%v, f(x) = Σ c_i k(x_i, x): n=%d, d=%d, t=%d, λ=%g, %v", m.Task(), n, d, t, m.Lambda, m.Kernel)
}

// check reports what does not fit together.
func (m *Model) check() error {
	n, d, t := m.Dims()
	rows, _ := m.C.Dims()
	want := 1
	if len(m.Labels) > 2 {
		want = len(m.Labels)
	}
	switch {
	case n < 1 || d < 1:
		return fmt.Errorf("model: %d points of dimension %d", n, d)
	case rows != n:
		return fmt.Errorf("model: %d rows of coefficients for %d points", rows, n)
	case m.Labels != nil && len(m.Labels) < 2:
		return fmt.Errorf("model: %d class label; a classifier has at least 2", len(m.Labels))
	case t != want:
		return fmt.Errorf("model: %d columns of coefficients, want %d for %d labels", t, want, len(m.Labels))
	case m.Columns != nil && len(m.Columns) != d:
		return fmt.Errorf("model: %d names for %d features", len(m.Columns), d)
	case m.Scaling != nil && m.Scaling.Dim() != d:
		return fmt.Errorf("model: scaling of %d features for points of dimension %d", m.Scaling.Dim(), d)
	}
	return kernel.Validate(m.Kernel)
}
