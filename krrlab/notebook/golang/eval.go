package golang

import (
	"fmt"
	"go/types"
	"reflect"
	"strings"

	"github.com/krrlab/lab/krrlab/notebook/display"
	"github.com/krrlab/lab/krrlab/notebook/engine"
)

// Run executes a cell and returns its outcome. name identifies the cell in messages, for example Cell 5. If the cell is
// abandoned after an interrupt, the outcome is an interrupt error. After the session was closed, Run does not run the
// cell and returns an empty Result.
func (s *Session) Run(name, code string, out Output) Result {
	c := &cell{name: name, lines: strings.Split(code, "\n"), out: out, finished: make(chan struct{}),
		stopRequested: make(chan struct{}), abandoned: make(chan struct{})}
	result := make(chan Result, 1)
	select {
	case s.tasks <- func() { s.runCell(c, result) }:
	case <-s.quit:
		return Result{}
	}
	select {
	case outcome := <-result:
		return outcome
	case <-c.abandoned:
		return Result{Err: c.failure(interruptedError, "the cell was interrupted and abandoned", 0)}
	}
}

// runCell runs a cell in the worker goroutine and sends its outcome to result, unless the cell was abandoned.
func (s *Session) runCell(c *cell, result chan<- Result) {
	var res Result
	returned := false // becomes true unless the cell calls runtime.Goexit
	c.goid = engine.GoroutineID()
	s.out.startCell(c.out)
	c.ctx = s.renewContext()
	s.runningCell.Store(c)
	go s.watchCell(c)
	defer func() {
		defer c.resume()
		if c.markEnded() {
			s.runningCell.Store(nil)
			s.endProgress()
			s.out.endCell()
			if returned {
				res = s.interruptedResult(c, res)
			} else {
				const text = "runtime.Goexit ended the goroutine of the cell"
				res = Result{Err: c.failure(panicError, text, c.currentLine)}
			}
			// After a deep recursion, the goroutine would keep its huge stack.
			if !returned || c.recursionTooDeep.Load() {
				s.replaceWorker()
			}
			result <- res
		}
		close(c.finished)
	}()
	res = s.runSegments(c)
	returned = true
}

// interruptedResult returns the outcome of a cell that has ended with res. If the cell was interrupted, this is an
// interrupt error, or the panic if the cell panicked, so that queued cells are not run. A value is displayed first.
func (s *Session) interruptedResult(c *cell, res Result) Result {
	if c.interrupts.Load() == 0 {
		return res
	}
	if res.Value != nil {
		s.out.show(*res.Value)
	}
	switch {
	case res.Err == nil:
		return Result{Err: c.failure(interruptedError, "the cell was interrupted", c.currentLine)}
	case res.Err.Name == interruptedError, res.Err.Name == panicError:
		return Result{Err: res.Err}
	}
	return Result{Err: c.failure(interruptedError, "the cell was interrupted: "+res.Err.Value, 0)}
}

// runSegments runs the segments of a cell, which are commands and Go code, until one fails.
func (s *Session) runSegments(c *cell) (res Result) {
	defer func() { // after %capture, assign the recorded text to the variable
		if c.recorder != nil && c.state.Load() != stateAbandoned {
			s.endRecording(c)
		}
	}()
	for _, seg := range splitCell(c.lines) {
		c.currentLine = seg.line
		if c.state.Load() != stateRunning || c.interrupts.Load() > 0 { // abandoned or interrupted
			return res
		}
		if seg.command != "" && !isCompiledCell(seg) {
			var err error
			if seg.code, err = s.runCommand(seg.command); err != nil {
				return Result{Err: c.failure("CommandError", err.Error(), seg.line)}
			}
		}
		switch {
		case isCompiledCell(seg):
			res = s.compile(c, seg)
		case seg.code == "":
			res = Result{}
		default:
			printTime := func() {}
			if seg.isTimed {
				printTime = s.startTimer()
			}
			if res = s.runGo(c, seg); c.state.Load() != stateAbandoned {
				printTime()
			}
		}
		if res.Err != nil {
			return res
		}
		s.addHistory(c, seg)
	}
	return res
}

// runGo runs a segment of Go code.
func (s *Session) runGo(c *cell, seg segment) Result {
	compiled, err := s.interp.Compile(c.name, strings.Repeat("\n", seg.line-1)+seg.code)
	if err != nil {
		return Result{Err: s.compileFailure(c, err)}
	}
	s.printNotices()
	values, err := compiled.Run(func() bool { return c.state.Load() == stateAbandoned }, func(line int) {
		c.currentLine = line
		if c.interrupts.Load() > 0 {
			panic(engine.Stopped{})
		}
	})
	if err != nil {
		return Result{Err: s.runFailure(c, err)}
	}
	res := s.valueResult(c, values, compiled.EndsWithCall)
	for _, unread := range compiled.UnreadErrors() {
		if c.interrupts.Load() > 0 { // the interrupt may have caused the errors
			break
		}
		s.out.printf(stderr, "%s is not nil (line %d): %s; look at it, or write Must(…) around the call\n",
			unread.Name, unread.Line, oneLine(unread.Err.Error()))
	}
	return res
}

// valueResult turns the values of the last expression into the outcome of the cell. If the last of several values is an
// error, or the single value of a call is one, it becomes the error of the cell.
func (s *Session) valueResult(c *cell, values []engine.Value, isCall bool) (res Result) {
	var displayed []any
	for i, v := range values {
		if i == len(values)-1 && (isCall || i > 0) && types.Identical(v.Type, errorType) {
			if err, ok := v.Value.(error); ok && err != nil {
				res.Err = c.failure("Error", err.Error(), 0)
			}
			continue
		}
		displayed = append(displayed, v.Value)
	}
	if len(displayed) == 0 || res.Err != nil && allZero(displayed) {
		return res
	}
	d, err := s.combine(displayed)
	if err != nil {
		res.Err = c.failure("DisplayError", err.Error(), c.currentLine)
	}
	if res.Err != nil { // also display the values that come with an error
		s.out.show(d)
		return res
	}
	d = encode(d)
	res.Value = &d
	return res
}

// combine returns the display data for several values. Values that are all plain text are joined into one line.
// Otherwise, combine displays all values but the last and returns the last one.
func (s *Session) combine(values []any) (data display.Data, err error) {
	var shown []display.Data
	var texts []string
	isRich := false
	for _, v := range values {
		if data, err = display.Show(v); err != nil {
			return data, err
		}
		shown, texts = append(shown, data), append(texts, fmt.Sprint(data.Data[display.MIMETypeText]))
		isRich = isRich || len(data.Data) > 1
	}
	if len(shown) > 1 && !isRich {
		return display.MakeData(display.MIMETypeText, strings.Join(texts, ", ")), nil
	}
	for _, earlier := range shown[:len(shown)-1] {
		s.out.show(earlier)
	}
	return data, nil
}

// errorType is the type error of go/types.
var errorType = types.Universe.Lookup("error").Type()

// allZero reports whether all values are nil or the zero value of their type.
func allZero(values []any) bool {
	for _, v := range values {
		if reflected := reflect.ValueOf(v); reflected.IsValid() && !reflected.IsZero() {
			return false
		}
	}
	return true
}
