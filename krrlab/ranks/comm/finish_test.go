//go:build linux && (amd64 || arm64)

package comm

import (
	"testing"
	"time"
	"unsafe"

	"github.com/krrlab/lab/krrlab/internal/dl"
)

// TestFinishAfterStackGrowth checks that C code finds the request and its completion flag at the addresses it was
// given, although the stack grows, and so moves, between taking the address and the call. Two functions of the C
// library replace those of MPI: one stores a number in the request, the other copies it to the flag.
func TestFinishAfterStackGrowth(t *testing.T) {
	libc, err := dl.Open("libc.so.6", true)
	if err != nil {
		t.Skip(err)
	}
	setType, getType := dl.Sym(libc, "pthread_mutexattr_settype"), dl.Sym(libc, "pthread_mutexattr_gettype")
	if setType == 0 || getType == 0 {
		t.Skip("no pthread_mutexattr_settype or no pthread_mutexattr_gettype in libc.so.6")
	}
	// test replaces MPI_Test, and a spin of an hour never sleeps between two calls of it.
	r := &request{World: &World{lib: &library{test: getType}, spin: time.Hour}}
	code := make(chan int32, 1)
	go func() { // the stack of a new goroutine is small, so growStack makes it grow
		code <- r.finish(func(req *handle) int32 {
			growStack(1000)
			return invoke(setType, uintptr(unsafe.Pointer(req)), 1)
		})
	}()
	time.AfterFunc(2*time.Minute, func() { r.stop.Store(true) }) // so that a failure does not hang the test
	if got := <-code; got != 0 {
		t.Errorf("code %d, want 0: the completion flag was not set", got)
	}
}

// growStack uses one kilobyte of stack per step. The result has no meaning.
func growStack(steps int) byte {
	var frame [1024]byte
	if steps > 0 {
		frame[steps%len(frame)] = growStack(steps - 1)
	}
	return frame[0]
}
