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

// TestWrite checks that a failed write leaves the old file and no temporary file.
func TestWrite(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	put := func(s string, err error) error {
		return Write(name, func(w io.Writer) error {
			io.WriteString(w, s)
			return err
		})
	}
	testkit.OK(t, put("one", nil))
	broken := errors.New("broken")
	if err := put("two", broken); !errors.Is(err, broken) || !strings.Contains(err.Error(), name) {
		t.Errorf("error %v", err)
	}
	if b, _ := os.ReadFile(name); string(b) != "one" {
		t.Errorf("content %q after a failed write", b)
	}
	if m, _ := filepath.Glob(filepath.Join(filepath.Dir(name), ".*")); len(m) > 0 {
		t.Errorf("left behind: %v", m)
	}
}

// TestCheckWritable checks which files can be written, and that Check leaves nothing in the folder.
func TestCheckWritable(t *testing.T) {
	dir := t.TempDir()
	if err := CheckWritable(filepath.Join(dir, "a")); err != nil {
		t.Error(err)
	}
	if err := CheckWritable(dir); err == nil {
		t.Error("a folder passed")
	}
	err := CheckWritable(filepath.Join(dir, "no", "a"))
	if err == nil || !strings.Contains(err.Error(), "no/a") || strings.Contains(err.Error(), ".part") {
		t.Errorf("error %v", err)
	}
	if es, _ := os.ReadDir(dir); len(es) > 0 {
		t.Errorf("left behind: %v", es)
	}
}
