package accel

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// threads is the number of cores that this process may use; see SetThreads.
var threads atomic.Int32

func init() { threads.Store(int32(runtime.GOMAXPROCS(0))) }

// Threads returns the number of cores that ForEach and the BLAS may use.
func Threads() int { return int(threads.Load()) }

// SetThreads sets the number of cores that ForEach and the BLAS may use.
// No other function sets a thread count. Outside ForEach the BLAS runs on n
// threads, and inside it on one, so that Go workers and BLAS threads never
// oversubscribe the cores. SetThreads panics if n < 1. It must not be called
// while a ForEach is running.
func SetThreads(n int) {
	if n < 1 {
		panic(fmt.Sprintf("accel: SetThreads(%d): want at least 1", n))
	}
	threads.Store(int32(n))
	blasThreads.use(nil)
}

// job is one call of ForEach.
type job struct {
	ctx  context.Context     // ends the loop between two indices
	n    int64               // number of indices
	body func(worker, i int) // called for every index
	wg   sync.WaitGroup      // counts the workers other than the caller

	nextIndex   atomic.Int64 // smallest index that no worker has taken yet
	panicOnce   sync.Once    // guards workerPanic
	workerPanic *WorkerPanic // first panic of a body, nil if there was none
}

// WorkerPanic is the panic value of ForEach. If a body panics in a worker, ForEach panics with it in the goroutine of
// its caller.
type WorkerPanic struct {
	Value any    // panic value of the body
	Stack []byte // stack of the worker
}

// Error returns the panic value of the body and the stack of the worker.
func (p *WorkerPanic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Unwrap returns the panic's value if it was an error.
func (p *WorkerPanic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// run calls the body for one index after the other until no index is left, the context is done, or a body has panicked.
func (j *job) run(worker int) {
	finished := false
	defer func() {
		if finished {
			return
		}
		panicValue := recover()
		if panicValue == nil {
			panicValue = errGoexit // runtime.Goexit runs deferred calls too
		}
		j.nextIndex.Store(j.n) // no further index is given to any worker
		j.panicOnce.Do(func() { j.workerPanic = &WorkerPanic{panicValue, debug.Stack()} })
	}()
	for j.ctx.Err() == nil {
		i := j.nextIndex.Add(1) - 1
		if i >= j.n {
			break
		}
		j.body(worker, int(i))
	}
	finished = true
}

// errGoexit is the panic value of a body that ended its goroutine without a panic.
var errGoexit = errors.New("accel: the body of a ForEach called runtime.Goexit")

// ErrMappedFile is the error of CatchFaults: a mapped file can no longer be read.
var ErrMappedFile = errors.New("a file that is mapped to memory cannot be read any more: it was made shorter, or its " +
	"disk fails")

// CatchFaults calls f and returns its error. It returns ErrMappedFile if f, or a body of a ForEach that it runs,
// accesses memory of a mapped file that can no longer be read.
func CatchFaults(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if panicValue := recover(); panicValue != nil {
			asError, _ := panicValue.(error)
			if _, isFault := errors.AsType[interface {
				error
				Addr() uintptr
			}](asError); !isFault {
				panic(panicValue)
			}
			err = ErrMappedFile
		}
	}()
	return f()
}

// ticket assigns a worker number of a job to a goroutine.
type ticket struct {
	j      *job
	worker int
}

var (
	jobs = sync.Pool{New: func() any { return new(job) }}
	// tickets passes jobs to the parked workers; parkedWorkers is their number. Workers are started on demand and never
	// end. Their number is the largest that was in use at one time.
	tickets       = make(chan ticket)
	parkedWorkers atomic.Int32
)

// unpark reserves one parked worker and reports whether there was one.
func unpark() bool {
	for {
		count := parkedWorkers.Load()
		if count == 0 {
			return false
		}
		if parkedWorkers.CompareAndSwap(count, count-1) {
			return true
		}
	}
}

// workerLoop runs the job of ticket t, and then the jobs of all further tickets.
func workerLoop(t ticket) {
	debug.SetPanicOnFault(true)
	defer func() { t.j.wg.Done() }() // reached only by runtime.Goexit
	for {
		t.j.run(t.worker)
		parkedWorkers.Add(1) // before Done, so that the next ForEach finds this worker
		t.j.wg.Done()
		t = <-tickets
	}
}

// ForEach calls body(worker, i) for i = 0 … n-1 on up to Threads() goroutines and waits for all calls. Indices are
// started in ascending order. worker, in [0, Threads()), identifies the goroutine, so that each can have its own
// scratch memory. While ForEach runs, every BLAS call uses one thread. A body must not call ForEach.
//
// If ctx is done, ForEach starts no further index, waits for the running bodies, and returns the error of ctx. If a
// body panics, ForEach panics in the goroutine of its caller with a *WorkerPanic. ForEach does not allocate once its
// workers exist.
func ForEach(ctx context.Context, n int, body func(worker, i int)) error {
	if n <= 0 {
		return ctx.Err()
	}
	blasThreads.enter(1)
	defer blasThreads.enter(-1)

	j := jobs.Get().(*job)
	j.ctx, j.n, j.body, j.workerPanic, j.panicOnce = ctx, int64(n), body, nil, sync.Once{}
	j.nextIndex.Store(0)
	for worker := 1; worker < min(Threads(), n); worker++ {
		j.wg.Add(1)
		t := ticket{j, worker}
		if unpark() {
			tickets <- t
		} else {
			go workerLoop(t)
		}
	}
	j.run(0)
	j.wg.Wait()
	workerPanic := j.workerPanic
	j.ctx, j.body, j.workerPanic = nil, nil, nil
	jobs.Put(j)
	if workerPanic != nil {
		panic(workerPanic)
	}
	return ctx.Err()
}

// ForEachBlock is ForEach over the blocks of size consecutive indices that make up 0, …, n-1: it calls body for the
// indices lo, …, hi-1 of each block. Only the last block may be shorter. ForEachBlock allocates a closure.
func ForEachBlock(ctx context.Context, n, size int, body func(worker, lo, hi int)) error {
	return ForEach(ctx, (n+size-1)/size, func(worker, block int) { body(worker, block*size, min((block+1)*size, n)) })
}

// Each is ForEach without a context: it calls body for all indices.
func Each(n int, body func(worker, i int)) {
	if err := ForEach(context.Background(), n, body); err != nil {
		panic(err) // unreachable: the background context is never done
	}
}

// ProgressCounter returns a function that adds its argument to a count and then calls progress with the count and the
// total. It may be called from several goroutines; the calls of progress do not overlap. progress may be nil.
func ProgressCounter(total int, progress func(completed, total int)) func(increment int) {
	var mu sync.Mutex
	completed := 0
	return func(increment int) {
		if progress == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		completed += increment
		progress(completed, total)
	}
}

// blasThreads switches the BLAS between Threads() threads and one thread.
var blasThreads = &blasThreadSwitch{set: func(int) {}}

// blasThreadSwitch sets the number of BLAS threads to one while a ForEach runs.
type blasThreadSwitch struct {
	mu      sync.Mutex
	regions int         // number of running ForEach calls
	set     func(n int) // sets the number of BLAS threads
}

// use installs set, the function of the BLAS in use that sets its number of threads, unless set is nil. It then applies
// the present number of threads.
func (s *blasThreadSwitch) use(set func(n int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if set != nil {
		s.set = set
	}
	s.apply()
}

// apply sets the number of threads. The caller must hold the lock.
func (s *blasThreadSwitch) apply() {
	if s.regions == 0 {
		s.set(Threads())
	} else {
		s.set(1)
	}
}

// enter adds delta, 1 or -1, to the number of running ForEach calls, and sets the number of BLAS threads if the first
// call has begun or the last one has ended.
func (s *blasThreadSwitch) enter(delta int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	oldRegions := s.regions
	if s.regions += delta; (oldRegions == 0) != (s.regions == 0) && Threads() > 1 {
		s.apply()
	}
}
