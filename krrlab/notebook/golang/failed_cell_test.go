package golang

import (
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestVariablesAfterFailedCell checks that a failed cell declares no variables without a value, and that variables from
// before keep their values.
func TestVariablesAfterFailedCell(t *testing.T) {
	s := openSession(t, nil)
	run(s, "import \"errors\"\nfunc boom() string { panic(\"no\") }\nword := \"old\"")
	run(s, "fresh := boom()")
	testkit.Contains(t, run(s, "fresh"), "undefined: fresh")
	run(s, "for i := 0; i < 3; i++ { nosuch(i) }")
	testkit.Equal(t, run(s, "z := 5\nz"), "→5")
	run(s, "word := nosuch()")
	testkit.Equal(t, run(s, "word"), "→old")
	run(s, "func boomf() float64 { panic(1) }\nfunc booms() []int { panic(1) }\nx, on := 3, true")
	for _, test := range []struct{ failingCode, code, wantPrefix string }{
		{"number := boomf()", "number", "✗CompileError: undefined: number"},
		{"yes := boomf() > 0", "yes", "✗CompileError: undefined: yes"},
		{"x := boomf()", "x", "→3"},
		{"on := boomf()", "on", "→true"},
		{"word := booms()", "word", "→old"},
		{"a := 1\nb := boomf()\nc := 3", "a", "→1"},
		{"d := 1\ne := boomf()\nf := 3", "f", "✗CompileError: undefined: f"},
		{"func one() int { return 1 }\nvar two = boomf()", "one()", "→1"},
	} {
		if got := run(s, test.failingCode); !strings.Contains(got, "✗Panic: 1") {
			t.Errorf("%s: %q", test.failingCode, got)
		}
		if got := run(s, test.code); !strings.HasPrefix(got, test.wantPrefix) {
			t.Errorf("%s after %s: %q, want %s", test.code, test.failingCode, got, test.wantPrefix)
		}
	}
	go interruptAfter(s, 10*time.Millisecond)
	run(s, "endless := func() float64 { for { } }()")
	testkit.Contains(t, run(s, "endless"), "undefined: endless")
}
