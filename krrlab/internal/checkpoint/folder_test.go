package checkpoint

import (
	"os"
	"path/filepath"
	"testing"
)

// TestOthersFiles: only its own half-written files are removed from the folder.
func TestOthersFiles(t *testing.T) {
	s := &Store{dir: t.TempDir()}
	keep := []string{"notes.part", "." + prefix + "notes", "results.csv"}
	gone := "." + prefix + "x.part"
	for _, name := range append(keep, gone) {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.remove(nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range keep {
		if _, err := os.Stat(filepath.Join(s.dir, name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(s.dir, gone)); err == nil {
		t.Error(gone, "is still there")
	}
}
