package notebook

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// Spec says how Jupyter starts the kernel.
type Spec struct {
	Prefix    string // folder above share/jupyter/kernels
	Name      string // default krrlab
	Program   string // the krrlab to start
	Interrupt string // how it is interrupted: message (default) or signal
}

// names are those that Jupyter takes for a kernel, without . and .., which are folders above it.
var names = regexp.MustCompile(`^\.*[A-Za-z0-9_-][A-Za-z0-9._-]*$`)

// Dir is the folder of the kernel below its prefix.
func (s Spec) Dir() string {
	return filepath.Join(s.Prefix, "share", "jupyter", "kernels", s.Name)
}

func (s *Spec) complete() error {
	if s.Name == "" {
		s.Name = "krrlab"
	}
	if s.Interrupt == "" {
		s.Interrupt = "message"
	}
	if !names.MatchString(s.Name) {
		return fmt.Errorf("kernel name %q: want letters, digits, dots, - and _, not dots alone", s.Name)
	}
	if s.Interrupt != "message" && s.Interrupt != "signal" {
		return fmt.Errorf("interrupt mode %q: want message or signal", s.Interrupt)
	}
	return nil
}

// Install writes the kernel's files and returns their folder.
func Install(s Spec) (string, error) {
	if err := s.complete(); err != nil {
		return "", err
	}
	spec, err := json.MarshalIndent(map[string]any{
		"argv":         []string{s.Program, "kernel", "{connection_file}"},
		"display_name": "Go (krrlab)", "language": "go", "interrupt_mode": s.Interrupt,
		"metadata": map[string]any{"debugger": false},
	}, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(s.Dir(), 0o755); err != nil {
		return "", fmt.Errorf("cannot install the kernel: %w", err)
	}
	if err := os.WriteFile(filepath.Join(s.Dir(), "kernel.json"), append(spec, '\n'), 0o644); err != nil {
		return "", fmt.Errorf("cannot install the kernel: %w", err)
	}
	return s.Dir(), nil
}

// Uninstall removes the kernel's files and returns their folder.
func Uninstall(s Spec) (string, error) {
	if err := s.complete(); err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(s.Dir(), "kernel.json")); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("no kernel %s in %s", s.Name, s.Dir())
	}
	return s.Dir(), os.RemoveAll(s.Dir())
}
