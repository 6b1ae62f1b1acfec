package datasets

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestScaled: a data set says what its points were scaled by, and so does all that is made of it; nothing is
// scaled twice, or otherwise than it was.
func TestScaled(t *testing.T) {
	raw := classed([]int{0, 1, 0, 1, 0, 1}, "a", "b")
	raw.X = points.NewDense(6, 2, []float64{1, 5, 3, 4, 2, 5, 0, 7, 1, 1, 9, 2})
	d, other, err := Scale("standard", raw, raw.Slice(2, 4))
	s := d.Scaling
	if err != nil || s == nil || other.Scaling != s || other.X.(*points.Dense).Data[0] != d.X.(*points.Dense).Data[4] ||
		raw.Scaling != nil || raw.X.(*points.Dense).Data[0] != 1 {
		t.Fatalf("%+v, %+v of %+v", d, other, raw)
	}
	in, out, err := d.Holdout(0.5, 1)
	if err != nil {
		t.Fatal(err)
	}
	for what, part := range map[string]*Dataset{"slice": d.Slice(1, 4), "head": d.Head(2),
		"subset": d.Subset([]int{5, 0}), "kept": in, "held out": out} {
		if part.Scaling != s {
			t.Errorf("%s: %v", what, part.Scaling)
		}
	}
	var read *Scaling
	if err := json.Unmarshal(must(json.Marshal(s)), &read); err != nil {
		t.Fatal(err)
	}
	for _, same := range []*Scaling{s, read} {
		if again, err := same.Apply(d); err != nil || again != d {
			t.Errorf("scaled again: %v", err)
		}
	}
	if again, err := (*Scaling)(nil).Apply(raw); err != nil || again != raw {
		t.Errorf("not scaled: %v", err)
	}
	if _, _, err := Scale("unit", d, nil); err == nil || !strings.Contains(err.Error(), "scaled already (standard)") {
		t.Errorf("scaled twice: %v", err)
	}
	unit, _ := fitScaling("unit", raw.X)
	shifted := &Scaling{Kind: "standard", Shift: slices.Clone(s.Shift), Scale: s.Scale}
	shifted.Shift[1]++
	for _, c := range []struct {
		s    *Scaling
		d    *Dataset
		want string
	}{
		{nil, d, "the points are scaled (standard), want them unscaled: pass them as they were read"},
		{unit, d, "scaled already (standard), by other numbers than those wanted (unit)"},
		{shifted, d, "scaled already (standard), by other numbers than those wanted (standard)"},
		{&Scaling{Kind: "standard", Scale: s.Scale}, d, "scaled already"},
		{&Scaling{Kind: "standard", Shift: s.Shift, Scale: []float64{1, 2}}, d, "scaled already"},
		{&Scaling{Kind: "pixel", Scale: make([]float64, 3)}, raw, "points of 2 features, and a scaling (pixel) of 3"},
	} {
		if got, err := c.s.Apply(c.d); got != nil || err == nil || !strings.HasPrefix(err.Error(), "made: ") ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.s, err, c.want)
		}
	}
}

// TestDirs: data are looked for in $KRRLAB_DATA and the user's cache by default.
func TestDirs(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	t.Setenv("KRRLAB_DATA", first)
	t.Setenv("XDG_CACHE_HOME", second)
	if dirs := Dirs(); dirs[0] != first || len(dirs) > 2 {
		t.Errorf("%q", dirs)
	}
	row := strings.Repeat(" 0.5", 256) + "\n"
	put(t, first, "usps/zip.train", "6.0"+row+"2.0"+row)
	put(t, first, "usps/zip.test", "2"+row)
	if p, err := Load(t.Context(), "usps", nil); err != nil || p.Train.Len() != 2 {
		t.Errorf("found by default: %v", err)
	}
	fails(t, errOf(Load(t.Context(), "usps", &LoadOptions{Dirs: []string{}})), "is missing")
	t.Setenv("KRRLAB_DATA", "")
	if dirs := Dirs(); slices.Contains(dirs, "") || slices.Contains(dirs, first) {
		t.Errorf("%q", dirs)
	}
}
