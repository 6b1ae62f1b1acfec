package precond

import (
	"math"
	"slices"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// TestSharedInverse checks that an L⁻¹ that is distributed over ranks gives M⁻¹R and the statistical dimension with
// the bits of one process. It covers both BLAS, float32 products that are used and that are refused, few and many
// columns, and orders that are and are not multiples of the tile and block sizes.
func TestSharedInverse(t *testing.T) {
	defer func(saved int) { maxReplicatedOrder = saved }(maxReplicatedOrder)
	maxReplicatedOrder = 0
	run := func(t *testing.T) {
		for _, problem := range []struct {
			n, s, columns int
			fast          bool
			lambdaP       float64
		}{{600, 900, 3, false, 0.3}, {1100, 1100, 12, true, 0.3}, {70, 5, 1, false, 1e-9}, {4096, 60, 2, true, 0.01}} {
			z, r := randomFeatures(problem.n, problem.s), testkit.RandomMatrix(3, problem.n, problem.columns)
			for i := range z.N { // repeated rows make New refuse float32 products (TestFastGramOnRanks)
				if problem.n > 4000 {
					copy(z.Row(i), cosineFeatures(1, problem.s).Row(0))
				}
			}
			var want mat.Dense
			var statDim, logDet float64
			for _, ranks := range []int{1, 2, 3} {
				var factorBytes [4]int64
				onRanks(ranks, z, func(c comm.Comm, rankRows *points.Dense32) {
					w, err := New(t.Context(), rankRows, problem.lambdaP,
						&Options{Form: FormLInv, Fast: problem.fast, Comm: c})
					if err != nil {
						t.Error(err)
						return
					}
					x := mat.NewDense(problem.n, problem.columns, nil)
					factorBytes[c.Rank()] = w.Bytes() - 4*int64(rankRows.N*rankRows.D)
					testkit.OK(t, w.SolveTo(t.Context(), x, r))
					switch {
					case ranks == 1:
						want.CloneFrom(x)
						statDim, logDet = w.StatDim(), w.LogDet()
					case !mat.Equal(x, &want) || w.StatDim() != statDim || math.Abs(w.LogDet()/logDet-1) > 1e-12:
						t.Errorf("%+v: rank %d of %d has other bits than one process: s_λ = %v, %v", problem, c.Rank(),
							ranks, w.StatDim(), statDim)
					}
				})
				var sum int64
				for _, bytes := range factorBytes {
					sum += bytes
				}
				if replicatedBytes := 8 * int64(problem.s) * int64(problem.s); ranks > 1 && problem.s > 500 &&
					sum > replicatedBytes+replicatedBytes*colBlock/int64(problem.s) {
					t.Errorf("%+v: %d ranks hold %d bytes of the factor, one %d", problem, ranks, factorBytes,
						replicatedBytes)
				}
			}
		}
	}
	testkit.EachBLAS(t, run)
}

// TestSharedNotDefinite checks that all ranks refuse a ZᵀZ that is numerically singular, and that they name the same
// pivot as one process.
func TestSharedNotDefinite(t *testing.T) {
	defer func(saved int) { maxReplicatedOrder = saved }(maxReplicatedOrder)
	maxReplicatedOrder = 0
	testkit.UseBLAS(t, nil) // the failing pivot depends on the BLAS
	z := randomFeatures(900, 800)
	// The pivot of a copied column is a rounding error of either sign. Of forty, one is negative.
	for i := range z.N {
		for j := range 40 {
			z.Row(i)[450+j] = z.Row(i)[20+j]
		}
	}
	var mu sync.Mutex
	var messages []string
	for _, ranks := range []int{1, 3} {
		onRanks(ranks, z, func(c comm.Comm, rankRows *points.Dense32) {
			_, err := New(t.Context(), rankRows, 1e-300, &Options{Form: FormLInv, Comm: c})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				t.Errorf("rank %d of %d: no error", c.Rank(), ranks)
				return
			}
			messages = append(messages, err.Error())
		})
	}
	testkit.Equal(t, len(slices.Compact(messages)), 1, messages)
}
