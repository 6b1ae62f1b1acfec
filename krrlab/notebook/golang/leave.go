package golang

import (
	"reflect"
	"runtime/metrics"
	"time"
	"unsafe"

	"github.com/cosmos72/gomacro/atomic"
	"github.com/cosmos72/gomacro/fast"
	"github.com/cosmos72/gomacro/gls"
)

// What a cell has come to.
const (
	isRunning = iota
	hasEnded
	isLeft
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

// signal stops the interpreter of a cell that has not ended.
func (c *cell) signal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Load() != hasEnded {
		c.ir.Load().Interrupt(nil)
	}
}

// leave gives up a cell that an interrupt cannot stop, since it waits for a channel or a
// lock, or is in compiled code that does not watch its context. Its goroutine stays where it is and ends
// when it gets on; another one, with a scope of its own within the old, runs the cells to come.
func (s *Session) leave(c *cell) {
	if !c.state.CompareAndSwap(isRunning, isLeft) {
		return
	}
	s.out.write(stderr, []byte("the cell waits, or is in compiled code that does not watch its context: it is left behind, and ends when that returns\n"))
	s.endProgress()
	s.out.end()
	s.running.CompareAndSwap(c, nil)
	if before := c.names.Load(); before != nil {
		c.ir.Load().Comp.Binds = *before
	}
	s.replace(c.ir.Load())
	c.ir.Load().Interrupt(nil) // what it will find when it gets on
	close(c.gone)
}

// replace lets a new goroutine run the cells to come, once the calling one is done.
func (s *Session) replace(old *fast.Interp) {
	n := s.worker.Add(1)
	ready := make(chan struct{})
	go s.loop(n, func() {
		s.ir = within(old)
		close(ready)
	})
	<-ready
}

// within returns an interpreter for the calling goroutine that sees what another one has
// declared. Of the older one's environment only the variables are shared: what it still has to
// execute, its call stack and its signals are its own.
func within(old *fast.Interp) *fast.Interp {
	ir := fast.NewInnerInterp(old, "main", "main")
	env := ir.PrepareEnv()
	env.Run, env.UsedByClosure = ownRun(env.Run.IrGlobals), true
	return ir
}

// ownRun returns the interpreter's record of the calling goroutine, entered where
// functions look for it. The interpreter has no other way to make one than a go statement of a cell;
// its fields are found by name, and with other types than expected the record is not entered.
func ownRun(g *fast.IrGlobals) *fast.Run {
	run, id := &fast.Run{IrGlobals: g}, gls.GoID()
	if p, ok := field(unsafe.Pointer(run), reflect.TypeFor[fast.Run](), "goid", reflect.TypeFor[uintptr]()); ok {
		*(*uintptr)(p) = id
	}
	all := reflect.TypeFor[fast.IrGlobals]()
	runs, ok := field(unsafe.Pointer(g), all, "gls", reflect.TypeFor[map[uintptr]*fast.Run]())
	lock, locked := field(unsafe.Pointer(g), all, "lock", reflect.TypeFor[atomic.SpinLock]())
	if ok && locked {
		(*atomic.SpinLock)(lock).Lock()
		(*(*map[uintptr]*fast.Run)(runs))[id] = run
		(*atomic.SpinLock)(lock).Unlock()
	}
	return run
}

// field returns the address of a field of a struct, if it has one of that type.
func field(p unsafe.Pointer, t reflect.Type, name string, want reflect.Type) (unsafe.Pointer, bool) {
	f, ok := t.FieldByName(name)
	if !ok || f.Type != want {
		return nil, false
	}
	return unsafe.Add(p, f.Offset), true
}

// maxStack is by how much a cell may make the stacks of all goroutines grow. Go ends the process
// where one takes 1 GB.
const maxStack = 192 << 20

// unwinding is how long the calls on such a stack may take to end: seconds on a busy machine.
const unwinding = time.Minute

// guard interrupts a cell whose recursion has no end, until it is done.
func (s *Session) guard(c *cell) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return
	}
	limit := sample[0].Value.Uint64() + maxStack
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-c.done:
			return
		case <-c.gone:
			return
		case <-tick.C:
		}
		if metrics.Read(sample); sample[0].Value.Uint64() > limit {
			c.deep.Store(true)
			c.ctx.cancel()
			if !s.stop(c, unwinding) {
				s.leave(c)
			}
			return
		}
	}
}
