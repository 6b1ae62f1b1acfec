package lowrank_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// pairProbabilities returns the probabilities P(i then j) = K_ii/tr K · d_j/Σd with d_j = K_jj − K_ij²/K_ii of the
// first two pivots, if pivots are drawn one at a time.
func pairProbabilities(k mat.Symmetric) []float64 {
	n := k.SymmetricDim()
	probabilities := make([]float64, n*n)
	for i := range n {
		var sum float64
		for j := range n {
			probabilities[i*n+j] = k.At(j, j) - k.At(i, j)*k.At(i, j)/k.At(i, i)
			if i == j {
				probabilities[i*n+j] = 0
			}
			sum += probabilities[i*n+j]
		}
		for j := range n {
			probabilities[i*n+j] *= k.At(i, i) / mat.Trace(k) / sum
		}
	}
	return probabilities
}

// TestPivotDistribution compares the first two pivots of 8,000 runs with their exact distribution, for blocks of one
// pivot and of several: rejection sampling must not change the distribution. Two points nearly coincide, and the
// diagonal varies.
//
// There are 30 pairs. Those with fewer than 10 expected draws form one cell, so χ² has at most 29 degrees of freedom
// and exceeds 85 with probability 2.1e-7, which is 1e-6 for the five tests together.
func TestPivotDistribution(t *testing.T) {
	const n, runs = 6, 8000
	x := [][]float64{{0, 0}, {0.3, 0}, {1, 1}, {-1, 0.5}, {0.05, 0.1}, {2, -1}}
	k := gaussianMatrixOf(x, 1)
	for i, scale := range []float64{1, 1.4, 0.7, 1, 2, 0.8} {
		for j := range n {
			entry := k.At(i, j) * scale
			if i == j {
				entry *= scale
			}
			k.SetSym(i, j, entry)
		}
	}
	probabilities := pairProbabilities(k)
	for _, test := range []struct{ rank, block int }{{2, 1}, {2, 2}, {4, 3}, {5, 5}, {6, 0}} {
		count := make([]float64, n*n)
		for seed := range uint64(runs) {
			g := rng.New(seed).Sub("law", uint64(test.rank), uint64(test.block))
			f := testkit.Must(lowrank.RPCholesky(ctx, k, test.rank, g, &lowrank.Options{Block: test.block}))
			count[f.Landmarks[0]*n+f.Landmarks[1]]++
		}
		var chiSquared, rareObserved, rareExpected float64
		cells := 0
		for pair, probability := range probabilities {
			observed, expected := count[pair], probability*runs // observed and expected draws
			if expected < 10 {                                  // merged into one cell
				rareObserved, rareExpected = rareObserved+observed, rareExpected+expected
				continue
			}
			chiSquared += (observed - expected) * (observed - expected) / expected
			cells++
		}
		if rareExpected > 0 {
			chiSquared += (rareObserved - rareExpected) * (rareObserved - rareExpected) / rareExpected
		} else if rareObserved > 0 {
			t.Errorf("rank %d, block %d: %v draws of pairs of probability 0", test.rank, test.block, rareObserved)
		}
		t.Logf("rank %d, block %d: χ² = %.1f in %d cells", test.rank, test.block, chiSquared, cells)
		if chiSquared > 85 {
			t.Errorf("rank %d, block %d: χ² = %.1f in %d cells; counts %v", test.rank, test.block, chiSquared, cells,
				count)
		}
	}
}

// recordedColumns records the columns of the first call of Submatrix.
type recordedColumns struct {
	*denseSource
	cols []int
}

func (k *recordedColumns) Submatrix(ctx context.Context, rows, cols []int, dst blas64.General) error {
	if k.cols == nil {
		k.cols = slices.Clone(cols)
	}
	return k.denseSource.Submatrix(ctx, rows, cols, dst)
}

// TestProposalOrder checks that the columns of the first block are formed in the order in which they were drawn,
// because the last digits of F depend on that order.
func TestProposalOrder(t *testing.T) {
	const n = 90
	k, g := &recordedColumns{denseSource: gaussianMatrix(1, n, 5, 1.5)}, rng.New(3)
	testkit.Must(lowrank.RPCholesky(ctx, k, 20, g, &lowrank.Options{Block: 20}))
	var want []int
	for draw := range uint64(20) {
		if i := int(n * g.Sub("proposals").Float64(draw)); !slices.Contains(want, i) {
			want = append(want, i)
		}
	}
	if !slices.Equal(k.cols, want) || slices.IsSorted(want) {
		t.Errorf("columns %v first, want %v", k.cols, want)
	}
}

// TestRPCholesky checks the properties of every factor (checkFactor) for several matrices, ranks and block sizes. A
// factor may stop below the requested rank only at the rounding level.
func TestRPCholesky(t *testing.T) {
	for name, k := range map[string]*denseSource{
		"gaussian": gaussianMatrix(1, 90, 5, 1.5), "ill conditioned": gaussianMatrix(2, 90, 2, 2.5),
		"scaled":              rescaled(gaussianMatrix(3, 90, 4, 1.5)),
		"larger than a panel": gaussianMatrix(4, 300, 6, 2), "smooth": gaussianMatrix(5, 80, 1, 3),
	} {
		for _, rank := range []int{1, 9, 40} {
			for _, block := range []int{0, 1, 4, 40} {
				name := fmt.Sprintf("%s, rank %d, block %d", name, rank, block)
				f := testkit.Must(lowrank.RPCholesky(ctx, k, rank, rng.New(3), &lowrank.Options{Block: block}))
				checkFactor(t, name, k, f)
				if f.RequestedRank != rank || f.Columns < f.Rank() || f.Method != "RPCholesky" {
					t.Errorf("%s: %v", name, f)
				}
				if f.Rank() < rank && f.Residual > 0x1p-19*f.Trace {
					t.Errorf("%s: stopped at rank %d with tr(K−K̂) = %.3g of %.3g", name, f.Rank(), f.Residual, f.Trace)
				}
			}
		}
	}
}

// TestFullNumericalRank requests a rank at which the residual of smooth kernels is below the rounding of float32. The
// last pivots are then as small as allowed, and K−K̂ must still be positive semidefinite up to F's rounding, as
// CondBound needs. Half of that rounding was measured.
func TestFullNumericalRank(t *testing.T) {
	for d := 1; d <= 3; d++ {
		for _, sigma := range []float64{0.5, 5} {
			k := gaussianMatrix(uint64(d), 120, d, sigma)
			for methodName, method := range methods {
				for _, block := range []int{1, 10, 100} {
					f := testkit.Must(method(ctx, k, 100, rng.New(1), &lowrank.Options{Block: block}))
					checkFactor(t, fmt.Sprintf("%s, d = %d, σ = %g, block %d", methodName, d, sigma, block), k, f)
				}
			}
		}
	}
}

// TestOutlierLandmarks compares the mean of tr(K−K̂) with that of Nyström on 95 points within 0.05 of each other and 8
// outliers. With 12 landmarks RPCholesky finds all outliers, and uniform landmarks miss most of them.
func TestOutlierLandmarks(t *testing.T) {
	var pts [][]float64
	for i := range 95 {
		pts = append(pts, []float64{0.05 * math.Sin(float64(i)), 0.05 * math.Cos(3*float64(i))})
	}
	for i := range 8 {
		pts = append(pts, []float64{10 * float64(i+1), 0})
	}
	k := gaussianMatrixOf(pts, 1)
	mean := map[string]float64{}
	for name, method := range methods {
		for seed := range uint64(60) {
			f := testkit.Must(method(ctx, k, 12, rng.New(seed), &lowrank.Options{Block: 4}))
			mean[name] += f.Residual / 60
		}
	}
	if pivoted, uniform := mean["RPCholesky"], mean["Nyström"]; !(pivoted < 0.1*uniform) || uniform < 6 {
		t.Errorf("mean tr(K−K̂): RPCholesky %.3g, Nyström %.3g", pivoted, uniform)
	}
}

// TestStopResidual checks that a factor with StopResidual γ consists of the first columns of the factor of full rank,
// and that it ends with the first block after which tr(K−K̂) is at most γ times the rank, also on ranks.
func TestStopResidual(t *testing.T) {
	const n, rank, block = 300, 60, 7
	for seed := range uint64(3) {
		k := gaussianMatrix(seed, n, 3, 1.5)
		var blockEnds []int // rank after each block
		full := testkit.Must(lowrank.RPCholesky(ctx, k, rank, rng.New(seed), &lowrank.Options{Block: block,
			Progress: func(done, _ int) { blockEnds = append(blockEnds, done) }}))
		remaining := func(r int) float64 {
			trace := mat.Trace(k)
			for i := range n {
				for _, v := range full.F.Row(i)[:r] {
					trace -= float64(v) * float64(v)
				}
			}
			return trace
		}
		for _, gamma := range []float64{1, 0.1, 0.01, 1e-9} {
			want := full.Rank()
			for _, r := range slices.Backward(blockEnds) {
				if remaining(r) <= gamma*float64(r) {
					want = r
				}
			}
			newFactor := func(c comm.Comm) *lowrank.Factor {
				f, err := lowrank.RPCholesky(ctx, &denseSource{SymDense: k.SymDense}, rank, rng.New(seed),
					&lowrank.Options{Block: block, StopResidual: gamma, Comm: c})
				if err != nil {
					t.Error(err)
				}
				return f
			}
			f := newFactor(nil)
			if gamma == 1 && want == full.Rank() {
				t.Fatalf("seed %d: no rank below %d leaves its trace", seed, want)
			}
			if f.Rank() != want || !slices.Equal(f.Landmarks, full.Landmarks[:want]) || f.RequestedRank != rank {
				t.Fatalf("seed %d, γ = %g: %v, want rank %d of %v", seed, gamma, f, want, blockEnds)
			}
			checkFactor(t, fmt.Sprintf("seed %d, γ = %g", seed, gamma), k, f)
			for i := range n {
				if !slices.Equal(f.F.Row(i), full.F.Row(i)[:want]) {
					t.Fatalf("seed %d, γ = %g: row %d of F is not that of the full rank", seed, gamma, i)
				}
			}
			comm.RunLocal(3, func(c comm.Comm) {
				lo, hi := comm.RowRange(n, precond.RankRows, c.Rank(), 3)
				if ownRows := newFactor(c); ownRows != nil && !slices.Equal(ownRows.F.Data, f.F.Data[lo*want:hi*want]) {
					t.Errorf("seed %d, γ = %g: other rows at rank %d", seed, gamma, c.Rank())
				}
			})
		}
	}
}
