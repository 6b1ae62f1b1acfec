package precond

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
)

// RidgeFamily is the set of preconditioners M_c = ZZᵀ+λ_cI, one for each column c of a block of vectors, from one
// eigendecomposition ZᵀZ = VΣ²Vᵀ. An application to t columns reads Z twice and takes 4nst + 4s²t flops, the same as
// one Woodbury of FormEigen.
type RidgeFamily struct {
	w       *Woodbury // FormEigen, with any λ_p
	lambdas []float64
}

// WithLambdas returns ZZᵀ+λ_cI for the given λ_c. It returns an error if the form is not FormEigen, if lambdas is
// empty, or if a λ_c is not positive and finite.
func (w *Woodbury) WithLambdas(lambdas []float64) (*RidgeFamily, error) {
	err := w.requireEigen()
	for _, lambda := range lambdas {
		err = cmp.Or(err, checkRidge(lambda))
	}
	if len(lambdas) == 0 {
		err = errors.New("precond: no λ_p")
	}
	return &RidgeFamily{w, slices.Clone(lambdas)}, err
}

// Dim returns n.
func (f *RidgeFamily) Dim() int { return f.w.n }

// SolveTo sets column c of dst to M_c⁻¹ times column c of r, for all c. It panics if the number of columns is not the
// number of λ_c.
func (f *RidgeFamily) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	cols := make([]int, len(f.lambdas))
	for c := range cols {
		cols[c] = c
	}
	return f.SolveColumnsTo(ctx, dst, r, cols)
}

// SolveColumnsTo sets column j of dst to M_c⁻¹ times column j of r, where c = cols[j]. It panics if r does not have one
// column for each entry of cols. Memory, errors and overlap of dst and r are as for Woodbury.SolveTo.
func (f *RidgeFamily) SolveColumnsTo(ctx context.Context, dst, r *mat.Dense, cols []int) error {
	a := f.w.start(dst, r, inverse)
	defer f.w.release(a)
	if a.t != len(cols) {
		panic(fmt.Sprintf("precond: %d λ_p for %d columns", len(cols), a.t))
	}
	a.ridges, a.corrects = make([]float64, a.t), f.w.correctsAt(slices.Min(f.lambdas))
	for j, c := range cols {
		a.ridges[j] = f.lambdas[c]
	}
	return a.run(ctx)
}

// NormalColumnsTo sets column c of dst to Z·g₁ + √λ_c·g₂, a draw from the normal distribution with covariance M_c. All
// c share the standard normal vectors g₁ ∈ R^s and g₂ ∈ R^n, which g determines, so that differences between the
// columns are due to λ_c and not to chance.
func (f *RidgeFamily) NormalColumnsTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	if n, t := dst.Dims(); n != f.w.n || t != len(f.lambdas) {
		panic(fmt.Sprintf("precond: %d×%d normal numbers for order %d and %d λ_p", n, t, f.w.n, len(f.lambdas)))
	}
	zg := mat.NewDense(f.w.n, 1, nil)
	a := f.w.start(zg, zg, forward)
	g.Sub("features", 0).Normals(a.v, 0)
	err := a.expand(ctx) // Zg₁
	f.w.release(a)
	if err != nil {
		return err
	}
	noise := make([]float64, f.w.n)
	g.Sub("points", 0).Normals(noise, 0)
	for i, g2 := range noise {
		for c, lambda := range f.lambdas {
			dst.Set(i, c, zg.At(i, 0)+math.Sqrt(lambda)*g2) // Zg₁ + √λ_c·g₂
		}
	}
	return nil
}
