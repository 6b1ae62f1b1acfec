package pencil

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// Preconditioners are the M_c that are compared side by side. If M_c⁻¹ fails or is not positive definite, Errs[c] is
// set to the error, and all later results for M_c are NaN, which ends only the columns of M_c. All results are those of
// the normalized M_c (pcg.Normalized).
type Preconditioners struct {
	Errs []error // first error of each M_c, or nil

	n     int               // order n of all M_c
	ms    []*pcg.Normalized // the M_c; nil means M_c = I
	ranks comm.Comm         // ranks that agree on the errors
}

// NewPreconditioners returns Preconditioners with the preconditioners ms, of order n.
func NewPreconditioners(n int, ranks comm.Comm, ms ...pcg.Preconditioner) *Preconditioners {
	p := &Preconditioners{make([]error, len(ms)), n, make([]*pcg.Normalized, len(ms)), ranks}
	for c, m := range ms {
		if m != nil {
			p.ms[c] = pcg.Normalize(m)
		}
	}
	return p
}

// Dim returns n.
func (p *Preconditioners) Dim() int { return p.n }

// factor returns the factor of the normalized M_c.
func (p *Preconditioners) factor(c int) float64 {
	if p.ms[c] == nil {
		return 1
	}
	return p.ms[c].Factor()
}

// SolveColumnsTo sets column j of dst to M_c⁻¹ times column j of r, c = cols[j]. Adjacent columns of the same M are
// solved together.
func (p *Preconditioners) SolveColumnsTo(ctx context.Context, dst, r *mat.Dense, cols []int) error {
	for j, k := 0, 0; j < len(cols); j = k {
		for k < len(cols) && cols[k] == cols[j] {
			k++
		}
		rBlock, dstBlock := mat.DenseCopyOf(r.Slice(0, p.n, j, k)), mat.NewDense(p.n, k-j, nil)
		err := p.runGuarded(ctx, dstBlock, cols[j], func(m *pcg.Normalized) error {
			if m == nil {
				dstBlock.Copy(rBlock)
				return nil
			}
			if err := m.SolveTo(ctx, dstBlock, rBlock); err != nil {
				return err
			}
			return checkDefinite(rBlock, dstBlock, float64(p.n)*0x1p-53)
		})
		if err != nil {
			return err
		}
		dst.Slice(0, p.n, j, k).(*mat.Dense).Copy(dstBlock)
	}
	return nil
}

// checkDefinite returns an error if xᵀM⁻¹x < minCosine·‖x‖₂‖M⁻¹x‖₂ for a column x, where y contains the columns M⁻¹x.
func checkDefinite(x, y *mat.Dense, minCosine float64) error {
	_, t := x.Dims()
	for j := range t {
		x, y := x.ColView(j), y.ColView(j)
		if product := mat.Dot(x, y); !(product >= minCosine*mat.Norm(x, 2)*mat.Norm(y, 2)) || math.IsInf(product, 0) {
			return fmt.Errorf("M⁻¹ is not positive definite: xᵀM⁻¹x = %.3g; for M = ZZᵀ+λ_pI take a larger λ_p",
				product)
		}
	}
	return nil
}

// NormalColumnsTo sets column c of dst to a draw of N(0, M_c). All draws use the same stream.
func (p *Preconditioners) NormalColumnsTo(ctx context.Context, dst *mat.Dense, stream rng.Stream) error {
	draw := mat.NewDense(p.n, 1, nil)
	for c := range p.ms {
		err := p.runGuarded(ctx, draw, c, func(m *pcg.Normalized) error {
			if m == nil {
				stream.Normals(draw.RawMatrix().Data, 0)
				return nil
			}
			metric, ok := m.Preconditioner.(lanczos.Metric)
			if !ok {
				return errors.ErrUnsupported
			}
			if err := metric.NormalTo(ctx, draw, stream); err != nil {
				return err
			}
			if norm := mat.Norm(draw, 2); !(norm > 0 && norm <= math.MaxFloat64) {
				return fmt.Errorf("a draw of N(0, M) has norm %g", norm)
			}
			if err := m.SetFactorFrom(ctx, draw); err != nil {
				return err
			}
			if m.Factor() != 1 {
				draw.Scale(1/math.Sqrt(m.Factor()), draw) // the covariance of the normalized M
			}
			return nil
		})
		if err != nil {
			return err
		}
		dst.ColView(c).(*mat.VecDense).CopyVec(draw.ColView(0))
	}
	return nil
}

// runGuarded calls f, which computes result with M_c. If f fails on any rank, or an earlier call for M_c has failed,
// runGuarded fills result with NaN. It returns an error only if ctx has ended.
func (p *Preconditioners) runGuarded(ctx context.Context, result *mat.Dense, c int,
	f func(m *pcg.Normalized) error) error {
	if p.Errs[c] == nil {
		err := f(p.ms[c])
		agreed := comm.Agree(ctx, p.ranks, err)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if p.Errs[c] = agreed; errors.Is(err, errors.ErrUnsupported) { // agreed does not wrap ErrUnsupported
			p.Errs[c] = err
		}
	}
	if p.Errs[c] != nil {
		floats.AddConst(math.NaN(), result.RawMatrix().Data)
	}
	return nil
}

// maxAsymmetry is the largest difference that checkInverse accepts: of xᵀM⁻¹y and yᵀM⁻¹x relative to ‖x‖₂‖M⁻¹y‖₂, and
// of two results M⁻¹x relative to their norm. An M⁻¹ in float32 reaches this accuracy; a much smaller value would
// reject such an M⁻¹.
const maxAsymmetry = 1e-5

// MakePreconditioner constructs the preconditioner of an entry for the draw of row, and records its properties in row.
// If one rank fails, all ranks return an error.
func MakePreconditioner(ctx context.Context, bench stage.Bench, entry stage.Entry,
	row *Row) (*stage.BuiltPreconditioner, error) {
	problem := bench.Problem()
	built, err := bench.Make(ctx, entry, row.Draw)
	if err == nil {
		err = checkInverse(ctx, built.M, problem.N)
	}
	if err == nil && built.M != nil {
		row.Solve, err = ApplySeconds(ctx, built.M.SolveTo, problem.Y)
	}
	if err = comm.Agree(ctx, problem.Comm, err); err != nil {
		return nil, err
	}
	row.S, row.LambdaP, row.Bytes, row.Build = built.S, built.LambdaP, built.Bytes, built.Seconds
	row.BuildFlops, row.ApplyFlops = built.BuildFlops, built.ApplyFlops
	if !math.IsInf(built.CondBound, 1) {
		row.KappaUpperBound = built.CondBound
	}
	return built, nil
}

// checkInverse returns an error if M⁻¹ has another order than n, if its products are zero, not finite or not
// repeatable, or if it is not symmetric or not positive definite. It applies M⁻¹ to two random columns together, and to
// the first of them alone. A nil m, for M = I, passes.
func checkInverse(ctx context.Context, m pcg.Preconditioner, n int) error {
	if m == nil {
		return nil
	}
	if m.Dim() != n {
		return fmt.Errorf("M is of order %d: want %d, that of K", m.Dim(), n)
	}
	x, z := mat.NewDense(n, 2, nil), mat.NewDense(n, 2, nil)
	rng.New(0).Sub("compare").Normals(x.RawMatrix().Data, 0)
	if err := m.SolveTo(ctx, z, x); err != nil {
		return err
	}
	var crossProducts mat.Dense
	crossProducts.Mul(x.T(), z)
	normProduct := mat.Norm(x, 2) * mat.Norm(z, 2)
	switch {
	case !(normProduct > 0 && normProduct <= math.MaxFloat64):
		return fmt.Errorf("M⁻¹x is zero or not finite: ‖x‖₂‖M⁻¹x‖₂ = %g", normProduct)
	case math.Abs(crossProducts.At(0, 1)-crossProducts.At(1, 0)) > maxAsymmetry*normProduct:
		return fmt.Errorf("M⁻¹ is not symmetric: xᵀM⁻¹z = %.6g, zᵀM⁻¹x = %.6g; for M = ZZᵀ+λ_pI take a larger "+
			"λ_p", crossProducts.At(0, 1), crossProducts.At(1, 0))
	}
	firstSolve, secondSolve := z.Slice(0, n, 0, 1), mat.NewDense(n, 1, nil)
	if err := m.SolveTo(ctx, secondSolve, mat.DenseCopyOf(x.Slice(0, n, 0, 1))); err != nil {
		return err
	}
	secondSolve.Sub(secondSolve, firstSolve)
	if relDiff := mat.Norm(secondSolve, 2) / mat.Norm(firstSolve, 2); !(relDiff <= maxAsymmetry) {
		return fmt.Errorf("M⁻¹x is off by %.2g of it when asked for again, alone", relDiff)
	}
	return checkDefinite(x, z, 0)
}
