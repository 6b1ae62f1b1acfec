package points

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/internal/race"
)

// inFormats returns n points of dimension d as all three types. The share density of the entries is not zero, and every
// entry is a float32 number.
func inFormats(seed uint64, n, d int, density float64) (*Dense, *Dense32, *CSR) {
	g := rand.New(rand.NewPCG(seed, 1))
	dense, dense32 := NewDense(n, d, nil), NewDense32(n, d, nil)
	sparse := &CSR{N: n, D: d, Ptr: []int{0}}
	for i := range n {
		for j := range d {
			if g.Float64() < density {
				v := float32(g.NormFloat64())
				dense.Data[i*d+j], dense32.Data[i*d+j] = float64(v), v
				sparse.Col, sparse.Val = append(sparse.Col, int32(j)), append(sparse.Val, float64(v))
			}
		}
		sparse.Ptr = append(sparse.Ptr, len(sparse.Val))
	}
	return dense, dense32, sparse
}

// opaque hides the type of points from the package, so that only the methods of Points are available.
type opaque struct{ Points }

// allPairs returns f(x_i, z_j) for all pairs of points, row by row.
func allPairs(x, z Points, f func(x, z []float64) float64) []float64 {
	n, d := x.Dims()
	m, _ := z.Dims()
	out := make([]float64, n*m)
	xRow, zRow := make([]float64, d), make([]float64, d)
	for i := range n {
		x.RowTo(xRow, i)
		for j := range m {
			z.RowTo(zRow, j)
			out[i*m+j] = f(xRow, zRow)
		}
	}
	return out
}

// TestProductsAndDistances compares inner products and 1-distances, in both precisions, of all pairs of types of points
// with plain loops.
func TestProductsAndDistances(t *testing.T) {
	var w Workspace // a single workspace, so earlier contents must not matter
	shapes := []struct {
		na, nb, d int
		density   float64
	}{{1, 1, 1, 1}, {3, 5, 0, 1}, {7, 4, 9, 1}, {6, 5, 1, 1}, {5, 3, 2, 0.5}, {20, 33, 40, 0.3}, {30, 31, 600, 0.01},
		{5, 6, 1100, 0.6}, {8, 9, 30, 0}, {20, 10, 60000, 0.001}, {0, 4, 3, 1}}
	for _, shape := range shapes {
		a64, a32, aSparse := inFormats(1, shape.na, shape.d, shape.density)
		b64, b32, bSparse := inFormats(2, shape.nb, shape.d, shape.density)
		shift := make([]float64, shape.d)
		for j := range shift {
			shift[j] = float64(j%3) - 1
		}
		wantInner := allPairs(a64, b64, floats.Dot)
		wantL1 := allPairs(a64, b64, func(x, z []float64) float64 { return floats.Distance(x, z, 1) })
		for ia, a := range []Points{a64, a32, aSparse, opaque{a64}} {
			for ib, b := range []Points{b64, b32, bSparse, opaque{b64}} {
				checkProductsAndDistances(t, a, b, wantInner, wantL1, &w)
				if ia == ib && shape.d > 0 {
					sa, sb := Shift(a, shift), Shift(b, shift)
					checkProductsAndDistances(t, sa, sb, allPairs(sa, sb, floats.Dot), wantL1, &w)
				}
			}
		}
	}
}

// checkProductsAndDistances compares the products and distances of a and b with the given ones, and checks that the
// elements between the rows are unchanged. A sum of d terms may have an error of about √d roundings of the largest one.
func checkProductsAndDistances(t *testing.T, a, b Points, wantInner, wantL1 []float64, w *Workspace) {
	t.Helper()
	na, d := a.Dims()
	nb, _ := b.Dims()
	ld := nb + 3
	const sentinel = 77
	for _, c := range []struct {
		name string
		run  func(dst []float64)
		want []float64
		eps  float64 // error of one rounding, with some slack
	}{
		{"Inner64", func(dst []float64) { Inner64(dst, ld, a, b, w) }, wantInner, 1e-15},
		{"Inner32", func(dst []float64) { inFloat32(dst, func(v []float32) { Inner32(v, ld, a, b, w) }) }, wantInner,
			2e-7},
		{"L1Dist64", func(dst []float64) { L1Dist64(dst, ld, a, b, w) }, wantL1, 1e-15},
		{"AccurateL1Dist64", func(dst []float64) { AccurateL1Dist64(dst, ld, a, b, w) }, wantL1, 1e-15},
		{"L1Dist32", func(dst []float64) { inFloat32(dst, func(v []float32) { L1Dist32(v, ld, a, b, w) }) }, wantL1,
			2e-7},
	} {
		dst := make([]float64, na*ld)
		for i := range dst {
			dst[i] = sentinel
		}
		c.run(dst)
		scale := 3 * math.Sqrt(float64(d)+1) * (1 + floats.Norm(c.want, math.Inf(1)))
		for i := range na {
			for j := range nb {
				if got, want := dst[i*ld+j], c.want[i*nb+j]; !(math.Abs(got-want) <= c.eps*scale) {
					t.Fatalf("%s of %T %d×%d and %T %d×%d: (%d, %d) is %v, want %v", c.name, a, na, d, b, nb, d, i, j,
						got, want)
				}
			}
			for j := nb; j < ld; j++ {
				if dst[i*ld+j] != sentinel {
					t.Fatalf("%s wrote beyond its columns", c.name)
				}
			}
		}
	}
}

// inFloat32 calls f with dst in float32 and stores the result in dst.
func inFloat32(dst []float64, f func([]float32)) {
	v := make([]float32, len(dst))
	for i := range v {
		v[i] = float32(dst[i])
	}
	f(v)
	for i := range v {
		dst[i] = float64(v[i])
	}
}

// TestSparseProducts checks at which densities products of sparse panels use the nonzeros only, and that a large sparse
// product is not made dense.
func TestSparseProducts(t *testing.T) {
	var w Workspace
	for _, c := range []struct {
		density float64
		want    bool
	}{{0.002, true}, {0.1, true}, {0.4, false}, {1, false}} {
		_, _, s := inFormats(4, 64, 1000, c.density)
		if got := w.transposeIfCheap(s, s, exactValues); got != c.want {
			t.Errorf("density %v: a product uses the nonzeros only: %v, want %v", c.density, got, c.want)
		}
	}
	_, _, s := inFormats(4, 512, 47000, 0.002)
	dst := make([]float32, 512*512)
	Inner32(dst, 512, s, s, &w)
	if len(w.dense32[0]) > 0 {
		t.Error("a product of sparse panels 512×47000 was made dense")
	}
}

// TestSparseDistances compares distances of sparse points, also of close ones, with those of dense points. Rows with
// few nonzeros must be merged and not made dense.
func TestSparseDistances(t *testing.T) {
	var w Workspace
	for _, c := range []struct {
		density float64
		dense   bool
	}{{0, false}, {0.002, false}, {0.006, false}, {0.1, true}} {
		const n, d = 20, 3000
		x, _, s := inFormats(6, n, d, c.density)
		perturbed := &CSR{N: n, D: d, Ptr: s.Ptr, Col: s.Col, Val: slices.Clone(s.Val)}
		for k := range perturbed.Val {
			perturbed.Val[k] *= 1 + 1e-9
		}
		z := NewDense(n, d, nil)
		for i := range n {
			perturbed.RowTo(z.Data[i*d:(i+1)*d], i)
		}
		w.dense64[0] = nil
		for _, distances := range []func(dst []float64, ld int, a, b Points, w *Workspace){SqDist64, AccurateL1Dist64} {
			got, want := minusNines[float64](n*n), make([]float64, n*n)
			distances(got, n, s, perturbed, &w)
			if madeDense := len(w.dense64[0]) > 0; madeDense != c.dense {
				t.Errorf("density %v: made dense: %v, want %v", c.density, madeDense, c.dense)
			}
			distances(want, n, x, z, &w)
			w.dense64[0] = nil
			for k, v := range want {
				if !(math.Abs(got[k]-v) <= 1e-14*v) {
					t.Fatalf("density %v: distance %d is %v, want %v", c.density, k, got[k], v)
				}
			}
		}
	}
}

// TestNoAllocation checks that products allocate nothing after the first use of a workspace.
func TestNoAllocation(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector makes the pools of products forget")
	}
	a64, a32, s := inFormats(5, 30, 200, 0.02)
	dst := make([]float32, 900)
	var w Workspace
	formProducts := func() {
		Inner32(dst, 30, a64, a32, &w)
		Inner32(dst, 30, s, a32, &w)
		Inner32(dst, 30, s, s, &w)
		L1Dist32(dst, 30, s, s, &w)
		L1Dist32(dst, 30, a64, a32, &w)
	}
	formProducts()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	if n := testing.AllocsPerRun(10, formProducts); n != 0 {
		t.Errorf("%v allocations per round once warm", n)
	}
}

// TestMeanGatherShift compares Mean, Gather and Shift with plain loops for all types of points.
func TestMeanGatherShift(t *testing.T) {
	a, a32, s := inFormats(7, 11, 6, 0.5)
	mean := make([]float64, 6)
	for i := range 11 {
		for j, v := range a.Row(i) {
			mean[j] += v / 11
		}
	}
	idx := []int{10, 0, 0, 4}
	for _, x := range []Points{a, a32, s, opaque{a}} {
		got := Mean(x)
		for j := range mean {
			if math.Abs(got[j]-mean[j]) > 1e-14 {
				t.Errorf("%T: mean %v, want %v", x, got, mean)
			}
		}
		gathered := Gather(x, idx)
		shifted := Gather(Shift(x, mean), idx)
		row := make([]float64, 6)
		for k, i := range idx {
			if gathered.RowTo(row, k); !slices.Equal(row, a.Row(i)) {
				t.Errorf("%T: gathered %v, want %v", x, row, a.Row(i))
			}
			shifted.RowTo(row, k)
			for j := range row {
				if row[j] != a.Row(i)[j]-mean[j] {
					t.Errorf("%T: shifted %v", x, row)
				}
			}
		}
		buf := make([]float64, 11*8)
		RowsTo(Shift(x, mean), buf, 8)
		buf32 := make([]float32, 11*8)
		RowsTo32(Shift(x, mean), buf32, 8)
		if want := a.Row(3)[2] - mean[2]; buf[3*8+2] != want || buf32[3*8+2] != float32(want) {
			t.Errorf("%T: panel of shifted points has %v and %v, want %v", x, buf[3*8+2], buf32[3*8+2], want)
		}
	}
	if m := Mean(NewDense(0, 2, nil)); m[0] != 0 || m[1] != 0 {
		t.Errorf("mean of nothing: %v", m)
	}
}

// TestMisusePanics checks that arguments of the wrong shape panic with the numbers.
func TestMisusePanics(t *testing.T) {
	x := NewDense(2, 3, nil)
	for wantText, f := range map[string]func(){
		"dimensions 3 and 2 differ": func() { Inner64(make([]float64, 4), 2, x, NewDense(2, 2, nil), new(Workspace)) },
		"stride 1 is less":          func() { Inner32(make([]float32, 4), 1, x, x, new(Workspace)) },
		"Shift of points":           func() { Shift(x, []float64{1}) },
		"Gather of point 2 of 2":    func() { Gather(x, []int{2}) },
		"Gather of point -1 of 2":   func() { Gather(x, []int{-1}) },
		"slice [1, 3) of 2":         func() { x.Slice(1, 3) },
		"slice [-1, 1) of 2":        func() { x.Slice(-1, 1) },
		"slice [2, 1) of 2":         func() { NewDense32(2, 3, nil).Slice(2, 1) },
		"slice [0, 3) of 2":         func() { (&CSR{N: 2, D: 3, Ptr: []int{0, 0, 0}}).Slice(0, 3) },
		"dimension -1×2":            func() { NewDense(-1, 2, nil) },
		"dimension 1×-2":            func() { NewDense32(1, -2, nil) },
		"NewDense(2, 2) with 5":     func() { NewDense(2, 2, make([]float64, 5)) },
		"NewBytes with scale 0":     func() { NewBytes(2, 2, 0, nil) },
		"NewBytes(2, 2) with 3":     func() { NewBytes(2, 2, 1, make([]uint8, 3)) },
		"with 3 values":             func() { NewDense32(2, 2, make([]float32, 3)) },
	} {
		func() {
			defer func() {
				if v, _ := recover().(string); !strings.Contains(v, wantText) {
					t.Errorf("panic %q, want it to contain %q", v, wantText)
				}
			}()
			f()
		}()
	}
}

// TestMemoryBytes compares MemoryBytes with the sizes of the arrays. One offset of a CSR is not counted.
func TestMemoryBytes(t *testing.T) {
	dense, dense32, sparse := inFormats(3, 7, 4, 0.5)
	for x, want := range map[Points]int{
		dense: 8 * len(dense.Data), dense32: 4 * len(dense32.Data),
		sparse: 8*len(sparse.Val) + 4*len(sparse.Col) + 8*len(sparse.Ptr) - 8,
		drawBytes(rand.New(rand.NewPCG(1, 2)), 7, 4, 1): 28,
	} {
		if got := MemoryBytes(x); got != int64(want) {
			t.Errorf("%T holds %d bytes, want %d", x, got, want)
		}
	}
}

// TestCheckFinite checks that the error names an entry that is not finite, and that finite points pass.
func TestCheckFinite(t *testing.T) {
	x := NewDense32(2, 2, []float32{0, 1, 2, float32(math.NaN())})
	if err := CheckFinite(x); err == nil || !strings.Contains(err.Error(), "(1, 1)") {
		t.Errorf("error %v, want one with (1, 1)", err)
	}
	if err := CheckFinite(x.Slice(0, 1)); err != nil {
		t.Error(err)
	}
}

// TestInnerOfItself compares the products of points with themselves, of which only half are computed, with those of a
// copy.
func TestInnerOfItself(t *testing.T) {
	for _, n := range []int{1, 7, 130} {
		data := make([]float32, n*33)
		for i := range data {
			data[i] = float32((i*7919)%101)/50 - 1
		}
		a := NewDense32(n, 33, data)
		b := NewDense32(n, 33, slices.Clone(data))
		ld := n + 3
		got, want := make([]float32, n*ld), make([]float32, n*ld)
		for i := range got {
			got[i], want[i] = float32(math.NaN()), 7
		}
		var w Workspace
		Inner32(got, ld, a, a, &w)
		Inner32(want, ld, a, b, &w)
		for i := range n {
			for j := range n {
				if g, w := got[i*ld+j], want[i*ld+j]; !(math.Abs(float64(g-w)) <= 1e-4) || g != got[j*ld+i] {
					t.Fatalf("n = %d: entry (%d, %d) is %v, want %v", n, i, j, g, w)
				}
			}
		}
	}
}

// TestConcat joins points of the same and of different types, and parts of larger sets.
func TestConcat(t *testing.T) {
	a, a32, s := inFormats(7, 11, 6, 0.5)
	bytePoints := NewBytes(11, 6, 0.5, nil)
	for i := range 11 {
		for j := range 6 {
			bytePoints.Row(i)[j] = uint8(7 * i * j)
		}
	}
	asDense := func(x Points) *Dense {
		out := NewDense(11, 6, nil)
		RowsTo(x, out.Data, 6)
		return out
	}
	for _, c := range []struct{ x, y, want Points }{ // want has the expected type
		{a, a, &Dense{}},
		{a32, a32, &Dense32{}},
		{s, s, &CSR{}},
		{bytePoints, bytePoints, &Bytes{}},
		{bytePoints, asDense(bytePoints), &Bytes{}},
		{bytePoints, a, &Dense{}},
		{s, a32, &Dense{}},
	} {
		got := Concat(c.x.Slice(2, 9), c.y.Slice(3, 11))
		if n, d := got.Dims(); n != 15 || d != 6 || fmt.Sprintf("%T", got) != fmt.Sprintf("%T", c.want) {
			t.Fatalf("%T and %T become %T, %d×%d, want %T, 15×6", c.x, c.y, got, n, d, c.want)
		}
		row, want := make([]float64, 6), make([]float64, 6)
		for i := range 15 {
			if got.RowTo(row, i); i < 7 {
				c.x.RowTo(want, i+2)
			} else {
				c.y.RowTo(want, i-4)
			}
			if !slices.Equal(row, want) {
				t.Errorf("%T and %T: row %d is %v, want %v", c.x, c.y, i, row, want)
			}
		}
	}
}
