package model

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// TestValidate checks that a model that was read from a file is refused if any one of its parts does not fit the
// others or is not finite, for each format of its points.
func TestValidate(t *testing.T) {
	type change struct {
		description string
		valid       bool // whether the changed model is valid
		apply       func(m *Model)
	}
	changes := []change{
		{"no change", true, func(*Model) {}},
		{"no scaling", true, func(m *Model) { m.Scaling = nil }},
		{"no names", true, func(m *Model) { m.Columns = nil }},
		{"no features", false, func(m *Model) { m.X, m.Columns, m.Scaling = points.NewDense(7, 0, nil), nil, nil }},
		{"too few names", false, func(m *Model) { m.Columns = m.Columns[1:] }},
		{"scaling of more features", false, func(m *Model) { m.Scaling = exampleScaling(4) }},
		{"an unknown scaling", false, func(m *Model) { m.Scaling.Kind = "unknown" }},
		{"too few coefficients", false, func(m *Model) { m.C = mat.NewDense(6, 3, nil) }},
		{"two columns of three labels", false, func(m *Model) { m.C = mat.NewDense(7, 2, nil) }},
		{"one label", false, func(m *Model) { m.C, m.Labels = mat.NewDense(7, 1, nil), []string{"a"} }},
		{"two labels", true, func(m *Model) { m.C, m.Labels = mat.NewDense(7, 1, nil), []string{"a", "b"} }},
		{"two labels and columns", false, func(m *Model) {
			m.C, m.Labels = mat.NewDense(7, 2, nil), []string{"a", "b"}
		}},
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		changes = append(changes,
			change{"λ", false, func(m *Model) { m.Lambda = bad }},
			change{"the first coefficient", false, func(m *Model) { m.C.Set(0, 0, bad) }},
			change{"the last coefficient", false, func(m *Model) { m.C.Set(6, 2, bad) }},
			change{"a shift", false, func(m *Model) { m.Scaling.Shift[2] = bad }},
			change{"a scale", false, func(m *Model) { m.Scaling.Scale[0] = bad }},
			change{"a point", false, func(m *Model) {
				switch x := m.X.(type) {
				case *points.Dense:
					x.Data[20] = bad
				case *points.Dense32:
					x.Data[0] = float32(bad)
				case *points.CSR:
					x.Val[0] = bad
				}
			}})
	}
	for _, format := range []string{"float64", "float32", "sparse"} {
		for _, c := range changes {
			m := randomModel(kernels[0], pointsInFormats(7, 3, 1)[format], 3, "a", "b", "c")
			m.Scaling, m.Columns = exampleScaling(3), []string{"a", "b", "c"}
			task := m.Task()
			c.apply(m)
			if err := m.validate(Info{Task: task.String()}); (err == nil) != c.valid {
				t.Errorf("%s points, %s: error %v, valid %t", format, c.description, err, c.valid)
			}
		}
	}
	m := randomModel(kernels[0], pointsInFormats(7, 3, 1)["float64"], 1)
	testkit.Fails(t, m.validate(Info{Task: "classification"}), `task is "classification" with 0 labels`)
	m.C.Set(6, 0, math.NaN())
	testkit.Fails(t, m.validate(Info{Task: "regression"}), "coefficient 6 is NaN")
}

// TestInvalidInput checks that points and options that are not valid, and models that are incomplete, are errors with
// the invalid value.
func TestInvalidInput(t *testing.T) {
	m := randomModel(kernels[0], pointsInFormats(7, 3, 1)["float64"], 1)
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		z := points.NewDense(2, 3, []float64{1, 2, 3, 4, bad, 6})
		testkit.Fails(t, testkit.ErrOf(m.Decision(t.Context(), z, nil)), "entry (1, 1) is "+fmt.Sprint(bad))
		if m.Scaling = exampleScaling(3); math.IsNaN(bad) { // a missing value
			m.Scaling.Fill = []float64{1, 2, 3}
			decide(t, m, z, nil)
		}
		m.Scaling = nil
	}
	for _, a := range []float64{math.NaN(), -1} {
		testkit.Fails(t, testkit.ErrOf(m.Decision(t.Context(), m.X, &Options{Accuracy: a})), "Accuracy "+fmt.Sprint(a))
	}
	for _, d := range []*datasets.Dataset{nil, {}} {
		testkit.Fails(t, testkit.ErrOf(m.Predict(t.Context(), d, nil)), "the data set is nil")
		testkit.Fails(t, testkit.ErrOf(m.Evaluate(t.Context(), d, nil)), "the data set is nil")
	}
	testkit.Fails(t, testkit.ErrOf(m.Decision(t.Context(), nil, nil)), "the data set is nil")
	name := filepath.Join(t.TempDir(), "m.krr")
	m.C.Set(6, 0, math.NaN())
	testkit.Fails(t, m.Save(name), "not saved: coefficient 6 is NaN")
	empty := &Model{Kernel: m.Kernel}
	testkit.Fails(t, empty.Save(name), "0 points of dimension 0")
	testkit.Fails(t, testkit.ErrOf(empty.Decision(t.Context(), m.X, nil)), "the model was fitted on 0")
	if _, err := os.Stat(name); err == nil {
		t.Error("a model that is not saved leaves a file")
	}
}

// TestDecisionOnRanks checks that batches of points are distributed over the ranks and that each rank receives all
// of F, with the bits of one process.
func TestDecisionOnRanks(t *testing.T) {
	const rows = 5*BatchRows + 7
	m, z := randomModel(kernels[0], pointsInFormats(40, 4, 1)["float64"], 2), pointsInFormats(rows, 4, 2)["float64"]
	want := decide(t, m, z, nil)
	for _, p := range []int{2, 3, 7} {
		var wg sync.WaitGroup
		for rank, c := range comm.Local(p, 0) {
			wg.Go(func() {
				last, total := 0, 0
				progress := func(done, all int) { last, total = done, all }
				f, err := m.Decision(t.Context(), z, &Options{Comm: c, Progress: progress})
				lo, hi := comm.RowRange(rows, BatchRows, rank, p)
				if err != nil || !mat.Equal(f, want) || last != hi-lo || total != hi-lo {
					t.Errorf("rank %d of %d: the last progress is %d of %d points, want %d; error %v", rank, p, last,
						total, hi-lo, err)
				}
			})
		}
		wg.Wait()
	}
}

// TestPrecomputedRows checks that a model of a precomputed K is refused if its points are not row numbers of K.
func TestPrecomputedRows(t *testing.T) {
	k := testkit.Must(kernel.NewPrecomputed(points.NewDense(3, 3, []float64{2, 1, 0, 1, 2, 1, 0, 1, 2})))
	m := &Model{Kernel: k, Lambda: 1, X: kernel.PrecomputedPoints(3), C: mat.NewDense(3, 1, []float64{1, 2, 3})}
	testkit.Must(readBytes(savedBytes(t, m)))
	for _, x := range []*points.Dense{points.NewDense(3, 1, []float64{0, 1, 3}),
		points.NewDense(3, 1, []float64{0, -1, 2}), points.NewDense(3, 1, []float64{0, 0.5, 2}),
		points.NewDense(3, 2, nil)} {
		m.X = x
		testkit.Fails(t, m.check(), "precomputed K")
	}
}
