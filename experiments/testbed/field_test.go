package testbed

import (
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/kernel/tree"
	"github.com/krrlab/lab/krrlab/stage"
)

// TestField compares M⁻¹ of each kind with dense algebra: factorized Nyström with all neighbors is the inverse of K+λI
// for any number of landmarks, block Jacobi that of the blocks, and greedy pivots are those of largest remaining
// diagonal.
func TestField(t *testing.T) {
	if err := registerField(); err != nil {
		t.Fatal(err)
	}
	const n, lambda = 60, 0.1
	for seed := range uint64(3) {
		train := datasets.SyntheticRegression(n, 3, 0.1, seed+1)
		k := kernel.Matern32{Sigma: 1}
		a := mat.NewDense(n, n, nil)
		x := train.X.(*points.Dense)
		for i := range n {
			for j := range n {
				a.Set(i, j, k.Eval(x.Row(i), x.Row(j)))
			}
		}
		shifted := mat.DenseCopyOf(a)
		for i := range n {
			shifted.Set(i, i, a.At(i, i)+lambda)
		}
		leaves, err := tree.New(t.Context(), x, 15)
		if err != nil {
			t.Fatal(err)
		}
		blockOf := make([]int, n)
		for leaf := range leaves.Leaves() {
			for _, i := range leaves.Order[leaves.Start[leaf]:leaves.Start[leaf+1]] {
				blockOf[i] = leaf
			}
		}
		blocks := mat.DenseCopyOf(shifted)
		blocks.Apply(func(i, j int, v float64) float64 {
			if blockOf[i] != blockOf[j] {
				return 0
			}
			return v
		}, blocks)
		left, greedy := mat.DenseCopyOf(a), mat.NewDense(n, n, nil) // K−FFᵀ, and FFᵀ+λI
		for range 8 {
			diag := make([]float64, n)
			for i := range n {
				diag[i] = left.At(i, i)
			}
			pivot := floats.MaxIdx(diag)
			column := mat.VecDenseCopyOf(left.ColView(pivot))
			left.RankOne(left, -1/diag[pivot], column, column)
		}
		greedy.Sub(shifted, left)
		for text, want := range map[string]*mat.Dense{"field.afn features=20 neighbors=60": shifted,
			"field.afn features=1 neighbors=60": shifted, "field.blocks size=15": blocks, "field.greedy rank=8": greedy} {
			p, err := stage.ParsePreconditioner(text)
			if err != nil {
				t.Fatal(err)
			}
			lab, err := krrlab.New(train, krrlab.Config{Kernel: k, Lambda: lambda, Solver: krrlab.PCG, Precond: p})
			if err != nil {
				t.Fatal(err)
			}
			m, err := lab.M(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got, identity := mat.NewDense(n, n, nil), mat.NewDense(n, n, nil)
			if err := m.SolveTo(t.Context(), got, want); err != nil {
				t.Fatal(err)
			}
			for i := range n {
				identity.Set(i, i, 1)
			}
			if got.Sub(got, identity); mat.Norm(got, 2) > 1e-4 {
				t.Errorf("seed %d, %s: M⁻¹M differs from I by %g", seed, text, mat.Norm(got, 2))
			}
		}
	}
}
