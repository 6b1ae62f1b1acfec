package comm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// World is all ranks of an MPI run.
type World struct {
	mpiComm
}

// process is the MPI of this process: one thread that calls it.
type process struct {
	lib   *library
	opt   Options
	calls chan *request
	spin  time.Duration // how long requests spin

	mu     sync.Mutex
	broken error
}

// request is a call for the MPI thread. It is on the heap, and so are the buffers that f's MPI
// calls are given, which are reached from it: C may write to them until the collective has ended.
type request struct {
	f    func(r *request) int32
	code chan int32
	stop atomic.Bool // nobody waits for it any more
	lib  *library
	spin time.Duration
}

// How the MPI thread waits: it asks without a pause first, for longer where no other rank needs the processor
// (Locate), and then, to leave it to whoever has work, rarer the longer it has waited.
const (
	shortSpin  = 200 * time.Microsecond
	longSpin   = 2 * time.Millisecond
	pauses     = 100 // the time waited over that of a pause
	shortPause = 20 * time.Microsecond
	longPause  = 2 * time.Millisecond
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
	for i := 0; i < len(h); {
		if code := invoke(r.lib.test, uintptr(unsafe.Pointer(&h[i])), uintptr(unsafe.Pointer(done)),
			r.lib.statusIgnore); code != 0 {
			return code
		}
		if *done != 0 {
			i++
			continue
		}
		if r.stop.Load() {
			return stopped
		}
		if waited := time.Since(began); waited > r.spin {
			time.Sleep(max(shortPause, min(waited/pauses, longPause)))
		}
	}
	return 0
}

// Open loads MPI, starts it, and returns the group of all ranks. It returns an error if
// the process was not started as the launch says: without a library, or as another rank, or
// with another number of ranks, than the launcher announced; or without what MPI needs to start, which would end the
// process.
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
	p := &process{lib: lib, opt: o.settled(), calls: make(chan *request), spin: shortSpin}
	go p.thread()
	rank, size := new(int32), new(int32)
	w := &World{mpiComm{p: p, handle: lib.world, size: launch.Size, rank: launch.Rank}}
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
func (p *process) thread() {
	runtime.LockOSThread()
	for r := range p.calls {
		r.code <- r.f(r)
	}
}

// Library says which MPI is in use: its ABI, file and version.
func (w *World) Library() string {
	return fmt.Sprintf("%s, %s (%s)", w.p.lib.kind, w.p.lib.version(), w.p.lib.name)
}

// Close ends MPI, together with all peers. The group cannot be used any more. Peers are waited
// for first, as a peer that does not come can be given up there, but not within MPI_Finalize.
func (w *World) Close() error {
	if err := w.Barrier(context.Background()); err != nil {
		return err
	}
	err := w.do(context.Background(), "end", func(*request) int32 { return invoke(w.p.lib.finalize) })
	if err == nil {
		w.p.fail(errors.New("closed"))
	}
	return err
}

// mpiComm is a communicator.
type mpiComm struct {
	p       *process
	handle  uintptr
	rank    int
	size    int
	traffic Traffic
	room    []int64 // what peers send, see addPairs
}

var _ Comm = (*mpiComm)(nil)

func (c *mpiComm) Rank() int        { return c.rank }
func (c *mpiComm) Size() int        { return c.size }
func (c *mpiComm) Traffic() Traffic { return c.traffic }

// do runs f on the MPI thread and waits for it. When ctx ends or the limit passes first,
// f is given up, and MPI is broken.
func (c *mpiComm) do(ctx context.Context, op string, f func(r *request) int32) error {
	p := c.p
	p.mu.Lock()
	err := p.broken
	p.mu.Unlock()
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return &Error{c.rank, c.size, op, p.fail(err)}
	}
	r := &request{f: f, code: make(chan int32, 1), lib: p.lib, spin: p.spin}
	p.calls <- r
	timer := time.NewTimer(p.opt.Limit)
	defer timer.Stop()
	defer r.stop.Store(true)
	select {
	case code := <-r.code:
		if code == 0 {
			return nil
		}
		err = p.lib.failure(code)
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = fmt.Errorf("no answer within %v: a peer has died, hangs, or cannot be reached", p.opt.Limit)
	}
	p.fail(err)
	return &Error{c.rank, c.size, op, err}
}

// fail breaks MPI for this process, with the first cause given, which it returns.
func (p *process) fail(cause error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = cmp.Or(p.broken, cause)
	return p.broken
}

func (c *mpiComm) AllReduce(ctx context.Context, x []float64) error {
	return reduceAll(ctx, c, opReduce, x, c.p.lib.float64)
}

func (c *mpiComm) AllReduceInt64(ctx context.Context, x []int64) error {
	return reduceAll(ctx, c, opReduce64, x, c.p.lib.int64)
}

// reduceAll adds x in place, in pieces of at most MaxCount.
func reduceAll[T int64 | float64](ctx context.Context, c *mpiComm, op string, x []T, kind uintptr) error {
	if l := c.p.lib; c.size > mostPairs {
		return c.pieces(ctx, op, 8*len(x), len(x), func(lo, m int, req *handle) int32 {
			return invoke(l.iallreduce, l.inPlace, uintptr(unsafe.Pointer(&x[lo])), uintptr(m), kind, l.sum, c.handle,
				uintptr(unsafe.Pointer(req)))
		})
	}
	return c.collective(ctx, op, 8*len(x), func(r *request) int32 { return addPairs(c, r, x, kind) })
}

// collective is do for what moves data.
func (c *mpiComm) collective(ctx context.Context, op string, bytes int, f func(r *request) int32) error {
	start := time.Now()
	if err := c.do(ctx, op, f); err != nil {
		return err
	}
	c.traffic.add(bytes, start)
	return nil
}

// pieces starts and finishes one call after the other for at most MaxCount of n numbers.
func (c *mpiComm) pieces(ctx context.Context, op string, bytes, n int, start func(lo, m int, req *handle) int32) error {
	return c.collective(ctx, op, bytes, func(r *request) int32 {
		for lo := 0; lo < n; lo += c.p.opt.MaxCount {
			m := min(c.p.opt.MaxCount, n-lo)
			if code := r.finish(func(req *handle) int32 { return start(lo, m, req) }); code != 0 {
				return code
			}
		}
		return 0
	})
}

func (c *mpiComm) AllGather(ctx context.Context, x []float64, counts []int) error {
	checkParts(len(x), c.size, counts)
	l, bytes := c.p.lib, 8*counts[c.rank]
	if c.size <= mostPairs {
		parts, at := make([][]float64, c.size), 0
		for q, m := range counts {
			parts[q] = x[at : at+m]
			at += m
		}
		own := func(int) []float64 { return parts[c.rank] }
		return c.collective(ctx, opGather, bytes,
			func(r *request) int32 { return exchange(c, r, own, parts, l.float64) })
	}
	if len(x) == 0 || len(x) > c.p.opt.MaxCount {
		return c.gatherParts(ctx, x, counts, bytes)
	}
	n, at := make([]int32, c.size), make([]int32, c.size)
	sum := 0
	for r, m := range counts {
		n[r], at[r] = int32(m), int32(sum)
		sum += m
	}
	return c.collective(ctx, opGather, bytes, func(r *request) int32 {
		return r.finish(func(req *handle) int32 {
			return invoke(l.iallgatherv, l.inPlace, 0, l.float64, uintptr(unsafe.Pointer(&x[0])),
				uintptr(unsafe.Pointer(&n[0])), uintptr(unsafe.Pointer(&at[0])), l.float64, c.handle,
				uintptr(unsafe.Pointer(req)))
		})
	})
}

// gatherParts is AllGather of more numbers than one call can count: a broadcast of one part
// after the other.
func (c *mpiComm) gatherParts(ctx context.Context, x []float64, counts []int, bytes int) error {
	l, limit := c.p.lib, c.p.opt.MaxCount
	return c.collective(ctx, opGather, bytes, func(r *request) int32 {
		lo := 0
		for root, m := range counts {
			for i := 0; i < m; i += limit {
				code := r.finish(func(req *handle) int32 {
					return invoke(l.ibcast, uintptr(unsafe.Pointer(&x[lo+i])), uintptr(min(limit, m-i)), l.float64,
						uintptr(root), c.handle, uintptr(unsafe.Pointer(req)))
				})
				if code != 0 {
					return code
				}
			}
			lo += m
		}
		return 0
	})
}

func (c *mpiComm) Broadcast(ctx context.Context, x []byte, root int) error {
	checkRoot(root, c.size)
	bytes, l := 0, c.p.lib
	if root == c.rank {
		bytes = len(x)
	}
	return c.pieces(ctx, opBroadcast, bytes, len(x), func(lo, m int, req *handle) int32 {
		return invoke(l.ibcast, uintptr(unsafe.Pointer(&x[lo])), uintptr(m), l.byte, uintptr(root), c.handle,
			uintptr(unsafe.Pointer(req)))
	})
}

func (c *mpiComm) Barrier(ctx context.Context) error {
	return c.collective(ctx, opBarrier, 0, func(r *request) int32 {
		return r.finish(func(req *handle) int32 {
			return invoke(c.p.lib.ibarrier, c.handle,
				uintptr(unsafe.Pointer(req)))
		})
	})
}

// Abort ends this process and its peers by MPI_Abort, which does not return. Where MPI does
// not let it through within abortGrace, Abort returns, and the launcher ends the peers when
// this process has exited with a code other than 0. It gives the launcher flushGrace to read
// what was written last: MPICH's may end its ranks with their output unread.
func (c *mpiComm) Abort(code int) {
	time.Sleep(flushGrace)
	r := &request{code: make(chan int32, 1), lib: c.p.lib}
	r.f = func(*request) int32 { return invoke(c.p.lib.abort, c.p.lib.world, uintptr(code)) }
	grace := time.After(abortGrace)
	select {
	case c.p.calls <- r:
		<-grace
	case <-grace:
	}
}

const (
	flushGrace = 200 * time.Millisecond
	abortGrace = 5 * time.Second // how long MPI_Abort may take to end the process
)
