package npy

import (
	"bytes"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	for _, c := range []struct {
		data  any
		shape []int
	}{
		{[]float64{1, math.Pi, math.Inf(-1), -0.5, 1e-310, 6}, []int{2, 3}},
		{[]float32{1, -2, 3.5}, []int{3}},
		{[]int32{-1, 1 << 30}, []int{1, 2, 1}},
		{[]uint8{0, 255, 7}, []int{3}},
		{[]int64{-1, 1 << 62}, []int{2}},
		{[]float64{}, []int{0, 7}},
		{[]float64{4}, []int{}},
	} {
		var buf bytes.Buffer
		if err := Write(&buf, c.data, c.shape...); err != nil {
			t.Fatal(err)
		}
		h, got, err := Read(&buf, 1<<20)
		if err != nil {
			t.Fatalf("%v %v: %v", c.data, c.shape, err)
		}
		if !reflect.DeepEqual(got, c.data) || (len(c.shape) > 0 && !reflect.DeepEqual(h.Shape, c.shape)) {
			t.Errorf("got %v %v, want %v %v", got, h.Shape, c.data, c.shape)
		}
	}
}

// TestLayout pins the bytes NumPy writes for np.arange(3.).
func TestLayout(t *testing.T) {
	var buf bytes.Buffer
	if err := Write(&buf, []float64{0, 1, 2}, 3); err != nil {
		t.Fatal(err)
	}
	want := "\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }" +
		strings.Repeat(" ", 60) + "\n"
	if got := buf.String(); got[:128] != want || len(got) != 128+24 {
		t.Errorf("got %q", got)
	}
}

func TestReadRefuses(t *testing.T) {
	var good bytes.Buffer
	if err := Write(&good, []float64{0, 1, 2}, 3); err != nil {
		t.Fatal(err)
	}
	g := good.String()
	for name, c := range map[string]struct {
		file  string
		limit int64
		want  string
	}{
		"empty":   {"", 100, "no header"},
		"magic":   {"x" + g[1:], 100, "not an array"},
		"cut":     {g[:140], 100, "cut short"},
		"limit":   {g, 23, "needs 24 bytes"},
		"type":    {strings.Replace(g, "<f8", ">f8", 1), 100, "element type"},
		"fortran": {strings.Replace(g, "False", "True ", 1), 100, "C order"},
		"shape":   {strings.Replace(g, "(3,)", "(-3)", 1), 100, "bad shape"},
		"huge":    {strings.Replace(g, "(3,), }                ", "(9999999999,9999999999)", 1), 100, "too large"},
	} {
		_, _, err := Read(strings.NewReader(c.file), c.limit)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	var buf bytes.Buffer
	if err := Write(&buf, []float32{1, 2, 3, 4}, 2, 2); err != nil {
		f.Fatal(err)
	}
	f.Add(buf.Bytes())
	f.Add([]byte(magic + "\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, data, err := Read(bytes.NewReader(b), 1<<16)
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := Write(&out, data, h.Shape...); err != nil {
			t.Fatal(err)
		}
	})
}
