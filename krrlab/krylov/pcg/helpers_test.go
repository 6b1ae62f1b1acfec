package pcg_test

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// dense is a symmetric matrix as an Operator.
type dense struct{ *mat.SymDense }

func (a dense) Dim() int { return a.SymmetricDim() }

func (a dense) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	dst.Mul(a, src)
	return nil
}

// inverse applies M⁻¹ by a dense Cholesky factorization on one thread, so the number of threads does not change a
// bit.
type inverse struct{ chol *mat.Cholesky }

// invert returns M⁻¹ for m.
func invert(t testing.TB, m *mat.SymDense) inverse {
	var chol mat.Cholesky
	if !chol.Factorize(m) {
		t.Fatal("the preconditioner of the test is not positive definite")
	}
	return inverse{&chol}
}

func (m inverse) Dim() int { return m.chol.SymmetricDim() }

func (m inverse) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	var err error
	if poolErr := accel.ForEach(ctx, 1, func(_, _ int) { err = m.chol.SolveTo(dst, r) }); poolErr != nil {
		return poolErr
	}
	return err
}

// diagonal is an operator and a preconditioner that allocates nothing.
type diagonal []float64

func (d diagonal) Dim() int { return len(d) }

func (d diagonal) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	return d.apply(ctx, dst, src, func(a, v float64) float64 { return a * v })
}

func (d diagonal) SolveTo(ctx context.Context, dst, src *mat.Dense) error {
	return d.apply(ctx, dst, src, func(a, v float64) float64 { return v / a })
}

func (d diagonal) apply(ctx context.Context, dst, src *mat.Dense, f func(a, v float64) float64) error {
	n, k := src.Dims()
	if dn, dk := dst.Dims(); n != len(d) || dn != n || dk != k {
		panic("diagonal: shapes")
	}
	y, x := dst.RawMatrix(), src.RawMatrix()
	for i := range n {
		for j := range k {
			y.Data[i*y.Stride+j] = f(d[i], x.Data[i*x.Stride+j])
		}
	}
	return ctx.Err()
}

// funcOperator is an operator and a preconditioner that calls a function.
type funcOperator struct {
	n    int
	call func(ctx context.Context, dst, src *mat.Dense) error
}

func (f funcOperator) Dim() int { return f.n }
func (f funcOperator) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	return f.call(ctx, dst, src)
}
func (f funcOperator) SolveTo(ctx context.Context, dst, src *mat.Dense) error {
	return f.call(ctx, dst, src)
}

// gaussianMatrix returns an n×k matrix of standard normal numbers.
func gaussianMatrix(seed uint64, n, k int) *mat.Dense {
	return mat.NewDense(n, k, testkit.Normals(seed, 7, n*k))
}

// spd returns a random matrix with the given eigenvalues.
func spd(seed uint64, spectrum []float64) *mat.SymDense {
	a, _ := testkit.WithEigenvalues(seed, spectrum)
	return a
}

// geometric returns n numbers from 1 to kappa in geometric progression.
func geometric(n int, kappa float64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = math.Pow(kappa, float64(i)/float64(n-1))
	}
	return v
}

// clustered returns n numbers close to 1 except for three large ones.
func clustered(n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = 1 + 1e-3*float64(i)/float64(n)
	}
	v[n-1], v[n-2], v[n-3] = 1e5, 3e4, 100
	return v
}

// solveDense returns the reference, the solution of AX = B by Cholesky.
func solveDense(t testing.TB, a *mat.SymDense, b *mat.Dense) *mat.Dense {
	t.Helper()
	var chol mat.Cholesky
	if !chol.Factorize(a) {
		t.Fatal("the matrix of the test is not positive definite")
	}
	var x mat.Dense
	testkit.OK(t, chol.SolveTo(&x, b))
	return &x
}

// residuals returns the reference, ‖b_j−Ax_j‖/‖b_j‖.
func residuals(a mat.Matrix, x, b *mat.Dense) []float64 {
	var r mat.Dense
	r.Mul(a, x)
	r.Sub(b, &r)
	_, t := b.Dims()
	relRes := make([]float64, t)
	for j := range t {
		if norm := mat.Norm(b.ColView(j), 2); norm > 0 {
			relRes[j] = mat.Norm(r.ColView(j), 2) / norm
		}
	}
	return relRes
}

// aNorm returns ‖x‖_A.
func aNorm(a mat.Matrix, x mat.Vector) float64 { return math.Sqrt(mat.Inner(x, a, x)) }

// solve returns the result of pcg.Solve, and panics if it fails.
func solve(t testing.TB, a pcg.Operator, m pcg.Preconditioner, b *mat.Dense, opts *pcg.Options) *pcg.Result {
	return testkit.Must(pcg.Solve(t.Context(), a, m, b, opts))
}

// solveBlock returns the result of pcg.SolveBlock, and panics if it fails.
func solveBlock(t testing.TB, a pcg.Operator, m pcg.Preconditioner, b *mat.Dense, opts *pcg.Options) *pcg.Result {
	return testkit.Must(pcg.SolveBlock(t.Context(), a, m, b, opts))
}

// solver is the type of Solve and SolveBlock, and solvers has both functions by name.
type solver = func(context.Context, pcg.Operator, pcg.Preconditioner, *mat.Dense, *pcg.Options) (*pcg.Result, error)

var solvers = map[string]solver{"Solve": pcg.Solve, "SolveBlock": pcg.SolveBlock}

// eigenvalues returns the eigenvalues of M⁻¹A in ascending order. A nil m stands for the identity.
func eigenvalues(t *testing.T, a, m *mat.SymDense) []float64 {
	if m == nil {
		return testkit.Eigenvalues(t, a)
	}
	return testkit.PencilEigenvalues(t, a, m)
}
