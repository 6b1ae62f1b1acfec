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
	g := &group{size: p, limit: limitOrDefault(limit), failed: make(chan struct{})}
	all := make([]Comm, p)
	for r := range all {
		all[r] = &local{g: g, rank: r}
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
	broken  error         // first failure, nil while the group works
	failed  chan struct{} // closed when broken is set
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
	g       *group
	rank    int
	traffic Traffic
}

var _ Comm = (*local)(nil)

// Rank implements Comm.
func (c *local) Rank() int { return c.rank }

// Size implements Comm.
func (c *local) Size() int { return c.g.size }

// Traffic implements Comm.
func (c *local) Traffic() Traffic { return c.traffic }

// AllReduceInt64 implements Comm.
func (c *local) AllReduceInt64(ctx context.Context, x []int64) error {
	return c.run(ctx, call{opReduce, x, bytesOf(x), c.parts(0, 8*len(x))}, 8*len(x))
}

// AllGather implements Comm.
func (c *local) AllGather(ctx context.Context, x []float64, counts []int) error {
	checkParts(len(x), c.g.size, counts)
	parts := make([]int, len(counts))
	for r, n := range counts {
		parts[r] = 8 * n
	}
	return c.run(ctx, call{opGather, nil, bytesOf(x), parts}, parts[c.rank])
}

// Broadcast implements Comm.
func (c *local) Broadcast(ctx context.Context, x []byte, root int) error {
	checkRoot(root, c.g.size)
	parts := c.parts(root, len(x))
	return c.run(ctx, call{opBroadcast, nil, x, parts}, parts[c.rank])
}

// parts returns the parts if rank root sends the given number of bytes and the other ranks send none.
func (c *local) parts(root, bytes int) []int {
	parts := make([]int, c.g.size)
	parts[root] = bytes
	return parts
}

// fail breaks the group for all ranks. Only the first cause is recorded.
func (g *group) fail(cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.broken == nil {
		g.broken = cause
		close(g.failed)
	}
}

// run calls a collective, waits for all ranks, and records the traffic: bytes is the amount of data that this rank
// contributes.
func (c *local) run(ctx context.Context, k call, bytes int) error {
	start := time.Now()
	if err := c.g.join(ctx, c.rank, k); err != nil {
		return &Error{c.rank, c.g.size, k.op, err}
	}
	c.traffic.add(bytes, start)
	return nil
}

// join adds the call of a rank to the pending collective and waits until it is complete. The last rank to arrive
// executes it.
func (g *group) join(ctx context.Context, rank int, k call) error {
	if err := ctx.Err(); err != nil {
		g.fail(fmt.Errorf("rank %d was stopped", rank))
		return err
	}
	g.mu.Lock()
	if err := g.broken; err != nil {
		g.mu.Unlock()
		return err
	}
	if g.pending == nil {
		g.pending = &collective{calls: make([]call, g.size), finished: make(chan struct{})}
	}
	m := g.pending
	m.calls[rank] = k
	if m.arrived++; m.arrived == g.size {
		g.pending = nil
		m.err = g.execute(m)
		close(m.finished)
	}
	g.mu.Unlock()
	timer := time.NewTimer(g.limit)
	defer timer.Stop()
	select {
	case <-m.finished:
		return m.err
	case <-g.failed:
		select {
		case <-m.finished: // completed before the group broke
			return m.err
		default:
		}
		return g.broken
	case <-ctx.Done():
		g.fail(fmt.Errorf("rank %d was stopped", rank))
		return ctx.Err()
	case <-timer.C:
		err := fmt.Errorf("not all ranks came within %v (missing: %v)", g.limit, g.missing(m))
		g.fail(err)
		return err
	}
}

// missing lists the ranks that have not called the collective yet.
func (g *group) missing(m *collective) (list []int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for r, k := range m.calls {
		if k.op == "" {
			list = append(list, r)
		}
	}
	return list
}

// execute carries out a collective after all ranks have called it. It returns an error if their calls differ.
func (g *group) execute(m *collective) error {
	root := m.calls[0]
	for r, k := range m.calls {
		if k.op != root.op || !slices.Equal(k.parts, root.parts) {
			return fmt.Errorf("rank 0 called %s of bytes %v, rank %d %s of bytes %v", root.op, root.parts, r, k.op,
				k.parts)
		}
	}
	for _, k := range m.calls[1:] {
		for i, v := range k.sum {
			root.sum[i] += v
		}
	}
	offset := 0
	for r, size := range root.parts {
		for _, k := range m.calls {
			copy(k.x[offset:offset+size], m.calls[r].x[offset:])
		}
		offset += size
	}
	return nil
}
