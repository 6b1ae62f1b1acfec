package datasets

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/points"
)

// TestNames: up to twenty names are said, and how many more there are; numbers are none.
func TestNames(t *testing.T) {
	for n, want := range map[int]string{
		0: "the first row has numbers only; give the column by its number, counted from 0", 1: `there are "c0"`, 2: `there are "c0", "c1"`,
		20: `"c18", "c19"`, 21: `"c18", "c19" and 1 more`, 25: `"c19" and 5 more`,
	} {
		first := []string{"1.5"}
		for i := range n {
			first = append(first, fmt.Sprintf("c%d", i))
		}
		if got := namesIn(first); !strings.HasSuffix(got, want) || strings.Contains(got, "1.5") || strings.Contains(got, "c20") {
			t.Errorf("%d names: %s", n, got)
		}
	}
}

// TestFindColumn: a column by its number, from either end, or by its name.
func TestFindColumn(t *testing.T) {
	first := []string{"a", "b", "c"}
	for column, want := range map[string]int{"0": 0, "2": 2, "-1": 2, "-3": 0, "b": 1} {
		if col, named, err := findColumn(first, column); err != nil || col != want || named != (column == "b") {
			t.Errorf("%s: %d, %v, %v", column, col, named, err)
		}
	}
	for column, want := range map[string]string{"3": "column 3: the rows have 3 columns, 0 to 2", "-4": "column -4", "d": `no column is named "d": there are "a"`} {
		if _, _, err := findColumn(first, column); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", column, err)
		}
	}
}

// TestScalingMemory: what a scaling of sparse points takes, and what is said where it is not there.
func TestScalingMemory(t *testing.T) {
	x := &points.CSR{N: 10, D: 100, Ptr: make([]int, 11)}
	const vectors, dense = vectorsHeld * 8 * 100, 8 * 10 * 100
	for kind, need := range map[string]int64{"unit": vectors, "pixel": vectors, "standard": vectors + dense} {
		advice := "without gaps"
		if kind == "standard" {
			advice = "scale by unit"
		}
		err := scalingFits(kind, x, need-1)
		if err == nil || !strings.Contains(err.Error(), advice) || !strings.Contains(err.Error(), "10 sparse points with 100 features") {
			t.Errorf("%s in a byte less than it takes: %v", kind, err)
		}
		for _, has := range []int64{need, need + 1, 0} {
			if err := scalingFits(kind, x, has); err != nil {
				t.Errorf("%s in %d bytes: %v", kind, has, err)
			}
		}
		if err := scalingFits(kind, points.NewDense(10, 100, nil), 1); err != nil {
			t.Errorf("%s of dense points: %v", kind, err)
		}
	}
}

// TestScalingSparse: sparse points, and a slice of them, have the ranges, means and deviations of the same
// points as dense ones, and are scaled as they are.
func TestScalingSparse(t *testing.T) {
	d := points.NewDense(5, 4, []float64{
		9, 9, 9, 9,
		1, 0, 2, -1,
		3, 0, 2, -2,
		2, -4, 2, 0,
		8, 8, 8, 8,
	})
	s := &points.CSR{N: 5, D: 4, Ptr: []int{0}}
	for i := range 5 {
		for j, v := range d.Row(i) {
			if v != 0 {
				s.Col, s.Val = append(s.Col, int32(j)), append(s.Val, v)
			}
		}
		s.Ptr = append(s.Ptr, len(s.Val))
	}
	dp, sp := d.Slice(1, 4), s.Slice(1, 4)
	lo, hi := ranges(dp)
	lo2, hi2 := ranges(sp)
	if !slices.Equal(lo, []float64{1, -4, 2, -2}) || !slices.Equal(hi, []float64{3, 0, 2, 0}) || !slices.Equal(lo2, lo) || !slices.Equal(hi2, hi) {
		t.Errorf("from %v to %v, sparse from %v to %v", lo, hi, lo2, hi2)
	}
	for kind, want := range map[string][]float64{ // of the first point
		"standard": {-1 / math.Sqrt(2.0/3), (4.0 / 3) / math.Sqrt(32.0/9), 0, 0},
		"unit":     {1.0 / 3, 0, 1, -0.5},
		"pixel":    {1.0 / 255, 0, 2.0 / 255, -1.0 / 255},
	} {
		sc, err := fitScaling(kind, sp)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []points.Points{dp, sp} {
			for j, v := range dense(applied(t, sc, p))[0] {
				if math.Abs(v-want[j]) > 1e-15 {
					t.Errorf("%s of %T: feature %d is %v, want %v", kind, p, j, v, want[j])
				}
			}
		}
		if sc.Dim() != 4 || (*Scaling)(nil).Dim() != 0 {
			t.Errorf("%d features", sc.Dim())
		}
	}
	x32 := points.NewDense32(1, 2, []float32{3, 5})
	if y, ok := applied(t, &Scaling{Kind: "pixel", Scale: []float64{2, 3}}, x32).(*points.Dense32); !ok || !slices.Equal(y.Data, []float32{6, 15}) {
		t.Errorf("float32 points: %v", y)
	}
	for want, sc := range map[string]*Scaling{
		"unknown scaling": {Kind: "none"}, "2 features has 1 shifts": {Kind: "unit", Scale: make([]float64, 2), Shift: make([]float64, 1)},
		"feature 1 is not finite": {Kind: "unit", Scale: []float64{0, 1}, Shift: []float64{0, math.Inf(1)}}, "feature 0 is": {Kind: "unit", Scale: []float64{math.NaN()}},
	} {
		if err := sc.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", sc, err)
		}
	}
}

// TestMomentsExtreme: means and deviations of features whose squares overflow or vanish are those of the
// feature in another unit.
func TestMomentsExtreme(t *testing.T) {
	base := []float64{1, 2, 4, -3, 0.5}
	mean, sd := moments(points.NewDense(5, 1, base), []float64{-3}, []float64{4})
	for _, e := range []int{-900, -600, -460, 460, 600, 1000} {
		v := make([]float64, 5)
		for i := range v {
			v[i] = math.Ldexp(base[i], e)
		}
		m, s := moments(points.NewDense(5, 1, v), []float64{v[3]}, []float64{v[2]})
		if math.Abs(math.Ldexp(m[0], -e)-mean[0]) > 1e-15 || math.Abs(math.Ldexp(s[0], -e)-sd[0]) > 1e-14 {
			t.Errorf("in units of 2^%d: %v and %v, want %v and %v", e, math.Ldexp(m[0], -e), math.Ldexp(s[0], -e), mean, sd)
		}
	}
}

// TestGuess: what is guessed of whole numbers, others and words, on either side of the limits.
func TestGuess(t *testing.T) {
	for _, c := range []struct {
		kinds, rows int
		format      string
		want        string
	}{
		{20, 100, "%d", "classification"}, {20, 99, "%d", "regression"}, {21, 105, "%d", "regression"}, {2, 10, "%d", "classification"},
		{2, 9, "%d", "regression"}, {2, 10, "%d.5", "regression"}, {3, 100, "%d.0", "classification"},
		{20, 20, "w%d", "classification"}, {21, 104, "w%d", "too many to be classes"}, {21, 105, "w%d", "classification"}, {30, 150, "w%d", "classification"},
		{3, 12, "%d/5/2020", "a date"},
	} {
		var b strings.Builder
		for i := range c.rows {
			fmt.Fprintf(&b, "7,"+c.format+"\n", i%c.kinds)
		}
		d, err := Read(strings.NewReader(b.String()), "file", nil)
		got := fmt.Sprint(err)
		if err == nil {
			got = "regression"
			if d.Task == Classification {
				got = "classification"
				if len(d.Labels) != c.kinds {
					t.Errorf("%+v: %d classes", c, len(d.Labels))
				}
			}
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestLIBSVMEdges: indices at their limits, zeros, comments, blanks of any kind and lines of any length.
func TestLIBSVMEdges(t *testing.T) {
	read := func(file string, o ReadOptions) (*points.CSR, error) {
		o.Format = "libsvm"
		d, err := Read(strings.NewReader(file), "file", &o)
		if err != nil {
			return nil, err
		}
		return d.X.(*points.CSR), nil
	}
	x, err := read("1.5\t1:2  3:0 4:-1 # 9:9\n# all\n\n \r\n2.5 2:7\r\n3.5", ReadOptions{})
	if err != nil || x.N != 3 || x.D != 4 || !slices.Equal(x.Ptr, []int{0, 2, 3, 3}) || !slices.Equal(x.Col, []int32{0, 3, 1}) || !slices.Equal(x.Val, []float64{2, -1, 7}) {
		t.Errorf("%+v, %v", x, err)
	}
	if x, err := read("1.5 1:2\n2.5 2:3\n3.5 9:1\n", ReadOptions{MaxRows: 2}); err != nil || x.N != 2 || x.D != 2 {
		t.Errorf("%+v, %v", x, err)
	}
	if x, err := read("1.5 1:2\n", ReadOptions{Dim: 7}); err != nil || x.D != 7 {
		t.Errorf("%+v, %v", x, err)
	}
	var long strings.Builder
	long.WriteString("1.5")
	for j := range 20000 {
		fmt.Fprintf(&long, " %d:%d", j+1, j+1)
	}
	if x, err := read(long.String()+"\n2.5 1:1\n"+long.String(), ReadOptions{}); err != nil || x.N != 3 || x.D != 20000 || x.Val[19999] != 20000 || x.Val[40000] != 20000 {
		t.Errorf("long lines: %v", err)
	}
	for file, want := range map[string]string{
		"1.5 0:1\n": "index 0: LIBSVM counts features from 1", "1.5 2147483647:1\n": "index 2147483647: want", "1.5 x:1\n": `index x: want`,
		"1.5 2:1 2:1\n": "index 2 after index 2", "1.5 2:1 1:1\n": "index 1 after index 2", "1.5 1\n": "is not of the form index:value",
		"1.5 1:x\n": "value of index 1: ", "1.5\n2.5\n": "no row has a feature", "": "empty", "# no\n": "empty",
	} {
		if _, err := read(file, ReadOptions{}); err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), `"`, ""), want) {
			t.Errorf("%q: %v, want %q", file, err, want)
		}
	}
	var pe *ParseError
	if _, err := read("1.5 1:1\n2.5 5:1\n3.5 2:1\n", ReadOptions{Dim: 3}); !errors.As(err, &pe) || pe.Line != 2 {
		t.Errorf("%v", err)
	}
	if _, err := read("1.5 1:1 2:b\n", ReadOptions{}); !errors.As(err, &pe) || pe.Line != 1 || pe.Column != 3 {
		t.Errorf("%v", err)
	}
}

// TestIDXLarge: more pixels than are read at once, and the first of them.
func TestIDXLarge(t *testing.T) {
	const n, side = 700, 50
	dir := t.TempDir()
	images := binary.BigEndian.AppendUint32(nil, idxImages)
	labels := binary.BigEndian.AppendUint32(nil, idxLabels)
	for _, v := range []uint32{n, side, side} {
		images = binary.BigEndian.AppendUint32(images, v)
	}
	labels = binary.BigEndian.AppendUint32(labels, n)
	for i := range n {
		labels = append(labels, byte(i%10))
		for j := range side * side {
			images = append(images, byte(i+j))
		}
	}
	name := filepath.Join(dir, "train-images-idx3-ubyte")
	if err := errors.Join(os.WriteFile(name, images, 0o600), os.WriteFile(filepath.Join(dir, "train-labels-idx1-ubyte"), labels, 0o600)); err != nil {
		t.Fatal(err)
	}
	for rows, want := range map[int]int{0: n, 3: 3, n: n, 2 * n: n} {
		d, err := ReadFile(t.Context(), name, &ReadOptions{Task: "classification", MaxRows: rows})
		if err != nil {
			t.Fatal(err)
		}
		x := d.X.(*points.Bytes)
		if x.N != want || x.D != side*side || x.Row(want - 1)[side*side-1] != byte(want-1+side*side-1) || d.Labels[d.Class[want-1]] != fmt.Sprint((want-1)%10) {
			t.Errorf("%d rows: %d×%d, %v", rows, x.N, x.D, d.Labels)
		}
	}
	for _, size := range [][2]uint32{{maxSide + 1, 1}, {1, maxSide + 1}, {0, 5}} {
		bad := slices.Clone(images)
		binary.BigEndian.PutUint32(bad[8:], size[0])
		binary.BigEndian.PutUint32(bad[12:], size[1])
		if err := os.WriteFile(name, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadFile(t.Context(), name, nil); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("images of %d×%d pixels", size[0], size[1])) {
			t.Errorf("%v: %v", size, err)
		}
	}
}

// TestCodingErrors: data without answers, and labels that are fewer or more than three.
func TestCodingErrors(t *testing.T) {
	x := points.NewDense(2, 1, nil)
	if _, err := (Coding{}).Encode(&Dataset{Name: "d", X: x}); err == nil || !strings.Contains(err.Error(), "d: no numbers to fit") {
		t.Errorf("%v", err)
	}
	if _, err := (Coding{Labels: []string{"a", "b"}}).Encode(&Dataset{Name: "d", X: x}); err == nil || !strings.Contains(err.Error(), "d: no classes to fit") {
		t.Errorf("%v", err)
	}
	if y, err := (Coding{}).Encode(&Dataset{X: x, Target: []float64{maxTarget, -maxTarget}}); err != nil || y.At(1, 0) != -maxTarget {
		t.Errorf("%v, %v", y, err)
	}
	for n, want := range []int{1, 1, 1, 3, 4} {
		if got := (Coding{Labels: make([]string, n)}).Columns(); got != want {
			t.Errorf("%d labels: %d columns", n, got)
		}
	}
	if got := (Coding{}).Decode(mat.NewDense(1, 1, []float64{3})); !slices.Equal(got, []int{1}) {
		t.Errorf("%v", got)
	}
}
