package lowrank

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// numbers is a Source of columns that need not be of any matrix.
type numbers struct {
	diag    []float64
	entry   float64
	columns *mat.Dense // n×k: column j of K is column j mod k of it
}

func (s *numbers) Dim() int            { return s.columns.RawMatrix().Rows }
func (s *numbers) Diag() []float64     { return s.diag }
func (s *numbers) EntryError() float64 { return s.entry }

func (s *numbers) Columns(_ context.Context, idx []int, dst *mat.Dense) error {
	_, k := s.columns.Dims()
	for q, j := range idx {
		dst.SetCol(q, mat.Col(nil, j%k, s.columns))
	}
	return nil
}

// near reports whether v is at least want, and hardly more: what is allowed for is allowed for, and no more.
func near(v, want float64) bool { return v >= want && v <= 1.01*want }

// TestAllowance: q, ν and the rounding that is certified are those of the derivation.
func TestAllowance(t *testing.T) {
	const u = 0x1p-53
	b := &build{n: 4, f: points.NewDense32(4, 10, nil), block: 5, entry: 1e-13, diag: []float64{1, 1, 1, 1}}
	q := 1e-13 + 2.2*(10+5+64)*u
	if got := b.roundingOf(); math.Abs(got-q) > 1e-12*q {
		t.Errorf("q = %g, want %g", got, q)
	}
	if got := b.shift(); math.Abs(got-40*q) > 1e-12*40*q { // 4rq
		t.Errorf("ν = %g, want %g", got, 40*q)
	}
	b.entry = math.Inf(1)
	if got, want := b.roundingOf(), 2.2*79*u; math.Abs(got-want) > 1e-12*want {
		t.Errorf("q = %g of columns with an unknown error, want %g", got, want)
	}
	b.entry = 0
	for _, c := range []struct {
		d              []float64
		trace, delta2  float64
		residual, want float64
	}{
		// With ‖F‖_F² = tr K − residual, t the larger of tr K and it.
		{[]float64{1, 0, 0, 0}, 4, 0, 1, 3*2.2*79*u*4 + 4*u*1},
		{[]float64{-1, 0.5, -1, 0.5}, 4, 0, -1, 3*2.2*79*u*5 + 4*u*3},
		{[]float64{1, 1, 1, 0}, 4, 0.01, 3, 2*1*0.1 + 0.01},
		{[]float64{0, 0, 0, 0}, 4, 0.01, 0, 2*2*0.1 + 0.01},
	} {
		b.d, b.trace, b.delta2 = c.d, c.trace, c.delta2
		f := &Factor{Trace: c.trace}
		b.certify(f)
		if f.Residual != c.residual || !near(f.Rounding, c.want) {
			t.Errorf("%+v: residual %g, rounding %g", c, f.Residual, f.Rounding)
		}
	}
}

// TestSmallLandmarks: nothing is certified of landmarks whose diagonal is below 2⁻⁹⁰ of the largest, zeros
// excepted.
func TestSmallLandmarks(t *testing.T) {
	b := &build{n: 3, f: points.NewDense32(3, 1, nil), d: make([]float64, 3), diag: []float64{2, 0, 0}}
	for v, certain := range map[float64]bool{1: true, 0x1p-89: true, 0x1p-89 * (1 - 0x1p-52): false, 0x1p-200: false, 0: true} {
		b.diag[1] = v
		f := &Factor{Landmarks: []int{0, 1}}
		if b.certify(f); math.IsInf(f.EntryError, 1) == certain {
			t.Errorf("diagonal entry %g: error %g of an entry", v, f.EntryError)
		}
	}
}

// TestCheck: what is left of a diagonal entry may be below 0 by 1e-3 of it and 2⁻²⁰ of the largest.
func TestCheck(t *testing.T) {
	edge := -(1e-3*2 + 0x1p-20*8)
	for v, want := range map[float64]string{
		0: "", edge * (1 - 1e-12): "", edge * (1 + 1e-12): "its diagonal entry 1 is 2, that of K̂ is 2.002",
		math.Inf(-1): "row 1 of F does not fit float32", math.Inf(1): "row 1 of F", math.NaN(): "row 1 of F",
	} {
		err := (&build{diag: []float64{1, 2, 8}, d: []float64{0, v, 0}}).check()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%g: %v, want %q", v, err, want)
		}
	}
}

// TestTake: columns whose entry on the diagonal is that of the diagonal to 1e-5 are taken; one that is not
// finite is named by its place.
func TestTake(t *testing.T) {
	const n = 2*panelRows + 7
	src := &numbers{diag: make([]float64, n), columns: mat.NewDense(n, 3, nil)}
	for i := range n {
		src.diag[i] = 2
		src.columns.SetRow(i, []float64{2, 2, 2})
	}
	p, err := newBuild(t.Context(), src, 3, 3)
	if err != nil {
		t.Fatal(err)
	}
	if p.trace != 2*n || len(p.columns) != 3*n || p.f.N != n || p.f.D != 3 {
		t.Errorf("trace %g, %d numbers, F %d×%d", p.trace, len(p.columns), p.f.N, p.f.D)
	}
	for off, fits := range map[float64]bool{0.99e-5: true, 1.01e-5: false, -0.99e-5: true, -1.01e-5: false} {
		src.columns.Set(4, 1, 2*(1+off)) // K(4, 4) in column 4
		if _, err := p.take(t.Context(), []int{0, 4, 8}); (err == nil) != fits {
			t.Errorf("off by %g: %v", off, err)
		}
	}
	src.columns.Set(4, 1, 2)
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, i := range []int{1, panelRows - 1, panelRows, n - 1} {
			src.columns.Set(i, 1, bad)
			if _, err := p.take(t.Context(), []int{0, 4, 8}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("K(%d, 4) is %g", i, bad)) {
				t.Errorf("row %d: %v", i, err)
			}
			src.columns.Set(i, 1, 2)
		}
	}
	if c, err := p.take(t.Context(), []int{5, 7}); err != nil || len(c) != 2*n {
		t.Errorf("%d numbers of two columns, %v", len(c), err)
	}
	if p.formed != 3*4+3*12+2 {
		t.Errorf("%d columns formed", p.formed)
	}
	for what, bad := range map[string]*numbers{
		"negative error": {diag: src.diag, entry: -1e-300, columns: src.columns}, "no error": {diag: src.diag, entry: math.NaN(), columns: src.columns},
		"short diagonal": {diag: src.diag[1:], columns: src.columns},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", what)
				}
			}()
			_, _ = newBuild(t.Context(), bad, 3, 3)
		}()
	}
}

// TestBlocks: a tenth of the rank, from 10 to 200, and no more than the rank.
func TestBlocks(t *testing.T) {
	for _, c := range []struct{ asked, rank, want int }{{0, 5, 5}, {0, 10, 10}, {0, 99, 10}, {0, 300, 30}, {0, 1990, 199}, {0, 5000, 200}, {7, 5, 5}, {7, 100, 7}, {1, 1, 1}} {
		if got := (&Options{Block: c.asked}).settled(c.rank).Block; got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// TestNarrow: the first columns, in memory of their own where that frees half.
func TestNarrow(t *testing.T) {
	for r := 1; r <= 5; r++ {
		f := points.NewDense32(3, 5, nil)
		for i := range f.Data {
			f.Data[i] = float32(i)
		}
		g := narrow(f, r)
		if g.N != 3 || g.D != r || g.Stride != r || len(g.Data) != 3*r {
			t.Fatalf("%d of 5: %d×%d of stride %d, %d numbers", r, g.N, g.D, g.Stride, len(g.Data))
		}
		for i := range 3 {
			for j, v := range g.Row(i) {
				if v != float32(5*i+j) {
					t.Errorf("%d of 5: %v at (%d, %d)", r, v, i, j)
				}
			}
		}
		if own := &g.Data[0] != &f.Data[0]; own != (2*r <= 5) {
			t.Errorf("%d of 5: memory of its own: %v", r, own)
		}
	}
}

// nystromOf is the state of Nystrom with the columns of W at the given landmarks kept, W being n×n.
func nystromOf(t *testing.T, w *mat.Dense, half int, marks []int) *nystrom {
	t.Helper()
	n, _ := w.Dims()
	src := &numbers{diag: make([]float64, n), columns: w}
	for i := range n {
		src.diag[i] = w.At(i, i)
	}
	b, err := newBuild(t.Context(), src, len(marks), len(marks))
	if err != nil {
		t.Fatal(err)
	}
	p := &nystrom{build: b, marks: marks, half: half, lo: make([]float32, len(b.f.Data))}
	if err := p.keep(t.Context(), 0, len(marks)); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestKept: columns are held, scaled by 4⁻ʰ, to 2⁻⁴⁸, and LLᵀ is 4⁻ʰ(W+νD).
func TestKept(t *testing.T) {
	const n, half = 5, 7
	x, w := mat.NewDense(n, n, nil), new(mat.Dense)
	rng.New(1).Normals(x.RawMatrix().Data, 0)
	w.Mul(x, x.T())
	w.Scale(0x1p14, w)
	marks := []int{3, 0, 4}
	p := nystromOf(t, w, half, marks)
	row := make([]float64, 3)
	for i := range n {
		p.row(row, i)
		for k, j := range marks {
			if want := w.At(i, j) * 0x1p-14; math.Abs(row[k]-want) > 0x1p-48*math.Abs(want) {
				t.Errorf("K(%d, %d) kept as %v, want %v", i, j, row[k], want)
			}
		}
	}
	if err := p.factor(); err != nil {
		t.Fatal(err)
	}
	if p.nu != p.shift() {
		t.Errorf("ν = %g of a matrix far from singular, want %g", p.nu, p.shift())
	}
	for a, i := range marks {
		for b, j := range marks[:a+1] {
			var sum float64
			for k := range b + 1 {
				sum += p.l[a*3+k] * p.l[b*3+k]
			}
			if want := w.At(i, j) * 0x1p-14; math.Abs(sum-want) > 1e-12*w.At(i, i)*0x1p-14 {
				t.Errorf("LLᵀ is %v at (%d, %d), want %v", sum, a, b, want)
			}
		}
	}
}

// TestShiftRaised: ν is raised tenfold until W+νD is positive definite, and no further, up to 1e-4; a zero on
// the diagonal counts as 1.
func TestShiftRaised(t *testing.T) {
	for _, over := range []float64{1e-9, 3e-6, 1e-5, 3e-3} {
		w := mat.NewDense(2, 2, []float64{1, 1 + over, 1 + over, 1})
		p := nystromOf(t, w, 0, []int{0, 1})
		err := p.factor()
		if over > 1e-4 {
			if err == nil || !strings.Contains(err.Error(), "order 2") {
				t.Errorf("over by %g: %v with ν = %g", over, err, p.nu)
			}
			continue
		}
		tens := math.Log10(p.nu / p.shift())
		if err != nil || p.nu < over || p.nu > 10.1*over || math.Abs(tens-math.Round(tens)) > 1e-9 {
			t.Errorf("over by %g: ν = %g, %g of the first, %v", over, p.nu, p.nu/p.shift(), err)
		}
	}
	p := nystromOf(t, mat.NewDense(2, 2, []float64{4, 0, 0, 0}), 0, []int{0, 1})
	if err := p.factor(); err != nil || math.Abs(p.l[0]-2) > 1e-9 || p.l[3] != 1 {
		t.Errorf("L = %v, %v", p.l, err)
	}
}

// TestDrop: of the landmarks that depend on others, L_jj² ≤ 4νD_jj, those go whose columns are smallest, as long
// as tr K̂ loses no more than ν·tr K by it; others stay however small.
func TestDrop(t *testing.T) {
	const r = dropCols + 2
	p := &nystrom{build: &build{n: 2, f: points.NewDense32(2, r, nil), diag: make([]float64, r), trace: 100, d: make([]float64, 2)}, half: 3, l: make([]float64, r*r), nu: 0.01}
	squares := map[int]float64{0: 0.5, 5: 0.0625, dropCols - 1: 0.25, dropCols: 0.25, dropCols + 1: 0.0625} // all depend but 5; 1 may go
	for j := range r {
		p.marks = append(p.marks, j)
		p.diag[j] = 4
		p.l[j*r+j] = 0.4 * 0x1p-3 * (1 + 1e-9) // 4ν·4 = 0.4²
		p.f.Row(1)[j] = 1
		if v, small := squares[j]; small {
			p.f.Row(1)[j] = float32(math.Sqrt(v))
			if j != 5 {
				p.l[j*r+j] = 0.4 * 0x1p-3 * (1 - 1e-9)
			}
		}
	}
	if err := p.drop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if slices.Contains(p.marks, dropCols-1) || slices.Contains(p.marks, dropCols) || slices.Contains(p.marks, dropCols+1) || len(p.marks) != r-3 {
		t.Errorf("%d of %d landmarks stay: %v", len(p.marks), r, p.marks)
	}
	if p.d[0] != 0 || math.Abs(p.d[1]-0.5625) > 1e-7 {
		t.Errorf("the diagonal gets back %v", p.d)
	}
	for k, j := range p.marks {
		want := float32(1)
		if v, small := squares[j]; small {
			want = float32(math.Sqrt(v))
		}
		if p.f.Row(1)[k] != want {
			t.Errorf("column %d, of landmark %d, is %v, want %v", k, j, p.f.Row(1)[k], want)
		}
	}
	for _, r := range []int{1, dropCols - 1, dropCols, dropCols + 1} { // nothing depends on anything
		p := &nystrom{build: &build{n: 1, f: points.NewDense32(1, r, nil), diag: make([]float64, r), trace: 1, d: make([]float64, 1)}, marks: make([]int, r), l: make([]float64, r*r), nu: 1e-9}
		for j := range r {
			p.marks[j], p.diag[j], p.l[j*r+j], p.f.Data[j] = j, 1, 1, 1
		}
		if err := p.drop(t.Context()); err != nil || len(p.marks) != r {
			t.Errorf("%d of %d landmarks stay, %v", len(p.marks), r, err)
		}
	}
	zero := &nystrom{build: &build{n: 1, f: points.NewDense32(1, 2, nil), diag: []float64{1, 1}, trace: 1, d: make([]float64, 1)}, marks: []int{0, 1}, l: []float64{1, 0, 0, 1}, nu: 1e-9}
	if err := zero.drop(t.Context()); err == nil || !strings.Contains(err.Error(), "2 landmarks") {
		t.Errorf("no column that is not zero: %v", err)
	}
}
