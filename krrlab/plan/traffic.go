package plan

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
	answers "github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/vecchia"
)

// Network connects ranks, each on a machine of its own. By the zero value what they exchange takes no time.
type Network struct {
	Bandwidth float64 `json:"bandwidth,omitempty"` // bytes a second, sent by a machine and taken by it, each
	Latency   float64 `json:"latency,omitempty"`   // seconds of a message, beside its bytes
}

// measureNetwork is a collective that times all-reduces of 1 and of 10⁶ numbers, the median of 9 and of 3.
func measureNetwork(ctx context.Context, c comm.Comm) (n Network, err error) {
	r := ranks{p: float64(c.Size())}
	var mid [2]float64
	sizes := [2]int{1, 1e6}
	x := make([]int64, sizes[1])
	for i, size := range sizes {
		took := make([]float64, [2]int{9, 3}[i])
		for k := range took {
			clock := time.Now()
			if err = c.AllReduceInt64(ctx, x[:size]); err != nil {
				return n, err
			}
			took[k] = time.Since(clock).Seconds()
		}
		slices.Sort(took)
		mid[i] = took[len(took)/2]
	}
	small, large := r.reduce(1), r.reduce(float64(sizes[1]))
	n.Latency = mid[0] / small.Steps
	n.Bandwidth = large.Wire / max(mid[1]-large.Steps*n.Latency, mid[1]/10)
	return n, nil
}

// Traffic is what the first rank exchanges with the others.
type Traffic struct {
	Bytes int64   // handed to collectives, as comm.Traffic counts them
	Wire  float64 // bytes that it sends, or takes if that is more
	Steps float64 // messages, one after the other
}

func (t *Traffic) add(u Traffic, times float64) {
	t.Bytes += int64(times) * u.Bytes
	t.Wire += times * u.Wire
	t.Steps += times * u.Steps
}

// collective returns the seconds of what is exchanged.
func (n Network) collective(t Traffic) (seconds float64) {
	if n.Bandwidth > 0 {
		seconds = t.Wire / n.Bandwidth
	}
	return seconds + t.Steps*n.Latency
}

// Exchange is the Traffic of the parts of a solve. Agreements of ranks, 8P bytes each, are messages here but no bytes.
type Exchange struct {
	Features  Traffic // landmarks
	Factor    Traffic // ZᵀZ and its factor, neighbors and a sparse inverse
	Iteration Traffic
	Residual  Traffic // true residuals
}

// Solve returns the Traffic of all iterations of a candidate.
func (e *Exchange) Solve(c *Candidate) (t Traffic) {
	t.add(e.Iteration, float64(c.Iterations))
	return t
}

// Bytes returns what a rank hands over in all.
func (e *Exchange) Bytes(c *Candidate) int64 {
	return e.Features.Bytes + e.Factor.Bytes + e.Solve(c).Bytes + e.Residual.Bytes
}

// ranks counts collectives of P ranks, of which the first has own of n rows.
type ranks struct {
	p, own, n float64
}

const (
	// long is from how many bytes on libraries add over a ring, as package comm does on up to fewPairs ranks.
	long, fewPairs = 64 << 10, 3
)

// reduce is an all-reduce of so many numbers.
func (r ranks) reduce(numbers float64) Traffic {
	steps := 2 * math.Ceil(math.Log2(r.p))
	if r.p <= fewPairs {
		steps = 2
	} else if 8*numbers >= long {
		steps = 2 * (r.p - 1)
	}
	return Traffic{int64(8 * numbers), 16 * numbers * (r.p - 1) / r.p, steps}
}

// gather gives what each rank has of an n×width block to all.
func (r ranks) gather(width float64) Traffic {
	return Traffic{int64(8 * r.own * width), 8 * (r.n - r.own) * width, r.p - 1}
}

// broadcast is one of so many bytes, of which the first rank is the root of own.
func (r ranks) broadcast(bytes, own float64) Traffic {
	return Traffic{int64(own), bytes, math.Ceil(math.Log2(r.p))}
}

// Traffic predicts what the ranks exchange: by a product with K 8(nt+2) bytes, 8(2nt+2) in float64, by an application
// of M⁻¹ 8st and 8t for each own row, and 16st more where its factor is shared. What random pivots exchange depends on
// them; the rest is exact, if all columns take all iterations.
func (m Cost) Traffic(c *Candidate) (e Exchange) {
	if m.Ranks < 2 || c.Solver == Direct {
		return e
	}
	n, t, s, shared := float64(m.N), float64(max(1, m.T)), float64(c.S), m.sharers(c) > 1
	r := ranks{float64(m.Ranks), float64(comm.Counts(m.N, precond.RankRows, m.Ranks, 1)[0]), n}
	double := r.reduce(2*n*t + 2)
	product := r.reduce(n*t + 2)
	if c.Storage == gram.Float64 {
		product = double
	}
	agree := Traffic{Steps: r.reduce(r.p).Steps}
	e.Iteration.add(product, 1)
	e.Iteration.add(agree, 1)
	var apply Traffic
	if s > 0 {
		apply.add(r.reduce(s*t), 1)
		apply.add(r.gather(t), 1)
		if shared {
			apply.add(r.reduce(s*t), 2)
		}
		e.Iteration.add(apply, 1)
		m.factorTraffic(c, r, shared, &e.Factor)
	}
	if m.Rounds > 0 {
		if e.Residual.add(double, float64(m.Rounds)); c.Precond == Nystrom || c.Precond == RPCholesky {
			e.Residual.add(apply, 2) // bounds of errors by it
		}
	} else {
		e.Residual.add(product, 1)
		rows := comm.Counts(min(m.N, bound.RowsChecked), answers.BatchRows, m.Ranks, 1)
		e.Residual.add(ranks{r.p, float64(rows[0]), float64(min(m.N, bound.RowsChecked))}.gather(t), 1)
	}
	switch c.Precond {
	case Nystrom:
		for range m.Ranks {
			e.Features.add(r.broadcast(8*s, 0), 1)
		}
		e.Features.Bytes = int64(8 * s)
	case RPCholesky, Vecchia:
		if s == 0 {
			break
		}
		block := min(max(10, math.Floor(s/10)), 200, s) // of proposals, rows of F at them, and sums of what is left
		blocks := math.Ceil(extraColumns * s / block)
		e.Features.add(ranks{r.p, block / r.p, block}.gather(s/2+1), blocks)
		e.Features.add(r.reduce(block), blocks)
		e.Features.add(r.gather(1./precond.RankRows), blocks)
	}
	if c.Precond == Vecchia {
		m.vecchiaTraffic(c, r, &e.Factor)
	}
	return e
}

// factorTraffic adds what forms and factors ZᵀZ+λ_pI: peaks of columns, ZᵀZ, what measures its error, and where it is
// shared block columns of L, twice, and rows of L⁻¹.
func (m *Cost) factorTraffic(c *Candidate, r ranks, shared bool, to *Traffic) {
	s := float64(c.S)
	to.add(r.reduce(r.p*s), 1)
	to.add(r.reduce(s*(s+1)/2), 1)
	to.add(r.reduce(precond.Measured*s), 1)
	if !shared {
		return
	}
	to.add(r.reduce(precond.Measured*s), 1)
	to.add(Traffic{Steps: r.reduce(1).Steps}, 1) // ln det
	for j := 0; j*accel.TileOrder < c.S; j++ {
		at := float64(j * accel.TileOrder)
		order := min(accel.TileOrder, s-at)
		own := 0.
		if j%m.Ranks == 0 {
			own = 8 * order
		}
		to.add(r.broadcast(8*order*(s-at), own*(s-at)), 2)
		to.add(r.broadcast(8*order*(at+order), own*(at+order)), 1)
	}
}

// vecchiaTraffic adds what makes a sparse inverse: all of F, columns for its rule, the neighbors that each rank found,
// and rows of G.
func (m *Cost) vecchiaTraffic(c *Candidate, r ranks, to *Traffic) {
	k := float64(c.Neighbors)
	to.add(r.reduce(vecchia.RuleRows*r.n), 1)
	to.add(r.broadcast(4*r.n*float64(c.S), 4*r.own*float64(c.S)), 1)
	count := k
	if c.S > 0 {
		count = min(wider*k, r.n-1)
	}
	to.add(Traffic{int64(8 * r.n * count), 8 * r.n * count * (r.p - 1), r.p}, 1)
	to.add(r.broadcast(4*r.n*(k+1), 4*r.own*(k+1)), 2)
}
