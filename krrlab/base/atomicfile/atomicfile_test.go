package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestFailedWrite checks that a failed write returns the error of the writer with the name of the file, and leaves the
// old file and no temporary file.
func TestFailedWrite(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	write := func(text string, err error) error {
		return Write(name, func(w io.Writer) error {
			io.WriteString(w, text)
			return err
		})
	}
	testkit.OK(t, write("one", nil))
	errWriter := errors.New("broken")
	if err := write("two", errWriter); !errors.Is(err, errWriter) || !strings.Contains(err.Error(), name) {
		t.Errorf("error %v", err)
	}
	if content, _ := os.ReadFile(name); string(content) != "one" {
		t.Errorf("content %q after a failed write", content)
	}
	if temporary, _ := filepath.Glob(filepath.Join(filepath.Dir(name), ".*")); len(temporary) > 0 {
		t.Errorf("files that remain: %v", temporary)
	}
}

// TestCheckWritable checks which files can be written, and that CheckWritable leaves no file in the folder.
func TestCheckWritable(t *testing.T) {
	dir := t.TempDir()
	if err := CheckWritable(filepath.Join(dir, "a")); err != nil {
		t.Error(err)
	}
	if err := CheckWritable(dir); err == nil {
		t.Error("a folder counts as a writable file")
	}
	err := CheckWritable(filepath.Join(dir, "no", "a"))
	if err == nil || !strings.Contains(err.Error(), "no/a") || strings.Contains(err.Error(), ".part") {
		t.Errorf("error of a missing folder: %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("files that remain: %v", entries)
	}
}
