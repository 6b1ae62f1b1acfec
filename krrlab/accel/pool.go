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

// threads is the number of cores this process may use; see SetThreads.
var threads atomic.Int32

func init() { threads.Store(int32(runtime.GOMAXPROCS(0))) }

// Threads returns the number of cores that ForEach and the BLAS may use.
func Threads() int { return int(threads.Load()) }

// SetThreads sets the number of cores that ForEach and the BLAS may use.
// It is the one place where a thread count is chosen: outside ForEach the BLAS
// runs on n threads, inside it on one, so that Go workers and BLAS threads
// never oversubscribe the cores. SetThreads panics if n < 1. It must not be
// called while a ForEach is running.
func SetThreads(n int) {
	if n < 1 {
		panic(fmt.Sprintf("accel: SetThreads(%d): want at least 1", n))
	}
	threads.Store(int32(n))
	blasThreads.use(nil)
}

// job is one call of ForEach.
type job struct {
	ctx  context.Context
	n    int64
	body func(worker, i int)
	next atomic.Int64 // next index to hand out
	wg   sync.WaitGroup
	once sync.Once
	pan  *WorkerPanic
}

// WorkerPanic is the value ForEach panics with in its caller's goroutine when a
// body has panicked in a worker.
type WorkerPanic struct {
	Value any    // what the body panicked with
	Stack []byte // the worker's stack
}

func (p *WorkerPanic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Unwrap returns the panic's value if it was an error.
func (p *WorkerPanic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// run takes indices until there are none left, the context is done or a body
// has panicked.
func (j *job) run(worker int) {
	done := false
	defer func() {
		if done {
			return
		}
		v := recover()
		if v == nil {
			v = errGoexit // runtime.Goexit runs deferred calls too
		}
		j.next.Store(j.n) // hand out no more
		j.once.Do(func() { j.pan = &WorkerPanic{v, debug.Stack()} })
	}()
	for j.ctx.Err() == nil {
		i := j.next.Add(1) - 1
		if i >= j.n {
			break
		}
		j.body(worker, int(i))
	}
	done = true
}

var errGoexit = errors.New("accel: the body of a ForEach called runtime.Goexit")

// ErrFault says that memory of a mapped file has no content any more.
var ErrFault = errors.New("a file that is mapped to memory cannot be read any more: it was made shorter, or its disk fails")

// CatchFaults calls f, and returns ErrFault if it reads mapped memory, here or in a body of ForEach, that has no content.
func CatchFaults(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			e, _ := v.(error)
			if _, fault := errors.AsType[interface {
				error
				Addr() uintptr
			}](e); !fault {
				panic(v)
			}
			err = ErrFault
		}
	}()
	return f()
}

type ticket struct {
	j      *job
	worker int
}

var (
	jobs = sync.Pool{New: func() any { return new(job) }}
	// idle hands tickets to parked workers, whose number is parked. Workers are
	// started on demand and live on; there are never more of them than were once
	// in use together.
	idle   = make(chan ticket)
	parked atomic.Int32
)

// unpark claims one parked worker and reports whether there was one.
func unpark() bool {
	for {
		p := parked.Load()
		if p == 0 {
			return false
		}
		if parked.CompareAndSwap(p, p-1) {
			return true
		}
	}
}

func workerLoop(t ticket) {
	debug.SetPanicOnFault(true)
	defer func() { t.j.wg.Done() }() // only by way of runtime.Goexit
	for {
		t.j.run(t.worker)
		parked.Add(1) // before Done: the next ForEach finds this worker
		t.j.wg.Done()
		t = <-idle
	}
}

// ForEach calls body(worker, i) for i = 0 … n-1 on up to Threads() goroutines,
// handing out i in ascending order, and waits for all of them. worker, in
// [0, Threads()), names the goroutine, so that a body can own scratch memory.
// While ForEach runs, BLAS calls use one thread each. Bodies must not
// call ForEach.
//
// If ctx is done no further index is handed out and ForEach returns ctx's error;
// bodies already running finish. A panic in a body is raised again in the
// caller's goroutine as a *WorkerPanic. ForEach allocates nothing once its
// workers exist.
func ForEach(ctx context.Context, n int, body func(worker, i int)) error {
	if n <= 0 {
		return ctx.Err()
	}
	blasThreads.enter(1)
	defer blasThreads.enter(-1)

	j := jobs.Get().(*job)
	j.ctx, j.n, j.body, j.pan, j.once = ctx, int64(n), body, nil, sync.Once{}
	j.next.Store(0)
	for w := 1; w < min(Threads(), n); w++ {
		j.wg.Add(1)
		t := ticket{j, w}
		if unpark() {
			idle <- t
		} else {
			go workerLoop(t)
		}
	}
	j.run(0)
	j.wg.Wait()
	pan := j.pan
	j.ctx, j.body, j.pan = nil, nil, nil
	jobs.Put(j)
	if pan != nil {
		panic(pan)
	}
	return ctx.Err()
}

// Each is ForEach without an end before the last.
func Each(n int, body func(worker, i int)) {
	if err := ForEach(context.Background(), n, body); err != nil {
		panic(err) // the background context does not end
	}
}

// Counter returns a function that counts what is done of a total and tells progress, which may be nil, one call at a
// time.
func Counter(total int, progress func(done, total int)) func(more int) {
	var mu sync.Mutex
	done := 0
	return func(more int) {
		if progress == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		done += more
		progress(done, total)
	}
}

// blasThreads switches the BLAS between Threads() threads and one.
var blasThreads = &blasOwner{set: func(int) {}}

type blasOwner struct {
	mu      sync.Mutex
	regions int
	set     func(n int) // sets the number of BLAS threads
}

// use installs the BLAS's own switch, unless that is nil, and sets the number of threads.
func (o *blasOwner) use(set func(n int)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if set != nil {
		o.set = set
	}
	o.rest()
}

// rest sets the number of threads; the lock is held.
func (o *blasOwner) rest() {
	if o.regions == 0 {
		o.set(Threads())
	} else {
		o.set(1)
	}
}

// enter counts a ForEach more, or one less.
func (o *blasOwner) enter(more int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.regions
	if o.regions += more; (before == 0) != (o.regions == 0) && Threads() > 1 {
		o.rest()
	}
}
