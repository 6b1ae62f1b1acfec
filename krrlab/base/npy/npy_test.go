package npy

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestRoundTrip writes arrays of every type and reads them back.
func TestRoundTrip(t *testing.T) {
	for _, test := range []struct {
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
		testkit.OK(t, Write(&buf, test.data, test.shape...))
		h, got, err := Read(&buf, 1<<20)
		if err != nil {
			t.Fatalf("%v %v: %v", test.data, test.shape, err)
		}
		if !reflect.DeepEqual(got, test.data) || (len(test.shape) > 0 && !reflect.DeepEqual(h.Shape, test.shape)) {
			t.Errorf("got %v %v, want %v %v", got, h.Shape, test.data, test.shape)
		}
	}
}

// TestNumPyBytes compares the bytes with those that NumPy writes for np.arange(3.).
func TestNumPyBytes(t *testing.T) {
	var buf bytes.Buffer
	testkit.OK(t, Write(&buf, []float64{0, 1, 2}, 3))
	want := "\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }" +
		strings.Repeat(" ", 60) + "\n"
	if got := buf.String(); got[:128] != want || len(got) != 128+24 {
		t.Errorf("got %q, want the header %q and 24 bytes", got, want)
	}
}

// TestReadErrors checks that the error for a damaged, unsupported or too large file names the reason.
func TestReadErrors(t *testing.T) {
	var written bytes.Buffer
	testkit.OK(t, Write(&written, []float64{0, 1, 2}, 3))
	valid := written.String()
	_, _, err := Read(strings.NewReader(valid), 24) // exactly at the limit
	testkit.OK(t, err)
	for _, test := range map[string]struct {
		file  string
		limit int64
		want  string
	}{
		"empty":  {"", 100, "no header"},
		"magic":  {"x" + valid[1:], 100, "not an array"},
		"cut":    {valid[:140], 100, "array cut short"},
		"head":   {valid[:7], 100, "header cut short"},
		"length": {valid[:9], 100, "header cut short"},
		"dict":   {valid[:20], 100, "header cut short"},
		"limit":  {valid, 23, "needs 24 bytes"},
		"type":   {strings.Replace(valid, "<f8", "<c8", 1), 100, "neither numbers nor short texts"},
		"object": {strings.Replace(valid, "'<f8'", "'|O' ", 1), 100, "neither numbers nor short texts"},
		"fields": {strings.Replace(valid, "'<f8'", "[('a','<f8')]", 1), 200, "a structured array"},
		"fortran": {strings.Replace(strings.Replace(valid, "False", "True ", 1), "(3,), }    ", "(1,1,3), } ", 1), 100,
			"Fortran order"},
		"version": {valid[:6] + "\x04" + valid[7:], 100, "versions 1 to 3"},
		"wide":    {strings.Replace(valid, "<f8", "<U4", 1), 95, "needs 96 bytes"},
		"shape":   {strings.Replace(valid, "(3,)", "(-3)", 1), 100, "bad shape"},
		"huge":    {strings.Replace(valid, "(3,), }                ", "(9999999999,9999999999)", 1), 100, "too large"},
	} {
		_, _, err := Read(strings.NewReader(test.file), test.limit)
		testkit.Fails(t, err, test.want)
	}
}

// fileContent returns the bytes of an .npy file with an array of the given type, order and shape.
func fileContent(descr, fortran, shape, elements string) string {
	dict := "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n"
	return magicV1 + string([]byte{byte(len(dict)), 0}) + dict + elements
}

// TestElementTypes reads elements of every type and byte order in which NumPy writes numbers and texts.
func TestElementTypes(t *testing.T) {
	for _, test := range []struct {
		descr, elements string
		want            any
	}{
		{"|b1", "\x01\x00", []uint8{1, 0}},
		{"|i1", "\xff\x7f", []int64{-1, 127}},
		{"<i2", "\xfe\xff\x01\x00", []int64{-2, 1}},
		{">i2", "\xff\xfe\x00\x01", []int64{-2, 1}},
		{"<u2", "\xfe\xff\x01\x00", []int64{65534, 1}},
		{">u4", "\xff\xff\xff\xff\x00\x00\x00\x01", []int64{1<<32 - 1, 1}},
		{">i4", "\xff\xff\xff\xff\x00\x00\x00\x01", []int32{-1, 1}},
		{">i8", "\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x01", []int64{-1, 1}},
		{"<u8", "\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00\x00\x00\x00\x00\x00", []uint64{math.MaxUint64, 1}},
		{"<f2", "\x00\x3c\x00\xc5", []float32{1, -5}},
		{">f2", "\x03\xff\x00\x01", []float32{6.097555160522461e-05, 5.960464477539063e-08}},
		{">f4", "\x3f\x80\x00\x00\xc0\x00\x00\x00", []float32{1, -2}},
		{">f8", "\x3f\xf0\x00\x00\x00\x00\x00\x00\xc0\x00\x00\x00\x00\x00\x00\x00", []float64{1, -2}},
		{"<U2", "n\x00\x00\x00o\x00\x00\x00\xfc\x00\x00\x00\x00\x00\x00\x00", []string{"no", "ü"}},
		{">U1", "\x00\x00\x00n\x00\x00\x00\xfc", []string{"n", "ü"}},
		{"|S3", "yesno\x00", []string{"yes", "no"}},
	} {
		if _, got, err := Read(strings.NewReader(fileContent(test.descr, "False", "(2,)", test.elements)),
			100); err != nil ||
			!reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %v, %v, want %v", test.descr, got, err, test.want)
		}
	}
	want := []int64{1, 2, 3, 4, 5, 6}
	if _, got, err := Read(strings.NewReader(fileContent("|i1", "True", "(2, 3)", "\x01\x04\x02\x05\x03\x06")),
		100); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Fortran order: %v, %v", got, err)
	}
	version2 := fileContent("|u1", "False", "(1,)", "\x07")
	version2 = Magic + "\x02\x00" + version2[8:10] + "\x00\x00" + version2[10:]
	if _, got, err := Read(strings.NewReader(version2), 100); err != nil || !reflect.DeepEqual(got, []uint8{7}) {
		t.Errorf("version 2: %v, %v", got, err)
	}
}

// FuzzRead checks that arbitrary bytes are read or refused, never read beyond the limit, and that a result can be
// written.
func FuzzRead(f *testing.F) {
	var buf bytes.Buffer
	testkit.OK(f, Write(&buf, []float32{1, 2, 3, 4}, 2, 2))
	f.Add(buf.Bytes())
	f.Add([]byte(magicV1 + "\x00\x00"))
	f.Add([]byte(fileContent(">f2", "True", "(2, 1)", "abcd")))
	f.Add([]byte(fileContent("<U1", "False", "()", "abcd")))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, data, err := Read(bytes.NewReader(b), 1<<16)
		if err != nil {
			return
		}
		if _, _, err := Read(bytes.NewReader(b), h.MemorySize()-1); err == nil && h.MemorySize() > 0 {
			t.Fatal("more was read than the limit")
		}
		switch data.(type) {
		case []string, []uint64:
			return
		}
		var out bytes.Buffer
		testkit.OK(t, Write(&out, data, h.Shape...))
	})
}

// TestErrorsAndFloat16 checks that a shape that does not match the elements, or an element type that cannot be written,
// panics, and that errors of writers and files are returned. In float16 the largest exponent encodes infinities and
// NaN.
func TestErrorsAndFloat16(t *testing.T) {
	testkit.Panics(t, map[string]func(){
		"shape": func() { _ = Write(io.Discard, []float64{1, 2}, 3) },
		"type":  func() { _ = Write(io.Discard, []string{"a"}, 1) },
	})
	read, write := io.Pipe()
	testkit.OK(t, read.CloseWithError(io.ErrNoProgress))
	testkit.Equal(t, Write(write, []float64{1}, 1), io.ErrNoProgress)
	if _, _, err := MapFile(filepath.Join(t.TempDir(), "none.npy")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: error %v", err)
	}
	inf := float32(math.Inf(1))
	positive, negative, nan := Float16ToFloat32(0x7c00), Float16ToFloat32(0xfc00), Float16ToFloat32(0x7c01)
	if positive != inf || negative != -inf || nan == nan {
		t.Errorf("float16 infinities are %v and %v, NaN %v", positive, negative, nan)
	}
}
