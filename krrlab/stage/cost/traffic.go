package cost

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/model"
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

// MeasureNetwork measures the network by timing all-reduces of 1 number and of 10⁶ numbers; it uses the median of 9
// runs for 1 number, and of 3 runs for 10⁶. All ranks must call MeasureNetwork together.
func MeasureNetwork(ctx context.Context, communicator comm.Comm) (network Network, err error) {
	group := Group{P: float64(communicator.Size())}
	var medians [2]float64 // seconds
	sizes, runs := [2]int{1, 1e6}, [2]int{9, 3}
	x := make([]int64, sizes[1])
	for i, size := range sizes {
		seconds := make([]float64, runs[i])
		for run := range seconds {
			start := time.Now()
			if err = communicator.AllReduceInt64(ctx, x[:size]); err != nil {
				return network, err
			}
			seconds[run] = time.Since(start).Seconds()
		}
		slices.Sort(seconds)
		medians[i] = seconds[len(seconds)/2]
	}
	small, large := group.Reduce(1), group.Reduce(float64(sizes[1]))
	network.Latency = medians[0] / small.Steps
	// The bytes get at least a tenth of the seconds, even if the measured latency is too large.
	network.Bandwidth = large.Wire / max(medians[1]-large.Steps*network.Latency, medians[1]/10)
	return network, nil
}

// Traffic counts the data that the first rank exchanges with the other ranks.
type Traffic struct {
	Bytes int64   // bytes passed to collectives, as comm.Traffic counts them
	Wire  float64 // bytes that the rank sends or receives, whichever is more
	Steps float64 // number of messages, one after the other
}

// Add adds the traffic of an exchange that is repeated the given number of times.
func (t *Traffic) Add(exchange Traffic, times float64) {
	t.Bytes += int64(times) * exchange.Bytes
	t.Wire += times * exchange.Wire
	t.Steps += times * exchange.Steps
}

// collectiveSeconds returns the seconds of the exchanges.
func (n Network) collectiveSeconds(t Traffic) (seconds float64) {
	if n.Bandwidth > 0 {
		seconds = t.Wire / n.Bandwidth
	}
	return seconds + t.Steps*n.Latency
}

// Exchange is the Traffic of each part of a solve. When ranks agree on an error or a decision, with 8P bytes, the
// messages are counted and the bytes are neglected.
type Exchange struct {
	Features  Traffic // choosing landmarks
	Factor    Traffic // forming ZᵀZ and its factor, or finding neighbors and forming a sparse inverse
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

// Group predicts the traffic of collective operations among P ranks. The first rank owns OwnRows of all Rows rows.
type Group struct {
	P, OwnRows, Rows float64
}

// Group returns the group of ranks over which the n rows are distributed.
func (m *Model) Group() Group {
	return Group{float64(m.Ranks), float64(comm.RowCounts(m.N, precond.RankRows, m.Ranks, 1)[0]), float64(m.N)}
}

const (
	ringBytes     = 64 << 10 // an all-reduce of at least this many bytes uses a ring algorithm, as in MPI libraries
	pairwiseRanks = 3        // up to this many ranks, package comm exchanges data between pairs of ranks in two steps
)

// Reduce returns the traffic of an all-reduce of the given count of 8-byte numbers.
func (g Group) Reduce(numbers float64) Traffic {
	steps := 2 * math.Ceil(math.Log2(g.P))
	if g.P <= pairwiseRanks {
		steps = 2
	} else if 8*numbers >= ringBytes {
		steps = 2 * (g.P - 1)
	}
	return Traffic{int64(8 * numbers), 16 * numbers * (g.P - 1) / g.P, steps}
}

// Gather returns the traffic of an all-gather of a matrix of 8-byte numbers with the given width, whose rows are
// distributed over the ranks.
func (g Group) Gather(width float64) Traffic {
	return Traffic{int64(8 * g.OwnRows * width), 8 * (g.Rows - g.OwnRows) * width, g.P - 1}
}

// Broadcast returns the traffic of broadcasts of the given number of bytes in all. The contributed bytes are the part
// whose root is the first rank.
func (g Group) Broadcast(bytes, contributed float64) Traffic {
	return Traffic{int64(contributed), bytes, math.Ceil(math.Log2(g.P))}
}

// Traffic predicts the exchanges between the ranks: 8(nt+2) bytes for a product with K, 8(2nt+2) if K is in float64,
// and the exchanges of the preconditioner M. The prediction is exact if all columns take all iterations, except for
// random pivots, whose exchanges depend on the pivots.
func (m Model) Traffic(c *Candidate) Exchange {
	if m.Ranks < 2 || c.Solver == Direct {
		return Exchange{}
	}
	e, columns := m.precondCost(c).Traffic, float64(max(1, m.T))
	group := m.Group()
	if c.Solver == Fourier {
		// An approximation: the moments and a projection gather sums over cells, and two passes gather values.
		sums := float64(c.Work.RowSums)
		e.Factor.Add(Group{group.P, sums / group.P, sums}.Gather(1), 2)
		e.Factor.Add(group.Gather(columns), 2)
		return e
	}
	exact, product := group.Reduce(2*group.Rows*columns+2), group.Reduce(group.Rows*columns+2)
	if c.Storage == gram.Float64 {
		product = exact
	}
	e.Iteration.Add(product, 1)
	e.Iteration.Add(Traffic{Steps: group.Reduce(group.P).Steps}, 1) // agreement between the ranks
	if m.ResidualRounds > 0 {
		e.Residual.Add(exact, float64(m.ResidualRounds))
		return e
	}
	rows := min(m.N, bound.MaxResidualRows)
	firstRankRows := comm.RowCounts(rows, model.BatchRows, m.Ranks, 1)[0]
	e.Residual.Add(product, 1)
	e.Residual.Add(Group{group.P, float64(firstRankRows), float64(rows)}.Gather(columns), 1)
	return e
}
