package comm

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// Comm is a group of ranks. Its methods but Rank, Size, Abort and Traffic are
// collectives: every rank of the group calls them, in one order. A Comm is used by one
// goroutine at a time.
type Comm interface {
	// Rank returns this rank, in [0, Size()).
	Rank() int
	// Size returns the number P of ranks.
	Size() int
	// AllReduce sets x = Σ_r x_r on all ranks, the same bits on each. The order of the
	// sum is not fixed.
	AllReduce(ctx context.Context, x []float64) error
	// AllReduceInt64 sets x = Σ_r x_r on all ranks, exactly, modulo 2⁶⁴.
	AllReduceInt64(ctx context.Context, x []int64) error
	// AllGather fills x on all ranks. It consists of P parts of counts[r] numbers, part r
	// being what rank r has in that place; counts is the same everywhere and adds up to
	// len(x).
	AllGather(ctx context.Context, x []float64, counts []int) error
	// Broadcast sets x to rank root's on all ranks.
	Broadcast(ctx context.Context, x []byte, root int) error
	// Barrier waits for all ranks.
	Barrier(ctx context.Context) error
	// Split returns the group of the ranks that gave the same color ≥ 0, ordered by key
	// and then by rank.
	Split(ctx context.Context, color, key int) (Comm, error)
	// Abort ends all ranks as far as it can, with that exit code where it can: MPI's
	// are ended with this process, collectives of goroutine ranks return an error.
	Abort(code int)
	// Traffic returns what this rank has handed to collectives of this Comm.
	Traffic() Traffic
}

// Traffic counts the collectives of one rank.
type Traffic struct {
	Calls int64
	// Bytes handed over: 8m for m numbers in AllReduce, of AllGather the rank's own part,
	// of Broadcast all at the root. What goes over the wire depends on MPI's algorithm:
	// 2·Bytes·(P−1)/P sent by each rank for an AllReduce by reduce-scatter and all-gather.
	Bytes   int64
	Seconds float64 // waiting for peers included
}

// add counts one collective that began at start.
func (t *Traffic) add(bytes int, start time.Time) {
	t.Calls++
	t.Bytes += int64(bytes)
	t.Seconds += time.Since(start).Seconds()
}

// Sub returns t − u, the traffic between two moments.
func (t Traffic) Sub(u Traffic) Traffic {
	return Traffic{t.Calls - u.Calls, t.Bytes - u.Bytes, t.Seconds - u.Seconds}
}

// Plus returns t + u.
func (t Traffic) Plus(u Traffic) Traffic {
	return Traffic{t.Calls + u.Calls, t.Bytes + u.Bytes, t.Seconds + u.Seconds}
}

// Options of Local and Open. The zero value asks for the defaults.
type Options struct {
	// Limit is how long a collective may take. Default DefaultLimit.
	Limit time.Duration
	// MaxCount is the most numbers, or bytes, that one MPI call is given. Default 2³⁰.
	MaxCount int
}

// DefaultLimit is the default of Options.Limit: longer than ranks that share work
// evenly wait for each other while K is formed.
const DefaultLimit = 10 * time.Minute

func (o Options) settled() Options {
	if o.Limit < 0 || o.MaxCount < 0 {
		panic(fmt.Sprintf("comm: limit %v, at most %d numbers: want none negative", o.Limit, o.MaxCount))
	}
	o.Limit = cmp.Or(o.Limit, DefaultLimit)
	o.MaxCount = cmp.Or(o.MaxCount, 1<<30)
	return o
}

// Error is a failure of communication. Its rank alone knows of it; peers find out by
// errors of their own.
type Error struct {
	Rank, Size int
	Op         string // "all-reduce", "barrier", …
	Err        error
}

func (e *Error) Error() string {
	return fmt.Sprintf("comm: rank %d of %d: %s: %v", e.Rank, e.Size, e.Op, e.Err)
}

// Unwrap returns what happened, a context's error for one.
func (e *Error) Unwrap() error { return e.Err }

// checkParts panics unless counts are the lengths of the parts of n numbers.
func checkParts(n, size int, counts []int) {
	sum := 0
	for _, c := range counts {
		if c < 0 {
			panic(fmt.Sprintf("comm: a part of %d numbers", c))
		}
		sum += c
	}
	if len(counts) != size || sum != n {
		panic(fmt.Sprintf("comm: %d parts of %d numbers in all for %d ranks and %d numbers", len(counts), sum, size, n))
	}
}

// checkRoot panics unless root is a rank.
func checkRoot(root, size int) {
	if root < 0 || root >= size {
		panic(fmt.Sprintf("comm: root %d of %d ranks", root, size))
	}
}

// checkColor panics unless color is one.
func checkColor(color int) {
	if color < 0 || color > 1<<30 {
		panic(fmt.Sprintf("comm: color %d", color))
	}
}
