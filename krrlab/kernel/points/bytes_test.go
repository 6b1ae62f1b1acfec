package points

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/accel/gemm"
	"github.com/krrlab/lab/krrlab/accel/simd"
)

// drawBytes returns byte points. The rows are in turn 0, 255 and random.
func drawBytes(g *rand.Rand, n, d int, scale float64) *Bytes {
	x := NewBytes(n, d, scale, nil)
	for i := range n {
		for j := range d {
			x.Row(i)[j] = []uint8{0, 255, uint8(g.Uint32())}[i%3]
		}
	}
	return x
}

// onEachPath runs f with every SIMD path of the machine.
func onEachPath(t *testing.T, f func(t *testing.T)) {
	previous := simd.CurrentPath()
	defer simd.UsePath(previous)
	for _, path := range simd.Paths() {
		simd.UsePath(path)
		t.Run(path.String(), f)
	}
}

// TestIntegerInner compares inner products of bytes with big integers, also for so many dimensions that int32 would
// overflow.
func TestIntegerInner(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 2))
	onEachPath(t, func(t *testing.T) {
		for _, shape := range []struct{ na, nb, d int }{{1, 1, 1}, {4, 3, 0}, {5, 37, 255}, {16, 7, 258}, {3, 33, 785},
			{6, 4, gemm.MaxBytesK}, {6, 4, 2*gemm.MaxBytesK + 5}} {
			a, b := drawBytes(g, shape.na, shape.d, 0.25), drawBytes(g, shape.nb, shape.d, 0.25)
			ld, fitsInt32 := shape.nb+2, shape.d <= gemm.MaxBytesK
			products, ints := minusNines[float64](shape.na*ld), make([]int32, shape.na*ld)
			var w Workspace
			if !IntegerInner64(products, ld, a, b, &w) {
				t.Fatalf("%+v: IntegerInner64 returned false", shape)
			}
			if got := IntegerInner32(ints, ld, a, b, &w); got != fitsInt32 {
				t.Fatalf("%+v: IntegerInner32 returned %v, want %v", shape, got, fitsInt32)
			}
			for i := range shape.na {
				for j := range ld {
					want := big.NewInt(0)
					if j >= shape.nb { // padding, which keeps the value of minusNines
						want.SetInt64(-9)
					} else {
						for c, v := range a.Row(i) {
							want.Add(want, big.NewInt(int64(v)*int64(b.Row(j)[c])))
						}
					}
					if products[i*ld+j] != float64(want.Int64()) ||
						j < shape.nb && fitsInt32 && int64(ints[i*ld+j]) != want.Int64() {
						t.Fatalf("%+v (%d, %d): %v and %d, want %v", shape, i, j, products[i*ld+j], ints[i*ld+j], want)
					}
				}
			}
		}
	})
}

// TestBytesPoints compares byte points with dense points of the same numbers, sliced, gathered and by rows, and
// checks that the norms are recovered as integers.
func TestBytesPoints(t *testing.T) {
	g := rand.New(rand.NewPCG(3, 4))
	for _, scale := range []float64{1, 1.0 / 255, 0.3, minScale, maxScale} {
		for _, d := range []int{1, 4, 7} {
			x := drawBytes(g, 9, d, scale)
			dense := NewDense(9, d, nil)
			RowsTo(x, dense.Data, d)
			for i := range 9 {
				row := make([]float64, d)
				x.RowTo(row, i)
				for j, v := range x.Row(i) {
					if row[j] != float64(v)*scale || dense.Row(i)[j] != row[j] {
						t.Fatalf("scale %g: (%d, %d) is %v and %v", scale, i, j, row[j], dense.Row(i)[j])
					}
				}
			}
			for _, pair := range [][2]Points{{x.Slice(2, 8), dense.Slice(2, 8)},
				{x.Slice(2, 8).Slice(1, 1), dense.Slice(3, 3)},
				{Gather(x, []int{5, 5, 0}), Gather(dense, []int{5, 5, 0})}} {
				n, _ := pair[0].Dims()
				got, want := make([]float32, n*d), make([]float32, n*d)
				RowsTo32(pair[0], got, d)
				RowsTo32(pair[1], want, d)
				if _, ok := pair[0].(*Bytes); !ok || !slices.Equal(got, want) {
					t.Errorf("scale %g: %T is %v, want %v", scale, pair[0], got, want)
				}
			}
			norms := make([]float64, 9)
			IntegerNorms(norms, NewPanel32(x).Norms, scale*scale)
			for i, v := range norms {
				var want float64
				for _, b := range x.Row(i) {
					want += float64(b) * float64(b)
				}
				if v != want {
					t.Errorf("scale %g: norm %d is %v, want %v", scale, i, v, want)
				}
			}
		}
	}
}

// TestExactProductUnit checks that products are exact integers for two sets of byte points with the same scale, and for
// nothing else.
func TestExactProductUnit(t *testing.T) {
	x, y := NewBytes(2, 3, 0.5, nil), NewBytes(2, 3, 0.25, nil)
	for i, c := range []struct {
		a, b  Points
		exact bool
	}{{x, x, true}, {x, x.Slice(0, 1), true}, {x, y, false}, {x, NewDense(2, 3, nil), false},
		{NewDense(2, 3, nil), x, false}, {Shift(x, make([]float64, 3)), x, false}} {
		unit, ok := ExactProductUnit(c.a, c.b)
		var w Workspace
		if ok != c.exact || ok && unit != 0.25 || IntegerInner64(make([]float64, 4), 2, c.a, c.b, &w) != ok ||
			IntegerInner32(make([]int32, 4), 2, c.a, c.b, &w) != ok {
			t.Errorf("case %d: unit %v, exact %v, want %v", i, unit, ok, c.exact)
		}
	}
}

// TestAsBytes checks which points AsBytes recognizes as bytes times a scale.
func TestAsBytes(t *testing.T) {
	third := 1.0 / 3
	for name, c := range map[string]struct {
		x     Points
		scale float64 // requested scale, 0 for any
		want  float64 // scale of the result; 0 if AsBytes refuses the points
	}{
		"integers":                 {NewDense(2, 2, []float64{0, 255, 2, 4}), 0, 1},
		"pixels":                   {NewDense(2, 2, []float64{0, 1, 17.0 / 255, 4.0 / 255}), 0, 1.0 / 255},
		"thirds":                   {NewDense(2, 2, []float64{0, third, 2 * third, 1}), 0, third},
		"zeros":                    {NewDense(2, 2, nil), 0, 1},
		"zeros, scale requested":   {NewDense(2, 2, nil), 0.5, 0.5},
		"scale requested":          {NewDense(1, 2, []float64{2, 4}), 0.5, 0.5},
		"other scale requested":    {NewDense(1, 2, []float64{2, 4}), 3, 0},
		"256":                      {NewDense(1, 2, []float64{1, 256}), 0, 0},
		"negative":                 {NewDense(1, 2, []float64{1, -1}), 0, 0},
		"negative only":            {NewDense(1, 2, []float64{-1, -1}), 0, 0},
		"not a multiple":           {NewDense(1, 3, []float64{1, 1.5, 2}), 0, 0},
		"rounded":                  {NewDense(1, 3, []float64{0.333333, 0.666667, 1}), 0, 0},
		"nan":                      {NewDense(1, 2, []float64{1, math.NaN()}), 0, 0},
		"inf":                      {NewDense(1, 2, []float64{1, math.Inf(1)}), 0, 0},
		"scale too small":          {NewDense(1, 2, []float64{1e-200, 2e-200}), 0, 0},
		"float32":                  {NewDense32(1, 2, []float32{3, 200}), 0, 1},
		"float32 pixels":           {NewDense32(1, 2, []float32{1.0 / 255, 200.0 / 255}), 0, 0},
		"sparse, smaller as bytes": {&CSR{N: 1, D: 12, Ptr: []int{0, 1}, Col: []int32{5}, Val: []float64{1}}, 0, 1},
		"sparse, larger as bytes":  {&CSR{N: 1, D: 13, Ptr: []int{0, 1}, Col: []int32{5}, Val: []float64{1}}, 0, 0},
		"bytes":                    {NewBytes(1, 2, 0.1, nil), 0, 0.1},
		"other bytes":              {NewBytes(1, 2, 0.1, []uint8{1, 2}), 0.2, 0},
	} {
		b, ok := AsBytes(c.x, c.scale)
		if ok != (c.want != 0) || ok && b.Scale != c.want {
			t.Errorf("%s: AsBytes returns %v, %v, want the scale %v", name, b, ok, c.want)
		}
		if !ok {
			continue
		}
		n, d := c.x.Dims()
		got, want := make([]float64, n*d), make([]float64, n*d)
		RowsTo(b, got, d)
		RowsTo(c.x, want, d)
		for i, v := range want {
			if math.Abs(got[i]-v) > 0x1p-52*v {
				t.Errorf("%s: number %d is %v, want %v", name, i, got[i], v)
			}
		}
	}
}
