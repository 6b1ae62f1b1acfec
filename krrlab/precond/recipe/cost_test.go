package recipe

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// TestVecchiaCost compares the predicted seconds of vecchia.New with recorded processor seconds of one thread, for n =
// 8,000 normal points. Without the terms for the dimension, for the rank in the automatic choice of k and for float64
// products in W, some predictions were 0.2 and some 2.0 times the measured seconds.
func TestVecchiaCost(t *testing.T) {
	rates := cost.Rates{Read: 20e9, Gemm32: 91e9, Gemm64: 45.4e9, Exp: 1.39e9}
	var squares []float64 // squared logarithms of measured ÷ predicted
	for _, recorded := range []struct {
		d, neighbors, rank         int
		entrySeconds, buildSeconds float64
	}{
		{2, 15, 0, 1.03e-9, 0.101}, {2, 60, 0, 1.03e-9, 0.363}, {2, 15, 1500, 1.03e-9, 2.404},
		{50, 15, 0, 7.1e-9, 0.156}, {50, 60, 0, 7.1e-9, 0.813}, {50, 15, 1500, 7.1e-9, 3.059},
		{784, 15, 0, 5.93e-8, 0.498}, {784, 60, 0, 6.67e-8, 3.061}, {784, 15, 1500, 5.93e-8, 2.868},
		{784, 60, 500, 6.67e-8, 6.762},
	} {
		m := cost.Model{Rates: rates, Entries: cost.Entries{ExactEntrySeconds: recorded.entrySeconds}, N: 8000,
			D: recorded.d, T: 1, Cores: 1}
		predicted := Vecchia{S: recorded.rank, Neighbors: recorded.neighbors}.Cost(&m, gram.Float32).Factor
		ratio := recorded.buildSeconds / predicted
		t.Logf("d = %d, k = %d, s = %d: %.2f s measured, %.2f s predicted", recorded.d, recorded.neighbors,
			recorded.rank, recorded.buildSeconds, predicted)
		if !(ratio > 0.6 && ratio < 1.5) {
			t.Errorf("d = %d, k = %d, s = %d: %.2f of the predicted seconds", recorded.d, recorded.neighbors,
				recorded.rank, ratio)
		}
		squares = append(squares, math.Pow(math.Log(ratio), 2))
	}
	var sum float64
	for _, v := range squares {
		sum += v / float64(len(squares))
	}
	if spread := math.Exp(math.Sqrt(sum)); spread > 1.3 {
		t.Errorf("the root mean square of measured ÷ predicted is a factor of %.2f, want 1.3 at most", spread)
	}
}

// TestRecordedIterations compares the predicted iterations with recorded ones on MNIST (σ = 8.5, λ = 0.01, λ_p = 10λ, τ
// = 10⁻³, block pcg), with n/20 pivots and fewer. The rules were fitted at 5,000 points; at 60,000, there are more
// pivots than points in the pilot sample. From 10,000 points on, a sparse inverse with half the pivots must take more
// iterations than the pivots alone.
func TestRecordedIterations(t *testing.T) {
	const blockFactor = 0.86 // iterations of block pcg, in units of the iterations with single right-hand sides
	for _, recorded := range []struct {
		n, sampleSize    int
		residual, rowSum float64
		rank             int
		pivots, sparse   float64 // measured iterations with this rank, and with a sparse inverse and n/40 pivots
	}{
		{5000, 250, 0.1817, 2475, 250, 36, 35}, {10_000, 500, 0.1361, 5044, 500, 39, 43},
		{20_000, 1000, 0.1120, 9909, 1000, 38, 48}, {40_000, 1024, 0.1136, 19_757, 2000, 37, 56},
		{60_000, 1024, 0.1162, 29_933, 3000, 35, 49}, {60_000, 1024, 0.1162, 29_933, 2500, 37, 49},
		{60_000, 1024, 0.1162, 29_933, 2000, 44, 49}, {60_000, 1024, 0.1162, 29_933, 1500, 53, 49},
	} {
		model := &cost.IterationModel{N: recorded.n, SampleSize: recorded.sampleSize, Lambda: 0.01,
			PilotResidual: recorded.residual, Decay: 0.345, MeanRowSum: recorded.rowSum,
			LargestRowSum: 1.2 * recorded.rowSum, MaxDiagonal: 1}
		pivots := blockFactor * RPCholesky{S: recorded.rank}.Iterations(model)
		sparse := blockFactor * Vecchia{S: recorded.n / 40, Neighbors: 15}.Iterations(model)
		t.Logf("n = %d, s = %d: pivots %.0f predicted, %v measured; sparse inverse %.0f, %v", recorded.n, recorded.rank,
			pivots, recorded.pivots, sparse, recorded.sparse)
		for _, ratio := range []float64{pivots / recorded.pivots, sparse / recorded.sparse} {
			if !(ratio > 0.75 && ratio < 1.3) {
				t.Errorf("n = %d: %.2f of the measured iterations", recorded.n, ratio)
			}
		}
		if recorded.n >= 10_000 && recorded.rank == recorded.n/20 && !(sparse > pivots) {
			t.Errorf("n = %d: the sparse inverse is predicted to take %.0f iterations, pivots %.0f", recorded.n,
				sparse, pivots)
		}
	}
}
