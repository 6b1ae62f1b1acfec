package golang

import (
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/krrlab/lab/krrlab/notebook/engine"
)

// States of a cell.
const (
	stateRunning   = iota
	stateAbandoned // given up after an interrupt; its goroutine may still be running
	stateEnded     // no longer affected by interrupts
)

// markEnded marks a cell as ended, unless the cell was abandoned before. It returns whether the cell may still use the
// session. Later interrupts have no effect.
func (c *cell) markEnded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.CompareAndSwap(stateRunning, stateEnded)
	return c.state.Load() == stateEnded
}

// countInterrupt counts an interrupt. isFirst reports whether it is the first one; accepted is false if the cell is no
// longer running.
func (c *cell) countInterrupt() (isFirst, accepted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Load() != stateRunning {
		return false, false
	}
	return c.interrupts.Add(1) == 1, true
}

// signalStop requests that the interpreter stops, unless the cell has ended.
func (c *cell) signalStop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Load() != stateEnded {
		engine.StopGoroutine(c.goid)
	}
}

// resume marks the cell as ended and withdraws the stop request, so that its goroutine can run other cells.
func (c *cell) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Store(stateEnded)
	engine.ResumeGoroutine(c.goid)
}

// abandon gives up a cell that an interrupt cannot stop, because it waits for a channel or a lock, or because it is in
// compiled code that ignores its context. Its goroutine ends as soon as it returns to interpreted code. A new goroutine
// runs the following cells.
func (s *Session) abandon(c *cell) {
	if !c.state.CompareAndSwap(stateRunning, stateAbandoned) {
		return
	}
	s.out.printf(stderr, "the cell did not stop: it waits for a channel or a lock, or it calls compiled code that does "+
		"not watch ctx; it stays in the background until that returns\n")
	s.endProgress()
	s.out.endCell()
	s.runningCell.CompareAndSwap(c, nil)
	c.signalStop() // takes effect when the goroutine returns to interpreted code
	s.replaceWorker()
	close(c.abandoned)
}

// replaceWorker starts a goroutine, the worker, that runs the following cells. The previous worker ends after its
// current task.
func (s *Session) replaceWorker() { go s.loop(s.workerNumber.Add(1)) }

// stackGrowth is the growth of the stacks of all goroutines, in bytes, after which a cell is checked for deep
// recursion. Go ends the process if one stack exceeds maxStack. A smaller value causes more checks, during which all
// goroutines stand still. A larger one leaves less time for a check before the process ends.
const stackGrowth = 192 << 20

// maxStack is the limit of a goroutine's stack in bytes. The sizes of stacks are powers of two, so that a recursion may
// use 1 GiB. By Go's default it may use half of that, which a recursion can take before a busy machine runs the check.
const maxStack = 1<<31 - 1

// unwindTimeout is the time that a deep recursion has to stop before its cell is abandoned. Unwinding so many calls
// takes seconds on a busy machine.
const unwindTimeout = time.Minute

// deepTrace matches the trace of a goroutine with 50,000 or more elided frames. They correspond to about 10,000 nested
// calls of functions of a cell.
var deepTrace = regexp.MustCompile(`(?m)^\.\.\.([5-9]\d{4}|\d{6,}) frames elided\.\.\.$`)

// isRecursingDeeply reports whether a goroutine has a trace that deepTrace matches. The size of the stacks alone is no
// proof. Stacks also grow if there are many goroutines, or if new goroutines start with larger stacks, as the runtime
// arranges after it has encountered a huge one. All goroutines stand still during the check.
func isRecursingDeeply() bool {
	traces := make([]byte, 1<<20)
	const maxTrace = 256 << 20 // bytes; longer traces, of very many goroutines, are cut
	n := runtime.Stack(traces, true)
	for ; n == len(traces) && n < maxTrace; n = runtime.Stack(traces, true) {
		traces = make([]byte, 8*n)
	}
	return deepTrace.Match(traces[:n])
}

// watchCell waits until a cell ends or is abandoned. Meanwhile it forwards interrupts and stops a cell that recurses
// too deeply.
func (s *Session) watchCell(c *cell) {
	debug.SetMaxStack(maxStack)
	sample := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(sample)
	interrupts := c.out.Interrupts()
	stackLimit := sample[0].Value.Uint64() + stackGrowth
	tick := time.NewTicker(2 * time.Millisecond) // of the checks of the stack size
	defer tick.Stop()
	for {
		select {
		case <-c.finished:
			return
		case <-c.abandoned:
			return
		case _, isOpen := <-interrupts:
			if !isOpen {
				interrupts = nil
			}
			s.interrupt(c)
		case <-tick.C:
		}
		if metrics.Read(sample); sample[0].Value.Uint64() <= stackLimit {
			continue
		}
		stackLimit = sample[0].Value.Uint64() + stackGrowth
		if isRecursingDeeply() {
			c.recursionTooDeep.Store(true)
			c.ctx.cancel()
			if !s.stop(c, unwindTimeout) {
				s.abandon(c)
			}
			return
		}
	}
}
