package datasets

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestScaleToBytes checks which points are stored as bytes after scaling, and that their values are those that the
// same scaling gives in float64.
func TestScaleToBytes(t *testing.T) {
	pixels := points.NewDense(3, 2, []float64{0, 255, 3, 4, 250, 1})
	sparse := &points.CSR{N: 3, D: 2, Ptr: []int{0, 1, 1, 3}, Col: []int32{1, 0, 1}, Val: []float64{1, 1, 1}}
	for name, c := range map[string]struct {
		x     points.Points
		kind  string
		scale float64 // scale of the bytes, or 0 if the points are not stored as bytes
	}{
		"integers":             {pixels, "none", 1},
		"pixels":               {pixels, "pixel", 1.0 / 255},
		"pixels read as bytes": {points.NewBytes(1, 2, 1, []uint8{7, 9}), "pixel", 1.0 / 255},
		"pixels in float32":    {points.NewDense32(1, 2, []float32{7, 9}), "pixel", 1.0 / 255},
		"pixels scaled before": {points.NewDense(1, 3, []float64{2.0 / 255, 3.0 / 255, 1}), "none", 1.0 / 255},
		"0 and 1":              {sparse, "none", 1},
		"0 and 1 by unit":      {sparse, "unit", 1},
		"0 and 255 by unit":    {points.NewDense(3, 2, []float64{0, 255, 255, 0, 51, 51}), "unit", 1.0 / 255},
		"unit with two scales": {pixels, "unit", 0},
		"unit with a shift":    {points.NewDense(3, 1, []float64{1, 255, 4}), "unit", 0},
		"standard":             {pixels, "standard", 0},
		"fractions":            {points.NewDense(1, 2, []float64{0.25, 0.3}), "none", 0},
		"negative":             {points.NewDense(1, 2, []float64{-1, 1}), "none", 0},
		"sparse with few nonzeros": {&points.CSR{N: 1, D: 25, Ptr: []int{0, 2}, Col: []int32{0, 24},
			Val: []float64{1, 1}}, "none", 0},
	} {
		train, test := mustPair(Scale(c.kind, &Dataset{X: c.x}, &Dataset{X: c.x}))
		for _, d := range []*Dataset{train, test} {
			bytePoints, ok := d.X.(*points.Bytes)
			if ok != (c.scale != 0) || ok && math.Abs(bytePoints.Scale-c.scale) > 1e-17 { // rounding error of 1/255
				t.Errorf("%s: %T, %v", name, d.X, bytePoints)
				continue
			}
			n, dim := c.x.Dims()
			raw, got := make([]float64, dim), make([]float64, dim)
			for i := range n {
				c.x.RowTo(raw, i)
				d.X.RowTo(got, i)
				for j, v := range raw {
					if s := train.Scaling; s != nil {
						if s.Shift != nil {
							v -= s.Shift[j]
						}
						v *= s.Scale[j]
					}
					if math.Abs(got[j]-v) > 0x1p-52*math.Abs(v) { // two rounding errors
						t.Errorf("%s: (%d, %d) is %v, want %v", name, i, j, got[j], v)
					}
				}
			}
		}
		if _, ok := c.x.(*points.Bytes); !ok && train.X == c.x && c.scale != 0 {
			t.Errorf("%s: the points given are changed", name)
		}
	}
}

// TestScaleTestToBytes checks that test points are stored as bytes with the scale of the training points if their
// values allow it, and as numbers otherwise.
func TestScaleTestToBytes(t *testing.T) {
	train := &Dataset{X: points.NewDense(1, 2, []float64{0.5, 1.5})}
	for _, c := range []struct {
		test    []float64
		isBytes bool // the test points are stored as bytes
	}{{[]float64{1, 2}, true}, {[]float64{0.25, 1}, false}, {[]float64{-0.5, 1}, false}, {[]float64{0, 0}, true}} {
		_, test := mustPair(Scale("none", train, &Dataset{X: points.NewDense(1, 2, c.test)}))
		if bytePoints, ok := test.X.(*points.Bytes); ok != c.isBytes || ok && bytePoints.Scale != 0.5 {
			t.Errorf("%v: %T", c.test, test.X)
		}
	}
}
