package comm

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Local returns p ranks of this process, to be used by p goroutines, for tests of distributed code. Each collective
// waits until all ranks have called it, for at most the limit (0 means DefaultLimit).
func Local(p int, limit time.Duration) []Comm {
	if p < 1 {
		panic(fmt.Sprintf("comm: %d ranks", p))
	}
	g := &group{size: p, limit: limitOrDefault(limit), broken: make(chan struct{})}
	all := make([]Comm, p)
	for rank := range all {
		all[rank] = &local{group: g, rank: rank}
	}
	return all
}

// RunLocal calls body on p goroutines, each with one rank of Local, and waits for all of them.
func RunLocal(p int, body func(c Comm)) {
	var group sync.WaitGroup
	for _, c := range Local(p, 0) {
		group.Go(func() { body(c) })
	}
	group.Wait()
}

// group is the state that the ranks of one call of Local share.
type group struct {
	size  int
	limit time.Duration

	mu      sync.Mutex
	pending *collective   // collective that some ranks have called and others have not; nil if there is none
	failure error         // first failure of a collective, nil while the group works
	broken  chan struct{} // closed when failure is set
}

// call is the call of a collective by one rank.
type call struct {
	op    string  // name of the collective; "" if the rank has not called it yet
	sum   []int64 // x as integers to be added; nil if nothing is added
	x     []byte  // buffer of the rank, input and output
	parts []int   // number of consecutive bytes of x that each rank sends to all, after any addition
}

// collective is one call of a collective by all ranks of the group.
type collective struct {
	calls    []call
	arrived  int // number of ranks that have called
	err      error
	finished chan struct{} // closed when the collective is complete
}

// local is one rank of a group.
type local struct {
	group   *group
	rank    int
	traffic Traffic
}

var _ Comm = (*local)(nil)

// Rank implements Comm.
func (l *local) Rank() int { return l.rank }

// Size implements Comm.
func (l *local) Size() int { return l.group.size }

// Traffic implements Comm.
func (l *local) Traffic() Traffic { return l.traffic }

// AllReduceInt64 implements Comm.
func (l *local) AllReduceInt64(ctx context.Context, x []int64) error {
	return l.run(ctx, call{opReduce, x, bytesOf(x), l.parts(0, 8*len(x))}, 8*len(x))
}

// AllGather implements Comm.
func (l *local) AllGather(ctx context.Context, x []float64, counts []int) error {
	checkParts(len(x), l.group.size, counts)
	parts := make([]int, len(counts))
	for rank, count := range counts {
		parts[rank] = 8 * count
	}
	return l.run(ctx, call{opGather, nil, bytesOf(x), parts}, parts[l.rank])
}

// Broadcast implements Comm.
func (l *local) Broadcast(ctx context.Context, x []byte, root int) error {
	checkRoot(root, l.group.size)
	parts := l.parts(root, len(x))
	return l.run(ctx, call{opBroadcast, nil, x, parts}, parts[l.rank])
}

// parts returns the parts if rank root sends the given number of bytes and the other ranks send none.
func (l *local) parts(root, bytes int) []int {
	parts := make([]int, l.group.size)
	parts[root] = bytes
	return parts
}

// fail breaks the group for all ranks. Only the first cause is recorded.
func (g *group) fail(cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failure == nil {
		g.failure = cause
		close(g.broken)
	}
}

// run calls a collective, waits for all ranks, and records the traffic: bytes is the amount of data that this rank
// contributes.
func (l *local) run(ctx context.Context, rankCall call, bytes int) error {
	start := time.Now()
	if err := l.group.join(ctx, l.rank, rankCall); err != nil {
		return &Error{l.rank, l.group.size, rankCall.op, err}
	}
	l.traffic.add(bytes, start)
	return nil
}

// join adds the call of a rank to the pending collective and waits until it is complete. The last rank to arrive
// executes it.
func (g *group) join(ctx context.Context, rank int, rankCall call) error {
	if err := ctx.Err(); err != nil {
		g.fail(fmt.Errorf("rank %d was stopped", rank))
		return err
	}
	g.mu.Lock()
	if err := g.failure; err != nil {
		g.mu.Unlock()
		return err
	}
	if g.pending == nil {
		g.pending = &collective{calls: make([]call, g.size), finished: make(chan struct{})}
	}
	pending := g.pending
	pending.calls[rank] = rankCall
	if pending.arrived++; pending.arrived == g.size {
		g.pending = nil
		pending.err = g.execute(pending)
		close(pending.finished)
	}
	g.mu.Unlock()
	timer := time.NewTimer(g.limit)
	defer timer.Stop()
	select {
	case <-pending.finished:
		return pending.err
	case <-g.broken:
		select {
		case <-pending.finished: // completed before the group broke
			return pending.err
		default:
		}
		return g.failure
	case <-ctx.Done():
		g.fail(fmt.Errorf("rank %d was stopped", rank))
		return ctx.Err()
	case <-timer.C:
		err := fmt.Errorf("not all ranks came within %v (missing: %v)", g.limit, g.missing(pending))
		g.fail(err)
		return err
	}
}

// missing lists the ranks that have not called the collective yet.
func (g *group) missing(pending *collective) (list []int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for rank, rankCall := range pending.calls {
		if rankCall.op == "" {
			list = append(list, rank)
		}
	}
	return list
}

// execute carries out a collective after all ranks have called it. It returns an error if their calls differ.
func (g *group) execute(pending *collective) error {
	root := pending.calls[0]
	for rank, rankCall := range pending.calls {
		if rankCall.op != root.op || !slices.Equal(rankCall.parts, root.parts) {
			return fmt.Errorf("rank 0 called %s of bytes %v, rank %d %s of bytes %v", root.op, root.parts, rank,
				rankCall.op, rankCall.parts)
		}
	}
	for _, rankCall := range pending.calls[1:] {
		for i, v := range rankCall.sum {
			root.sum[i] += v
		}
	}
	offset := 0
	for rank, size := range root.parts {
		for _, rankCall := range pending.calls {
			copy(rankCall.x[offset:offset+size], pending.calls[rank].x[offset:])
		}
		offset += size
	}
	return nil
}
