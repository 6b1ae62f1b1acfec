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

// Spec says how Jupyter starts the kernel.
type Spec struct {
	Data      string // folder of Jupyter's data, with that of kernels in it
	Name      string // of the kernel; krrlab is the usual one
	Program   string // the krrlab to start
	Interrupt string // how it is interrupted: message (default) or signal
	Force     bool   // overwrite or remove a kernel of this name that is not ours
}

// names are those that Jupyter takes for a kernel, without . and .., which are folders above it.
var names = regexp.MustCompile(`^\.*[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

func (s Spec) dir() string { return filepath.Join(s.Data, "kernels", s.Name) }

// file is the kernel's file.
func (s Spec) file() string { return filepath.Join(s.dir(), "kernel.json") }

// check returns an error if no kernel can have this name, or one has that does not start as ours do.
func (s Spec) check(advice string) error {
	if !names.MatchString(s.Name) {
		return fmt.Errorf("kernel name %q: want letters, digits, dots, - and _, not dots alone", s.Name)
	}
	b, err := os.ReadFile(s.file())
	if s.Force || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var there struct {
		Argv        []string
		DisplayName string `json:"display_name"`
	}
	if err == nil && json.Unmarshal(b, &there) == nil && len(there.Argv) == 3 && there.Argv[1] == "kernel" &&
		there.Argv[2] == "{connection_file}" {
		return nil
	}
	return fmt.Errorf("%s is another kernel (%q), not krrlab's: %s, or use --force", s.file(), there.DisplayName,
		advice)
}

// Install writes the kernel's file and returns its folder. It does not overwrite the kernel of another
// program.
func Install(s Spec) (string, error) {
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
	if err := atomicfile.Put(s.file(), append(spec, '\n')); err != nil {
		return "", fmt.Errorf("cannot install the kernel: %w", err)
	}
	return s.dir(), nil
}

// Uninstall removes the kernel's file, and its folder unless there is something else in it, and returns
// what it has removed. It does not remove the kernel of another program.
func Uninstall(s Spec) (string, error) {
	if err := s.check("remove it by jupyter kernelspec uninstall " + s.Name); err != nil {
		return "", err
	}
	if err := os.Remove(s.file()); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("no kernel %s in %s", s.Name, s.dir())
	} else if err != nil {
		return "", fmt.Errorf("cannot remove the kernel: %w", err)
	}
	if os.Remove(s.dir()) != nil {
		return s.file(), nil
	}
	return s.dir(), nil
}
