package golang

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/krrlab/lab/krrlab/notebook/engine"
	"github.com/krrlab/lab/krrlab/notebook/modules"
	"github.com/krrlab/lab/krrlab/notebook/native"
)

// compiled are the programs of cells that were compiled.
type compiled struct {
	mu       sync.Mutex
	programs []program // the last one first
	runs     int
	calls    atomic.Int64
	builds   sync.WaitGroup
}

// program is that of a cell.
type program struct {
	cell  *native.Cell
	names map[string]bool // that no later one has declared again
}

// maxSpare is how many programs go on although all of their names were declared again.
const maxSpare = 4

// add notes the program of a cell, and ends the oldest spare one: values made before call those, although all of their
// names were declared again. It returns the number of the run.
func (n *compiled) add(c *native.Cell) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := program{c, map[string]bool{}}
	for _, name := range c.Names() {
		p.names[name] = true
	}
	kept, spare := []program{p}, 0
	for _, old := range n.programs {
		maps.DeleteFunc(old.names, func(name string, _ bool) bool { return p.names[name] })
		if len(old.names) == 0 {
			spare++
		}
		if len(old.names) == 0 && spare > maxSpare {
			old.cell.Stop()
		} else {
			kept = append(kept, old)
		}
	}
	n.programs = kept
	n.runs++
	return n.runs
}

// end ends all programs.
func (n *compiled) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.programs {
		p.cell.Stop()
	}
	n.programs = nil
}

// compile runs a cell of declarations whose functions are compiled. Without the go command they are interpreted.
func (s *Session) compile(c *cell, p part) Result {
	_, code, _ := strings.Cut(p.command, "\n")
	src := native.Source{Name: c.name, Code: strings.Repeat("\n", p.line-1) + code, Named: linked}
	s.compiled.builds.Add(1)
	n, err := native.Compile(s.ctx.Load(), s.finder.Program, src)
	s.compiled.builds.Done()
	wrong := (*native.Error)(nil)
	switch {
	case errors.Is(err, modules.ErrNoGo):
		s.out.printf(stderr, "%v, so this cell is interpreted, some hundred times slower\n", err)
		return s.goCode(c, part{line: p.line, code: "\n" + code})
	case errors.As(err, &wrong):
		return Result{Err: c.failure(compileError, hint(wrong.Text), wrong.Line)}
	case err != nil:
		return Result{Err: s.rejected(c, err)}
	}
	if c.state.Load() != isRunning || c.hits.Load() > 0 { // left behind: the session is another cell's
		n.Stop()
		return Result{}
	}
	// its own name: what knows an earlier program continues to call that
	name := fmt.Sprint(engine.HiddenPrefix, "go", s.compiled.add(n))
	call := func(f int, in, out []any) {
		s.compiled.calls.Add(1)
		var halt <-chan struct{}
		if c := s.running.Load(); c != nil {
			halt = c.halt
		}
		if err := n.Call(halt, f, in, out); errors.Is(err, native.ErrHalted) {
			panic(engine.Halted{})
		} else if err != nil {
			panic(err)
		}
	}
	s.e.Declare(map[string]any{name: &call})
	return s.goCode(c, part{line: 1, code: n.Stub(name)})
}

// faster says what to do about a kernel that is interpreted.
func faster() string {
	const text = "declare it as a type with Eval and String in a cell that begins with %%go, which compiles it"
	if _, err := exec.LookPath("go"); err != nil {
		return "install Go (go.dev/dl) and " + text
	}
	return text
}
