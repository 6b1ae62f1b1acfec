package testbed

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
	"github.com/krrlab/lab/krrlab/stage"
)

// sketched is the randomized Nyström preconditioner (Z. Frangella, J. A. Tropp, M. Udell, arXiv:2110.02820): with the
// eigenvalues σ_j² and eigenvectors U of the Nyström approximation of K from the sketch KΩ, Ω Gaussian n×s,
//
//	M = U(Σ²+λI)Uᵀ + (σ_s²+λ)(I−UUᵀ).
type sketched struct {
	Rank int `flag:"features" check:">=1"` // rank s of the approximation
}

func (p sketched) String() string { return fmt.Sprintf("sketched Nyström, rank %d", p.Rank) }

// Make implements stage.Preconditioner.
func (p sketched) Make(ctx context.Context, b stage.Bench) (pcg.Preconditioner, error) {
	a := stage.Approximation{FeatureSource: p, S: p.Rank, LambdaP: b.Problem().Lambda, Form: precond.FormLInv,
		Spectral: true}
	m, err := a.Inverse(ctx, b)
	return sketchedInverse{m, p.Rank}, err
}

// Draw implements stage.FeatureSource. K is recomputed in float64.
func (p sketched) Draw(ctx context.Context, b stage.Bench, s int) (*stage.FeatureMatrix, error) {
	problem := b.Problem()
	k, err := gram.NewExact(problem.Kernel, problem.X, problem.Lambda, problem.Lambda/1e6, nil)
	if err != nil {
		return nil, err
	}
	omega, y := mat.NewDense(problem.N, s, nil), mat.NewDense(problem.N, s, nil)
	rng.New(problem.Seed).Sub("sketch").Normals(omega.RawMatrix().Data, 0)
	if err := k.KMulTo(ctx, y, omega); err != nil {
		return nil, err
	}
	if err := nystromFactor(y, omega); err != nil {
		return nil, err
	}
	f := &lowrank.Factor{Method: "sketched Nyström", N: problem.N, F: toFloat32(y), EntryError: math.Inf(1)}
	return &stage.FeatureMatrix{Z: f.F, Factor: f}, nil
}

// sketchedInverse adds the flops of the sketch KΩ, s products with K.
type sketchedInverse struct {
	*precond.Woodbury     // applies M⁻¹
	rank              int // rank s
}

// Flops returns the flops of forming M and of a product of M⁻¹ with a vector.
func (m sketchedInverse) Flops() (build, apply float64) {
	n, s := float64(m.Dim()), float64(m.rank)
	return 2*n*n*s + 5*n*s*s + 10*s*s*s, 4*n*s + 2*s*s
}

// nystromFactor replaces Y = KΩ by F, n×s, with FFᵀ = Y_ν(ΩᵀY_ν)⁻¹Y_νᵀ and Y_ν = Y+νΩ. The shift ν is of the size of
// the rounding errors of Y, and ten times as large for each attempt at which ΩᵀY_ν is not positive definite.
func nystromFactor(y, omega *mat.Dense) error {
	const attempts = 6
	_, s := y.Dims()
	shift, total := 0x1p-52*mat.Norm(y, 2), 0.
	for range attempts {
		var step, product mat.Dense
		step.Scale(shift-total, omega)
		y.Add(y, &step)
		total = shift
		product.Mul(omega.T(), y)
		var factor mat.Cholesky
		if factor.Factorize(mat.NewSymDense(s, product.RawMatrix().Data)) { // the upper triangle
			var factorU mat.TriDense
			factor.UTo(&factorU)
			blas64.Trsm(blas.Right, blas.NoTrans, 1, factorU.RawTriangular(), y.RawMatrix())
			return nil
		}
		shift *= 10
	}
	return fmt.Errorf("the sketch ΩᵀKΩ of order %d is not positive definite", s)
}
