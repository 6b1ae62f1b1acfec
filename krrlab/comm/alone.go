package comm

import (
	"context"
	"sync/atomic"
)

// alone is one rank without peers.
type alone struct{ calls, bytes atomic.Int64 }

var _ Comm = (*alone)(nil)

// Alone returns a group of one rank, whose collectives change nothing: what a process is that
// no launcher started. Its collectives fail only with the context, whose error they return as
// it is, and unlike those of other groups they may be called by several goroutines at once.
func Alone() Comm { return &alone{} }

// OrAlone returns c, or Alone() for nil: how an option that may be left out is settled.
func OrAlone(c Comm) Comm {
	if c == nil {
		return Alone()
	}
	return c
}

func (*alone) Rank() int { return 0 }
func (*alone) Size() int { return 1 }

// done counts a collective.
func (a *alone) done(ctx context.Context, bytes int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	a.calls.Add(1)
	a.bytes.Add(int64(bytes))
	return nil
}

func (a *alone) AllReduce(ctx context.Context, x []float64) error {
	return a.done(ctx, 8*len(x))
}

func (a *alone) AllReduceInt64(ctx context.Context, x []int64) error {
	return a.done(ctx, 8*len(x))
}

func (a *alone) AllGather(ctx context.Context, x []float64, counts []int) error {
	checkParts(len(x), 1, counts)
	return a.done(ctx, 8*len(x))
}

func (a *alone) Broadcast(ctx context.Context, x []byte, root int) error {
	checkRoot(root, 1)
	return a.done(ctx, len(x))
}

func (a *alone) Barrier(ctx context.Context) error { return a.done(ctx, 0) }

func (a *alone) Split(ctx context.Context, color, _ int) (Comm, error) {
	checkColor(color)
	if err := a.done(ctx, 0); err != nil {
		return nil, err
	}
	return Alone(), nil
}

func (*alone) Abort(int) {}

func (a *alone) Traffic() Traffic {
	return Traffic{Calls: a.calls.Load(), Bytes: a.bytes.Load()}
}

// Names of the collectives in errors.
const (
	opReduce    = "all-reduce"
	opReduce64  = "all-reduce of integers"
	opGather    = "all-gather"
	opBroadcast = "broadcast"
	opBarrier   = "barrier"
	opSplit     = "split"
)
