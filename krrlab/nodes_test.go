package krrlab

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// numbers is a Comm that counts the bytes of agreements, and of the text that says how K is kept, beside; and what its
// collectives would take on a network, in two rounds of P−1 messages that cross, or one where each sends all it has.
type numbers struct {
	comm.Comm
	agreed  int64
	seconds float64
}

// link is that network.
var link = cost.Network{Bandwidth: 1e7, Latency: 1e-4}

func (c *numbers) wire(rounds, bytes float64) {
	c.seconds += rounds*link.Latency + bytes/link.Bandwidth
}

func (c *numbers) AllReduceInt64(ctx context.Context, x []int64) error {
	c.wire(2, 16*float64(len(x)*(c.Size()-1))/float64(c.Size()))
	if len(x) <= 3 {
		c.agreed += 8 * int64(len(x))
	}
	return c.Comm.AllReduceInt64(ctx, x)
}

func (c *numbers) AllGather(ctx context.Context, x []float64, counts []int) error {
	own := counts[c.Rank()]
	c.wire(1, 8*float64(max(len(x)-own, own)))
	if len(x) <= 3 {
		c.agreed += 8 * int64(own)
	}
	return c.Comm.AllGather(ctx, x, counts)
}

func (c *numbers) Broadcast(ctx context.Context, x []byte, root int) error {
	c.wire(1, float64(len(x)))
	if len(x) < 1000 && root == c.Rank() {
		c.agreed += int64(len(x))
	}
	return c.Comm.Broadcast(ctx, x, root)
}

// TestTraffic: the first rank hands to the others what is predicted for the iterations it takes, to the byte but for
// agreements; less by a thousandth of a sparse inverse, whose first rows are short, and what is expected of random
// pivots. Of a network of given bandwidth and latency it takes the seconds predicted.
func TestTraffic(t *testing.T) {
	for name, c := range map[string]struct {
		precond Preconditioner
		way     cost.Candidate
		n, cols int
		most    float64
	}{
		"features":  {Features{S: 90}, cost.Candidate{Preconditioner: Features{S: 90}, Storage: gram.Float64}, 1100, 1, 0},
		"columns":   {Features{S: 90}, cost.Candidate{Preconditioner: Features{S: 90}, Storage: gram.Float32}, 1100, 3, 0},
		"landmarks": {Nystrom{S: 130}, cost.Candidate{Preconditioner: Nystrom{S: 130}, Storage: gram.Recompute}, 1300, 1, 0},
		"pivots":    {RPCholesky{S: 90}, cost.Candidate{Preconditioner: RPCholesky{S: 90}, Storage: gram.Float32}, 1300, 1, 0.2},
		"none":      {nil, cost.Candidate{Precond: cost.None, Storage: gram.Float32}, 700, 1, 0},
		"neighbors": {Vecchia{Neighbors: 9}, cost.Candidate{Preconditioner: Vecchia{Neighbors: 9}, Storage: gram.Float32},
			1100, 1, 1e-3},
		"shared": {Features{S: 2100, Form: precond.FormLInv}, cost.Candidate{Preconditioner: Features{S: 2100, Form: precond.FormLInv},
			Storage: gram.Float32}, 2200, 1, 0},
	} {
		for _, p := range [][]int{{2, 3}, {3}}[suite.Scale(1, 0, 0)] {
			for _, exact := range []ResidualPolicy{StoredResidual, ExactResidual}[:suite.Scale(1+len(name)%2, 2, 2)] {
				t.Run(fmt.Sprintf("%s %d %v", name, p, exact), func(t *testing.T) {
					train := regression(kinds(c.n, 4, 3)["float64"])
					cfg := Config{Kernel: gauss, Lambda: 0.1, Seed: 5, Tol: 1e-3, Exact: exact, Solver: PCG,
						Precond: c.precond, Storage: c.way.Storage}
					if c.precond == nil {
						cfg.Solver = CG
					}
					if c.cols > 1 {
						train, cfg.Solver = ranksProblem(c.n), BlockPCG
					}
					got, way := sent(t, p, train, cfg), c.way
					way.Iterations = got.its
					model := cost.Model{Rates: cost.Reference(), N: c.n, D: 4, T: c.cols, Ranks: p}
					model.Network = link
					if exact == ExactResidual {
						model.ResidualRounds = 1
					}
					e := model.Traffic(&way)
					if want := e.Bytes(&way); math.Abs(float64(got.bytes-want)) > c.most*float64(want) {
						t.Errorf("%d bytes in %d iterations, predicted %d: %+v", got.bytes, got.its, want, e)
					}
					if model.Predict(&way); math.Abs(way.Seconds.Network/got.seconds-1) > 0.2+c.most {
						t.Errorf("%.4f s of the network, predicted %.4f", got.seconds, way.Seconds.Network)
					}
				})
			}
		}
	}
}

// handed is what the first rank of a solve handed over, but for agreements, in its iterations.
type handed struct {
	bytes   int64
	its     int
	seconds float64 // of the network
}

// sent solves on p ranks.
func sent(t *testing.T, p int, train *datasets.Dataset, cfg Config) (h handed) {
	t.Helper()
	onRanks(p, func(local comm.Comm) {
		own := &numbers{Comm: local}
		if sol := solveOn(t, own, train, cfg); sol != nil && local.Rank() == 0 {
			h = handed{local.Traffic().Bytes - own.agreed, sol.Iterations, own.seconds}
		}
	})
	return h
}
