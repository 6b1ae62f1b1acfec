//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
)

// TestAddresses runs commands where addresses are limited (ulimit -v): they end well, or say in
// one line that there are too few. Below some 1.7 GB Go's own runtime may not begin.
func TestAddresses(t *testing.T) {
	// What computes nothing loads no library, whose wait for addresses has no end.
	for _, c := range []struct {
		gb   float64
		args []string
	}{
		{1.9, []string{"version"}},
		{2.0, []string{"version"}},
		{1.9, fitSmall},
		{2.0, fitSmall},
		{2.2, fitSmall},
		{2.5, fitSmall},
		{3.5, fitSmall},
	} {
		t.Run(fmt.Sprintf("%s-%.1f", c.args[0], c.gb), func(t *testing.T) {
			cmd := krrlab(limited(t), t, -1, 0, c.args...)
			cmd.Args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -s 8192 && ulimit -v %.0f && exec "$0" "$@"`,
				c.gb*1e9/1024), cmd.Path}, cmd.Args[1:]...)
			cmd.Path = "/bin/sh"
			cmd.Env = append(cmd.Env, "GOMAXPROCS=2", "KRRLAB_BLAS=") // threads take addresses
			text, err := cmd.CombinedOutput()
			if strings.Contains(string(text), "ThreadSanitizer") {
				t.Skip("the race detector takes more addresses than that")
			}
			if err != nil || strings.Contains(string(text), "goroutine") ||
				strings.Count(string(text), "krrlab: ") > 1 {
				t.Fatalf("%v:\n%s", err, text)
			}
			if _, err := accel.OpenBLAS(); err == nil && c.args[0] == "fit" &&
				!strings.Contains(string(text), "instead of OpenBLAS") {
				t.Errorf("no word of what is slower:\n%s", text)
			}
		})
	}
}

// fitSmall is a fit that uses the BLAS.
var fitSmall = []string{"fit", "--data", "synthetic-classes", "--n", "600", "--features", "100", "--lambda", "0.1",
	"--solver", "block-pcg"}

// TestInterruptedLoad: a library that does not load is not waited for when a signal comes.
func TestInterruptedLoad(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := loadInterruptibly(ctx, func() (*accel.Library, error) {
		cancel()
		select {}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
