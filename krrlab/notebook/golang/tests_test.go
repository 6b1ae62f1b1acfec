package golang

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain runs cells as a program does that is no test, where package testing is not prepared, if TestUnprepared asks.
func TestMain(m *testing.M) {
	name := os.Getenv("KRRLAB_TEST_UNPREPARED")
	if name == "" {
		os.Exit(m.Run())
	}
	preparedTests.Store(false)
	s, err := New(nil)
	if err != nil {
		panic(err)
	}
	out := run(s, "func TestGood(t *testing.T) {}\nfunc TestBad(t *testing.T) { t.Fatal(\"is bad\") }\n%test Good") +
		run(s, "%test")
	if err := os.WriteFile(name, []byte(out), 0o600); err != nil { // the session has the standard output
		panic(err)
	}
}

// TestUnprepared: outside of go test, tests of cells run once each, and fail.
func TestUnprepared(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v")
	name := filepath.Join(t.TempDir(), "out")
	cmd.Env = append(os.Environ(), "KRRLAB_TEST_UNPREPARED="+name)
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	b, err := os.ReadFile(name)
	if out := string(b); err != nil || !strings.Contains(out, "ok: 1 passed") || strings.Count(out, "is bad") != 1 ||
		!strings.Contains(out, "✗Error: a test failed") || strings.Contains(out, "no tests to run") {
		t.Errorf("%v: %s", err, out)
	}
}
