//go:build linux

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
)

// TestLimitedAddresses checks that commands succeed with limited virtual memory (ulimit -v), and say in one line if the
// addresses do not suffice for OpenBLAS. The lowest limit is above 1.7 GB, below which Go's own runtime may fail to
// start.
func TestLimitedAddresses(t *testing.T) {
	// The command version must not load the BLAS: with too few addresses, loading it would never return.
	for _, limit := range []struct {
		gigabytes float64
		args      []string
	}{
		{1.9, []string{"version"}},
		{2.0, []string{"version"}},
		{1.9, fitSmall},
		{2.0, fitSmall},
		{2.2, fitSmall},
		{2.5, fitSmall},
		{3.5, fitSmall},
	} {
		t.Run(fmt.Sprintf("%s-%.1f", limit.args[0], limit.gigabytes), func(t *testing.T) {
			cmd := krrlab(testContext(t), t, -1, 0, limit.args...)
			cmd.Args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -s 8192 && ulimit -v %.0f && exec "$0" "$@"`,
				limit.gigabytes*1e9/1024), cmd.Path}, cmd.Args[1:]...)
			cmd.Path = "/bin/sh"
			// Every thread needs addresses, so their number is fixed.
			cmd.Env = append(cmd.Env, "GOMAXPROCS=2", "KRRLAB_BLAS=")
			output, err := cmd.CombinedOutput()
			if strings.Contains(string(output), "ThreadSanitizer") {
				t.Skip("the race detector takes more addresses than that")
			}
			if err != nil || strings.Contains(string(output), "goroutine") ||
				strings.Count(string(output), "krrlab: ") > 1 {
				t.Fatalf("%v:\n%s", err, output)
			}
			if _, err := accel.OpenBLAS(); err == nil && limit.args[0] == "fit" &&
				!strings.Contains(string(output), "instead of OpenBLAS") {
				t.Errorf("no note that OpenBLAS is not used:\n%s", output)
			}
		})
	}
}

// fitSmall is the command line of a small fit that uses the BLAS.
var fitSmall = []string{"fit", "--data", "synthetic-classes", "--n", "600", "--precond", "auto features=100",
	"--lambda", "0.1", "--solver", "block-pcg"}
