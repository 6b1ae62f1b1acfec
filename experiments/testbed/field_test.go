package testbed

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/kernel/tree"
	"github.com/krrlab/lab/krrlab/stage"
)

// TestField compares M⁻¹ of each kind with dense algebra. Factorized Nyström with all neighbors is the inverse of K+λI
// for any number of landmarks, and block Jacobi is the inverse of the blocks. Greedy pivots have the largest remaining
// diagonal entries, and sketched Nyström has the eigenvalues of the approximation from the same sketch.
func TestField(t *testing.T) {
	if err := registerExternal(); err != nil {
		t.Fatal(err)
	}
	const n, lambda = 60, 0.1
	for seed := range uint64(3) {
		train := datasets.SyntheticRegression(n, 3, 0.1, seed+1)
		k := kernel.Matern32{Sigma: 1}
		x := train.X.(*points.Dense)
		a, shifted := denseMatrices(k, x, lambda)
		leaves, err := tree.New(t.Context(), x, 15)
		if err != nil {
			t.Fatal(err)
		}
		blockOf := make([]int, n)
		for leaf := range leaves.LeafCount() {
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
		residual, greedy := mat.DenseCopyOf(a), mat.NewDense(n, n, nil) // K−FFᵀ, and FFᵀ+λI
		for range 8 {
			diag := make([]float64, n)
			for i := range n {
				diag[i] = residual.At(i, i)
			}
			pivot := floats.MaxIdx(diag)
			column := mat.VecDenseCopyOf(residual.ColView(pivot))
			residual.RankOne(residual, -1/diag[pivot], column, column)
		}
		greedy.Sub(shifted, residual)
		sketchedM := nystromDense(t, a, seed+1, 8, lambda)
		for text, want := range map[string]*mat.Dense{"field.sketched features=8": sketchedM, "field.afn features=20 neighbors=60": shifted,
			"field.afn features=1 neighbors=60": shifted, "field.blocks size=15": blocks, "field.greedy rank=8": greedy} {
			preconditioner, err := stage.ParsePreconditioner(text)
			if err != nil {
				t.Fatal(err)
			}
			lab, err := krrlab.New(train, krrlab.Config{Kernel: k, Lambda: lambda, Solver: krrlab.PCG,
				Precond: preconditioner, Seed: seed + 1})
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

// denseMatrices returns K and K+λI.
func denseMatrices(k kernel.Kernel, x *points.Dense, lambda float64) (gram, shifted *mat.Dense) {
	gram = mat.NewDense(x.N, x.N, nil)
	gram.Apply(func(i, j int, _ float64) float64 { return k.Eval(x.Row(i), x.Row(j)) }, gram)
	shifted = mat.DenseCopyOf(gram)
	for i := range x.N {
		shifted.Set(i, i, gram.At(i, i)+lambda)
	}
	return gram, shifted
}

// nystromDense returns U(Σ²+λI)Uᵀ + (σ_s²+λ)(I−UUᵀ) for the Nyström approximation UΣ²Uᵀ of K from a sketch of rank s.
func nystromDense(t *testing.T, k *mat.Dense, seed uint64, s int, lambda float64) *mat.Dense {
	n, _ := k.Dims()
	omega := mat.NewDense(n, s, nil)
	rng.New(seed).Sub("sketch").Normals(omega.RawMatrix().Data, 0)
	var kOmega, small, solution, approximation mat.Dense
	kOmega.Mul(k, omega)
	small.Mul(omega.T(), &kOmega)
	if err := solution.Solve(&small, kOmega.T()); err != nil {
		t.Fatal(err)
	}
	approximation.Mul(&kOmega, &solution)
	var svd mat.SVD
	if !svd.Factorize(&approximation, mat.SVDThin) {
		t.Fatal("no singular values")
	}
	var vectors mat.Dense
	svd.UTo(&vectors)
	values, m := svd.Values(nil), mat.NewDense(n, n, nil)
	for i := range n {
		m.Set(i, i, values[s-1]+lambda)
	}
	for j, v := range values[:s] {
		m.RankOne(m, v-values[s-1], vectors.ColView(j), vectors.ColView(j))
	}
	return m
}

// TestASkotch compares the solution of ASkotch with a dense solve, and the step of a block whose approximation is exact
// with the dense inverse of the block.
func TestASkotch(t *testing.T) {
	const n, size = 60, 15
	for seed := range uint64(3) {
		train := datasets.SyntheticRegression(n, 2, 0.1, seed+1)
		lambda := math.Pow10(-int(seed))
		k, shifted := denseMatrices(kernel.Matern32{Sigma: 1}, train.X.(*points.Dense), lambda)
		b, solution := mat.NewVecDense(n, train.Target), mat.NewVecDense(n, nil)
		if err := solution.SolveVec(shifted, b); err != nil {
			t.Fatal(err)
		}
		a := askotch{k: k, lambda: lambda, size: size, random: rng.New(seed)}
		reached, err := a.passes(t.Context(), b.RawVector().Data, 3000)
		if err != nil || len(reached) != countedLevels || !slices.IsSorted(reached) || reached[0] < 1 {
			t.Fatalf("seed %d: %v passes, %v", seed, reached, err)
		}
		product, difference := mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
		difference.SubVec(mat.NewVecDense(n, a.w), solution)
		if product.MulVec(shifted, difference); mat.Norm(product, 2) > 1.01e-6*mat.Norm(b, 2) {
			t.Errorf("seed %d: residual %g of %g", seed, mat.Norm(product, 2), mat.Norm(b, 2))
		}
		if mat.Norm(difference, 2) > 1e-6*mat.Norm(b, 2)/lambda {
			t.Errorf("seed %d: the solution is off by %g", seed, mat.Norm(difference, 2))
		}
		again := askotch{k: k, lambda: lambda, size: size, random: rng.New(seed)}
		if other, err := again.passes(t.Context(), b.RawVector().Data, reached[0]); err != nil || other[0] != reached[0] {
			t.Errorf("seed %d: %v passes, then %v, %v", seed, reached, other, err)
		}

		block := rng.New(seed).Perm(n)[:size]
		direction, err := a.direction(block, b.RawVector().Data, make([]float64, n), rng.New(seed))
		if err != nil {
			t.Fatal(err)
		}
		var eigen mat.EigenSym
		kBlock, want := mat.NewSymDense(size, nil), mat.NewVecDense(size, nil)
		for row, i := range block {
			for column, j := range block {
				kBlock.SetSym(row, column, k.At(i, j))
			}
			want.SetVec(row, -b.AtVec(i))
		}
		eigen.Factorize(kBlock, false)
		mu := eigen.Values(nil)
		rho := lambda + mu[0]
		for row := range size {
			kBlock.SetSym(row, row, kBlock.At(row, row)+rho)
		}
		if err := want.SolveVec(kBlock, want); err != nil {
			t.Fatal(err)
		}
		got := mat.NewVecDense(size, direction)
		scale := mat.Norm(want, 2) / mat.Norm(got, 2) // L, which a few power steps estimate from below
		if largest := (mu[size-1] + lambda) / (mu[size-1] + rho); scale > 1.0001*largest || scale < largest/2 {
			t.Errorf("seed %d: step divided by %g, largest eigenvalue %g", seed, scale, largest)
		}
		if got.AddScaledVec(want, -scale, got); mat.Norm(got, 2) > 1e-4*mat.Norm(want, 2) { // ρ has a few digits
			t.Errorf("seed %d: the direction of a step is off by %g of %g", seed, mat.Norm(got, 2), mat.Norm(want, 2))
		}
	}
}
