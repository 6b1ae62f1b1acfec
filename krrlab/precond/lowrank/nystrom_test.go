package lowrank_test

import (
	"fmt"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
)

// nystromByDefinition returns C(W+νD)⁻¹Cᵀ in float64. C is the n×r matrix of the columns of K at the landmarks, W has
// their rows of C, D is the diagonal of W, and ν is the shift.
func nystromByDefinition(t *testing.T, k mat.Symmetric, landmarks []int, nu float64) *mat.Dense {
	t.Helper()
	n, r := k.SymmetricDim(), len(landmarks)
	c, shifted := mat.NewDense(n, r, nil), mat.NewSymDense(r, nil) // C and W+νD
	for col, j := range landmarks {
		for i := range n {
			c.Set(i, col, k.At(i, j))
		}
		for row, i := range landmarks[:col+1] {
			shifted.SetSym(row, col, k.At(i, j))
		}
		shifted.SetSym(col, col, (1+nu)*k.At(j, j))
	}
	var chol mat.Cholesky
	if !chol.Factorize(shifted) {
		t.Fatal("W+νD is not positive definite")
	}
	var weights, product mat.Dense // (W+νD)⁻¹Cᵀ, and C(W+νD)⁻¹Cᵀ
	testkit.OK(t, chol.SolveTo(&weights, c.T()))
	product.Mul(c, &weights)
	return &product
}

// TestNystromReference compares K̂ with C(W+νD)⁻¹Cᵀ in float64 (nystromByDefinition) for several block sizes. ‖·‖_F of
// the difference, which is at least ‖·‖₂, may be the predicted rounding plus ‖K−K̂‖₂/1000; the second part is for an
// ill-conditioned W. The test also checks that the landmarks are the first entries of the permutation that is drawn
// from the stream, and that the factor is certified (checkFactor).
func TestNystromReference(t *testing.T) {
	for name, k := range map[string]*denseSource{ // the arguments of gaussian are the seed, n, the dimension and σ
		"gaussian": gaussianMatrix(1, 90, 5, 1.5), "ill conditioned": gaussianMatrix(2, 90, 2, 2.5),
		"scaled":              rescaled(gaussianMatrix(3, 90, 4, 1.5)),
		"larger than a panel": gaussianMatrix(4, 300, 6, 2),
	} {
		for _, rank := range []int{1, 8, 25} {
			for _, block := range []int{0, 1, 7, 100} {
				name := fmt.Sprintf("%s, rank %d, block %d", name, rank, block)
				g := rng.New(uint64(rank))
				f := testkit.Must(lowrank.Nystrom(ctx, k, rank, g, &lowrank.Options{Block: block}))
				checkFactor(t, name, k, f)
				landmarks := g.Sub("landmarks").Perm(k.Dim())[:rank]
				if f.RequestedRank != rank || f.Columns != rank || f.Method != "Nyström" {
					t.Errorf("%s: %v", name, f)
				}
				if f.Rank() < rank {
					// A landmark of the ill-conditioned matrix was dropped, so nystromByDefinition would have other
					// columns.
					continue
				}
				if !slices.Equal(f.Landmarks, landmarks) {
					t.Errorf("%s: landmarks %v, want %v", name, f.Landmarks, landmarks)
				}
				var difference mat.Dense
				difference.Sub(nystromByDefinition(t, k, landmarks, f.Shift), approximationOf(f))
				eigenvalues := testkit.Eigenvalues(t, residualOf(k, f))
				limit := f.Rounding + 1e-3*eigenvalues[len(eigenvalues)-1]
				if norm := mat.Norm(&difference, 2); norm > limit {
					t.Errorf("%s: ‖K̂−C(W+νD)⁻¹Cᵀ‖_F = %.3g, want at most %.3g", name, norm, limit)
				}
			}
		}
	}
}

// TestNystromUniform counts how often each of 12 points is one of 3 landmarks in 4,000 runs. The statistic
// Σ(o−e)²/(e(1−3/12)·12/11) is approximately χ² distributed with 11 degrees of freedom and exceeds 48 with
// probability 1.4e-6.
func TestNystromUniform(t *testing.T) {
	const n, rank, runs = 12, 3, 4000
	k := gaussianMatrix(5, n, 3, 1)
	var count [n]float64
	for seed := range uint64(runs) {
		for _, landmark := range testkit.Must(lowrank.Nystrom(ctx, k, rank, rng.New(seed), nil)).Landmarks {
			count[landmark]++
		}
	}
	const expected = runs * rank / n
	var chiSquared float64
	for _, observed := range count {
		chiSquared += (observed - expected) * (observed - expected) / expected
	}
	if chiSquared *= (n - 1.0) / (n - rank); chiSquared > 48 {
		t.Errorf("χ² = %.1f with counts %v", chiSquared, count)
	}
}

// TestNystromAt checks that NystromAt with the landmarks that Nystrom draws gives the same factor, and that invalid
// landmarks are an error.
func TestNystromAt(t *testing.T) {
	k, g := gaussianMatrix(1, 90, 5, 1.5), rng.New(4)
	f := testkit.Must(lowrank.Nystrom(ctx, k, 20, g, nil))
	landmarks := g.Sub("landmarks").Perm(90)[:20]
	if fromLandmarks := testkit.Must(lowrank.NystromAt(ctx, k, landmarks, nil)); !slices.Equal(f.F.Data,
		fromLandmarks.F.Data) ||
		!slices.Equal(fromLandmarks.Landmarks, f.Landmarks) {
		t.Error("NystromAt with the landmarks of Nystrom gives a different factor")
	}
	for want, landmarks := range map[string][]int{
		"rank 0 of a matrix of order 90":      {},
		"landmark 2 of 2 is row 90":           {3, 90},
		"landmark 1 of 1 is row -1":           {-1},
		"landmark 3 of 3 is row 3: want rows": {3, 4, 3},
	} {
		testkit.Fails(t, testkit.ErrOf(lowrank.NystromAt(ctx, k, landmarks, nil)), want)
	}
}
