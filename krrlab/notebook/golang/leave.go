package golang

import (
	"regexp"
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/krrlab/lab/krrlab/notebook/engine"
)

// What a cell has come to.
const (
	isRunning = iota
	isLeft    // its goroutine may get on
	hasEnded  // it is at its end
)

// end marks a cell as ended and reports whether it may touch the session: not if it was left
// behind before. No interrupt meets the cell afterwards.
func (c *cell) end() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.CompareAndSwap(isRunning, hasEnded)
	return c.state.Load() == hasEnded
}

// interrupted counts an interrupt. It reports whether it is the first, and whether it meets the
// cell before its end.
func (c *cell) interrupted() (first, meets bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Load() != isRunning {
		return false, false
	}
	return c.hits.Add(1) == 1, true
}

// signal stops the interpreter of a cell whose goroutine has not come to its end.
func (c *cell) signal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Load() != hasEnded {
		engine.Stop(c.goid)
	}
}

// resume lets the goroutine of a cell that is over run others.
func (c *cell) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Store(hasEnded)
	engine.Resume(c.goid)
}

// leave gives up a cell that an interrupt cannot stop, since it waits for a channel or a
// lock, or is in compiled code that does not watch its context. Its goroutine stays where it is and ends
// when it gets on; another one runs the cells to come.
func (s *Session) leave(c *cell) {
	if !c.state.CompareAndSwap(isRunning, isLeft) {
		return
	}
	s.out.printf(stderr, "the cell waits, or is in compiled code that does not watch its context: it is left behind, "+
		"and ends when that returns\n")
	s.endProgress()
	s.out.end()
	s.running.CompareAndSwap(c, nil)
	c.signal() // what it will find when it gets on
	s.replace()
	close(c.gone)
}

// replace lets a new goroutine run the cells to come, once the calling one is done.
func (s *Session) replace() { go s.loop(s.worker.Add(1)) }

// maxStack is by how much the stacks of all goroutines grow before the cell is looked at. Go ends the process
// where one takes 1 GB.
const maxStack = 192 << 20

// unwinding is how long the calls on such a stack may take to end: seconds on a busy machine.
const unwinding = time.Minute

// elided is what a trace prints for a goroutine with 50,000 calls or more to end: some 10,000 of a cell's functions.
var elided = regexp.MustCompile(`(?m)^\.\.\.([5-9]\d{4}|\d{6,}) frames elided\.\.\.$`)

// recursion reports whether a goroutine is that deep. Stacks also grow where there are many goroutines, or where
// new ones get more at once, as the runtime does after it has met a huge stack. All goroutines stand still meanwhile.
func recursion() bool {
	buf := make([]byte, 1<<20)
	n := runtime.Stack(buf, true)
	for ; n == len(buf) && n < 256<<20; n = runtime.Stack(buf, true) {
		buf = make([]byte, 8*n)
	}
	return elided.Match(buf[:n])
}

// guard interrupts a cell when it is asked to, and one whose recursion has no end, until it is done.
func (s *Session) guard(c *cell) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(sample)
	interrupts := c.out.Interrupts()
	limit := sample[0].Value.Uint64() + maxStack
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-c.gone:
			return
		case _, more := <-interrupts:
			if !more {
				interrupts = nil
			}
			s.interrupt(c)
		case <-tick.C:
		}
		if metrics.Read(sample); sample[0].Value.Uint64() <= limit {
			continue
		}
		limit = sample[0].Value.Uint64() + maxStack
		if recursion() {
			c.deep.Store(true)
			c.ctx.cancel()
			if !s.stop(c, unwinding) {
				s.leave(c)
			}
			return
		}
	}
}
