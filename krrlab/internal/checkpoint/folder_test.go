package checkpoint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestOthersFiles checks that a store removes only its own unfinished files from the folder.
func TestOthersFiles(t *testing.T) {
	s := &Store{dir: t.TempDir()}
	keep := []string{"notes.part", "." + prefix + "notes", "results.csv"}
	unfinished := "." + prefix + "x.part"
	for _, name := range append(keep, unfinished) {
		testkit.OK(t, os.WriteFile(filepath.Join(s.dir, name), []byte("x"), 0o600))
	}
	testkit.OK(t, s.remove(nil))
	for _, name := range keep {
		if _, err := os.Stat(filepath.Join(s.dir, name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(s.dir, unfinished)); err == nil {
		t.Error(unfinished, "is still there")
	}
}
