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
	"github.com/krrlab/lab/krrlab/notebook/widget"
)

// Output receives the output of a cell, in order, as maps that can be encoded as JSON. Its methods may be called from
// any goroutine.
type Output interface {
	// Interrupts returns a channel that delivers the interrupts of the cell. Closing it counts as one more interrupt.
	Interrupts() <-chan struct{}
	// Stream sends text that was printed to the stream name: stdout or stderr.
	Stream(name, text string)
	// Display shows a value.
	Display(d display.Data)
	// Update replaces the value with the same display_id.
	Update(d display.Data)
	// Clear removes the output so far; if wait is true, not before there is new output.
	Clear(wait bool)
	// Input asks the reader for a line, which is not echoed if password is true.
	Input(prompt string, password bool) (string, error)
}

// Result is the outcome of a cell.
type Result struct {
	Value *display.Data // value of the last expression; nil if there is none
	Err   *Error        // nil if the cell succeeded
}

// Session is a Go interpreter with the variables of the cells it has run.
type Session struct {
	interp          *engine.Engine               // used by the worker goroutine only
	tasks           chan func()                  // functions to be run by the worker goroutine, which is loop
	quit            chan struct{}                // closed by Close
	out             *capture                     // receives all printed text and displayed values
	runningCell     atomic.Pointer[cell]         // nil if no cell is running
	progress        atomic.Pointer[progressLine] // progress line of the running cell, or nil
	ctx             atomic.Pointer[cellContext]  // context of the running cell
	dataDirs        []string                     // value of DataDirs in cells
	builtIns        map[string]types.Object      // names that cells can use without declaring or importing them
	finder          *modules.Finder              // finds packages that are not compiled in
	unreported      []*modules.Package           // interpreted packages not yet reported to the user
	missingFeatures []string                     // features that the kernel lacks, until they are reported
	programs        programs                     // compiled %%go cells
	workerNumber    atomic.Int32                 // number of the worker goroutine; a new one has the next number
	widgets         widget.Set                   // controls of panels
	panels          panels                       // open panels of Explore
	autoget         bool                         // download packages that an import misses (%autoget)
	history         []historyEntry               // the Go code that has run without an error, in order
}

// cell is a cell that is running.
type cell struct {
	name             string        // for example Cell 5
	lines            []string      // code of the cell
	out              Output        // receives the output of the cell
	ctx              *cellContext  // context of the session while the cell runs
	finished         chan struct{} // closed when the goroutine of the cell has finished it
	stopRequested    chan struct{} // closed when the interpreter is to stop; wakes sleep and calls of compiled cells
	requestStop      sync.Once     // closes stopRequested
	interrupts       atomic.Int32  // number of interrupts
	goid             uint64        // ID of the goroutine that runs the cell
	currentLine      int           // line of the statement being executed
	state            atomic.Int32  // stateRunning, stateAbandoned or stateEnded
	abandoned        chan struct{} // closed when the cell is abandoned
	mu               sync.Mutex    // serializes interrupts with the end of the cell
	recursionTooDeep atomic.Bool   // interrupted because of too deep a recursion
	recorder         *recorder     // records the printed text for %capture; else nil
}

var active sync.Mutex // locked while the process has a session

// ErrActive is the error of New if the process already has a session.
var ErrActive = errors.New("golang: the process has a session already; close it first")

// New starts an interpreter. dataDirs is the value of the variable DataDirs in cells: folders in which they look for
// data. It returns ErrActive if the process already has a session.
func New(dataDirs []string) (*Session, error) {
	if !active.TryLock() {
		return nil, ErrActive
	}
	s := &Session{tasks: make(chan func()), quit: make(chan struct{}), dataDirs: dataDirs}
	var err error
	if s.out, err = newCapture(); err != nil {
		active.Unlock()
		return nil, err
	}
	s.missingFeatures = engine.MissingFeatures()
	go s.loop(0)
	s.runOnWorker(s.startInterpreter)
	return s, nil
}

// Close ends the session and restores os.Stdout and os.Stderr.
func (s *Session) Close() {
	if c := s.runningCell.Load(); c != nil {
		s.interrupt(c)
	}
	close(s.quit)
	s.panels.closeAll()
	s.programs.builds.Wait() // after this, no build can add a program
	s.programs.stopAll()
	s.out.close()
	_ = s.finder.Close()
	group.EndAll()
	active.Unlock()
}

// loop is the worker goroutine with the given number. The interpreter requires that everything runs in one goroutine.
// loop ends when the session ends, or when a cell is abandoned and a new worker takes over.
func (s *Session) loop(number int32) {
	for s.workerNumber.Load() == number {
		select {
		case task := <-s.tasks:
			task()
		case <-s.quit:
			return
		}
	}
}

// runOnWorker runs f in the worker goroutine and waits for it. It returns without running f if the session has ended.
func (s *Session) runOnWorker(f func()) {
	finished := make(chan struct{})
	select {
	case s.tasks <- func() { defer close(finished); f() }:
		<-finished
	case <-s.quit:
	}
}

// startInterpreter replaces the interpreter by a new one that contains only the built-in names.
func (s *Session) startInterpreter() {
	s.ctx.CompareAndSwap(nil, newCellContext())
	_ = s.finder.Close()
	s.programs.stopAll()
	s.panels.closeAll()
	s.unreported = nil
	s.finder = &modules.Finder{IsCompiled: engine.IsCompiled}
	s.history = nil
	s.interp, s.builtIns = s.newInterpreter()
	go s.reportPanics(s.interp)
}

// newInterpreter returns an interpreter that contains only the built-in names, and a map of these names to their
// objects.
func (s *Session) newInterpreter() (*engine.Engine, map[string]types.Object) {
	e := engine.New(s.hooks())
	e.ImplicitImport, e.FindSource = implicitImport, s.findSource
	s.declareBuiltIns(e)
	compiled, err := e.Compile("built-in.go", mustSource)
	if err == nil {
		_, err = compiled.Run(func() bool { return false }, func(int) {})
	}
	if err != nil {
		panic(err)
	}
	builtIns, _ := e.VisibleNames()
	return e, builtIns
}

// interruptGrace is the time that an interrupted cell has to return voluntarily if some code in it watches the context.
// Such code can return its partial results. A larger value delays interrupts of cells that ignore the context. The
// value is a judgment.
const interruptGrace = 500 * time.Millisecond

// stopTimeout is the time for which an interrupted cell is signaled before it is abandoned. The value is a judgment.
const stopTimeout = 2 * time.Second

// interrupt ends a cell, with the error Interrupted. It cancels the context of the cell and stops the interpreter:
// immediately if no code has used the context or if the cell was interrupted before, else after interruptGrace. It
// returns false if the cell has already ended or was abandoned.
func (s *Session) interrupt(c *cell) bool {
	isFirst, accepted := c.countInterrupt()
	if !accepted {
		return false
	}
	watchesContext := c.ctx.cancel()
	go func() {
		if isFirst && watchesContext {
			select {
			case <-c.finished:
				return
			case <-time.After(interruptGrace):
			}
		}
		if !s.stop(c, stopTimeout) {
			s.abandon(c)
		}
	}()
	return true
}

// stop signals the interpreter every 2 ms until the cell has ended, and reports whether it ended within the time limit.
func (s *Session) stop(c *cell, limit time.Duration) bool {
	c.requestStop.Do(func() { close(c.stopRequested) })
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); {
		c.signalStop()
		select {
		case <-c.finished:
			return true
		case <-time.After(2 * time.Millisecond):
		}
	}
	return false
}
