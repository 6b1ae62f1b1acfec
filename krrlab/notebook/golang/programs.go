package golang

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/krrlab/lab/krrlab/notebook/engine"
	"github.com/krrlab/lab/krrlab/notebook/modules"
	"github.com/krrlab/lab/krrlab/notebook/native"
)

// programs holds the processes of compiled %%go cells.
type programs struct {
	mu      sync.Mutex     // guards list and started
	list    []program      // newest first
	started int            // number of programs started so far
	calls   atomic.Int64   // number of calls of compiled functions
	builds  sync.WaitGroup // compilations in progress
}

// program is the process of a compiled cell.
type program struct {
	cell         *native.Cell
	currentNames map[string]bool // names that no later compiled cell declares again
}

// maxSuperseded is the number of programs that continue to run although later cells declare all of their names again. A
// larger value lets old values work longer, at the price of more processes.
const maxSuperseded = 4

// add registers the program of a cell and returns its number. Programs whose names were all declared again may still be
// called by existing values, so only the oldest ones beyond maxSuperseded are stopped.
func (ps *programs) add(cell *native.Cell) int {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	added := program{cell, map[string]bool{}}
	for _, name := range cell.Names() {
		added.currentNames[name] = true
	}
	remaining, superseded := []program{added}, 0
	for _, old := range ps.list {
		maps.DeleteFunc(old.currentNames, func(name string, _ bool) bool { return added.currentNames[name] })
		if len(old.currentNames) == 0 {
			superseded++
		}
		if len(old.currentNames) == 0 && superseded > maxSuperseded {
			old.cell.Stop()
		} else {
			remaining = append(remaining, old)
		}
	}
	ps.list = remaining
	ps.started++
	return ps.started
}

// stopAll stops all programs.
func (ps *programs) stopAll() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.list {
		p.cell.Stop()
	}
	ps.list = nil
}

// compile compiles the functions of a %%go cell, starts their process, and declares them in the interpreter, where they
// call that process. If the go command is missing, the cell is interpreted. An interrupt during a call stops it.
func (s *Session) compile(c *cell, seg segment) Result {
	_, code, _ := strings.Cut(seg.command, "\n")
	src := native.Source{Name: c.name, Code: strings.Repeat("\n", seg.line-1) + code, ImplicitImport: implicitImport}
	s.programs.builds.Add(1)
	program, err := native.Compile(s.ctx.Load(), s.finder.BuildProgram, src)
	s.programs.builds.Done()
	cellErr := (*native.Error)(nil)
	switch {
	case errors.Is(err, modules.ErrNoGo):
		s.out.printf(stderr, "%v, so this cell is interpreted, some hundred times slower\n", err)
		return s.runGo(c, segment{line: seg.line, code: "\n" + code})
	case errors.As(err, &cellErr):
		return Result{Err: c.failure(compileError, s.withHint(cellErr.Text), cellErr.Line)}
	case err != nil:
		return Result{Err: s.compileFailure(c, err)}
	}
	if c.state.Load() != stateRunning || c.interrupts.Load() > 0 { // abandoned or interrupted
		program.Stop()
		return Result{}
	}
	// Each program has its own name, so that code that refers to an earlier program continues to call that one.
	name := fmt.Sprint(engine.ReservedPrefix, "go", s.programs.add(program))
	call := func(function int, in, out []any) {
		s.programs.calls.Add(1)
		var stop <-chan struct{}
		if running := s.runningCell.Load(); running != nil {
			stop = running.stopRequested
		}
		if err := program.Call(stop, function, in, out); errors.Is(err, native.ErrInterrupted) {
			panic(engine.Stopped{})
		} else if err != nil {
			panic(err)
		}
	}
	s.interp.Declare(map[string]any{name: &call})
	return s.runGo(c, segment{line: 1, code: program.Stub(name)})
}

// speedAdvice returns advice for users of an interpreted kernel function.
func speedAdvice() string {
	const text = "declare it as a type with Eval and String in a cell that begins with %%go, which compiles it"
	if !hasGo() {
		return "install Go (go.dev/dl) and " + text
	}
	return text
}
