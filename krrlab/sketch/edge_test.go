package sketch

import (
	"fmt"
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

// TestRefused: every sketch refuses what does not fit, in either precision, before it writes.
func TestRefused(t *testing.T) {
	for _, d := range []Dist{CountSketch{}, SRHT{}, Gaussian{}, Composition{{Dist: CountSketch{}, Width: 8}, {Dist: Gaussian{}}}} {
		op, err := d.Sample(10, 4, rng.New(1))
		if err != nil {
			t.Fatal(err)
		}
		for name, f := range map[string]func(dst []float64){
			"float64, stride":  func(dst []float64) { op.Apply64(dst, 3, make([]float64, 100), 10, 2, &Workspace{}) },
			"float64, numbers": func(dst []float64) { op.Apply64(dst, 4, make([]float64, 19), 10, 2, &Workspace{}) },
			"float32, stride":  func([]float64) { op.Apply32(make([]float32, 100), 3, make([]float32, 100), 10, 2, &Workspace{}) },
			"float32, numbers": func([]float64) { op.Apply32(make([]float32, 100), 4, make([]float32, 19), 10, 2, &Workspace{}) },
			"float32, rows":    func([]float64) { op.Apply32(make([]float32, 100), 4, make([]float32, 100), 10, -1, &Workspace{}) },
			"float64, rows":    func(dst []float64) { op.Apply64(dst, 4, make([]float64, 100), 10, -1, &Workspace{}) },
		} {
			dst := make([]float64, 100)
			func() {
				defer func() {
					if v, _ := recover().(string); !strings.HasPrefix(v, "sketch: ") {
						t.Errorf("%v, %s: panic %q", d, name, v)
					}
				}()
				f(dst)
			}()
			for _, v := range dst {
				if v != 0 {
					t.Fatalf("%v, %s: it was written", d, name)
				}
			}
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
	if len(c.Levels) != 3 {
		t.Fatalf("%d levels, want 3", len(c.Levels))
	}
	x := make([]float64, 20)
	rng.New(4).Normals(x, 0)
	got := make([]float64, 4)
	op.Apply64(got, 4, x, 20, 1, &Workspace{})
	for _, o := range c.Levels {
		m, s := o.Dims()
		y := make([]float64, s)
		o.Apply64(y, s, x, m, 1, &Workspace{})
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

// TestWorkspaceBytes counts the scratch slice by slice.
func TestWorkspaceBytes(t *testing.T) {
	w := Workspace{row32: make([]float32, 1), row64: make([]float64, 10), wide: make([]float64, 100)}
	w.panel32[0], w.panel32[1] = make([]float32, 1000), make([]float32, 20000)
	w.panel64[0], w.panel64[1] = make([]float64, 30000), make([]float64, 50000)
	if got, want := w.Bytes(), int64(4*(1+1000+20000)+8*(10+100+30000+50000)); got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}

// TestWholePanels: whole panels of rows, and one more or less, at strides that leave nothing after the
// last row, against the matrix of the sketch row by row.
func TestWholePanels(t *testing.T) {
	const m, s, ldd, lds = 9, 4, 6, 11
	chain := Composition{{Dist: CountSketch{}, Width: 8}, {Dist: SRHT{}, Width: 5}, {Dist: Gaussian{}}}
	wider := Composition{{Dist: CountSketch{}, Width: 5}, {Dist: CountSketch{}, Width: 13}, {Dist: Gaussian{}}}
	for _, d := range []Dist{CountSketch{}, SRHT{}, Gaussian{}, chain, wider} {
		op, err := d.Sample(m, s, rng.New(1))
		if err != nil {
			t.Fatal(err)
		}
		columns := make([]float64, m*s) // S·e_j, one after the other
		one := make([]float64, m)
		for j := range m {
			one[j] = 1
			op.Apply64(columns[j*s:(j+1)*s], s, one, m, 1, &Workspace{})
			one[j] = 0
		}
		for _, rows := range []int{0, 1, panelRows - 1, panelRows, panelRows + 1, 2 * panelRows} {
			src, dst := make([]float64, max(0, (rows-1)*lds+m)), make([]float64, max(0, (rows-1)*ldd+s))
			rng.New(2).Normals(src, 0)
			src32, dst32 := make([]float32, len(src)), make([]float32, len(dst))
			for i, v := range src {
				src32[i] = float32(v)
			}
			for i := range dst {
				dst[i], dst32[i] = -9, -9
			}
			var w Workspace
			op.Apply64(dst, ldd, src, lds, rows, &w)
			op.Apply32(dst32, ldd, src32, lds, rows, &w)
			for i := range dst {
				r, c := i/ldd, i%ldd
				want := -9.0
				if c < s {
					want = 0
					for j := range m {
						want += columns[j*s+c] * src[r*lds+j]
					}
				}
				if math.Abs(dst[i]-want) > 1e-13 || math.Abs(float64(dst32[i])-want) > 1e-4 {
					t.Fatalf("%v, %d rows: (%d, %d) is %v and %v, want %v", d, rows, r, c, dst[i], dst32[i], want)
				}
			}
		}
	}
}

// TestSampleLimits: sizes that no sketch has are refused, with the size that is wrong.
func TestSampleLimits(t *testing.T) {
	for _, c := range []struct {
		m, s int
		want string
	}{
		{0, 1, "length 0"}, {1, 0, "to 0 numbers"}, {-1, 1, "length -1"}, {math.MaxInt32 + 1, 1, "at most 2147483647"}, {1, math.MaxInt32 + 1, "at most 2147483647"},
	} {
		for _, d := range []Dist{CountSketch{}, SRHT{}, Gaussian{}, Composition{{Dist: Gaussian{}}}} {
			if _, err := d.Sample(c.m, c.s, rng.New(1)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v from %d to %d: %v", d, c.m, c.s, err)
			}
		}
	}
	if err := checkSample(Gaussian{}, math.MaxInt32, math.MaxInt32); err != nil {
		t.Error(err)
	}
	for _, c := range []struct{ m, s int }{{1, 1}, {2, 2}, {3, 4}, {5, 8}, {8, 8}, {9, 16}} {
		if _, err := (SRHT{}).Sample(c.m, c.s, rng.New(1)); err != nil {
			t.Errorf("all rows of the transform: %v", err)
		}
		if _, err := (SRHT{}).Sample(c.m, c.s+1, rng.New(1)); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("want s ≤ %d", c.s)) {
			t.Errorf("a row more than the transform has: %v", err)
		}
	}
	for _, c := range []struct {
		need, have float64
		lacks      bool
	}{{2e8, 1e8, true}, {2e8, 2e8, false}, {2e8, 3e8, false}, {1e8, 5e7, false}, {1e8 + 1, 5e7, true}, {1e8, 5e7, false}} {
		if lacks(c.need, c.have) != c.lacks {
			t.Errorf("%g bytes where %g are free: refused %v", c.need, c.have, !c.lacks)
		}
	}
}

// TestWidths: the widths of a composition's levels, and what is wrong with those that are none.
func TestWidths(t *testing.T) {
	for _, c := range []struct {
		d    Composition
		s    int
		want string
	}{
		{Composition{{CountSketch{}, 9}, {Gaussian{}, 0}}, 4, "[9 4]"},
		{Composition{{CountSketch{}, 9}, {Gaussian{}, 4}}, 4, "[9 4]"},
		{Composition{{Gaussian{}, 0}}, 1, "[1]"},
		{Composition{}, 4, "no sketches"},
		{Composition{{CountSketch{}, 9}, {Gaussian{}, 5}}, 4, "countsketch:9,gaussian:5 ends with 5 numbers, 4 are asked for"},
		{Composition{{CountSketch{}, 9}, {SRHT{}, 0}, {Gaussian{}, 0}}, 4, "level 2 of countsketch:9,srht,gaussian has the width 0"},
		{Composition{{CountSketch{}, -1}, {Gaussian{}, 0}}, 4, "level 1 of"},
	} {
		w, err := c.d.widths(c.s)
		if got := fmt.Sprint(w, err); !strings.Contains(got, c.want) || (err == nil) != strings.HasPrefix(c.want, "[") {
			t.Errorf("%v: %s, want %s", c.d, got, c.want)
		}
	}
}
