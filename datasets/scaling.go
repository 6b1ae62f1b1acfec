package datasets

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/krrlab/lab/krrlab/points"
)

// Scaling maps feature j of every point to (x_j − Shift_j)·Scale_j. It is fitted on
// training points only and applied to all.
type Scaling struct {
	Kind  string    `json:"kind"`            // one of Scalings
	Shift []float64 `json:"shift,omitempty"` // nil means zeros
	Scale []float64 `json:"scale"`           // 0 for a constant feature
}

// FitScaling fits a scaling to x:
//
//	none      nil: points stay as they are
//	unit      (x_j − min_j)/(max_j − min_j), in [0, 1]; sparse points, whose zeros must stay,
//	          x_j/max|x_j|, in [−1, 1]
//	standard  (x_j − mean_j)/sd_j, sd_j² the mean squared deviation; sparse points become dense
//	pixel     x_j/255
//
// A feature that is constant becomes 0 with unit and standard. An unknown kind is an error.
func FitScaling(kind string, x points.Points) (*Scaling, error) {
	_, d := x.Dims()
	s := &Scaling{Kind: kind, Scale: make([]float64, d)}
	switch kind {
	case "none":
		return nil, nil
	case "unit":
		s.unit(x)
	case "standard":
		s.standard(x)
	case "pixel":
		for j := range s.Scale {
			s.Scale[j] = 1.0 / 255
		}
	default:
		return nil, fmt.Errorf("unknown scaling %q: want one of %s", kind, strings.Join(Scalings, ", "))
	}
	return s, nil
}

func (s *Scaling) unit(x points.Points) {
	n, d := x.Dims()
	lo, hi := make([]float64, d), make([]float64, d)
	if c, ok := x.(*points.CSR); ok {
		for i := range n {
			col, val := c.Row(i)
			for k, j := range col {
				hi[j] = max(hi[j], math.Abs(val[k]))
			}
		}
	} else {
		row := make([]float64, d)
		for i := range n {
			x.RowTo(row, i)
			if i == 0 {
				copy(lo, row)
				copy(hi, row)
			}
			for j, v := range row {
				lo[j], hi[j] = min(lo[j], v), max(hi[j], v)
			}
		}
		s.Shift = lo
	}
	for j := range d {
		if w := hi[j] - lo[j]; w > 0 {
			s.Scale[j] = 1 / w
		}
	}
}

func (s *Scaling) standard(x points.Points) {
	n, d := x.Dims()
	s.Shift = points.Mean(x)
	ss, row := make([]float64, d), make([]float64, d)
	for i := range n {
		x.RowTo(row, i)
		for j, v := range row {
			ss[j] += (v - s.Shift[j]) * (v - s.Shift[j])
		}
	}
	for j, v := range ss {
		// A deviation that is mere rounding of the mean is none.
		if sd := math.Sqrt(v / float64(n)); sd > 1e-12*math.Abs(s.Shift[j]) {
			s.Scale[j] = 1 / sd
		}
	}
}

// Dim returns the number of features that s scales; 0 for a nil s.
func (s *Scaling) Dim() int {
	if s == nil {
		return 0
	}
	return len(s.Scale)
}

// Validate returns an error if s is of an unknown kind or has numbers that are not finite.
func (s *Scaling) Validate() error {
	switch {
	case s == nil:
		return nil
	case !slices.Contains(Scalings, s.Kind) || s.Kind == "none":
		return fmt.Errorf("unknown scaling %q", s.Kind)
	case s.Shift != nil && len(s.Shift) != len(s.Scale):
		return fmt.Errorf("scaling of %d features has %d shifts", len(s.Scale), len(s.Shift))
	}
	for j, v := range s.Scale {
		if !isFinite(v) || s.Shift != nil && !isFinite(s.Shift[j]) {
			return fmt.Errorf("scaling of feature %d is not finite", j)
		}
	}
	return nil
}

// Apply returns the scaled points; x is not changed. Float32 points stay float32 and sparse
// points stay sparse if there is no shift; all else becomes dense float64. A nil s returns x.
// Apply panics if x does not have s's number of features.
func (s *Scaling) Apply(x points.Points) points.Points {
	if s == nil {
		return x
	}
	n, d := x.Dims()
	if d != len(s.Scale) {
		panic(fmt.Sprintf("datasets: scaling of %d features applied to points with %d", len(s.Scale), d))
	}
	if s.Shift == nil {
		switch x := x.(type) {
		case *points.CSR:
			val := make([]float64, len(x.Val))
			for k := x.Ptr[0]; k < x.Ptr[n]; k++ {
				val[k] = x.Val[k] * s.Scale[x.Col[k]]
			}
			return &points.CSR{N: n, D: d, Ptr: x.Ptr, Col: x.Col, Val: val}
		case *points.Dense32:
			out := points.NewDense32(n, d, nil)
			for i := range n {
				row := out.Row(i)
				for j, v := range x.Row(i) {
					row[j] = float32(float64(v) * s.Scale[j])
				}
			}
			return out
		}
	}
	out := points.NewDense(n, d, nil)
	for i := range n {
		row := out.Row(i)
		x.RowTo(row, i)
		for j, v := range row {
			if s.Shift != nil {
				v -= s.Shift[j]
			}
			row[j] = v * s.Scale[j]
		}
	}
	return out
}
