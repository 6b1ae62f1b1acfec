package datasets

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/points"
)

// Task is what is to be predicted.
type Task int

const (
	Regression     Task = iota // a number
	Classification             // one of several labels
)

// String returns "regression" or "classification".
func (t Task) String() string {
	switch t {
	case Regression:
		return "regression"
	case Classification:
		return "classification"
	}
	return fmt.Sprintf("Task(%d)", int(t))
}

// Dataset is n points in R^d with their answers, if these are known: numbers, or classes.
type Dataset struct {
	Name   string
	Task   Task
	X      points.Points // n×d, raw or scaled by Scaling
	Target []float64     // regression: the answers
	Class  []int         // classification: the answers, indices into Labels
	Labels []string      // original labels, sorted by value if all are numbers, else as text
	Source string        // file or generator
	// Columns are the names of the features in the file's header; nil without one.
	Columns []string
	// Scaling is what X was scaled by; nil if X is raw, as read. Scale sets it, and what is made of
	// the points (Slice, Subset, Holdout) has it too.
	Scaling *Scaling

	oracle []float64 // built-in data: the best predictor's squared or 0/1 error on each point
}

// Len returns the number n of points.
func (d *Dataset) Len() int {
	n, _ := d.X.Dims()
	return n
}

// Dim returns the dimension d of the points.
func (d *Dataset) Dim() int {
	_, dim := d.X.Dims()
	return dim
}

// HasAnswers reports whether the answers are known.
func (d *Dataset) HasAnswers() bool { return d.Target != nil || d.Class != nil }

// CheckColumns returns an error if the features have names, names are given, those of the
// data called where, and the two are not the same in the same order.
func (d *Dataset) CheckColumns(names []string, where string) error {
	if d.Columns == nil || names == nil {
		return nil
	}
	if len(d.Columns) != len(names) {
		return &ParseError{File: d.Source, Reason: fmt.Sprintf("%d feature columns here, %d in %s", len(d.Columns), len(names), where)}
	}
	for j, name := range d.Columns {
		if name != names[j] {
			return &ParseError{File: d.Source, Reason: fmt.Sprintf("feature column %d is %q here, %q in %s: give both the same columns in the same order",
				j+1, name, names[j], where)}
		}
	}
	return nil
}

// Slice returns points i, …, j-1 with their answers. Memory is shared.
func (d *Dataset) Slice(i, j int) *Dataset {
	s := *d
	s.X = d.X.Slice(i, j)
	if d.Target != nil {
		s.Target = d.Target[i:j]
	}
	if d.Class != nil {
		s.Class = d.Class[i:j]
	}
	if d.oracle != nil {
		s.oracle = d.oracle[i:j]
	}
	return &s
}

// Head returns the first min(n, Len) points. Memory is shared.
func (d *Dataset) Head(n int) *Dataset { return d.Slice(0, min(n, d.Len())) }

// Subset returns copies of the points with the given indices, which must be in range,
// and their answers.
func (d *Dataset) Subset(index []int) *Dataset {
	s := *d
	s.X = points.Gather(d.X, index)
	s.Target, s.oracle = pick(d.Target, index), pick(d.oracle, index)
	s.Class = pick(d.Class, index)
	return &s
}

// pick returns the elements of v with the given indices; nil if v is nil.
func pick[T int | float64](v []T, index []int) []T {
	if v == nil {
		return nil
	}
	out := make([]T, len(index))
	for k, i := range index {
		out[k] = v[i]
	}
	return out
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
