package notebook

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/krrlab/lab/krrlab/base/atomicfile"
)

// KernelSpec describes the installation of a kernel for Jupyter.
type KernelSpec struct {
	Data      string // data folder of Jupyter, which contains the folder kernels
	Name      string // name of the kernel, usually krrlab
	Program   string // path of the krrlab program
	Interrupt string // how Jupyter interrupts the kernel: message (default) or signal
	Force     bool   // overwrite or remove a kernel of this name even if it is not krrlab's
}

// validName matches the kernel names that Jupyter accepts, except . and .., which would be parent folders.
var validName = regexp.MustCompile(`^\.*[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

// dir returns the folder of the kernel.
func (s KernelSpec) dir() string { return filepath.Join(s.Data, "kernels", s.Name) }

// file returns the path of the kernel's kernel.json.
func (s KernelSpec) file() string { return filepath.Join(s.dir(), "kernel.json") }

// script returns the path of the kernel's kernel.js, which Notebook 6 loads and other front ends ignore.
func (s KernelSpec) script() string { return filepath.Join(s.dir(), "kernel.js") }

// hideTabArrows is the content of kernel.js. Notebook 6 shows the tabs of a cell as arrows; the script hides them.
const hideTabArrows = `define({onload: function () {
	var style = document.createElement("style");
	style.textContent = ".cm-s-ipython span.cm-tab { background: none }";
	document.head.appendChild(style);
}});
`

// check returns an error if the name is invalid, or if it is the name of a kernel that another program has installed.
// advice completes the message in the second case.
func (s KernelSpec) check(advice string) error {
	if !validName.MatchString(s.Name) {
		return fmt.Errorf("kernel name %q: want letters, digits, dots, - and _, not dots alone", s.Name)
	}
	content, err := os.ReadFile(s.file())
	if s.Force || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var existing struct {
		Argv        []string
		DisplayName string `json:"display_name"`
	}
	if err == nil && json.Unmarshal(content, &existing) == nil && len(existing.Argv) == 3 &&
		existing.Argv[1] == "kernel" && existing.Argv[2] == "{connection_file}" {
		return nil
	}
	return fmt.Errorf("%s is another kernel (%q), not krrlab's: %s, or use --force", s.file(), existing.DisplayName,
		advice)
}

// InstallKernel writes the kernel.json and kernel.js of the kernel and returns its folder. It does not overwrite the
// kernel of another program unless s.Force is set.
func InstallKernel(s KernelSpec) (string, error) {
	if err := s.check("choose another --name"); err != nil {
		return "", err
	}
	spec, err := json.MarshalIndent(map[string]any{
		"argv":         []string{s.Program, "kernel", "{connection_file}"},
		"display_name": "Go (krrlab)", "language": "go", "interrupt_mode": cmp.Or(s.Interrupt, "message"),
		"metadata": map[string]any{"debugger": false},
	}, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(s.dir(), 0o755); err != nil {
		return "", fmt.Errorf("cannot install the kernel: %w", err)
	}
	err = errors.Join(atomicfile.WriteFile(s.script(), []byte(hideTabArrows)),
		atomicfile.WriteFile(s.file(), append(spec, '\n')))
	if err != nil {
		return "", fmt.Errorf("cannot install the kernel: %w", err)
	}
	return s.dir(), nil
}

// UninstallKernel removes what InstallKernel has written, and the folder of the kernel if that is then empty. It
// returns the path of the folder or file that was removed. It does not remove the kernel of another program unless
// s.Force is set.
func UninstallKernel(s KernelSpec) (string, error) {
	if err := s.check("remove it by jupyter kernelspec uninstall " + s.Name); err != nil {
		return "", err
	}
	if err := os.Remove(s.file()); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("no kernel %s in %s", s.Name, s.dir())
	} else if err != nil {
		return "", fmt.Errorf("cannot remove the kernel: %w", err)
	}
	if script, err := os.ReadFile(s.script()); err == nil && string(script) == hideTabArrows {
		_ = os.Remove(s.script()) // after an error, the folder remains, too
	}
	if os.Remove(s.dir()) != nil {
		return s.file(), nil
	}
	return s.dir(), nil
}
