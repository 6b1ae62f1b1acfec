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

// World is the group of all ranks of an MPI run. Its methods must not be called by two goroutines at the same time,
// except for Abort, Rank and Size: collectives have an order that is the same on all ranks, and no lock guards failure
// and traffic.
type World struct {
	lib           *library
	limit         time.Duration // longest time that a collective may take
	rank, size    int
	spin          time.Duration // time for which the MPI thread polls without a pause
	receiveBuffer []int64       // the parts of the peers in addPairs
	traffic       Traffic
	calls         chan *request // requests to the MPI thread
	failure       error         // first failure, which all later collectives return; nil while the group works
}

var _ Comm = (*World)(nil)

// maxCount is the largest number of elements, or bytes, in one MPI call. Tests make it smaller.
var maxCount = 1 << 30

// request is a function for the MPI thread to run. The request is on the heap, and so are the buffers of the MPI
// calls in run, which it references: C may write to them until the collective has ended.
type request struct {
	*World
	run  func(r *request) int32
	code chan int32  // receives the MPI return code of run
	stop atomic.Bool // the caller no longer waits for the request
}

// These constants control how the MPI thread waits for a request. It first polls without a pause for shortSpin, or
// for longSpin if no other rank needs the processor (LocateNode). After that it sleeps between polls so that other
// threads can work. The pause is 1/idleToPauseRatio of the time since the last call completed, at least shortPause and
// at most longPause: longer pauses save processor time and add latency. The thread sleeps in C, because the sleep of a
// goroutine lasts at least a millisecond on an otherwise idle process and wakes three threads.
const (
	shortSpin        = 200 * time.Microsecond
	longSpin         = 2 * time.Millisecond
	idleToPauseRatio = 100 // ratio of the idle time to a pause
	shortPause       = 20 * time.Microsecond
	longPause        = 3 * time.Millisecond
)

// codeAbandoned is a return code that MPI does not use: the caller has given up the request.
const codeAbandoned = -1

// finish starts non-blocking MPI calls and polls until all have completed or the caller has given up the request. The
// MPI thread therefore never blocks inside MPI because of a missing peer.
//
// Each of starts starts a call that writes its handle to req, and returns an MPI code. finish returns 0, the code of
// the first failure, or codeAbandoned.
func (r *request) finish(starts ...func(req *handle) int32) int32 {
	handles, completed := make([]handle, len(starts)), new(int32)
	for i, start := range starts {
		if code := start(&handles[i]); code != 0 {
			return code
		}
	}
	begin := time.Now()
	lastCompletion := begin
	for i := 0; i < len(handles); {
		if code := invoke(r.lib.test, uintptr(unsafe.Pointer(&handles[i])), uintptr(unsafe.Pointer(completed)),
			r.lib.statusIgnore); code != 0 {
			return code
		}
		now := time.Now()
		switch {
		case *completed != 0:
			i++
			lastCompletion = now
		case r.stop.Load():
			return codeAbandoned
		case now.Sub(begin) > r.spin:
			pause := max(shortPause, min(now.Sub(lastCompletion)/idleToPauseRatio, longPause))
			invoke(r.lib.usleep, uintptr(pause.Microseconds()))
		}
	}
	return 0
}

// Open loads MPI, initializes it and returns the group of all ranks. It returns an error if no library is found, if MPI
// reports another rank or another number of ranks than the launcher announced, or if the process manager interface is
// missing, without which MPI would end the process. limit is the longest time that a collective may take; 0 means
// DefaultLimit.
func Open(launch Launch, limit time.Duration) (*World, error) {
	lib, err := load(launch.Launcher)
	if err != nil {
		return nil, fmt.Errorf("comm: started as rank %d by %s, but %w", launch.Rank, launch.Launcher, err)
	}
	if launch.NoPMI {
		return nil, &RankError{Size: launch.Size, Text: fmt.Sprintf("srun started %d ranks without the process "+
			"manager interface by which those of %s find each other: take srun --mpi=%s", launch.Size, lib.kind,
			lib.srunInterface())}
	}
	w := &World{lib: lib, limit: limitOrDefault(limit), rank: launch.Rank, size: launch.Size, spin: shortSpin,
		calls: make(chan *request)}
	go w.thread()
	rank, size := new(int32), new(int32)
	err = w.runOnThread(context.Background(), "start", func(*request) int32 {
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
		return nil, fmt.Errorf("comm: %s started %d ranks, but %s (%s) sees %d: install or load the MPI library of "+
			"the launcher", launch.Launcher, launch.Size, lib.kind, lib.name, w.size)
	}
	if w.rank != launch.Rank {
		if w.size == 1 { // do not wait for peers, which may see no fault and never call Close
			_ = w.Close()
		}
		return nil, fmt.Errorf("comm: %s started this as rank %d, but %s (%s) sees rank %d of %d: install or load the "+
			"MPI library of the launcher; by srun take --mpi=%s", launch.Launcher, launch.Rank, lib.kind, lib.name,
			w.rank, w.size, lib.srunInterface())
	}
	return w, nil
}

// thread runs on the operating-system thread that calls MPI. It never returns, so that no other goroutine gets this
// thread and MPI is never called from another one.
func (w *World) thread() {
	runtime.LockOSThread()
	for r := range w.calls {
		r.code <- r.run(r)
	}
}

// Library describes the MPI library in use: its ABI, version and file.
func (w *World) Library() string {
	return fmt.Sprintf("%s, %s (%s)", w.lib.kind, w.lib.version(), w.lib.name)
}

// Close finalizes MPI together with all peers. The group cannot be used afterwards. Close first waits for the peers
// in a collective, which can be given up if a peer is missing; MPI_Finalize cannot.
func (w *World) Close() error {
	if err := w.AllReduceInt64(context.Background(), []int64{0}); err != nil {
		return err
	}
	err := w.runOnThread(context.Background(), "end", func(*request) int32 { return invoke(w.lib.finalize) })
	w.failure = cmp.Or(w.failure, errors.New("closed"))
	return err
}

// Rank implements Comm.
func (w *World) Rank() int { return w.rank }

// Size implements Comm.
func (w *World) Size() int { return w.size }

// Traffic implements Comm.
func (w *World) Traffic() Traffic { return w.traffic }

// runOnThread runs f on the MPI thread and waits for it. If ctx ends or the limit passes first, it gives up f and the
// group is broken.
func (w *World) runOnThread(ctx context.Context, op string, f func(r *request) int32) error {
	if w.failure = cmp.Or(w.failure, ctx.Err()); w.failure != nil {
		return &Error{w.rank, w.size, op, w.failure}
	}
	r := &request{World: w, run: f, code: make(chan int32, 1)}
	w.calls <- r
	timer := time.NewTimer(w.limit)
	defer timer.Stop()
	defer r.stop.Store(true)
	select {
	case code := <-r.code:
		if code == 0 {
			return nil
		}
		w.failure = w.lib.failure(code)
	case <-ctx.Done():
		w.failure = ctx.Err()
	case <-timer.C:
		w.failure = fmt.Errorf("no answer within %v: a peer has died, hangs, or cannot be reached", w.limit)
	}
	return &Error{w.rank, w.size, op, w.failure}
}

// collective runs f as runOnThread does, and records the traffic.
func (w *World) collective(ctx context.Context, op string, bytes int, f func(r *request) int32) error {
	start := time.Now()
	if err := w.runOnThread(ctx, op, f); err != nil {
		return err
	}
	w.traffic.add(bytes, start)
	return nil
}

// callInChunks splits n elements into chunks of at most maxCount, and starts and finishes one MPI call after the other.
func (r *request) callInChunks(n int, start func(lo, count int, req *handle) int32) int32 {
	for lo := 0; lo < n; lo += maxCount {
		count := min(maxCount, n-lo)
		if code := r.finish(func(req *handle) int32 { return start(lo, count, req) }); code != 0 {
			return code
		}
	}
	return 0
}

// AllReduceInt64 implements Comm.
func (w *World) AllReduceInt64(ctx context.Context, x []int64) error {
	return w.collective(ctx, opReduce, 8*len(x), func(r *request) int32 {
		if w.size <= maxPairRanks {
			return r.addPairs(x)
		}
		return r.callInChunks(len(x), func(lo, count int, req *handle) int32 {
			return invoke(w.lib.iallreduce, w.lib.inPlace, uintptr(unsafe.Pointer(&x[lo])), uintptr(count), w.lib.int64,
				w.lib.sum, w.lib.world, uintptr(unsafe.Pointer(req)))
		})
	})
}

// AllGather implements Comm.
func (w *World) AllGather(ctx context.Context, x []float64, counts []int) error {
	checkParts(len(x), w.size, counts)
	parts, bits := make([][]int64, w.size), bitsOf(x)
	for rank, count := range counts {
		parts[rank], bits = bits[:count], bits[count:]
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
		return r.callInChunks(len(x), func(lo, count int, req *handle) int32 {
			return invoke(w.lib.ibcast, uintptr(unsafe.Pointer(&x[lo])), uintptr(count), w.lib.byte, uintptr(root),
				w.lib.world, uintptr(unsafe.Pointer(req)))
		})
	})
}

// Abort ends this process and its peers with MPI_Abort. It first waits for flushGrace so that the launcher can read
// the last output; the launcher of MPICH may discard unread output of its ranks. MPI_Abort does not return. If it
// cannot be called or does not end the process within abortGrace, Abort returns; the launcher then ends the peers
// once this process exits with a code other than 0.
func (w *World) Abort(code int) {
	time.Sleep(flushGrace)
	r := &request{World: w, code: make(chan int32, 1)}
	r.run = func(*request) int32 { return invoke(w.lib.abort, w.lib.world, uintptr(code)) }
	grace := time.After(abortGrace)
	select {
	case w.calls <- r:
		<-grace
	case <-grace:
	}
}

const (
	flushGrace = 200 * time.Millisecond // time for the launcher to read the last output
	abortGrace = 5 * time.Second        // longest time that MPI_Abort may take to end the process
)
