package points

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
)

// minusNines returns n numbers −9.
func minusNines[T realNumber](n int) []T {
	v := make([]T, n)
	for i := range v {
		v[i] = -9
	}
	return v
}

// TestSlices checks that a slice, also of a slice, has the rows of the original for all types of points, and that it
// may be empty.
func TestSlices(t *testing.T) {
	x, x32, s := inFormats(9, 7, 3, 0.6)
	for _, p := range []Points{x, x32, s, opaque{x}, Shift(x, make([]float64, 3)), Shift(s, make([]float64, 3))} {
		for i := range 8 {
			for j := i; j <= 7; j++ {
				part := p.Slice(i, j)
				if n, d := part.Dims(); n != j-i || d != 3 {
					t.Fatalf("%T: [%d, %d) has %d points", p, i, j, n)
				}
				row := make([]float64, 3)
				for k := range j - i {
					if part.RowTo(row, k); !slices.Equal(row, x.Row(i+k)) {
						t.Errorf("%T: point %d of [%d, %d) is %v, want %v", p, k, i, j, row, x.Row(i+k))
					}
				}
				// All entries are float32 numbers, so both panels are exact.
				for _, panel := range []Panel{NewPanel(p).Slice(i, j), NewPanel32(p).Slice(i, j)} {
					for k, v := range panel.Norms {
						want := floats.Dot(x.Row(i+k), x.Row(i+k))
						if panel.X.RowTo(row, k); math.Abs(v-want) > 1e-14 || panel.Len() != j-i ||
							!slices.Equal(row, x.Row(i+k)) {
							t.Errorf("%T: norm %d of [%d, %d) is %v, want %v", p, k, i, j, v, want)
						}
					}
				}
				if c, ok := part.(*CSR); ok {
					count := 0
					for k := range j - i {
						for _, v := range x.Row(i + k) {
							if v != 0 {
								count++
							}
						}
					}
					if c.NNZ() != count {
						t.Errorf("[%d, %d) has %d nonzeros, want %d", i, j, c.NNZ(), count)
					}
				}
			}
		}
	}
	for n := range 3 {
		if _, d := NewDense(n, 0, nil).Slice(0, n).Dims(); d != 0 {
			t.Error("a slice of points without coordinates has coordinates")
		}
	}
}

// TestProductsOfRoundedPoints checks that inner products of panels in float32 and their norms belong to the rounded
// points, whether sparse rows are made dense or not.
func TestProductsOfRoundedPoints(t *testing.T) {
	x := NewDense(2, 3, []float64{1 + 0x1p-30, 0, 3, 0.1, 2, 0})
	s := &CSR{N: 2, D: 3, Ptr: []int{0, 2, 4}, Col: []int32{0, 2, 0, 1}, Val: []float64{1 + 0x1p-30, 3, 0.1, 2}}
	round := func(v float64) float64 { return float64(float32(v)) }
	want := []float64{10, round(0.1)*round(0.1) + 4}
	for _, p := range []Points{x, s} {
		if got := NewPanel32(p).Norms; !slices.Equal(got, want) {
			t.Errorf("%T: norms %v, want %v", p, got, want)
		}
	}
	wide := &CSR{N: 1, D: 1000, Ptr: []int{0, 1}, Col: []int32{5}, Val: []float64{1 + 0x1p-30}}
	var w Workspace
	d32, d64 := make([]float32, 1), make([]float64, 1)
	big := &CSR{N: 1, D: 1000, Ptr: []int{0, 1}, Col: []int32{5}, Val: []float64{1 << 24}}
	Inner32(d32, 1, wide, big, &w)
	Inner64(d64, 1, wide, big, &w)
	if d32[0] != 1<<24 || d64[0] != 1<<24+0x1p-6 {
		t.Errorf("inner products %v of points rounded to float32, %v in float64", d32[0], d64[0])
	}
	w.transposeIfCheap(wide, wide, roundedValues)
	w.sparseInner(wide, 1, roundedValues, func(_ int, acc []float64) {
		if acc[0] != 1 {
			t.Errorf("a product of rounded numbers is %v, want 1", acc[0])
		}
	})
}

// TestCheckCSR checks that Check accepts only rows with ascending columns below the dimension.
func TestCheckCSR(t *testing.T) {
	csr := func(ptr []int, col ...int32) *CSR {
		return &CSR{N: len(ptr) - 1, D: 3, Ptr: ptr, Col: col, Val: make([]float64, len(col))}
	}
	for name, c := range map[string]struct {
		x     *CSR
		valid bool
	}{
		"full rows":             {csr([]int{0, 3, 3, 5}, 0, 1, 2, 0, 2), true},
		"repeated column":       {csr([]int{0, 2}, 1, 1), false},
		"descending columns":    {csr([]int{0, 2}, 1, 0), false},
		"column beyond":         {csr([]int{0, 1}, 3), false},
		"negative column":       {csr([]int{0, 1}, -1), false},
		"rows go back":          {csr([]int{0, 2, 1, 2}, 0, 1), false},
		"rows go beyond":        {csr([]int{0, 3, 2}, 0, 1), false},
		"first row begins late": {csr([]int{1, 2}, 0, 1), false},
		"row missing":           {&CSR{N: 2, D: 3, Ptr: []int{0, 0}}, false},
		"no offsets":            {&CSR{N: -1}, false},
		"last row ends early":   {csr([]int{0, 1}, 0, 1), false},
	} {
		if err := c.x.Check(); (err == nil) != c.valid {
			t.Errorf("%s: error %v, valid: %v", name, err, c.valid)
		}
	}
	short := csr([]int{0, 2}, 0, 1)
	short.Val = short.Val[:1]
	if short.Check() == nil {
		t.Error("a column without a value is valid")
	}
}
