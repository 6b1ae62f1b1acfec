//go:build !windows

package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInstallKernel checks that notebook install writes the kernel into the folder that each flag names, and that
// notebook uninstall removes it again. Without a home folder, --user is an error.
func TestInstallKernel(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ user, flag, want string }{
		{dir + "/j", "--user", "j"}, {dir + "/j", "--prefix=" + dir + "/p", "p/share/jupyter"}, {"", "--user", ""},
	} {
		for _, command := range []string{"install", "uninstall"} {
			var out, stderr bytes.Buffer
			code := Main(t.Context(), []string{"notebook", command, c.flag},
				Env{Stdout: &out, Stderr: &stderr, JupyterData: c.user})
			if c.want == "" {
				if code == 0 || !strings.Contains(stderr.String(), "no home folder") {
					t.Errorf("%s without a home folder: exit %d, %s", command, code, &stderr)
				}
				continue
			}
			_, err := os.Stat(filepath.Join(dir, c.want, "kernels", "krrlab", "kernel.json"))
			if code != 0 || stderr.Len() > 0 || (err == nil) != (command == "install") {
				t.Errorf("%s %s: exit %d, %s%s; kernel.json: %v", command, c.flag, code, &out, &stderr, err)
			}
		}
	}
}

// TestAddPackages checks that notebook add refuses a package that is linked into the program, which needs no download,
// and a command line without packages.
func TestAddPackages(t *testing.T) {
	for want, args := range map[string][]string{"fmt needs no download: import it": {"fmt"}, "want packages": nil} {
		var out, stderr bytes.Buffer
		if code := Main(t.Context(), append([]string{"notebook", "add"}, args...),
			Env{Stdout: &out, Stderr: &stderr}); code == 0 || !strings.Contains(stderr.String(), want) {
			t.Errorf("notebook add %v: exit %d, want an error with %q: %s%s", args, code, want, &out, &stderr)
		}
	}
}
