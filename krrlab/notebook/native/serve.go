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

// This file is also a part of the programs of %%go cells (see wire.go).

// server answers the calls in a compiled program.
type server struct {
	name       string              // name of the cell
	functions  []any               // the functions, by number
	memoryFile *os.File            // shared with the parent
	replies    *os.File            // pipe to the parent
	mu         sync.Mutex          // guards regions and the writing of replies
	regions    map[int64][]float64 // mapped parts of memoryFile, by offset in bytes
}

// Serve is the main function of the compiled program of the cell with the given name. It answers calls of the functions
// until the parent closes the pipe of requests. The pipes of requests and replies and the shared memory are the files
// 3, 4 and 5.
func Serve(name string, functions []any) {
	signal.Ignore(os.Interrupt)  // interrupts are handled by the parent
	debug.SetMaxStack(192 << 20) // an endless recursion ends before it takes much memory
	s := &server{name: name, functions: functions, replies: inheritedFile(4, "replies"),
		memoryFile: inheritedFile(5, "memory"), regions: map[int64][]float64{}}
	refusals := &message{} // the first message: for each function, why it cannot be called, or ""
	for _, function := range functions {
		refusals.putText(refusalReason(reflect.TypeOf(function)))
	}
	s.send(refusals)
	requests := bufio.NewReader(inheritedFile(3, "requests"))
	for {
		request, err := receive(requests)
		if err != nil {
			return
		}
		go s.call(request)
	}
}

// refusalReason returns the reason why a function of type t cannot be called by the session, or "" if it can.
func refusalReason(t reflect.Type) string {
	for i := range t.NumIn() {
		if unsupported := unsupportedType(t.In(i)); unsupported != nil {
			return "takes " + strings.ReplaceAll(unsupported.String(), "cell.", "")
		}
	}
	for i := range t.NumOut() {
		if unsupported := unsupportedResultType(t.Out(i)); unsupported != nil {
			return "returns " + strings.ReplaceAll(unsupported.String(), "cell.", "")
		}
	}
	return ""
}

// send sends a message to the parent.
func (s *server) send(m *message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = m.send(s.replies) // after an error, the parent has ended, and Serve returns
}

// region returns a part of the shared memory; offset and size are in bytes. The part remains mapped, because a function
// may keep a slice of it.
func (s *server) region(offset int64, size int) []float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.regions[offset] == nil {
		mapped, err := mapMemory(s.memoryFile, offset, size)
		if err != nil {
			panic(err)
		}
		s.regions[offset] = unsafe.Slice((*float64)(unsafe.Pointer(&mapped[0])), size/8)
	}
	return s.regions[offset]
}

// call answers a request to call a function. The parent has reserved a slot for the call: a number, which no other
// running call has, and a part of the shared memory. The request consists of the number of the slot, the number of the
// function, the offset and size of the slot's memory, and the arguments. The reply consists of the number of the slot
// and a word: the line of a panic, followed by its text, or 0, followed by the results.
func (s *server) call(request *message) {
	slotNumber, function := request.nextWord(), reflect.ValueOf(s.functions[request.nextWord()])
	offset, size := int64(request.nextWord()), int(request.nextWord())
	reply, returned := &message{}, false
	defer func() {
		if value := recover(); !returned {
			reply.content = nil
			reply.putWords(slotNumber, uint64(s.panicLine()))
			if value == nil {
				value = "runtime.Goexit ended the call"
			}
			reply.putText(strings.TrimPrefix(fmt.Sprint(value), "runtime error: "))
		}
		s.send(reply)
	}()
	request.memory = s.region(offset, size)
	var args []reflect.Value
	for i := range function.Type().NumIn() {
		value := reflect.New(function.Type().In(i)).Elem()
		request.readValue(value)
		args = append(args, value)
	}
	call := function.Call
	if function.Type().IsVariadic() {
		call = function.CallSlice
	}
	reply.putWords(slotNumber, 0)
	for _, value := range call(args) {
		reply.putValue(value)
	}
	returned = true
}

// panicLine returns the innermost line of the cell in the stack of a panic, or 1 if there is none.
func (s *server) panicLine() int {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for {
		frame, hasMore := frames.Next()
		if frame.File == s.name {
			return frame.Line
		}
		if !hasMore {
			return 1
		}
	}
}
