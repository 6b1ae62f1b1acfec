package comm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

// World is all ranks of an MPI run.
type World struct {
	lib        *library
	limit      time.Duration
	rank, size int
	spin       time.Duration // how long requests spin
	room       []int64       // what peers send, see addPairs
	traffic    Traffic
	calls      chan *request
	broken     error
}

var _ Comm = (*World)(nil)

// maxCount is the most numbers, or bytes, that one MPI call is given.
var maxCount = 1 << 30

// request is a call for the MPI thread. It is on the heap, and so are the buffers that f's MPI
// calls are given, which are reached from it: C may write to them until the collective has ended.
type request struct {
	*World
	f    func(r *request) int32
	code chan int32
	stop atomic.Bool // nobody waits for it any more
}

// How the MPI thread waits: it asks without a pause first, for longer where no other rank needs the processor
// (Locate), and then, to leave it to whoever has work, rarer the longer nothing has come. The thread itself sleeps: the
// sleep of a goroutine lasts a millisecond at least where nothing else runs, and wakes three threads.
const (
	shortSpin  = 200 * time.Microsecond
	longSpin   = 2 * time.Millisecond
	pauses     = 100 // the time without anything over that of a pause
	shortPause = 20 * time.Microsecond
	longPause  = 3 * time.Millisecond
)

// stopped is a return code that MPI has not.
const stopped = -1

// finish starts calls that do not block and waits for the end of all, or until nobody
// wants them any more. So the MPI thread is never caught within MPI by a peer that does not
// come.
func (r *request) finish(start ...func(req *handle) int32) int32 {
	h, done := make([]handle, len(start)), new(int32)
	for i, f := range start {
		if code := f(&h[i]); code != 0 {
			return code
		}
	}
	began := time.Now()
	came := began // the last that has ended
	for i := 0; i < len(h); {
		if code := invoke(r.lib.test, uintptr(unsafe.Pointer(&h[i])), uintptr(unsafe.Pointer(done)),
			r.lib.statusIgnore); code != 0 {
			return code
		}
		now := time.Now()
		switch {
		case *done != 0:
			i++
			came = now
		case r.stop.Load():
			return stopped
		case now.Sub(began) > r.spin:
			invoke(r.lib.usleep, uintptr(max(shortPause, min(now.Sub(came)/pauses, longPause)).Microseconds()))
		}
	}
	return 0
}

// Open loads MPI, starts it, and returns the group of all ranks. It returns an error if the process was not started as
// the launch says: without a library, or as another rank, or with another number of ranks, than the launcher announced;
// or without what MPI needs to start, which would end the process.
func Open(launch Launch, o Options) (*World, error) {
	lib, err := load(launch.Launcher)
	if err != nil {
		return nil, fmt.Errorf("comm: started as rank %d by %s, but %w", launch.Rank, launch.Launcher, err)
	}
	if launch.NoPMI {
		return nil, &RankError{Size: launch.Size, Text: fmt.Sprintf("srun started %d ranks without the process "+
			"manager interface by which those of %s find each other: take srun --mpi=%s", launch.Size, lib.kind,
			lib.srun())}
	}
	w := &World{lib: lib, limit: o.limit(), rank: launch.Rank, size: launch.Size, spin: shortSpin,
		calls: make(chan *request)}
	go w.thread()
	rank, size := new(int32), new(int32)
	err = w.do(context.Background(), "start", func(*request) int32 {
		provided := new(int32)
		if code := invoke(lib.initThread, 0, 0, threadFunneled, uintptr(unsafe.Pointer(provided))); code != 0 {
			return code
		}
		invoke(lib.setErrhandler, lib.world, lib.errorsReturn)
		invoke(lib.commRank, lib.world, uintptr(unsafe.Pointer(rank)))
		return invoke(lib.commSize, lib.world, uintptr(unsafe.Pointer(size)))
	})
	if err != nil {
		return nil, err
	}
	w.rank, w.size = int(*rank), int(*size)
	if launch.Size > 0 && w.size != launch.Size {
		_ = w.Close()
		return nil,
			fmt.Errorf("comm: %s started %d ranks, but %s (%s) sees %d: install or load the MPI library of the "+
				"launcher",
				launch.Launcher, launch.Size, lib.kind, lib.name, w.size)
	}
	if w.rank != launch.Rank {
		if w.size == 1 { // peers may see no fault, and not come to the end
			_ = w.Close()
		}
		return nil,
			fmt.Errorf("comm: %s started this as rank %d, but %s (%s) sees rank %d of %d: install or load the MPI "+
				"library of the launcher; by srun take --mpi=%s",
				launch.Launcher, launch.Rank, lib.kind, lib.name, w.rank, w.size, lib.srun())
	}
	return w, nil
}

// thread is the operating-system thread that calls MPI. It never ends: another goroutine
// must not get it, nor MPI another thread.
func (w *World) thread() {
	runtime.LockOSThread()
	for r := range w.calls {
		r.code <- r.f(r)
	}
}

// Library says which MPI is in use: its ABI, file and version.
func (w *World) Library() string {
	return fmt.Sprintf("%s, %s (%s)", w.lib.kind, w.lib.version(), w.lib.name)
}

// Close ends MPI, together with all peers. The group cannot be used any more. Peers are waited
// for first, as a peer that does not come can be given up there, but not within MPI_Finalize.
func (w *World) Close() error {
	if err := w.AllReduceInt64(context.Background(), []int64{0}); err != nil {
		return err
	}
	err := w.do(context.Background(), "end", func(*request) int32 { return invoke(w.lib.finalize) })
	w.broken = cmp.Or(w.broken, errors.New("closed"))
	return err
}

// Rank implements Comm.
func (w *World) Rank() int { return w.rank }

// Size implements Comm.
func (w *World) Size() int { return w.size }

// Traffic implements Comm.
func (w *World) Traffic() Traffic { return w.traffic }

// do runs f on the MPI thread and waits for it. When ctx ends or the limit passes first,
// f is given up, and MPI is broken.
func (w *World) do(ctx context.Context, op string, f func(r *request) int32) error {
	if w.broken = cmp.Or(w.broken, ctx.Err()); w.broken != nil {
		return &Error{w.rank, w.size, op, w.broken}
	}
	r := &request{World: w, f: f, code: make(chan int32, 1)}
	w.calls <- r
	timer := time.NewTimer(w.limit)
	defer timer.Stop()
	defer r.stop.Store(true)
	select {
	case code := <-r.code:
		if code == 0 {
			return nil
		}
		w.broken = w.lib.failure(code)
	case <-ctx.Done():
		w.broken = ctx.Err()
	case <-timer.C:
		w.broken = fmt.Errorf("no answer within %v: a peer has died, hangs, or cannot be reached", w.limit)
	}
	return &Error{w.rank, w.size, op, w.broken}
}

// collective is do for what moves data.
func (w *World) collective(ctx context.Context, op string, bytes int, f func(r *request) int32) error {
	start := time.Now()
	if err := w.do(ctx, op, f); err != nil {
		return err
	}
	w.traffic.add(bytes, start)
	return nil
}

// pieces starts and finishes one call after the other for at most maxCount of n numbers.
func (r *request) pieces(n int, start func(lo, m int, req *handle) int32) int32 {
	for lo := 0; lo < n; lo += maxCount {
		m := min(maxCount, n-lo)
		if code := r.finish(func(req *handle) int32 { return start(lo, m, req) }); code != 0 {
			return code
		}
	}
	return 0
}

// AllReduceInt64 implements Comm.
func (w *World) AllReduceInt64(ctx context.Context, x []int64) error {
	return w.collective(ctx, opReduce, 8*len(x), func(r *request) int32 {
		if w.size <= mostPairs {
			return r.addPairs(x)
		}
		return r.pieces(len(x), func(lo, m int, req *handle) int32 {
			return invoke(w.lib.iallreduce, w.lib.inPlace, uintptr(unsafe.Pointer(&x[lo])), uintptr(m), w.lib.int64,
				w.lib.sum, w.lib.world, uintptr(unsafe.Pointer(req)))
		})
	})
}

// AllGather implements Comm.
func (w *World) AllGather(ctx context.Context, x []float64, counts []int) error {
	checkParts(len(x), w.size, counts)
	parts, bits := make([][]int64, w.size), bitsOf(x)
	for q, m := range counts {
		parts[q], bits = bits[:m], bits[m:]
	}
	return w.collective(ctx, opGather, 8*counts[w.rank], func(r *request) int32 {
		return r.exchange(func(int) []int64 { return parts[w.rank] }, parts)
	})
}

// Broadcast implements Comm.
func (w *World) Broadcast(ctx context.Context, x []byte, root int) error {
	checkRoot(root, w.size)
	bytes := 0
	if root == w.rank {
		bytes = len(x)
	}
	return w.collective(ctx, opBroadcast, bytes, func(r *request) int32 {
		return r.pieces(len(x), func(lo, m int, req *handle) int32 {
			return invoke(w.lib.ibcast, uintptr(unsafe.Pointer(&x[lo])), uintptr(m), w.lib.byte, uintptr(root),
				w.lib.world, uintptr(unsafe.Pointer(req)))
		})
	})
}

// Abort ends this process and its peers by MPI_Abort, which does not return. Where MPI does
// not let it through within abortGrace, Abort returns, and the launcher ends the peers when
// this process has exited with a code other than 0. It gives the launcher flushGrace to read
// what was written last: MPICH's may end its ranks with their output unread.
func (w *World) Abort(code int) {
	time.Sleep(flushGrace)
	r := &request{World: w, code: make(chan int32, 1)}
	r.f = func(*request) int32 { return invoke(w.lib.abort, w.lib.world, uintptr(code)) }
	grace := time.After(abortGrace)
	select {
	case w.calls <- r:
		<-grace
	case <-grace:
	}
}

const (
	flushGrace = 200 * time.Millisecond
	abortGrace = 5 * time.Second // how long MPI_Abort may take to end the process
)
