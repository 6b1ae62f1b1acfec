package golang

import (
	"errors"
	"fmt"
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
	mu    sync.Mutex
	cells map[string]*native.Cell // by the name that its first declaration has
	calls atomic.Int64
}

// set notes the program of a cell, in place of that of an earlier one with the same first name; "" ends them all.
func (n *compiled) set(name string, c *native.Cell) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for other, old := range n.cells {
		if other == name || name == "" {
			old.Stop()
		}
	}
	if name == "" || n.cells == nil {
		n.cells = map[string]*native.Cell{}
	}
	if c != nil {
		n.cells[name] = c
	}
}

// compile runs a cell of declarations whose functions are compiled. Without the go command they are interpreted.
func (s *Session) compile(c *cell, p part) Result {
	_, code, _ := strings.Cut(p.command, "\n")
	n, err := native.Compile(s.ctx.get(), s.finder.Program, native.Source{
		Name: c.name, Code: strings.Repeat("\n", p.line-1) + code, Standard: standard,
	})
	wrong := (*native.Error)(nil)
	switch {
	case errors.Is(err, modules.ErrNoGo):
		s.out.write(stderr, fmt.Appendf(nil, "%v, so this cell is interpreted, some hundred times slower\n", err))
		return s.goCode(c, part{line: p.line, code: "\n" + code})
	case errors.As(err, &wrong):
		return Result{Err: c.failure(compileError, hint(wrong.Text), wrong.Line)}
	case err != nil:
		return Result{Err: s.rejected(c, err)}
	}
	name := engine.Hidden + "go" + n.Name()
	s.compiled.set(n.Name(), n)
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
