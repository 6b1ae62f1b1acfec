package golang

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/notebook/bindings"
)

// TestInterpretedPackages checks that packages of the module in the working directory are interpreted, and that imports
// of missing packages are errors. Functions of interpreted packages can be interrupted, and completion knows their
// names. The cells are in testdata.
func TestInterpretedPackages(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command: ", err)
	}
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOFLAGS", "")
	t.Chdir(t.TempDir())
	files := map[string]string{
		"go.mod": "module ex.org/here\n\ngo 1.21\n",
		"mine/mine.go": `package mine

import "time"

// Twice is two times x.
func Twice(x int) int { return 2 * x }

func Wait() { time.Sleep(time.Hour) }

func Spin() { for { } }

func Fail() { panic("here") }
`,
		"gen/gen.go": "package gen\n\nfunc Of[T any](x T) []T { return []T{x} }\n", // a generic function
		"c/c.go":     "package c\n\nfunc Fast() int\n",                             // a function in assembly
		"c/c.s":      "",
		"data/data.go": `package data

import "embed"

//go:embed a.txt
var Text string

var (
	// Bytes is another file.
	//go:embed "b c.bin"
	Bytes []byte
	Zero int
)

var _ embed.FS
`,
		"data/a.txt":   "the \"text\"",
		"data/b c.bin": "\xff\x00b",
		"tree/tree.go": "package tree\n\nimport \"embed\"\n\n//go:embed *.txt\nvar Files embed.FS\n",
		"tree/a.txt":   "",
	}
	for name, text := range files {
		testkit.OK(t, os.MkdirAll(filepath.Dir(name), 0o755))
		testkit.OK(t, os.WriteFile(name, []byte(text), 0o644))
	}
	s := openSession(t, nil)
	checkCells(t, s, strings.Contains, scriptCells(t, "Interpreted")...)
	for _, code := range []string{"mine.Spin()", "mine.Wait()"} {
		go interruptAfter(s, 10*time.Millisecond)
		if got := run(s, code); !strings.HasPrefix(got, "✗Interrupted") {
			t.Errorf("%s: %q, want it interrupted", code, got)
		}
	}
	const incomplete = "mine.Tw"
	found, _, _ := s.Complete(incomplete, len(incomplete))
	if len(found) != 1 || !strings.HasSuffix(found[0], "Twice") {
		t.Errorf("completion: %v", found)
	}
}

// TestWithoutGoCommand checks that without the go command, imports and %install print one line that says so, and that
// documentation still works.
func TestWithoutGoCommand(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s := openSession(t, nil)
	for code, want := range map[string]string{
		"import \"github.com/google/uuid\"": "package github.com/google/uuid is not in this kernel; to have it, " +
			"install Go (go.dev/dl)",
		"%install github.com/google/uuid": "Go is not installed (go.dev/dl)",
	} {
		if got := run(s, code); !strings.Contains(got, want) {
			t.Errorf("%s\n got %q\nwant %q", code, got, want)
		}
	}
	code := "krrlab.New"
	want := noCommentsHint("github.com/krrlab/lab/krrlab")
	if e, ok := bindings.Lookup("github.com/krrlab/lab/krrlab", "New"); ok { // make build embeds the documentation
		want = e.Doc
	}
	if got, _ := s.Inspect(code, len(code), true); !strings.Contains(got, "New(") || !strings.Contains(got, want) {
		t.Errorf("%s: %q, want the declaration and %q", code, got, want)
	}
}
