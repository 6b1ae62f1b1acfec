package cost

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	answers "github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// Network connects ranks, each on a machine of its own. By the zero value what they exchange takes no time.
type Network struct {
	Bandwidth float64 `json:"bandwidth,omitempty"` // bytes a second, sent by a machine and taken by it, each
	Latency   float64 `json:"latency,omitempty"`   // seconds of a message, beside its bytes
}

// MeasureNetwork is a collective that times all-reduces of 1 and of 10⁶ numbers, the median of 9 and of 3.
func MeasureNetwork(ctx context.Context, c comm.Comm) (n Network, err error) {
	r := Group{P: float64(c.Size())}
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
	small, large := r.Reduce(1), r.Reduce(float64(sizes[1]))
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

// Add adds what is exchanged so many times.
func (t *Traffic) Add(u Traffic, times float64) {
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
	t.Add(e.Iteration, float64(c.Iterations))
	return t
}

// Bytes returns what a rank hands over in all.
func (e *Exchange) Bytes(c *Candidate) int64 {
	return e.Features.Bytes + e.Factor.Bytes + e.Solve(c).Bytes + e.Residual.Bytes
}

// Group counts collectives of P ranks, of which the first has Own of N rows.
type Group struct {
	P, OwnRows, Rows float64
}

// Group returns the ranks that share n rows.
func (m *Model) Group() Group {
	return Group{float64(m.Ranks), float64(comm.Counts(m.N, precond.RankRows, m.Ranks, 1)[0]), float64(m.N)}
}

const (
	// long is from how many bytes on libraries add over a ring, as package comm does on up to fewPairs ranks.
	long, fewPairs = 64 << 10, 3
)

// Reduce is an all-reduce of so many numbers.
func (r Group) Reduce(numbers float64) Traffic {
	steps := 2 * math.Ceil(math.Log2(r.P))
	if r.P <= fewPairs {
		steps = 2
	} else if 8*numbers >= long {
		steps = 2 * (r.P - 1)
	}
	return Traffic{int64(8 * numbers), 16 * numbers * (r.P - 1) / r.P, steps}
}

// Gather gives what each rank has of an n×width block to all.
func (r Group) Gather(width float64) Traffic {
	return Traffic{int64(8 * r.OwnRows * width), 8 * (r.Rows - r.OwnRows) * width, r.P - 1}
}

// Broadcast is one of so many bytes, of which the first rank is the root of own.
func (r Group) Broadcast(bytes, own float64) Traffic {
	return Traffic{int64(own), bytes, math.Ceil(math.Log2(r.P))}
}

// Traffic predicts what the ranks exchange: by a product with K 8(nt+2) bytes, 8(2nt+2) in float64, and what M takes.
// What random pivots exchange depends on them; the rest is exact, if all columns take all iterations.
func (m Model) Traffic(c *Candidate) Exchange {
	made := m.parts(c)
	return m.traffic(c, &made)
}

func (m *Model) traffic(c *Candidate, made *Parts) Exchange {
	if m.Ranks < 2 || c.Solver == Direct {
		return Exchange{}
	}
	e, t := made.Traffic, float64(max(1, m.T))
	r := m.Group()
	double, product := r.Reduce(2*r.Rows*t+2), r.Reduce(r.Rows*t+2)
	if c.Storage == gram.Float64 {
		product = double
	}
	e.Iteration.Add(product, 1)
	e.Iteration.Add(Traffic{Steps: r.Reduce(r.P).Steps}, 1) // agreement
	if m.ResidualRounds > 0 {
		e.Residual.Add(double, float64(m.ResidualRounds))
		return e
	}
	rows := min(m.N, bound.RowsChecked)
	own := comm.Counts(rows, answers.BatchRows, m.Ranks, 1)[0]
	e.Residual.Add(product, 1)
	e.Residual.Add(Group{r.P, float64(own), float64(rows)}.Gather(t), 1)
	return e
}
