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

// Network is the speed of the network between ranks that run on separate machines. With the zero value, exchanges take
// no time.
type Network struct {
	// Bandwidth is the number of bytes per second that a machine sends, and receives at the same time.
	Bandwidth float64 `json:"bandwidth,omitempty"`
	Latency   float64 `json:"latency,omitempty"` // seconds per message, in addition to the time for its bytes
}

// MeasureNetwork measures the network by timing all-reduces of 1 number and of 10⁶ numbers; it uses the median of 9 and
// of 3 runs. All ranks must call it together.
func MeasureNetwork(ctx context.Context, c comm.Comm) (n Network, err error) {
	g := Group{P: float64(c.Size())}
	var medians [2]float64 // seconds
	sizes := [2]int{1, 1e6}
	x := make([]int64, sizes[1])
	for i, size := range sizes {
		seconds := make([]float64, [2]int{9, 3}[i])
		for k := range seconds {
			start := time.Now()
			if err = c.AllReduceInt64(ctx, x[:size]); err != nil {
				return n, err
			}
			seconds[k] = time.Since(start).Seconds()
		}
		slices.Sort(seconds)
		medians[i] = seconds[len(seconds)/2]
	}
	small, large := g.Reduce(1), g.Reduce(float64(sizes[1]))
	n.Latency = medians[0] / small.Steps
	// at least a tenth of the seconds are for the bytes, even if the latency was measured too large
	n.Bandwidth = large.Wire / max(medians[1]-large.Steps*n.Latency, medians[1]/10)
	return n, nil
}

// Traffic counts the exchanges of the first rank with the other ranks.
type Traffic struct {
	Bytes int64   // bytes passed to collectives, as comm.Traffic counts them
	Wire  float64 // bytes that the rank sends or receives, whichever is more
	Steps float64 // number of messages, one after the other
}

// Add adds the exchanges of u, repeated the given number of times.
func (t *Traffic) Add(u Traffic, times float64) {
	t.Bytes += int64(times) * u.Bytes
	t.Wire += times * u.Wire
	t.Steps += times * u.Steps
}

// collectiveSeconds returns the seconds of the exchanges.
func (n Network) collectiveSeconds(t Traffic) (seconds float64) {
	if n.Bandwidth > 0 {
		seconds = t.Wire / n.Bandwidth
	}
	return seconds + t.Steps*n.Latency
}

// Exchange is the Traffic of each part of a solve. Agreements between ranks, 8P bytes each, count as messages, but
// their bytes are neglected.
type Exchange struct {
	Features  Traffic // choosing landmarks
	Factor    Traffic // ZᵀZ and its factor, neighbors, and a sparse inverse
	Iteration Traffic // one iteration
	Residual  Traffic // true residuals of the answer
}

// Solve returns the Traffic of all iterations of a candidate.
func (e *Exchange) Solve(c *Candidate) (t Traffic) {
	t.Add(e.Iteration, float64(c.Iterations))
	return t
}

// Bytes returns the total number of bytes that a rank passes to collectives.
func (e *Exchange) Bytes(c *Candidate) int64 {
	return e.Features.Bytes + e.Factor.Bytes + e.Solve(c).Bytes + e.Residual.Bytes
}

// Group counts the exchanges in collectives of P ranks, the first of which owns OwnRows of all Rows rows.
type Group struct {
	P, OwnRows, Rows float64
}

// Group returns the group of ranks over which the n rows are distributed.
func (m *Model) Group() Group {
	return Group{float64(m.Ranks), float64(comm.RowCounts(m.N, precond.RankRows, m.Ranks, 1)[0]), float64(m.N)}
}

const (
	ringBytes     = 64 << 10 // all-reduces of at least so many bytes go around a ring, as in MPI libraries
	pairwiseRanks = 3        // up to so many ranks, package comm exchanges between pairs in two steps
)

// Reduce returns the traffic of an all-reduce of the given count of numbers.
func (g Group) Reduce(numbers float64) Traffic {
	steps := 2 * math.Ceil(math.Log2(g.P))
	if g.P <= pairwiseRanks {
		steps = 2
	} else if 8*numbers >= ringBytes {
		steps = 2 * (g.P - 1)
	}
	return Traffic{int64(8 * numbers), 16 * numbers * (g.P - 1) / g.P, steps}
}

// Gather returns the traffic of an all-gather of an n×width block whose rows are distributed over the ranks.
func (g Group) Gather(width float64) Traffic {
	return Traffic{int64(8 * g.OwnRows * width), 8 * (g.Rows - g.OwnRows) * width, g.P - 1}
}

// Broadcast returns the traffic of a broadcast of the given number of bytes in all. The first rank, as the root of some
// of the broadcasts, contributes a part of them.
func (g Group) Broadcast(bytes, contributed float64) Traffic {
	return Traffic{int64(contributed), bytes, math.Ceil(math.Log2(g.P))}
}

// Traffic predicts the exchanges between the ranks: 8(nt+2) bytes for a product with K, 8(2nt+2) in float64, and the
// exchanges of M. The prediction is exact if all columns take all iterations, except for random pivots, whose exchanges
// depend on the pivots.
func (m Model) Traffic(c *Candidate) Exchange {
	if m.Ranks < 2 || c.Solver == Direct {
		return Exchange{}
	}
	e, t := m.precondCost(c).Traffic, float64(max(1, m.T))
	g := m.Group()
	if c.Solver == Fourier { // about: the moments and a projection gather sums of cells, and two passes gather values
		sums := float64(c.Work.RowSums)
		e.Factor.Add(Group{g.P, sums / g.P, sums}.Gather(1), 2)
		e.Factor.Add(g.Gather(t), 2)
		return e
	}
	exact, product := g.Reduce(2*g.Rows*t+2), g.Reduce(g.Rows*t+2)
	if c.Storage == gram.Float64 {
		product = exact
	}
	e.Iteration.Add(product, 1)
	e.Iteration.Add(Traffic{Steps: g.Reduce(g.P).Steps}, 1) // agreement between the ranks
	if m.ResidualRounds > 0 {
		e.Residual.Add(exact, float64(m.ResidualRounds))
		return e
	}
	rows := min(m.N, bound.MaxResidualRows)
	rowsOfFirst := comm.RowCounts(rows, answers.BatchRows, m.Ranks, 1)[0]
	e.Residual.Add(product, 1)
	e.Residual.Add(Group{g.P, float64(rowsOfFirst), float64(rows)}.Gather(t), 1)
	return e
}
