package notebook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestNamesOfDots checks that names of kernels such as "." and "..", which are folders above that of a kernel, are
// refused and nothing is removed. Other names with dots are allowed.
func TestNamesOfDots(t *testing.T) {
	data := t.TempDir()
	other := filepath.Join(data, "kernels", "other")
	testkit.OK(t, os.MkdirAll(other, 0o755))
	for _, name := range []string{"", ".", "..", "..."} {
		spec := Spec{Data: data, Name: name, Program: "krrlab"}
		if dir, err := Install(spec); err == nil {
			t.Errorf("installed %s in %s", name, dir)
		}
		if dir, err := Uninstall(spec); err == nil {
			t.Errorf("removed %s: %s", name, dir)
		}
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"go-1.x", ".hidden_2"} {
		spec := Spec{Data: data, Name: name, Program: "krrlab"}
		if _, err := Install(spec); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := Uninstall(spec); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestOtherKernels checks that Install and Uninstall refuse to replace kernels of other programs without Force, and
// that Uninstall removes only the files of the kernel itself.
func TestOtherKernels(t *testing.T) {
	s := Spec{Data: t.TempDir(), Name: "python3", Program: "krrlab"}
	file, logo := filepath.Join(s.dir(), "kernel.json"), filepath.Join(s.dir(), "logo-64x64.png")
	testkit.OK(t, os.MkdirAll(s.dir(), 0o755))
	for _, other := range []string{
		`{"argv": ["python3", "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "Python\n3"}`,
		`{"argv": ["other", "kernel", "start"]}`, `{"argv": ["gophernotes", "{connection_file}"]}`, "{", "",
	} {
		s.Force = false
		for _, name := range []string{file, logo} {
			testkit.OK(t, os.WriteFile(name, []byte(other), 0o644))
		}
		for operation, f := range map[string]func(Spec) (string, error){"install": Install, "uninstall": Uninstall} {
			if _, err := f(s); err == nil || !strings.Contains(err.Error(), file+" is another kernel") ||
				!strings.Contains(err.Error(), "--force") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s over %s: %v", operation, other, err)
			}
			if b, err := os.ReadFile(file); err != nil || string(b) != other {
				t.Errorf("%s: %q, %v, was %s", operation, b, err, other)
			}
		}
		s.Force = true
		if _, err := Install(s); err != nil {
			t.Error(err)
		}
		s.Force = false
		if _, err := Install(s); err != nil { // a kernel of this program may be replaced
			t.Error(err)
		}
		if removed, err := Uninstall(s); err != nil || removed != file {
			t.Errorf("removed %s, %v", removed, err)
		}
		if b, err := os.ReadFile(logo); err != nil || string(b) != other {
			t.Errorf("%q, %v", b, err)
		}
	}
	testkit.OK(t, os.Remove(logo))
	testkit.Must(Install(s))
	testkit.OK(t, os.WriteFile(s.script(), []byte("another"), 0o644))
	if removed, err := Uninstall(s); err != nil || removed != file {
		t.Errorf("removed %s, %v", removed, err)
	}
	testkit.OK(t, os.Remove(s.script()))
	testkit.Must(Install(s))
	if removed, err := Uninstall(s); err != nil || removed != s.dir() {
		t.Errorf("removed %s, %v", removed, err)
	}
	testkit.Fails(t, testkit.ErrOf(Uninstall(s)), "no kernel")
}
