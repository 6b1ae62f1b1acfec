package accel

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/race"
)

// TestForEachEveryIndexOnce checks that every index runs once and that no worker runs two bodies at the same time.
func TestForEachEveryIndexOnce(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 8} {
		useThreads(t, threads)
		for _, n := range []int{0, 1, 2, 3, 7, 1000} {
			seen := make([]atomic.Int32, n)
			busy := make([]atomic.Int32, threads)
			if err := ForEach(context.Background(), n, func(worker, i int) {
				if busy[worker].Add(1) != 1 {
					t.Errorf("worker %d runs two bodies at once", worker)
				}
				seen[i].Add(1)
				runtime.Gosched()
				busy[worker].Add(-1)
			}); err != nil {
				t.Fatal(err)
			}
			for i := range seen {
				if count := seen[i].Load(); count != 1 {
					t.Fatalf("threads %d, n %d: index %d was run %d times", threads, n, i, count)
				}
			}
		}
	}
}

// TestForEachBlock checks that every index is in one block, and that all blocks except the last have the given size.
func TestForEachBlock(t *testing.T) {
	for _, test := range [][2]int{{0, 4}, {1, 4}, {4, 4}, {11, 4}, {3, 1}} {
		n, size := test[0], test[1]
		calls := make([]int, n)
		if err := ForEachBlock(t.Context(), n, size, func(_, start, end int) {
			if start%size != 0 || end != min(start+size, n) {
				t.Errorf("n = %d, blocks of %d: one from %d to %d", n, size, start, end)
			}
			for i := start; i < end; i++ {
				calls[i]++
			}
		}); err != nil {
			t.Error(err)
		}
		if !slices.Equal(calls, slices.Repeat([]int{1}, n)) {
			t.Errorf("n = %d, blocks of %d: calls for each index %v", n, size, calls)
		}
	}
}

// TestForEachConcurrentCalls checks several calls of ForEach at the same time.
func TestForEachConcurrentCalls(t *testing.T) {
	useThreads(t, 3)
	var wg sync.WaitGroup
	var total atomic.Int64
	for range 8 {
		wg.Go(func() {
			for range 50 {
				_ = ForEach(context.Background(), 20, func(_, i int) { total.Add(int64(i)) })
			}
		})
	}
	wg.Wait()
	if got := total.Load(); got != 8*50*190 {
		t.Errorf("sum %d, want %d", got, 8*50*190)
	}
}

// TestForEachPanic checks that a panic of a body reaches the caller with its stack, that no further index runs, and
// that the pool works afterwards.
func TestForEachPanic(t *testing.T) {
	errBody := errors.New("boom")
	for _, threads := range []int{1, 4} {
		useThreads(t, threads)
		for _, failing := range []int{0, 5, 99} {
			panicValue := panicOf(func() {
				_ = ForEach(context.Background(), 100, func(_, i int) {
					if i == failing {
						panic(errBody)
					}
				})
			})
			workerPanic, ok := panicValue.(*WorkerPanic)
			if !ok || !errors.Is(workerPanic, errBody) || !strings.Contains(workerPanic.Error(), "boom") ||
				!strings.Contains(string(workerPanic.Stack), "TestForEachPanic") {
				t.Fatalf("panic with %#v, want a *WorkerPanic of the error with its stack", panicValue)
			}
		}
		var calls atomic.Int32 // the pool still works
		_ = ForEach(context.Background(), 100, func(_, i int) { calls.Add(1) })
		if calls.Load() != 100 {
			t.Errorf("%d bodies ran after a panic", calls.Load())
		}
	}
	useThreads(t, 2) // no index is handed out after a panic
	var ran atomic.Int32
	_ = panicOf(func() {
		_ = ForEach(context.Background(), 1<<22, func(_, i int) {
			if ran.Add(1) == 1 {
				panic(errBody)
			}
		})
	})
	if ran.Load() == 1<<22 {
		t.Error("the other worker ran on to the end after a panic")
	}
	workerPanic := panicOf(func() {
		_ = ForEach(context.Background(), 3, func(_, i int) {
			panic("a string")
		})
	}).(*WorkerPanic)
	if workerPanic.Unwrap() != nil || workerPanic.Value != "a string" {
		t.Errorf("Unwrap of a string: %v, value %v", workerPanic.Unwrap(), workerPanic.Value)
	}
}

// TestForEachGoexit checks that a body that ends its goroutine, as t.FailNow does, does not block the caller forever.
func TestForEachGoexit(t *testing.T) {
	useThreads(t, 2)
	got := make(chan any)
	go func() {
		defer close(got)
		var once atomic.Bool
		got <- panicOf(func() {
			release := make(chan struct{})
			_ = ForEach(context.Background(), 2, func(worker, i int) {
				if worker == 1 && once.CompareAndSwap(false, true) {
					close(release)
					runtime.Goexit()
				}
				<-release
			})
		})
	}()
	if workerPanic, ok := (<-got).(*WorkerPanic); !ok || !errors.Is(workerPanic, errGoexit) {
		t.Errorf("ForEach panics with %v", workerPanic)
	}
}

// TestForEachCancel checks that no further body starts once the context is canceled.
func TestForEachCancel(t *testing.T) {
	useThreads(t, 2)
	ctx, cancel := context.WithCancel(context.Background())
	var ran atomic.Int32
	err := ForEach(ctx, 1_000_000, func(_, i int) {
		switch n := ran.Add(1); {
		case n == 10:
			cancel()
		case n > 10: // the other worker may come here before cancel has closed Done
			<-ctx.Done()
		}
	})
	if !errors.Is(err, context.Canceled) || ran.Load() > 11 {
		t.Errorf("err %v after %d bodies", err, ran.Load())
	}
	ran.Store(0)
	for _, n := range []int{0, 5} {
		if err := ForEach(ctx, n, func(_, i int) { ran.Add(1) }); !errors.Is(err, context.Canceled) || ran.Load() != 0 {
			t.Errorf("n = %d, ctx done: err %v, %d bodies", n, err, ran.Load())
		}
	}
}

// TestForEachNoAllocation checks that ForEach allocates nothing.
func TestForEachNoAllocation(t *testing.T) {
	useThreads(t, 4)
	sums := make([]float64, 4)
	body := func(worker, i int) { sums[worker] += float64(i) }
	ctx := context.Background()
	if allocations := testing.AllocsPerRun(200, func() { _ = ForEach(ctx, 64, body) }); allocations >= 1 &&
		!race.Enabled {
		t.Errorf("%.1f allocations per call", allocations)
	}
}

// TestSetThreads checks Threads after SetThreads, and that zero threads panic.
func TestSetThreads(t *testing.T) {
	useThreads(t, 5)
	if Threads() != 5 {
		t.Errorf("Threads() = %d, want 5", Threads())
	}
	if panicValue := panicOf(func() { SetThreads(0) }); panicValue == nil {
		t.Error("SetThreads(0) does not panic")
	}
}

// TestBLASThreadsFollowForEach checks that the BLAS has all threads outside ForEach and one inside.
func TestBLASThreadsFollowForEach(t *testing.T) {
	lib := requireOpenBLAS(t)
	useThreads(t, 2)
	UseLibrary(lib)
	t.Cleanup(func() { UseLibrary(nil) })
	if lib.model == serial {
		t.Skip("this build of OpenBLAS has no threads")
	}
	checkOutside := func(want int) {
		t.Helper()
		want = min(want, runtime.NumCPU()) // never more than cores, see Library.threads
		if got := lib.numThreads(); got != want {
			t.Errorf("outside ForEach the BLAS has %d threads, want %d", got, want)
		}
	}
	checkOutside(2)
	checkInside := func() {
		_ = ForEach(context.Background(), 8, func(_, i int) {
			if got := int(lib.wantedThreads.Load()); got != 1 {
				t.Errorf("inside ForEach the BLAS is asked for %d threads", got)
			}
			if got := lib.numThreads(); lib.model == pthreads && got != 1 {
				t.Errorf("inside ForEach the BLAS has %d threads", got)
			}
		})
	}
	checkInside()
	checkOutside(2)
	SetThreads(3)
	checkOutside(3)
	checkInside()
	checkOutside(3)
	SetThreads(1)
	checkOutside(1)
	checkInside()
	checkOutside(1)
	SetThreads(2)
	if panicValue := panicOf(func() {
		_ = ForEach(context.Background(), 4, func(_, i int) {
			panic(1)
		})
	}); panicValue == nil {
		t.Error("no panic")
	}
	checkOutside(2)
}
