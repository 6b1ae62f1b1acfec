package comm

import (
	"context"
	"time"
)

// alone is one rank without peers.
type alone struct{ traffic Traffic }

var _ Comm = (*alone)(nil)

// Alone returns a group of one rank, whose collectives change nothing.
func Alone() Comm { return &alone{} }

func (*alone) Rank() int { return 0 }
func (*alone) Size() int { return 1 }

// done counts a collective and returns ctx's error as a Comm does.
func (a *alone) done(ctx context.Context, op string, bytes int) error {
	if err := ctx.Err(); err != nil {
		return &Error{0, 1, op, err}
	}
	a.traffic.add(bytes, time.Now())
	return nil
}

func (a *alone) AllReduce(ctx context.Context, x []float64) error {
	return a.done(ctx, opReduce, 8*len(x))
}

func (a *alone) AllReduceInt64(ctx context.Context, x []int64) error {
	return a.done(ctx, opReduce64, 8*len(x))
}

func (a *alone) AllGather(ctx context.Context, x []float64, counts []int) error {
	checkParts(len(x), 1, counts)
	return a.done(ctx, opGather, 8*len(x))
}

func (a *alone) Broadcast(ctx context.Context, x []byte, root int) error {
	checkRoot(root, 1)
	return a.done(ctx, opBroadcast, len(x))
}

func (a *alone) Barrier(ctx context.Context) error { return a.done(ctx, opBarrier, 0) }

func (a *alone) Split(ctx context.Context, color, _ int) (Comm, error) {
	checkColor(color)
	if err := a.done(ctx, opSplit, 0); err != nil {
		return nil, err
	}
	return Alone(), nil
}

func (*alone) Abort(int) {}

func (a *alone) Traffic() Traffic { return a.traffic }

// Names of the collectives in errors.
const (
	opReduce    = "all-reduce"
	opReduce64  = "all-reduce of integers"
	opGather    = "all-gather"
	opBroadcast = "broadcast"
	opBarrier   = "barrier"
	opSplit     = "split"
)
