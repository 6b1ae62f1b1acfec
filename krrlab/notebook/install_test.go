package notebook

import (
	"os"
	"path/filepath"
	"testing"
)

// TestNamesOfDots refuses names that are folders above that of a kernel, and removes nothing.
func TestNamesOfDots(t *testing.T) {
	prefix := t.TempDir()
	other := filepath.Join(prefix, "share", "jupyter", "kernels", "other")
	if err := os.MkdirAll(other, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".", "..", "..."} {
		s := Spec{Prefix: prefix, Name: name, Program: "krrlab"}
		if dir, err := Install(s); err == nil {
			t.Errorf("installed %s in %s", name, dir)
		}
		if dir, err := Uninstall(s); err == nil {
			t.Errorf("removed %s: %s", name, dir)
		}
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"", "go-1.x", ".hidden_2"} {
		s := Spec{Prefix: prefix, Name: name, Program: "krrlab"}
		if _, err := Install(s); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := Uninstall(s); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}
