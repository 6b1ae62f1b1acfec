//go:build unix

package npy_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/npy"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestMapFileTruncated checks that an error results if the file of a mapped array is truncated while it is in use, also
// if several workers read it.
func TestMapFileTruncated(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.npy")
	f := testkit.Must(os.Create(name))
	defer f.Close()
	testkit.OK(t, npy.Write(f, make([]float64, 1<<20), 1<<20))
	_, data, err := npy.MapFile(name)
	testkit.OK(t, err)
	testkit.OK(t, os.Truncate(name, 4096))
	elements := data.([]float64)
	for _, parts := range []int{1, 16} {
		err = accel.CatchFaults(func() error {
			sums := make([]float64, parts)
			return accel.ForEach(t.Context(), parts, func(_, i int) {
				for _, x := range elements[i*len(elements)/parts : (i+1)*len(elements)/parts] {
					sums[i] += x
				}
			})
		})
		if !errors.Is(err, accel.ErrMappedFile) {
			t.Errorf("in %d parts: %v", parts, err)
		}
	}
}
