//go:build !windows

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInstall installs a kernel in the folders that the flags name, and removes it.
func TestInstall(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ user, flag, want string }{
		{dir + "/j", "--user", "j"}, {dir + "/j", "--prefix=" + dir + "/p", "p/share/jupyter"}, {"", "--user", ""},
	} {
		for _, there := range []bool{true, false} {
			what := map[bool]string{true: "install", false: "uninstall"}[there]
			var out, errs bytes.Buffer
			code := Main(t.Context(), []string{"notebook", what, c.flag},
				Env{Stdout: &out, Stderr: &errs, JupyterData: c.user})
			if c.want == "" {
				if code == 0 || !strings.Contains(errs.String(), "no home folder") {
					t.Errorf("%s: %d, %s", what, code, &errs)
				}
				continue
			}
			_, err := os.Stat(filepath.Join(dir, c.want, "kernels", "krrlab", "kernel.json"))
			if code != 0 || errs.Len() > 0 || (err == nil) != there {
				t.Errorf("%s %s: %d, %s%s, %v", what, c.flag, code, &out, &errs, err)
			}
		}
	}
}

// TestAddPackages: what is linked in needs no download, and something has to be named.
func TestAddPackages(t *testing.T) {
	for want, args := range map[string][]string{"fmt needs no download: import it": {"fmt"}, "want packages": nil} {
		var out, errs bytes.Buffer
		if code := Main(t.Context(), append([]string{"notebook", "add"}, args...),
			Env{Stdout: &out, Stderr: &errs}); code == 0 || !strings.Contains(errs.String(), want) {
			t.Errorf("%v: %d, %s%s", args, code, &out, &errs)
		}
	}
}
