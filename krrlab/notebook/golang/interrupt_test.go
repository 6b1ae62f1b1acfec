package golang

import (
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestInterruptedCellFails interrupts cells that would also end by themselves: sleeps in a loop, a call that returns
// when its context ends, and a command. Each cell must fail with Interrupted, the statements after the interrupted one
// must not run, and values that the interrupted call returned are kept.
func TestInterruptedCellFails(t *testing.T) {
	s := openSession(t, nil)
	run(s, `import ("context"; "fmt"; "time")
x := 0
func solve(ctx context.Context) (*int, error) { <-ctx.Done(); return nil, ctx.Err() }
func partial(ctx context.Context) (int, error) { <-ctx.Done(); return 7, ctx.Err() }`)
	for _, test := range []struct{ code, check, wantPrefix string }{
		{"for i := 0; i < 3; i++ { time.Sleep(time.Hour); x = 99 }; x", "x", "→0"},
		{"sol, err := solve(ctx)", "sol == nil", "→true"},
		{"sol, err := solve(ctx)\nfmt.Println(\"on\")\nlater := 1", "later", "✗CompileError: undefined: later"},
		{"found, err := partial(ctx)\nfound = 0", "found", "→7"},
		{"partial(ctx)", "1", "→1"},
		{"%time solve(ctx)\nafter := 1", "after", "✗CompileError: undefined: after"},
		{"!sleep 100\nbehind := 1", "behind", "✗CompileError: undefined: behind"},
		{"defer func() { recover() }()\ntime.Sleep(time.Hour)", "1", "→1"},
	} {
		go interruptAfter(s, 50*time.Millisecond)
		got := run(s, test.code)
		if !strings.Contains(got, "✗Interrupted: the cell was interrupted") || strings.Contains(got, "on\n") {
			t.Errorf("%s: %q, want it interrupted", test.code, got)
		}
		if got := run(s, test.check); !strings.HasPrefix(got, test.wantPrefix) {
			t.Errorf("%s after %s: %q, want %q", test.check, test.code, got, test.wantPrefix)
		}
	}
}

// TestSleepOfGoroutine checks that interrupting a cell does not wake a goroutine of another cell that sleeps.
func TestSleepOfGoroutine(t *testing.T) {
	s := openSession(t, nil)
	run(s,
		"import \"time\"\nwoken := make(chan time.Duration, 1)\nstart := time.Now()\ngo func() { "+
			"time.Sleep(300*time.Millisecond); woken <- time.Since(start) }()")
	go interruptAfter(s, 10*time.Millisecond)
	run(s, "time.Sleep(time.Hour)")
	testkit.Equal(t, run(s, "<-woken >= 300*time.Millisecond"), "→true")
}
