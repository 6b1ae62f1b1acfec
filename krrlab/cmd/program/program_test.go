package program

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
)

// TestJupyterData checks the folder in which Jupyter looks for the user's kernels, by operating system and environment
// variables.
func TestJupyterData(t *testing.T) {
	for _, c := range []struct{ system, home, jupyterDataDir, xdgDataHome, want string }{
		{"linux", "/h", "", "", "/h/.local/share/jupyter"},
		{"linux", "/h", "", "/xdg", "/xdg/jupyter"},
		{"freebsd", "", "/own", "/xdg", "/own"},
		{"darwin", "/h", "", "/xdg", "/h/Library/Jupyter"},
		{"linux", "", "", "", ""},
	} {
		env := map[string]string{"HOME": c.home, "JUPYTER_DATA_DIR": c.jupyterDataDir, "XDG_DATA_HOME": c.xdgDataHome}
		if got := jupyterData(c.system,
			func(name string) string { return env[name] }); filepath.ToSlash(got) != c.want {
			t.Errorf("%+v: the folder is %q", c, got)
		}
	}
}

// TestLoadInterruptibly checks that loading a library ends with the context, even if the loader never returns.
func TestLoadInterruptibly(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := loadInterruptibly(ctx, func() (*accel.Library, error) {
		cancel()
		select {}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}
