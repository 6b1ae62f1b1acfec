package comm

import "context"

// alone is a group of one rank.
type alone struct{}

// Alone returns a group of one rank, as MPI_COMM_SELF is, for a process that no launcher started. Its collectives
// change and count nothing. They fail only if the context has ended and return its error unwrapped. Unlike those of
// other groups, they may be called by several goroutines at once.
func Alone() Comm { return alone{} }

// OrAlone returns c, or Alone() if c is nil. It resolves an optional Comm.
func OrAlone(c Comm) Comm {
	if c == nil {
		return Alone()
	}
	return c
}

// Rank implements Comm.
func (alone) Rank() int { return 0 }

// Size implements Comm.
func (alone) Size() int { return 1 }

// Traffic implements Comm.
func (alone) Traffic() Traffic { return Traffic{} }

// AllReduceInt64 implements Comm.
func (alone) AllReduceInt64(ctx context.Context, x []int64) error { return ctx.Err() }

// AllGather implements Comm.
func (alone) AllGather(ctx context.Context, x []float64, counts []int) error {
	checkParts(len(x), 1, counts)
	return ctx.Err()
}

// Broadcast implements Comm.
func (alone) Broadcast(ctx context.Context, x []byte, root int) error {
	checkRoot(root, 1)
	return ctx.Err()
}
