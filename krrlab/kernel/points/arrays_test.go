package points_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestArrays checks that points converted to arrays and back are the same, also if the rows are a part of larger
// arrays. Arrays of a wrong type or with wrong columns, and unknown kinds, must be errors.
func TestArrays(t *testing.T) {
	sparse := &points.CSR{N: 3, D: 3, Ptr: []int{0, 1, 3, 4}, Col: []int32{2, 0, 2, 1}, Val: []float64{1, 2, 3, 4}}
	sets := map[string]points.Points{
		"dense":  points.NewDense(2, 3, []float64{1, 2, 3, 4, 5, 6}),
		"single": points.NewDense32(3, 2, []float32{1, 2, 3, 4, 5, 6}),
		"gaps":   &points.Dense32{N: 2, D: 2, Stride: 3, Data: []float32{1, 2, 9, 3, 4}},
		"bytes":  &points.Bytes{N: 2, D: 3, Stride: 4, Scale: 0.5, Data: []uint8{1, 2, 3, 0, 4, 5, 6, 0}},
		"csr":    sparse, "rows": sparse.Slice(1, 3),
	}
	for name, x := range sets {
		kind, unit, arrays := points.ToArrays(x)
		n, d := x.Dims()
		fromArrays := func(change func(name string, data any) any) (points.Points, error) {
			return points.FromArrays(kind, n, d, unit, func(name string, _ ...int) (any, error) {
				for _, a := range arrays {
					if a.Name == name {
						return change(name, a.Data), nil
					}
				}
				return nil, fmt.Errorf("no %s", name)
			})
		}
		got, err := fromArrays(func(_ string, data any) any { return data })
		if err != nil || reflect.TypeOf(got) != reflect.TypeOf(x) {
			t.Fatalf("%s: %T, %v", name, got, err)
		}
		for i := range n {
			want, row := make([]float64, d), make([]float64, d)
			if x.RowTo(want, i); got != nil {
				got.RowTo(row, i)
			}
			if !reflect.DeepEqual(row, want) {
				t.Errorf("%s: row %d is %v, want %v", name, i, row, want)
			}
		}
		if _, err := fromArrays(func(string, any) any { return []complex64{} }); err == nil {
			t.Errorf("%s: no error for complex numbers", name)
		}
		if kind == "csr" {
			if _, err := fromArrays(func(name string, data any) any {
				if name == "x_indices" {
					return []int32{7, 7, 7, 7}[:len(data.([]int32))]
				}
				return data
			}); err == nil {
				t.Errorf("%s: no error for column 7 of 3", name)
			}
		}
	}
	for _, kind := range []string{"", "sparse"} {
		if _, err := points.FromArrays(kind, 1, 1, 1, nil); err == nil {
			t.Errorf("no error for the kind %q", kind)
		}
	}
}
