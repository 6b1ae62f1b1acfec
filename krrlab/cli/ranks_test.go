package cli

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/comm"
)

// TestProcessorOfRank: what one rank's processor cannot run, that rank says.
func TestProcessorOfRank(t *testing.T) {
	lacking := simd.AVX512
	for slices.Contains(simd.Paths(), lacking) {
		if lacking--; lacking == simd.Portable {
			t.Skip("this processor runs all paths")
		}
	}
	defer func(d time.Duration) { courtesy = d }(courtesy)
	courtesy = 0
	var out, errs bytes.Buffer
	code := Main(t.Context(), []string{"fit", "--data", "synthetic-classes", "--cpu", lacking.String()}, Env{
		Stdout: &out, Stderr: &errs, Version: "test", UseBLAS: func(context.Context, string) (string, error) { return "", nil },
		Launch: &comm.Launch{Launcher: "Open MPI", Rank: 1, Size: 2},
	})
	if want := "rank 1: --cpu " + lacking.String() + ": this processor runs"; code != exitError || !strings.Contains(errs.String(), want) {
		t.Errorf("exit code %d, %q, want %q", code, errs.String(), want)
	}
}
