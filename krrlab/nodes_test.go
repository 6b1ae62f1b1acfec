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

// countingComm is a Comm that counts the bytes of agreements and other small messages, which the prediction of
// traffic leaves out. It also adds up the time that its collectives would take on the network link. An all-reduce
// takes two rounds of P−1 messages, and the other collectives take one.
type countingComm struct {
	comm.Comm
	agreementBytes int64
	seconds        float64
}

// link is the network for which countingComm and the cost model compute times.
var link = cost.Network{Bandwidth: 1e7, Latency: 1e-4}

// addTime adds the time of the given number of message rounds and bytes on the network link.
func (c *countingComm) addTime(rounds, bytes float64) {
	c.seconds += rounds*link.Latency + bytes/link.Bandwidth
}

func (c *countingComm) AllReduceInt64(ctx context.Context, x []int64) error {
	c.addTime(2, 16*float64(len(x)*(c.Size()-1))/float64(c.Size()))
	if len(x) <= 3 {
		c.agreementBytes += 8 * int64(len(x))
	}
	return c.Comm.AllReduceInt64(ctx, x)
}

func (c *countingComm) AllGather(ctx context.Context, x []float64, counts []int) error {
	ownCount := counts[c.Rank()]
	c.addTime(1, 8*float64(max(len(x)-ownCount, ownCount)))
	if len(x) <= 3 {
		c.agreementBytes += 8 * int64(ownCount)
	}
	return c.Comm.AllGather(ctx, x, counts)
}

func (c *countingComm) Broadcast(ctx context.Context, x []byte, root int) error {
	c.addTime(1, float64(len(x)))
	if len(x) < 1000 && root == c.Rank() {
		c.agreementBytes += int64(len(x))
	}
	return c.Comm.Broadcast(ctx, x, root)
}

// TestTraffic compares the bytes that rank 0 sends in a solve with the prediction of the cost model for the same
// number of iterations, apart from agreements. They must be equal, except that a sparse inverse may differ by a
// thousandth, because its first rows are short, and random pivots by 20 %, because their number is an expectation.
// The predicted network time may differ by 20 % more.
func TestTraffic(t *testing.T) {
	for name, c := range map[string]struct {
		precond    Preconditioner
		candidate  cost.Candidate
		n, columns int
		tolerance  float64
	}{
		"features": {Features{S: 90}, cost.Candidate{Preconditioner: Features{S: 90}, Storage: gram.Float64}, 1100, 1,
			0},
		"columns": {Features{S: 90}, cost.Candidate{Preconditioner: Features{S: 90}, Storage: gram.Float32}, 1100, 3,
			0},
		"landmarks": {Nystrom{S: 130}, cost.Candidate{Preconditioner: Nystrom{S: 130}, Storage: gram.Recompute}, 1300,
			1, 0},
		"pivots": {RPCholesky{S: 90}, cost.Candidate{Preconditioner: RPCholesky{S: 90}, Storage: gram.Float32}, 1300,
			1, 0.2}, "none": {nil, cost.Candidate{Precond: cost.None, Storage: gram.Float32}, 700, 1, 0},
		"neighbors": {Vecchia{Neighbors: 9}, cost.Candidate{Preconditioner: Vecchia{Neighbors: 9},
			Storage: gram.Float32}, 1100, 1, 1e-3},
		"shared": {Features{S: 2100, Form: precond.FormLInv}, cost.Candidate{Preconditioner: Features{S: 2100,
			Form: precond.FormLInv}, Storage: gram.Float32}, 2200, 1, 0},
	} {
		for _, rankCount := range [][]int{{2, 3}, {3}}[suite.Scale(1, 0, 0)] {
			for _, exact := range []ResidualPolicy{StoredResidual, ExactResidual}[:suite.Scale(1+len(name)%2, 2, 2)] {
				t.Run(fmt.Sprintf("%s %d %v", name, rankCount, exact), func(t *testing.T) {
					train := regression(pointsByFormat(c.n, 4, 3)["float64"])
					cfg := Config{Kernel: gauss, Lambda: 0.1, Seed: 5, Tol: 1e-3, Exact: exact, Solver: PCG,
						Precond: c.precond, Storage: c.candidate.Storage}
					if c.precond == nil {
						cfg.Solver = CG
					}
					if c.columns > 1 {
						train, cfg.Solver = ranksProblem(c.n), BlockPCG
					}
					measured, candidate := measureTraffic(t, rankCount, train, cfg), c.candidate
					candidate.Iterations = measured.iterations
					model := cost.Model{Rates: cost.Reference(), N: c.n, D: 4, T: c.columns, Ranks: rankCount}
					model.Network = link
					if exact == ExactResidual {
						model.ResidualRounds = 1
					}
					predicted := model.Traffic(&candidate)
					want := predicted.Bytes(&candidate)
					if math.Abs(float64(measured.bytes-want)) > c.tolerance*float64(want) {
						t.Errorf("%d bytes in %d iterations, predicted %d: %+v", measured.bytes, measured.iterations,
							want, predicted)
					}
					model.Predict(&candidate)
					if math.Abs(candidate.Seconds.Network/measured.seconds-1) > 0.2+c.tolerance {
						t.Errorf("%.4f s of the network, predicted %.4f", measured.seconds, candidate.Seconds.Network)
					}
				})
			}
		}
	}
}

// traffic holds the bytes that rank 0 sent in a solve, without agreements, the number of iterations and the network
// time.
type traffic struct {
	bytes      int64
	iterations int
	seconds    float64 // time that the messages take on the network link
}

// measureTraffic solves on rankCount ranks and returns the traffic of rank 0.
func measureTraffic(t *testing.T, rankCount int, train *datasets.Dataset, cfg Config) (measured traffic) {
	t.Helper()
	onRanks(rankCount, func(local comm.Comm) {
		counting := &countingComm{Comm: local}
		if sol := solveOn(t, counting, train, cfg); sol != nil && local.Rank() == 0 {
			measured = traffic{local.Traffic().Bytes - counting.agreementBytes, sol.Iterations, counting.seconds}
		}
	})
	return measured
}
