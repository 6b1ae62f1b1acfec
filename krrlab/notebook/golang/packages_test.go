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

// TestInterpreted imports packages of the module of the working directory, which are interpreted, and packages that are
// not there. Functions of interpreted packages can be interrupted, and completion knows their names.
func TestInterpreted(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command: ", err)
	}
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOFLAGS", "")
	t.Chdir(t.TempDir())
	files := map[string]string{
		"go.mod": "module ex.org/here\n\ngo 1.21\n",
		"mine/mine.go": "package mine\n\nimport \"time\"\n\n// Twice is two times x.\nfunc Twice(x int) int { " +
			"return 2 * x }\n\nfunc Wait() { time.Sleep(time.Hour) }\n\nfunc Spin() { for { } }\n\nfunc Fail() { " +
			"panic(\"here\") }\n",
		"gen/gen.go": "package gen\n\nfunc Of[T any](x T) []T { return []T{x} }\n",
		"c/c.go":     "package c\n\nfunc Fast() int\n",
		"c/c.s":      "",
	}
	for name, text := range files {
		testkit.OK(t, os.MkdirAll(filepath.Dir(name), 0o755))
		testkit.OK(t, os.WriteFile(name, []byte(text), 0o644))
	}
	s := open(t, nil)
	cells(t, s, strings.Contains, script(t, "Interpreted")...)
	for _, code := range []string{"mine.Spin()", "mine.Wait()"} {
		go interruptAfter(s, 10*time.Millisecond)
		if got := run(s, code); !strings.HasPrefix(got, "✗Interrupted") {
			t.Errorf("%s: %q", code, got)
		}
	}
	found, _, _ := s.Complete("mine.Tw", 7)
	if len(found) != 1 || !strings.HasSuffix(found[0], "Twice") {
		t.Errorf("completion: %v", found)
	}
}

// TestNoGo checks that without the go command, imports and %install print one line that says so, and that documentation
// still works.
func TestNoGo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	s := open(t, nil)
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
	want := noCommentsHint
	if e, ok := bindings.Lookup("github.com/krrlab/lab/krrlab", "New"); ok { // make build embeds the documentation
		want = e.Doc
	}
	if got, _ := s.Inspect(code, len(code), true); !strings.Contains(got, "New(") || !strings.Contains(got, want) {
		t.Errorf("%s: %q, want the declaration and %q", code, got, want)
	}
}
