package comm

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Local returns p ranks of this process, one for each of p goroutines: every
// collective is a meeting of all of them. For tests of what runs on ranks.
func Local(p int, o Options) []Comm {
	if p < 1 {
		panic(fmt.Sprintf("comm: %d ranks", p))
	}
	return newGroup(p, o.limit()).members()
}

// group is what the ranks of one Local share.
type group struct {
	size  int
	limit time.Duration

	mu     sync.Mutex
	now    *meeting // that ranks have come to, nil if none has
	broken error
	dead   chan struct{} // closed when broken is set
}

func newGroup(p int, limit time.Duration) *group {
	return &group{size: p, limit: limit, dead: make(chan struct{})}
}

func (g *group) members() []Comm {
	all := make([]Comm, g.size)
	for r := range all {
		all[r] = &local{g: g, rank: r}
	}
	return all
}

// call is what one rank brings to a meeting.
type call struct {
	op    string  // "" of a rank that has not come
	sum   []int64 // x as numbers that are added
	x     []byte
	parts []int // bytes of x that each rank has for all, once they are added
}

// meeting is one collective.
type meeting struct {
	calls []call
	came  int
	err   error
	done  chan struct{}
}

// local is one rank of a group.
type local struct {
	g       *group
	rank    int
	traffic Traffic
}

var _ Comm = (*local)(nil)

func (c *local) Rank() int        { return c.rank }
func (c *local) Size() int        { return c.g.size }
func (c *local) Traffic() Traffic { return c.traffic }

func (c *local) AllReduceInt64(ctx context.Context, x []int64) error {
	return c.meet(ctx, call{opReduce, x, bytesOf(x), c.parts(0, 8*len(x))}, 8*len(x))
}

func (c *local) AllGather(ctx context.Context, x []float64, counts []int) error {
	checkParts(len(x), c.g.size, counts)
	parts := make([]int, len(counts))
	for r, n := range counts {
		parts[r] = 8 * n
	}
	return c.meet(ctx, call{opGather, nil, bytesOf(x), parts}, parts[c.rank])
}

func (c *local) Broadcast(ctx context.Context, x []byte, root int) error {
	checkRoot(root, c.g.size)
	parts := c.parts(root, len(x))
	return c.meet(ctx, call{opBroadcast, nil, x, parts}, parts[c.rank])
}

// parts returns those of so many bytes that rank root has.
func (c *local) parts(root, bytes int) []int {
	parts := make([]int, c.g.size)
	parts[root] = bytes
	return parts
}

// fail breaks the group for all ranks, with the first cause given.
func (g *group) fail(cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.broken == nil {
		g.broken = cause
		close(g.dead)
	}
}

// meet brings a call to the meeting now held and waits for all ranks.
func (c *local) meet(ctx context.Context, k call, bytes int) error {
	start := time.Now()
	if err := c.g.come(ctx, c.rank, k); err != nil {
		return &Error{c.rank, c.g.size, k.op, err}
	}
	c.traffic.add(bytes, start)
	return nil
}

func (g *group) come(ctx context.Context, rank int, k call) error {
	if err := ctx.Err(); err != nil {
		g.fail(fmt.Errorf("rank %d was stopped", rank))
		return err
	}
	g.mu.Lock()
	if err := g.broken; err != nil {
		g.mu.Unlock()
		return err
	}
	if g.now == nil {
		g.now = &meeting{calls: make([]call, g.size), done: make(chan struct{})}
	}
	m := g.now
	m.calls[rank] = k
	if m.came++; m.came == g.size {
		g.now = nil
		m.err = g.hold(m)
		close(m.done)
	}
	g.mu.Unlock()
	timer := time.NewTimer(g.limit)
	defer timer.Stop()
	select {
	case <-m.done:
		return m.err
	case <-g.dead:
		select {
		case <-m.done: // held before the group broke
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

// missing lists the ranks that have not come.
func (g *group) missing(m *meeting) (list []int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for r, k := range m.calls {
		if k.op == "" {
			list = append(list, r)
		}
	}
	return list
}

// hold carries out the collective that all ranks have come to.
func (g *group) hold(m *meeting) error {
	first := m.calls[0]
	for r, k := range m.calls {
		if k.op != first.op || !slices.Equal(k.parts, first.parts) {
			return fmt.Errorf("rank 0 called %s of bytes %v, rank %d %s of bytes %v", first.op, first.parts, r, k.op,
				k.parts)
		}
	}
	for _, k := range m.calls[1:] {
		for i, v := range k.sum {
			first.sum[i] += v
		}
	}
	at := 0
	for r, size := range first.parts {
		for _, k := range m.calls {
			copy(k.x[at:at+size], m.calls[r].x[at:])
		}
		at += size
	}
	return nil
}
