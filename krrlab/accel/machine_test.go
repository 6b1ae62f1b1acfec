package accel_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
)

// TestMachine logs the arithmetic on which the tests of this process run, in one line of words. A row of "make
// test-machines" that needs a certain arithmetic lists its words in KRRLAB_MACHINE. The test fails if one is missing,
// because the other tests of the row would then check something else.
func TestMachine(t *testing.T) {
	words := []string{runtime.GOARCH, "loops:" + simd.CurrentPath().String(),
		fmt.Sprintf("threads:%d", accel.Threads()), "blas:" + accel.CurrentBLAS().Name}
	if lib, err := accel.OpenBLAS(); err == nil {
		for _, core := range []string{"Prescott", "Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX", "Cooperlake",
			"Sapphirerapids"} {
			if strings.Contains(strings.ToLower(lib.Info().Config), strings.ToLower(core)) {
				words = append(words, "core:"+core)
			}
		}
	} else {
		words = append(words, "core:none")
	}
	t.Log("machine:", strings.Join(words, " "))
	for _, want := range strings.Fields(os.Getenv("KRRLAB_MACHINE")) {
		if !slices.Contains(words, want) {
			t.Errorf("%s wanted, the tests run on %s", want, strings.Join(words, " "))
		}
	}
}
