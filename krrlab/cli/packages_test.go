//go:build !windows

package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestExtended: a kernel with added packages runs instead of the program that it was built of, and of no
// other.
func TestExtended(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache) // on macOS
	user, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(user, "krrlab", "notebook")
	if err := os.MkdirAll(filepath.Join(dir, "kernel-1"), 0o755); err != nil {
		t.Fatal(err)
	}
	built := write(t, filepath.Join(dir, "kernel-1"), "krrlab", "")
	nb := write(t, cache, "a.ipynb", `{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}`)
	self := testkit.Must(os.Executable())
	main := func(args ...string) (started, out, errs string) {
		var stdout, stderr bytes.Buffer
		Main(t.Context(), args, Env{
			Stdout: &stdout, Stderr: &stderr, Version: "test",
			UseBLAS: func(context.Context, string) (string, error) { accel.Use(nil); return "", nil },
			Exec:    func(program string) error { started = program; return nil },
		})
		return started, stdout.String(), stderr.String()
	}
	current := func(version string) {
		write(t, dir, "current.json",
			fmt.Sprintf(`{"program": %q, "version": %q, "folder": "kernel-1", `+
				`"packages": [{"path": "ex.org/a", "version": "v1.2.3"}, {"path": "ex.org/b", "dir": "/b", "interpreted": true}], "tables": []}`, self, version))
	}
	if started, out, errs := main("notebook", "list"); started+out+errs != "" {
		t.Error(started, out, errs)
	}
	current("test")
	if started, _, errs := main("notebook", "run", nb, "--check"); started != built || errs != "" {
		t.Errorf("%q is run, not %q: %s", started, built, errs)
	}
	list := "ex.org/a v1.2.3\nex.org/b /b (interpreted: its API is generic)\n"
	if started, out, errs := main("notebook", "list"); started != "" || out != list || errs != "" {
		t.Error(started, out, errs)
	}
	current("older")
	if started, _, errs := main("notebook", "run", nb, "--check"); started != "" ||
		!strings.Contains(errs, "krrlab notebook add adds them to this one") {
		t.Error(started, errs)
	}
	if _, out, _ := main("notebook", "list"); !strings.Contains(out, list+"added to another build of krrlab") {
		t.Error(out)
	}
	if _, _, errs := main("notebook", "add",
		"fmt"); errs != "krrlab: nothing was added: fmt is in the kernel already: import it\n" {
		t.Error(errs)
	}
}
