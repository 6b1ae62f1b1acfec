package npy

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestMapFile checks that a mapped file has the same content as a file that is read. Arrays in Fortran order are read,
// and damaged files are errors.
func TestMapFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.npy")
	for _, data := range []any{[]uint8{0, 255, 7, 9}, []float32{1, -2, 3.5, 4}, []float64{1, 2, 3, -0.5},
		[]int32{-1, 1 << 30, 2, 3}, []int64{-1, 1 << 62, 5, 6}} {
		var b bytes.Buffer
		testkit.OK(t, Write(&b, data, 2, 2))
		write := func(content []byte) (Header, any, error) {
			testkit.OK(t, os.WriteFile(name+".new", content, 0o666)) // a mapped file must not be overwritten
			testkit.OK(t, os.Rename(name+".new", name))
			return MapFile(name)
		}
		if h, got, err := write(b.Bytes()); err != nil || !reflect.DeepEqual(got, data) || h.Shape[0] != 2 {
			t.Errorf("%v: %v %v %v", data, got, h.Shape, err)
		}
		for _, damaged := range [][]byte{b.Bytes()[:b.Len()-1], append(b.Bytes(), 0), nil, []byte("x")} {
			if _, _, err := write(damaged); err == nil {
				t.Errorf("%T: %d bytes are read as an array", data, len(damaged))
			}
		}
		fortranOrder := bytes.Replace(b.Bytes(), []byte("False"), []byte("True "), 1)
		_, got, err := write(fortranOrder)
		elements := reflect.ValueOf(data)
		if transposed := reflect.ValueOf(got); err != nil || !transposed.Index(1).Equal(elements.Index(2)) ||
			!transposed.Index(2).Equal(elements.Index(1)) {
			t.Errorf("%v by columns: %v %v", data, got, err)
		}
	}
}
