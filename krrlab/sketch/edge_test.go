package sketch

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/rng"
)

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
