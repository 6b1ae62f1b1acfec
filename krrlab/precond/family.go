package precond

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/rng"
)

// Family is M_c = ZZᵀ+λ_cI for many λ_c at once, one for each column of a block of vectors,
// from one eigendecomposition ZᵀZ = VΣ²Vᵀ. A use reads Z twice and takes 4nst + 4s²t flops for t
// columns, as much as one Woodbury of FormEigen does for t columns.
type Family struct {
	w       *Woodbury
	lambdas []float64
}

// Family returns ZZᵀ+λ_cI for the given λ_c. Only FormEigen can: for others it returns an
// error, as it does if a λ_c is not positive and finite, or there is none.
func (w *Woodbury) Family(lambdas []float64) (*Family, error) {
	if w.form != FormEigen {
		return nil, fmt.Errorf("precond: form %v is factored for λ_p = %g only; many λ_p need the eigen form", w.form, w.lambdaP)
	}
	if len(lambdas) == 0 {
		return nil, fmt.Errorf("precond: no λ_p")
	}
	for _, l := range lambdas {
		if !(l > 0) || math.IsInf(l, 1) {
			return nil, fmt.Errorf("precond: λ_p = %v, want a positive number", l)
		}
	}
	return &Family{w, append([]float64(nil), lambdas...)}, nil
}

// Dim returns n.
func (f *Family) Dim() int { return f.w.n }

// SolveTo sets column c of dst to M_c⁻¹ times column c of r, for all c. It panics if there
// are not as many columns as λ_c.
func (f *Family) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	cols := make([]int, len(f.lambdas))
	for c := range cols {
		cols[c] = c
	}
	return f.SolveColumnsTo(ctx, dst, r, cols)
}

// SolveColumnsTo sets column j of dst to M_c⁻¹ times column j of r, c = cols[j]. It is as
// Woodbury's SolveTo otherwise.
func (f *Family) SolveColumnsTo(ctx context.Context, dst, r *mat.Dense, cols []int) error {
	n, t := r.Dims()
	if dn, dt := dst.Dims(); n != f.w.n || dn != n || dt != t || t != len(cols) {
		panic(fmt.Sprintf("precond: solve of order %d for %d columns with %d×%d into %d×%d", f.w.n, len(cols), n, t, dn, dt))
	}
	p := f.w.acquire(t)
	p.dst, p.r, p.what, p.ridges = dst.RawMatrix(), r.RawMatrix(), inverse, make([]float64, t)
	for j, c := range cols {
		p.ridges[j] = f.lambdas[c]
	}
	err := p.run(ctx)
	f.w.release(p)
	return err
}

// NormalColumnsTo sets column c of dst to Z·g₁ + √λ_c·g₂, with one g₁ and one g₂ for all c:
// a draw of the normal distribution with covariance M_c, so that what is seen along c is
// the effect of λ_c and not of chance.
func (f *Family) NormalColumnsTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	if n, t := dst.Dims(); n != f.w.n || t != len(f.lambdas) {
		panic(fmt.Sprintf("precond: %d×%d normal numbers for order %d and %d λ_p", n, t, f.w.n, len(f.lambdas)))
	}
	one := mat.NewDense(f.w.n, 1, nil)
	p := f.w.acquire(1)
	g.Sub("features", 0).Normals(p.v, 0)
	p.dst, p.r, p.what, p.ridge = one.RawMatrix(), one.RawMatrix(), forward, 0
	err := p.expand(ctx) // Zg₁
	f.w.release(p)
	if err != nil {
		return err
	}
	noise := make([]float64, f.w.n)
	g.Sub("points", 0).Normals(noise, 0)
	for i, e := range noise {
		for c, l := range f.lambdas {
			dst.Set(i, c, one.At(i, 0)+math.Sqrt(l)*e) // Zg₁ + √λ_c·g₂
		}
	}
	return nil
}
