package golang

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestAbandonedCell interrupts cells that wait forever. Each goroutine is abandoned, the output says so, and the
// session continues with its variables. If such a goroutine wakes up later, it must not change any variable.
func TestAbandonedCell(t *testing.T) {
	s := openSession(t, nil)
	run(s,
		"import (\"sync\"; \"fmt\")\nkept := 41\nch, full := make(chan int), make(chan int)\nvar wg "+
			"sync.WaitGroup\nvar mu sync.Mutex\nmu.Lock()\nfunc add(i int) int { return kept + i }")
	for _, code := range []string{"<-ch", "select {}", "wg.Add(1); wg.Wait()", "full <- 1", "mu.Lock()",
		"take := func() { x := <-ch; for i := 0; i < 1000; i++ { if i == 999 { kept = x } } }\ntake()"} {
		go interruptAfter(s, 20*time.Millisecond)
		got := run(s, code)
		if !strings.Contains(got, "stays in the background") || !strings.Contains(got, "✗Interrupted: ") {
			t.Errorf("%s: %q, want it interrupted and in the background", code, got)
		}
		if got := run(s, "kept++; kept--\nadd(1)"); got != "→42" {
			t.Fatalf("after %s: %q", code, got)
		}
		if got := run(s, "%who"); !strings.Contains(got, "kept  int") {
			t.Errorf("%%who after %s: %q", code, got)
		}
	}
	// Wake the abandoned goroutines: they must be interrupted before they change anything.
	testkit.Equal(t, run(s, "go func() { for i := 0; i < 2; i++ { ch <- 1 } }()\nfresh := 5\nfresh"), "→5")
	for range 20 {
		if got := run(s, "fresh + kept"); got != "→46" {
			t.Fatalf("afterwards: %q", got)
		}
		time.Sleep(5 * time.Millisecond)
	}
	go interruptAfter(s, 20*time.Millisecond)
	if got := run(s, "for { add(1) }"); !strings.HasPrefix(got, "✗Interrupted: the cell was interrupted (Cell 1") {
		t.Errorf("a loop afterwards: %q", got)
	}
}

// TestAbandonedCellContinues lets abandoned cells continue. Their remaining statements must not run, their context must
// stay cancelled, and variables whose declaration they did not reach must stay undeclared.
func TestAbandonedCellContinues(t *testing.T) {
	s := openSession(t, nil)
	t.Chdir(t.TempDir())
	started, resume, contextErr, returned := make(chan bool), make(chan bool), make(chan error), make(chan bool)
	s.runOnWorker(func() {
		declare(s, "slow", func(ctx context.Context) { started <- true; <-resume; contextErr <- ctx.Err() })
		declare(s, "sleeper", func() float64 { started <- true; <-resume; defer close(returned); return 1 })
	})
	interruptStarted := func() { <-started; interruptAfter(s, 0) }
	run(s, "import \"context\"\nmine := context.Background()")
	go interruptStarted()
	run(s, "slow(ctx)\n!touch slow")
	testkit.Equal(t, run(s, "ctx.Err() == nil && mine.Err() == nil && ctx == context.Background()"), "→true")
	resume <- true
	if err := <-contextErr; !errors.Is(err, context.Canceled) {
		t.Errorf("the context of the abandoned cell: %v", err)
	}
	go interruptStarted()
	run(s, "number := sleeper()\n!touch sleeper\nnumber := 2.0")
	testkit.Contains(t, run(s, "number"), "undefined: number")
	resume <- true
	<-returned
	time.Sleep(50 * time.Millisecond)
	for _, name := range []string{"slow", "sleeper"} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("!touch %s of the abandoned cell was run", name)
		}
	}
}

// TestGoexit checks that runtime.Goexit ends the cell with an error, and that the session keeps its variables.
func TestGoexit(t *testing.T) {
	s := openSession(t, nil)
	run(s, "import \"runtime\"\nkept := 1")
	for range 2 {
		testkit.Contains(t, run(s, "kept := 0.5\nlost := func() int { runtime.Goexit(); return 1 }()"), "✗Panic: runtime.Goexit")
		testkit.Equal(t, run(s, "kept + 1"), "→1.5")
	}
	testkit.Contains(t, run(s, "lost"), "undefined: lost")
}

// TestDeepRecursion checks that functions that call themselves without end fail the cell, and that a recursion of depth
// 10,000 succeeds.
func TestDeepRecursion(t *testing.T) {
	s := openSession(t, nil)
	run(s,
		"func deep(i int) int { return deep(i + 1) + 1 }\nfunc ping(i int) { pong(i) }\nvar pong func(int)\npong "+
			"= func(i int) { ping(i) }\nfunc sum(n int) int { if n == 0 { return 0 }; return n + sum(n-1) }")
	for _, code := range []string{"deep(0)", "var pang func(int)\npang = func(i int) { pang(i) }\npang(0)"} {
		if got := run(s, code); !strings.Contains(got, "✗Panic: the recursion is too deep") {
			t.Errorf("%s: %q, want an error about the recursion", code, got)
		}
	}
	testkit.Equal(t, run(s, "sum(10000)"), "→50005000")
}

// TestManyStacksAreNoRecursion checks that many goroutines with moderately deep recursions, whose stacks together are
// as large as that of an endless recursion, are not mistaken for one.
func TestManyStacksAreNoRecursion(t *testing.T) {
	s := openSession(t, nil)
	got := run(s, `import "sync"
var ready sync.WaitGroup
hold, sums := make(chan bool), make(chan int)
func sum(n int) int { if n == 0 { ready.Done(); <-hold; return 0 }; return n + sum(n-1) }
for range 256 { ready.Add(1); go func() { sums <- sum(4500) }() }
ready.Wait()
time.Sleep(50 * time.Millisecond)
close(hold)
total := 0
for range 256 { total += <-sums }
total`)
	testkit.Equal(t, got, "→2592576000") // 256 times the sum of 1 to 4,500
}

// interruptAfter waits for the given time, and then interrupts the running cell, or the next one that runs.
func interruptAfter(s *Session, delay time.Duration) {
	time.Sleep(delay)
	for running := s.runningCell.Load(); running == nil || !s.interrupt(running); running = s.runningCell.Load() {
		time.Sleep(time.Millisecond)
	}
}
