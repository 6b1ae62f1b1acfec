//go:build !windows

package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// TestUserData: a kernel is installed where Jupyter looks for those of the user.
func TestUserData(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, c := range []struct{ system, jupyter, xdg, want string }{
		{"linux", "", "", home + "/.local/share/jupyter"},
		{"linux", "", "/xdg", "/xdg/jupyter"},
		{"linux", "/own", "/xdg", "/own"},
		{"freebsd", "", "/xdg", "/xdg/jupyter"},
		{"darwin", "", "/xdg", home + "/Library/Jupyter"},
		{"darwin", "/own", "", "/own"},
	} {
		t.Setenv("JUPYTER_DATA_DIR", c.jupyter)
		t.Setenv("XDG_DATA_HOME", c.xdg)
		if got, err := userData(c.system); got != c.want || err != nil {
			t.Errorf("%+v: %s, %v", c, got, err)
		}
	}
	for _, c := range []struct{ data, flags, dir string }{{home + "/j", "--user", "j"}, {"", "--prefix=" + home + "/p", "p/share/jupyter"}} {
		t.Setenv("JUPYTER_DATA_DIR", c.data)
		for _, there := range []bool{true, false} {
			what := map[bool]string{true: "install", false: "uninstall"}[there]
			code, out, errs := command(t, "notebook", what, c.flags)
			_, err := os.Stat(filepath.Join(home, c.dir, "kernels", "krrlab", "kernel.json"))
			if code != 0 || errs != "" || (err == nil) != there {
				t.Errorf("%s %s: %d, %s%s, %v", what, c.flags, code, out, errs, err)
			}
		}
	}
}
