package golang

import (
	"errors"
	"go/types"
	"sync"
	"sync/atomic"
	"time"

	"github.com/krrlab/lab/krrlab/internal/group"
	"github.com/krrlab/lab/krrlab/notebook/display"
	"github.com/krrlab/lab/krrlab/notebook/engine"
	"github.com/krrlab/lab/krrlab/notebook/modules"
)

// Output receives what a cell shows, in order, as maps that JSON can carry. Its methods may be called from any
// goroutine.
type Output interface {
	Interrupts() <-chan struct{}                        // of the cell, one each; closing it is one more
	Stream(name, text string)                           // name is stdout or stderr
	Display(d display.Data)                             // a value
	Update(d display.Data)                              // instead of that with the same display_id
	Clear(wait bool)                                    // what was shown; with wait, when something new comes
	Input(prompt string, password bool) (string, error) // a line from the reader
}

// Result is how a cell ended.
type Result struct {
	Value *display.Data // of the last expression; nil if it has none
	Err   *Error        // nil if the cell came to its end
}

// Session is one interpreter with the variables that its cells made.
type Session struct {
	e           *engine.Engine
	work        chan func()
	quit        chan struct{}
	out         *capture
	running     atomic.Pointer[cell]
	progress    atomic.Pointer[progressLine] // of the cell that runs
	ctx         atomic.Pointer[cellContext]  // of the cell that runs
	dirs        []string
	own         map[string]types.Object // what cells find without an import
	finder      *modules.Finder
	interpreted []*modules.Package // not yet reported
	missing     []string           // what the kernel lacks, until it is reported
	compiled    compiled           // cells
	worker      atomic.Int32       // number of the goroutine that runs cells
}

// cell is one that runs.
type cell struct {
	name  string // Cell 5
	lines []string
	out   Output
	ctx   *cellContext
	done  chan struct{}
	halt  chan struct{} // closed when the interpreter is stopped: sleep does not return then
	halts sync.Once     // closes halt
	hits  atomic.Int32  // interrupts
	goid  uint64        // goroutine of the cell
	last  int           // line of the statement that runs
	state atomic.Int32  // running, left or ended
	gone  chan struct{} // closed when the cell is left behind
	mu    sync.Mutex    // an interrupt, or the end of the cell
	deep  atomic.Bool   // interrupted for its recursion
}

var active sync.Mutex // held by the one session of the process

// ErrActive says that the process has a session already.
var ErrActive = errors.New("golang: the process has a session already; close it first")

// New starts an interpreter. dataDirs is the value of the cells' variable DataDirs: folders to look for data in.
func New(dataDirs []string) (*Session, error) {
	if !active.TryLock() {
		return nil, ErrActive
	}
	s := &Session{work: make(chan func()), quit: make(chan struct{}), dirs: dataDirs}
	var err error
	if s.out, err = newCapture(); err != nil {
		active.Unlock()
		return nil, err
	}
	s.missing = engine.Missing()
	go s.loop(0)
	s.do(s.start)
	return s, nil
}

// Close ends the session and gives os.Stdout and os.Stderr back.
func (s *Session) Close() {
	if c := s.running.Load(); c != nil {
		s.interrupt(c)
	}
	close(s.quit)
	s.compiled.builds.Wait() // nothing of them is there then
	s.compiled.end()
	s.out.close()
	_ = s.finder.Close()
	group.EndAll()
	active.Unlock()
}

// loop runs all that the interpreter does in one goroutine, as it must be, until a cell is
// left behind and another goroutine takes over.
func (s *Session) loop(number int32) {
	for s.worker.Load() == number {
		select {
		case f := <-s.work:
			f()
		case <-s.quit:
			return
		}
	}
}

// do runs f in the interpreter's goroutine and waits for it.
func (s *Session) do(f func()) {
	done := make(chan struct{})
	select {
	case s.work <- func() { defer close(done); f() }:
		<-done
	case <-s.quit:
	}
}

// start makes a fresh interpreter with what cells find in it.
func (s *Session) start() {
	s.ctx.CompareAndSwap(nil, newCellContext())
	_ = s.finder.Close()
	s.compiled.end()
	s.interpreted = nil
	s.finder = &modules.Finder{Compiled: func(path string) bool { return engine.Packages()[path] != "" }}
	s.e = engine.New(s.hook())
	s.e.ImplicitImport, s.e.FindSource = linked, s.find
	s.declare()
	s.builtIn()
	go s.panics(s.e)
}

// grace is how long an interrupted cell has to return by itself when something in it
// watches the context: what that has found so far is then kept.
const grace = 500 * time.Millisecond

// stopTimeout is how long an interrupted cell is signaled before it is left behind.
const stopTimeout = 2 * time.Second

// interrupt ends a cell: it cancels the cell's context, and stops the interpreter, at once if nothing has looked at the
// context, or if this is the second time. The cell fails with the error Interrupted, however it comes to its end. It
// returns false if the cell is at its end.
func (s *Session) interrupt(c *cell) bool {
	first, meets := c.interrupted()
	if !meets {
		return false
	}
	watched := c.ctx.cancel()
	go func() {
		if first && watched {
			select {
			case <-c.done:
				return
			case <-time.After(grace):
			}
		}
		if !s.stop(c, stopTimeout) {
			s.leave(c)
		}
	}()
	return true
}

// stop signals the interpreter until the cell has ended, and reports whether it did in
// time.
func (s *Session) stop(c *cell, limit time.Duration) bool {
	c.halts.Do(func() { close(c.halt) })
	for end := time.Now().Add(limit); time.Now().Before(end); {
		c.signal()
		select {
		case <-c.done:
			return true
		case <-time.After(2 * time.Millisecond):
		}
	}
	return false
}
