package golang

import (
	"fmt"
	"go/types"
	"reflect"
	"strings"

	"github.com/krrlab/lab/krrlab/notebook/display"
	"github.com/krrlab/lab/krrlab/notebook/engine"
)

// Run executes a cell. name says which it is in messages: Cell 5.
func (s *Session) Run(name, code string, out Output) Result {
	c := &cell{name: name, lines: strings.Split(code, "\n"), out: out, done: make(chan struct{}),
		halt: make(chan struct{}), gone: make(chan struct{})}
	result := make(chan Result, 1)
	select {
	case s.work <- func() { s.runCell(c, result) }:
	case <-s.quit:
		return Result{}
	}
	select {
	case r := <-result:
		return r
	case <-c.gone:
		return Result{Err: c.failure(interrupted, "the cell was interrupted and left behind", 0)}
	}
}

// runCell runs a cell in the goroutine that is for it.
func (s *Session) runCell(c *cell, result chan<- Result) {
	var res Result
	returned := false
	c.goid = engine.Goid()
	s.out.begin(c.out)
	c.ctx = s.renewContext()
	s.running.Store(c)
	go s.guard(c)
	defer func() {
		defer c.resume()
		if c.end() {
			s.running.Store(nil)
			s.endProgress()
			s.out.end()
			if returned {
				res = s.ended(c, res)
			} else {
				res = Result{Err: c.failure(panicError, "runtime.Goexit ended the goroutine of the cell", c.last)}
			}
			if !returned || c.deep.Load() { // deep: the goroutine would keep its huge stack
				s.replace()
			}
			result <- res
		}
		close(c.done)
	}()
	res = s.segments(c)
	returned = true
}

// ended makes Interrupted of however a cell ended that an interrupt has met, so that the cells
// behind it are dropped. What there is of a value is shown.
func (s *Session) ended(c *cell, res Result) Result {
	if c.hits.Load() == 0 {
		return res
	}
	if res.Value != nil {
		s.out.show(*res.Value)
	}
	switch {
	case res.Err == nil:
		return Result{Err: c.failure(interrupted, "the cell was interrupted", c.last)}
	case res.Err.Name == interrupted, res.Err.Name == panicError:
		return Result{Err: res.Err}
	}
	return Result{Err: c.failure(interrupted, "the cell was interrupted: "+res.Err.Value, 0)}
}

// segments runs the parts of a cell: commands, and the Go between them.
func (s *Session) segments(c *cell) (res Result) {
	for _, p := range split(c.lines) {
		p = asCode(p)
		if c.state.Load() != isRunning || c.hits.Load() > 0 { // left behind: the session is another cell's
			return res
		}
		switch {
		case strings.HasPrefix(p.command, "%%go\n"):
			res = s.compile(c, p)
		case p.command != "":
			if err := s.command(p.command); err != nil {
				return Result{Err: c.failure("CommandError", err.Error(), p.line)}
			}
			res = Result{}
		default:
			stop := s.timed(p.timed)
			if res = s.goCode(c, p); c.state.Load() != isLeft {
				stop()
			}
		}
		if res.Err != nil {
			return res
		}
	}
	return res
}

// goCode runs lines of Go.
func (s *Session) goCode(c *cell, p part) Result {
	cell, err := s.e.Compile(c.name, strings.Repeat("\n", p.line-1)+p.code)
	if err != nil {
		return Result{Err: s.rejected(c, err)}
	}
	s.note()
	vals, err := cell.Run(func() bool { return c.state.Load() == isLeft }, func(line int) {
		if c.hits.Load() > 0 {
			panic(engine.Halted{})
		}
		c.last = line
	})
	if err != nil {
		return Result{Err: s.explain(c, err)}
	}
	res := s.result(c, vals, cell.EndsWithCall)
	for _, u := range cell.UnreadErrors() {
		if c.hits.Load() > 0 { // the interrupt's
			break
		}
		s.out.printf(stderr, "%s is not nil (line %d): %s; look at it, or write Must(…) around the call\n",
			u.Name, u.Line, oneLine(u.Err.Error()))
	}
	return res
}

// result turns the values of the last expression into what is shown. If the last of
// several is an error, or the only one of a call is, that is how the cell ended.
func (s *Session) result(c *cell, vals []engine.Value, call bool) (res Result) {
	var shows []any
	for i, v := range vals {
		if i == len(vals)-1 && (call || i > 0) && types.Identical(v.Type, errorType) {
			if err, ok := v.Value.(error); ok && err != nil {
				res.Err = c.failure("Error", err.Error(), 0)
			}
			continue
		}
		shows = append(shows, v.Value)
	}
	if len(shows) == 0 || res.Err != nil && allZero(shows) {
		return res
	}
	d, err := s.shown(shows)
	if err != nil {
		res.Err = c.failure("DisplayError", err.Error(), c.last)
	}
	if res.Err != nil { // what there is of a value is worth seeing
		s.out.show(d)
		return res
	}
	d = carried(d)
	res.Value = &d
	return res
}

// shown returns several values as one: texts in a line, and where one is more than text each but the last by itself,
// before.
func (s *Session) shown(values []any) (d display.Data, err error) {
	var all []display.Data
	var text []string
	rich := false
	for _, v := range values {
		if d, err = display.Show(v); err != nil {
			return d, err
		}
		all, text = append(all, d), append(text, fmt.Sprint(d.Data[display.MIMETypeText]))
		rich = rich || len(d.Data) > 1
	}
	if len(all) > 1 && !rich {
		return display.MakeData(display.MIMETypeText, strings.Join(text, ", ")), nil
	}
	for _, before := range all[:len(all)-1] {
		s.out.show(before)
	}
	return d, nil
}

var errorType = types.Universe.Lookup("error").Type()

func allZero(vs []any) bool {
	for _, v := range vs {
		if r := reflect.ValueOf(v); r.IsValid() && !r.IsZero() {
			return false
		}
	}
	return true
}
