package native

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"unsafe"
)

// This file is a part of the compiled program too, which an older Go may build.

// server is the compiled program.
type server struct {
	name      string
	functions []any
	file      *os.File // the memory shared
	replies   *os.File
	mu        sync.Mutex
	mapped    map[int64][]float64 // by where it lies in the file
}

// Serve is the main function of a compiled program: it answers calls of the functions, of the cell of that name, until
// its parent closes the pipe that they come by. Pipes and memory are the files 3 to 5.
func Serve(name string, functions []any) {
	signal.Ignore(os.Interrupt) // the parent's
	debug.SetMaxStack(192 << 20)
	s := &server{name: name, functions: functions, replies: inherited(4, "replies"), file: inherited(5, "memory"),
		mapped: map[int64][]float64{}}
	hello := &message{}
	for _, f := range functions {
		hello.text(refusal(reflect.TypeOf(f)))
	}
	s.reply(hello)
	requests := bufio.NewReader(inherited(3, "requests"))
	for {
		m, err := receive(requests)
		if err != nil {
			return
		}
		go s.call(m)
	}
}

// refusal says why a function cannot be called from elsewhere, "" if it can.
func refusal(t reflect.Type) string {
	for i := range t.NumIn() {
		if bad := foreign(t.In(i), false); bad != nil {
			return "takes " + strings.ReplaceAll(bad.String(), "cell.", "")
		}
	}
	for i := range t.NumOut() {
		if bad := foreign(t.Out(i), true); bad != nil {
			return "returns " + strings.ReplaceAll(bad.String(), "cell.", "")
		}
	}
	return ""
}

func (s *server) reply(m *message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = m.send(s.replies) // where it fails, the pipe of requests ends too
}

// memory is a piece of the memory shared. It stays mapped: a function may have kept a slice.
func (s *server) memory(at int64, size int) []float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mapped[at] == nil {
		b, err := mapped(s.file, at, size)
		if err != nil {
			panic(err)
		}
		s.mapped[at] = unsafe.Slice((*float64)(unsafe.Pointer(&b[0])), size/8)
	}
	return s.mapped[at]
}

// call answers a request: lane, function, the place and size of its memory, arguments. A reply has the lane, the line
// of a panic, or 0, and its text or the results.
func (s *server) call(m *message) {
	lane, f, at, size := m.next(), reflect.ValueOf(s.functions[m.next()]), int64(m.next()), int(m.next())
	r, done := &message{}, false
	defer func() {
		if v := recover(); !done {
			r.b = nil
			r.words(lane, uint64(s.line()))
			if v == nil {
				v = "runtime.Goexit ended the call"
			}
			r.text(strings.TrimPrefix(fmt.Sprint(v), "runtime error: "))
		}
		s.reply(r)
	}()
	m.mem = s.memory(at, size)
	var args []reflect.Value
	for i := range f.Type().NumIn() {
		v := reflect.New(f.Type().In(i)).Elem()
		m.get(v)
		args = append(args, v)
	}
	call := f.Call
	if f.Type().IsVariadic() {
		call = f.CallSlice
	}
	r.words(lane, 0)
	for _, v := range call(args) {
		r.put(v)
	}
	done = true
}

// line is that of the cell at which a panic began; 1, its head, if that is not known.
func (s *server) line() int {
	pc := make([]uintptr, 64)
	frames := runtime.CallersFrames(pc[:runtime.Callers(1, pc)])
	for {
		f, more := frames.Next()
		if f.File == s.name {
			return f.Line
		}
		if !more {
			return 1
		}
	}
}
