package comm

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// Comm is a group of ranks. All methods except Rank, Size and Traffic are collectives: every rank of the group calls
// them, in the same order. Only one goroutine at a time may use a Comm.
type Comm interface {
	// Rank returns this rank, in [0, Size()).
	Rank() int
	// Size returns the number P of ranks.
	Size() int
	// AllReduceInt64 sets x = Σ_r x_r on all ranks, exactly, modulo 2⁶⁴.
	AllReduceInt64(ctx context.Context, x []int64) error
	// AllGather fills x on all ranks. x consists of P consecutive parts; part r has counts[r] numbers and is copied
	// from rank r to all others. counts is the same on all ranks and adds up to len(x).
	AllGather(ctx context.Context, x []float64, counts []int) error
	// Broadcast copies x from rank root to all ranks.
	Broadcast(ctx context.Context, x []byte, root int) error
	// Traffic returns the number of calls, bytes and seconds of the collectives of this rank.
	Traffic() Traffic
}

// Traffic measures the collectives of one rank.
type Traffic struct {
	Calls int64 // number of collectives
	// Bytes is the amount of data that this rank contributed: 8m for m numbers in AllReduceInt64, 8·counts[rank] in
	// AllGather, and the length of x in Broadcast at the root. The bytes sent over the network depend on the
	// algorithm of MPI; a sum by reduce-scatter and all-gather, which is used for up to three ranks, sends
	// 2·Bytes·(P−1)/P from each rank.
	Bytes   int64
	Seconds float64 // elapsed time, including the wait for peers
}

// add records one collective that started at start and ends now.
func (t *Traffic) add(bytes int, start time.Time) {
	t.Calls++
	t.Bytes += int64(bytes)
	t.Seconds += time.Since(start).Seconds()
}

// Sub returns t − u, the traffic between two moments.
func (t Traffic) Sub(u Traffic) Traffic {
	return Traffic{t.Calls - u.Calls, t.Bytes - u.Bytes, t.Seconds - u.Seconds}
}

// DefaultLimit is the default of the longest time that a collective may take. It is longer than the time that ranks
// with evenly distributed work wait for each other while the kernel matrix is formed.
const DefaultLimit = 10 * time.Minute

// limitOrDefault returns limit, or DefaultLimit if it is 0. It panics if the limit is negative.
func limitOrDefault(limit time.Duration) time.Duration {
	if limit < 0 {
		panic(fmt.Sprintf("comm: a limit of %v: want a positive one, or 0 for the default", limit))
	}
	return cmp.Or(limit, DefaultLimit)
}

// Error is a failure of communication as one rank saw it. Other ranks may return a different one.
type Error struct {
	Rank, Size int    // this rank, and the number of ranks
	Op         string // "all-gather", "broadcast", …
	Err        error
}

// Error returns the rank, the collective and the cause in one line.
func (e *Error) Error() string {
	return fmt.Sprintf("comm: rank %d of %d: %s: %v", e.Rank, e.Size, e.Op, e.Err)
}

// Unwrap returns the cause, for example the error of a context.
func (e *Error) Unwrap() error { return e.Err }

// checkParts panics unless counts has one non-negative length for each of size ranks and the lengths add up to n.
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

// checkRoot panics unless root is a rank of a group of the given size.
func checkRoot(root, size int) {
	if root < 0 || root >= size {
		panic(fmt.Sprintf("comm: root %d of %d ranks", root, size))
	}
}

// Names of the collectives in errors.
const (
	opReduce    = "all-reduce of integers"
	opGather    = "all-gather"
	opBroadcast = "broadcast"
)
