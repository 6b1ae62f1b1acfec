package checkpoint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestNoCheckpointNames checks that files whose names lack the prefix or the suffix do not count as checkpoints.
func TestNoCheckpointNames(t *testing.T) {
	s := &Store{dir: t.TempDir()}
	for _, name := range []string{"00000007.krrc", "x-00000007.krrc", prefix + "00000007", prefix + "7x" + suffix} {
		testkit.OK(t, os.WriteFile(filepath.Join(s.dir, name), []byte("x"), 0o600))
	}
	if numbers, err := s.files(); err != nil || len(numbers) > 0 {
		t.Errorf("checkpoints %v, %v; want none", numbers, err)
	}
}

// TestForeignFilesRemain checks that a store removes only its own unfinished files from the folder.
func TestForeignFilesRemain(t *testing.T) {
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
