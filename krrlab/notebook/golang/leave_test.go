package golang

import (
	"strings"
	"testing"
	"time"
)

// TestLeave interrupts cells that wait for ever: each is left behind, and the session goes
// on with what there was.
func TestLeave(t *testing.T) {
	s := open(t, nil)
	run(s, "import (\"sync\"; \"fmt\")\nkept := 41\nch, full := make(chan int), make(chan int)\nvar wg sync.WaitGroup\nvar mu sync.Mutex\nmu.Lock()\nfunc add(i int) int { return kept + i }")
	for _, code := range []string{"<-ch", "select {}", "wg.Add(1); wg.Wait()", "full <- 1", "mu.Lock()", "take := func() { x := <-ch; for i := 0; i < 1000; i++ { if i == 999 { kept = x } } }\ntake()"} {
		start := time.Now()
		go interruptAfter(s, 20*time.Millisecond)
		got := run(s, code)
		if !strings.Contains(got, "left behind") || !strings.Contains(got, "✗Interrupted: ") {
			t.Errorf("%s: %q", code, got)
		}
		if d := time.Since(start); d > 10*time.Second {
			t.Errorf("%s: stopped after %v", code, d)
		}
		if got := run(s, "kept++; kept--\nadd(1)"); got != "→42" {
			t.Fatalf("after %s: %q", code, got)
		}
		if got := run(s, "%who"); !strings.Contains(got, "kept  int") {
			t.Errorf("%%who after %s: %q", code, got)
		}
	}
	// What was left behind is woken, and does no harm: it is interrupted before it gets far.
	if got := run(s, "go func() { for i := 0; i < 2; i++ { ch <- 1 } }()\nfresh := 5\nfresh"); got != "→5" {
		t.Errorf("fresh: %q", got)
	}
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

// TestRecursion runs functions that call themselves for ever.
func TestRecursion(t *testing.T) {
	s := open(t, nil)
	run(s, "func deep(i int) int { return deep(i + 1) + 1 }\nfunc ping(i int) { pong(i) }\nvar pong func(int)\npong = func(i int) { ping(i) }\nfunc sum(n int) int { if n == 0 { return 0 }; return n + sum(n-1) }")
	for _, code := range []string{"deep(0)", "var pang func(int)\npang = func(i int) { pang(i) }\npang(0)"} {
		if got := run(s, code); !strings.Contains(got, "✗Panic: the recursion is too deep") {
			t.Errorf("%s: %q", code, got)
		}
	}
	if got := run(s, "sum(10000)"); got != "→50005000" {
		t.Errorf("sum(10000): %q", got)
	}
}

// interruptAfter interrupts the cell that runs, or will, after some time.
func interruptAfter(s *Session, d time.Duration) {
	time.Sleep(d)
	for !s.Interrupt() {
		time.Sleep(time.Millisecond)
	}
}
