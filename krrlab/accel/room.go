package accel

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
)

// What OpenBLAS may take where addresses are limited (ulimit -v, some batch systems). It has a
// buffer of addresses for each call that runs at a time and for each thread of its own, 128 MiB
// as Debian builds it, and waits without end for one that it cannot have. So it is loaded where
// there is room enough, best with one thread, tells how large they are, and then takes all that it
// will ever need.
const (
	roomToLoad = 1 << 29 // the library, some 50 MiB, a buffer of 256 MiB at most, and as much again
	roomShare  = 2       // of what is left it may take one part of as many
)

// RoomError says that the limit on addresses leaves OpenBLAS too few.
type RoomError struct {
	Left, Want int64 // bytes; Want is 0 where the library does not tell
}

func (e *RoomError) Error() string {
	want := "it does not tell how many it needs"
	if e.Want > 0 {
		want = fmt.Sprintf("it needs %.1f GB", float64(e.Want)/1e9)
	}
	return fmt.Sprintf("the limit on addresses (ulimit -v) leaves %.1f GB, %s", float64(e.Left)/1e9, want)
}

// room returns the bytes of addresses that are left, and whether they are limited.
func room() (left int64, limited bool) {
	limit, used, limited := addresses()
	return limit - used, limited
}

// openBLASThreads says in the environment with how many threads OpenBLAS begins. The command sets
// it to 1 where addresses are limited; without it they are as many as cores.
const openBLASThreads = "OPENBLAS_NUM_THREADS"

// roomWanted returns the bytes of addresses without which the library is not loaded.
func (m machine) roomWanted() int64 {
	begins := runtime.NumCPU()
	for line := range strings.SplitSeq(m.read("/proc/self/environ"), "\x00") {
		if v, ok := strings.CutPrefix(line, openBLASThreads+"="); ok {
			if n, err := strconv.Atoi(v); err == nil && n > 0 {
				begins = min(n, begins)
			}
		}
	}
	return roomToLoad + int64(begins-1)*(roomToLoad/2+stackSize())
}

// hold makes the library take its buffers for calls from that many goroutines at a time, and settles how many threads of its own it may have.
func (l *Library) hold(handle uintptr, callers int) error {
	left, _ := room()
	alloc, free := dlsym(handle, "blas_memory_alloc"), dlsym(handle, "blas_memory_free")
	if alloc == 0 || free == 0 {
		return &RoomError{Left: left}
	}
	held := []uintptr{call(alloc, []uintptr{0})}
	defer func() {
		for _, p := range held {
			call(free, []uintptr{p})
		}
	}()
	now, _ := room()
	size := left - now
	if size <= 0 { // it had one
		size = roomToLoad / 4
	}
	l.most = fitting(now, size, stackSize(), callers)
	if l.most == 0 {
		return &RoomError{Left: now, Want: roomShare * size * int64(callers-1)}
	}
	for range callers + l.most - 2 {
		held = append(held, call(alloc, []uintptr{0}))
	}
	return nil
}

// fitting returns how many threads, at most one for each caller, fit with their buffers and
// stacks into the library's share of what is left, beside the callers' buffers but the one
// that is held; 0 if not even those fit.
func fitting(left, size, stack int64, callers int) int {
	for n := callers; n > 0; n-- {
		if int64(callers-1)*size+int64(n-1)*(size+stack) <= left/roomShare {
			return n
		}
	}
	return 0
}
