package notebook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestKernelNamesWithDots checks that names of kernels such as "." and "..", which are folders above that of a kernel,
// are refused and nothing is removed. Other names with dots are allowed.
func TestKernelNamesWithDots(t *testing.T) {
	data := t.TempDir()
	other := filepath.Join(data, "kernels", "other")
	testkit.OK(t, os.MkdirAll(other, 0o755))
	for _, name := range []string{"", ".", "..", "..."} {
		spec := KernelSpec{Data: data, Name: name, Program: "krrlab"}
		testkit.Fails(t, testkit.ErrOf(InstallKernel(spec)), "want letters, digits, dots, - and _, not dots alone")
		testkit.Fails(t, testkit.ErrOf(UninstallKernel(spec)), "want letters, digits, dots, - and _, not dots alone")
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"go-1.x", ".hidden_2"} {
		spec := KernelSpec{Data: data, Name: name, Program: "krrlab"}
		testkit.Must(InstallKernel(spec))
		testkit.Must(UninstallKernel(spec))
	}
}

// TestInstallKeepsOtherKernels checks that InstallKernel and UninstallKernel refuse to replace kernels of other
// programs without Force, and that UninstallKernel removes only the files of the kernel itself.
func TestInstallKeepsOtherKernels(t *testing.T) {
	spec := KernelSpec{Data: t.TempDir(), Name: "python3", Program: "krrlab"}
	file, logo := filepath.Join(spec.dir(), "kernel.json"), filepath.Join(spec.dir(), "logo-64x64.png")
	testkit.OK(t, os.MkdirAll(spec.dir(), 0o755))
	for _, other := range []string{
		`{"argv": ["python3", "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "Python\n3"}`,
		`{"argv": ["other", "kernel", "start"]}`, `{"argv": ["gophernotes", "{connection_file}"]}`, "{", "",
	} {
		spec.Force = false
		for _, name := range []string{file, logo} {
			testkit.OK(t, os.WriteFile(name, []byte(other), 0o644))
		}
		for operation, execute := range map[string]func(KernelSpec) (string, error){"install": InstallKernel,
			"uninstall": UninstallKernel} {
			if _, err := execute(spec); err == nil || !strings.Contains(err.Error(), file+" is another kernel") ||
				!strings.Contains(err.Error(), "--force") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s over %s: %v", operation, other, err)
			}
			if content, err := os.ReadFile(file); err != nil || string(content) != other {
				t.Errorf("%s: %q, %v, was %s", operation, content, err, other)
			}
		}
		spec.Force = true
		if _, err := InstallKernel(spec); err != nil {
			t.Error(err)
		}
		spec.Force = false
		if _, err := InstallKernel(spec); err != nil { // a kernel of this program may be replaced
			t.Error(err)
		}
		if removed, err := UninstallKernel(spec); err != nil || removed != file {
			t.Errorf("removed %s, %v", removed, err)
		}
		if content, err := os.ReadFile(logo); err != nil || string(content) != other {
			t.Errorf("the file of another program is %q, %v, want %q", content, err, other)
		}
	}
	testkit.OK(t, os.Remove(logo))
	testkit.Must(InstallKernel(spec))
	testkit.OK(t, os.WriteFile(spec.script(), []byte("another"), 0o644))
	if removed, err := UninstallKernel(spec); err != nil || removed != file {
		t.Errorf("removed %s, %v", removed, err)
	}
	testkit.OK(t, os.Remove(spec.script()))
	testkit.Must(InstallKernel(spec))
	if removed, err := UninstallKernel(spec); err != nil || removed != spec.dir() {
		t.Errorf("removed %s, %v", removed, err)
	}
	testkit.Fails(t, testkit.ErrOf(UninstallKernel(spec)), "no kernel")
}
