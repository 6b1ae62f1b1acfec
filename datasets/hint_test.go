package datasets

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// normalColumns returns n points whose feature j is normal with the standard deviation sd[j].
func normalColumns(n int, sd ...float64) *points.Dense {
	x := points.NewDense(n, len(sd), nil)
	rng.New(3).Normals(x.Data, 0)
	for i := range n {
		for j, s := range sd {
			x.Row(i)[j] *= s
		}
	}
	return x
}

// toSparse returns the dense points in sparse form.
func toSparse(x *points.Dense) *points.CSR {
	sparse := &points.CSR{N: x.N, D: x.D, Ptr: []int{0}}
	for i := range x.N {
		for j, v := range x.Row(i) {
			if v != 0 {
				sparse.Col, sparse.Val = append(sparse.Col, int32(j)), append(sparse.Val, v)
			}
		}
		sparse.Ptr = append(sparse.Ptr, len(sparse.Col))
	}
	return sparse
}

// TestAutoScaling checks the choice of the scaling auto. Spreads as different as those of the wine data are
// standardized. Equal spreads, bytes, sparse points, rarely set pixels and constants are left unscaled, with a hint
// where another scaling may help.
func TestAutoScaling(t *testing.T) {
	wine := normalColumns(150, 0.81, 1.1, 0.27, 3.3, 14, 0.63, 1, 0.12, 0.57, 2.3, 0.23, 0.71, 315)
	pixels := points.NewDense(1000, 40, nil)
	for i := range pixels.N {
		for j := range pixels.D {
			if j < 20 || i%100 == j { // each of the last 20 pixels is set in one of a hundred rows
				pixels.Row(i)[j] = float64(255 * (i * (j + 7) % 2))
			}
		}
	}
	edge := points.NewDense(1000, 40, slices.Clone(pixels.Data)) // has two rare pixels that are never fully set
	for i := range edge.N {
		edge.Row(i)[38] /= 50
		edge.Row(i)[39] /= 80
	}
	rare, age := normalColumns(150, 1, 50, 1, 1), points.NewDense(90, 3, nil)
	for i := range rare.N {
		rare.Row(i)[2], rare.Row(i)[3], rare.Row(i)[i%2] = 0, 0, 0
	}
	for i := range age.N { // whole numbers from 0 to 255, yet no pixels
		copy(age.Row(i), []float64{float64(i % 2), float64(18 + i%70), float64(i % 3 / 2)})
	}
	constant := normalColumns(50, 1, 0, 2)
	for i := range constant.N {
		constant.Row(i)[1] = 1e9 + 0.1
	}
	names := make([]string, 13)
	names[12], names[2], names[7] = "pro\x1b[31mline", "ash", "phenols"
	for _, c := range []struct {
		name string
		d    *Dataset
		kind string
		want []string // parts of the reason
	}{
		{"wine", &Dataset{X: wine}, "standard", []string{"feature 12", "feature 7"}},
		{"wine in sparse form", &Dataset{X: toSparse(wine)}, "standard", []string{"feature 12"}},
		{"sparse", &Dataset{X: toSparse(rare)}, "none", []string{"most entries are zero", "feature 1", "--scale unit"}},
		{"with names", &Dataset{X: wine, Columns: names}, "standard", []string{`"pro\x1b[31mline"`}},
		{"alike", &Dataset{X: normalColumns(150, 1, 1.5, 2, 2.5)}, "none", nil},
		{"indicators and an age", &Dataset{X: age}, "standard", []string{"feature 1,"}},
		{"two", &Dataset{X: normalColumns(150, 1, 50)}, "standard", []string{"feature 1,", "feature 0"}},
		{"pixels", &Dataset{X: pixels}, "none", nil},
		{"pixels at the edge", &Dataset{X: edge}, "none", nil},
		{"one of ten in another unit", &Dataset{X: normalColumns(150, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1e-3)}, "standard",
			[]string{"feature 9"}},
		{"bytes", &Dataset{X: points.NewBytes(3, 2, 1, []uint8{0, 200, 1, 100, 0, 0})}, "none", nil},
		{"constant", &Dataset{X: constant}, "none", nil},
		{"one", &Dataset{X: normalColumns(9, 5)}, "none", nil},
		{"an index of 2^31−2", &Dataset{X: &points.CSR{N: 1, D: math.MaxInt32 - 1, Ptr: []int{0, 1},
			Col: []int32{math.MaxInt32 - 2}, Val: []float64{1}}}, "none", nil},
	} {
		kind, reason := c.d.AutoScaling()
		if kind != c.kind || (reason == "") != (c.want == nil) || strings.ContainsAny(reason, "\n\x1b") {
			t.Errorf("%s: scaling %s because of %q, want %s", c.name, kind, reason, c.kind)
		}
		for _, part := range c.want {
			if !strings.Contains(reason, part) {
				t.Errorf("%s: %q, want %q", c.name, reason, part)
			}
		}
		got, _, err := Scale("auto", c.d, nil)
		if err != nil || got.Scaling.String() != kind {
			t.Errorf("%s: scaled by auto: %v, %v, want %s", c.name, got, err, kind)
		}
	}
}

// TestTaskHint checks that three or more different whole numbers as answers give a hint that they may be classes or
// counts. Words, two classes and other numbers must not give a hint.
func TestTaskHint(t *testing.T) {
	for _, c := range []struct {
		values int     // number of distinct answers
		step   float64 // difference of successive answers
		word   string  // beginning of each answer
		want   string  // beginning of the hint; "" for no hint
	}{
		{10, 1, "", "the answers, 10 whole numbers from 0 to 9, are taken for classes"},
		{26, 1, "", "the answers, 26 whole numbers, are taken for a regression"},
		{2, 1, "", ""}, {10, 0.5, "", ""}, {10, 1, "c", ""}, {150, 1, "", ""},
	} {
		d := must(Read(strings.NewReader("a,y\n"+joinLines(300, func(i int) string {
			return fmt.Sprintf("%d,%s%g", i*i%7, c.word, float64(i%c.values)*c.step)
		})), "the file", nil))
		if got := d.TaskHint(); !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%d values of step %g: %q, want %q", c.values, c.step, got, c.want)
		}
	}
	words := must(Read(strings.NewReader("a,y\n1,0\n2,inf\n3,nan\n"), "the file", &ReadOptions{Task: "classification"}))
	if got := words.TaskHint(); got != "" {
		t.Errorf("the words inf and nan: %q", got)
	}
}

// TestIDHint checks that columns that look like identifiers are found by their values, in any order and with gaps, or
// by their names, and that features are not. The hint names the option that drops them.
func TestIDHint(t *testing.T) {
	for _, c := range []struct {
		name  string
		value func(i int) float64 // value in row i
		want  bool                // there is a hint
	}{
		{"a", func(i int) float64 { return 1001 + float64(i) }, true},
		{"a", func(i int) float64 { return float64(i*7%20 - 5) }, true},
		{"a", func(i int) float64 { return 2 * float64(i) }, true},
		{"a", func(i int) float64 { return 3 * float64(i) }, false},
		{"a", func(i int) float64 { return float64(i - i/19) }, false},
		{"a", func(i int) float64 { return float64(i) + 0.5 }, false},
		{"a", func(i int) float64 { return []float64{math.NaN(), float64(i)}[min(i, 1)] }, true},
		{"a", func(i int) float64 { return []float64{float64(2 * i), math.NaN()}[i/9%2] }, false}, // 11 values in 0 … 38
		{"customer_id", func(i int) float64 { return float64(i%3) * 1e9 }, true},
		{"PassengerId", func(i int) float64 { return float64(i * i) }, true}, {"ID", func(i int) float64 { return 1 }, true},
		{"grid", func(i int) float64 { return float64(i * i) }, false}, {"id", func(i int) float64 { return 0.5 }, false},
		{"Madrid", func(i int) float64 { return float64(i % 2) }, false},
	} {
		x := normalColumns(20, 1, 1)
		for i := range x.N {
			x.Row(i)[1] = c.value(i)
		}
		got := (&Dataset{X: x, Columns: []string{"b", c.name}}).IDHint()
		if (got != "") != c.want || c.want && !strings.HasPrefix(got, strconv.Quote(c.name)+" looks like") {
			t.Errorf("%s: hint %q, want one: %v", c.name, got, c.want)
		}
	}
	text := joinLines(20, func(i int) string { return fmt.Sprintf("%g,%d,%d,7,a", 0.37*float64(i%3), i%2, 400-i) })
	for head, want := range map[string]string{"": "by --drop 2", "x,y,no,x_id,k\n": "by --drop no,x_id"} {
		options := ReadOptions{Target: "1", ColumnCodings: []ColumnCoding{{Column: "4"}}}
		d := must(Read(strings.NewReader(head+text), "f", &options))
		if got := d.IDHint(); !strings.HasSuffix(got, want) {
			t.Errorf("header %q: %s, want %s at the end", head, got, want)
		}
		options.ColumnCodings = nil
		wantError(t, errorFrom(Read(strings.NewReader(head+text), "f", &options)), "add --drop"+strings.TrimPrefix(want,
			"by --drop"))
	}
	x := normalColumns(100_000, 1)
	for i := range x.N {
		x.Data[i] = float64(i * 7919 % x.N)
	}
	var hint string
	allocated := testing.AllocsPerRun(1, func() { hint = (&Dataset{X: x}).IDHint() })
	if hint == "" || allocated > 100 { // a map of all values allocates as it grows
		t.Errorf("%d rows: %q, %g allocations", x.N, hint, allocated)
	}
	days := joinLines(20, func(i int) string { return fmt.Sprintf("2024-01-%02d,%g", i+1, 0.37*float64(i%3)) })
	options := ReadOptions{Target: "1", ColumnCodings: []ColumnCoding{{Column: "0", Dates: &DateCoding{}}}}
	if got := must(Read(strings.NewReader(days), "f", &options)).IDHint(); got != "" {
		t.Errorf("a column of days: %s", got)
	}
}

// TestScalingRange checks that features so large or small that their squares overflow or underflow are refused.
func TestScalingRange(t *testing.T) {
	for want, x := range map[string]*points.Dense{
		"feature 1 goes from -1.5e+101 to 1": points.NewDense(2, 2, []float64{0, -1.5e101, 1, 1}),
		"feature 0 goes from 0 to 9e-101":    points.NewDense(2, 1, []float64{0, 9e-101}),
	} {
		for _, kind := range []string{"unit", "standard"} {
			wantError(t, errorFrom(fitScalingUnlimited(kind, x)), want)
		}
	}
	tiny := points.NewDense(3, 2, []float64{1, 1e-300, 2, 3e-300, 3, -1e-300}) // the squares underflow
	_, _, err := Scale("auto", &Dataset{X: tiny}, nil)
	wantError(t, err, "feature 1 goes from -1e-300 to 3e-300")
}
