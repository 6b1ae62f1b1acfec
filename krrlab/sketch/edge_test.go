package sketch

import (
	"math"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// TestCheckApply: rows that do not fit are refused on either side, and those that just fit are not.
func TestCheckApply(t *testing.T) {
	op, err := Gaussian{}.Sample(10, 4, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dst, ldd, src, lds, rows int
		fits                     bool
	}{
		{14, 10, 30, 20, 2, true}, {13, 10, 30, 20, 2, false}, {14, 10, 29, 20, 2, false},
		{4, 4, 10, 10, 1, true}, {3, 4, 10, 10, 1, false}, {4, 4, 9, 10, 1, false},
		{0, 4, 0, 10, 0, true}, {40, 3, 100, 10, 2, false}, {40, 4, 100, 9, 2, false}, {40, 4, 100, 10, -1, false},
		{0, 3, 0, 10, 0, false}, {0, 4, 0, 9, 0, false},
	} {
		panicked := func() (v any) {
			defer func() { v = recover() }()
			checkApply(op, c.dst, c.ldd, c.src, c.lds, c.rows)
			return nil
		}()
		if (panicked == nil) != c.fits {
			t.Errorf("%+v: panic %v", c, panicked)
		}
	}
}

// TestWideBlock: the float64 copy of G is held in blocks of at most 2¹⁹ numbers.
func TestWideBlock(t *testing.T) {
	const m, s = 1 << 14, 70
	op, err := Gaussian{}.Sample(m, s, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	src := make([]float64, m)
	rng.New(2).Normals(src, 0)
	var w Workspace
	dst := make([]float64, s)
	op.Apply64(dst, s, src, m, 1, &w)
	if n := cap(w.wide); n < wideBlock || n > wideBlock+wideBlock/8 {
		t.Errorf("%d numbers are converted at once, want %d", n, wideBlock)
	}
	o := op.(*GaussianOperator)
	for j := range s {
		var want, size float64
		for k, v := range src {
			want += float64(o.g[j*m+k]) * v
			size += math.Abs(float64(o.g[j*m+k]) * v)
		}
		// In any order two sums of m products differ by at most 2m·2⁻⁵³ of the sum of their sizes.
		if d := math.Abs(dst[j] - want*o.scale); d > 2*m*0x1p-53*size*o.scale {
			t.Errorf("row %d: %v, want %v", j, dst[j], want*o.scale)
		}
	}
}

// TestNested: a composition within a composition is its sketches in a row.
func TestNested(t *testing.T) {
	inner := Composition{{Dist: CountSketch{}, Width: 16}, {Dist: SRHT{}, Width: 8}}
	op, err := Composition{{Dist: inner, Width: 8}, {Dist: Gaussian{}, Width: 4}}.Sample(20, 4, rng.New(3))
	if err != nil {
		t.Fatal(err)
	}
	c := op.(*CompositionOperator)
	if c.Levels() != 3 {
		t.Fatalf("%d levels, want 3", c.Levels())
	}
	x := make([]float64, 20)
	rng.New(4).Normals(x, 0)
	got := make([]float64, 4)
	op.Apply64(got, 4, x, 20, 1, &Workspace{})
	for k := range c.Levels() {
		m, s := c.Level(k).Dims()
		y := make([]float64, s)
		c.Level(k).Apply64(y, s, x, m, 1, &Workspace{})
		x = y
	}
	for i, want := range x {
		if got[i] != want {
			t.Errorf("number %d: %v, want %v", i, got[i], want)
		}
	}
	if m, s := op.Dims(); m != 20 || s != 4 {
		t.Errorf("from %d to %d", m, s)
	}
}

// TestApplyLength: the panic names the lengths that differ.
func TestApplyLength(t *testing.T) {
	op, err := SRHT{}.Sample(10, 4, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if v, _ := recover().(string); !strings.Contains(v, "R^10 given rows of length 11") {
			t.Errorf("panic %q", v)
		}
	}()
	_, _ = Apply(t.Context(), op, points.NewDense32(3, 11, nil), nil)
}
