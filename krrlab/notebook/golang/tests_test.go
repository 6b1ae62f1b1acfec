package golang

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestTestPrograms checks the test programs and flags that %test and %bench give to go test. A fake go command prints
// them.
func TestTestPrograms(t *testing.T) {
	dir := t.TempDir()
	const fakeGo = "#!/bin/sh\n[ $1 = mod ] || { echo $*; cat cells_test.go; }\n"
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "go"), []byte(fakeGo), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	s := openSession(t, nil)
	for i, test := range scriptCells(t, "Tests") {
		if got := runNumbered(s, i, test.code); !strings.Contains(got, test.want) || test.want == "" && got != "" {
			t.Errorf("Cell %d: %s\n got %s\nwant %s", i, test.code, got, test.want)
		}
	}
}

// TestGoTest runs tests and benchmarks of cells with the real go test.
func TestGoTest(t *testing.T) {
	needGo(t)
	t.Chdir(t.TempDir())
	s := openSession(t, nil)
	checkCells(t, s, strings.Contains, scriptCells(t, "GoTest")...)
}
