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

// Sides are preconditioners side by side, nil for M = I. Where M_c⁻¹ fails or is not positive definite its columns are
// NaN from then on, which ends them alone, and Fails[c] says why.
type Sides struct {
	N     int
	Ms    []pcg.Preconditioner
	Comm  comm.Comm
	Fails []error
}

// NewSides returns preconditioners of order n.
func NewSides(n int, ranks comm.Comm, ms ...pcg.Preconditioner) *Sides {
	return &Sides{n, ms, ranks, make([]error, len(ms))}
}

// Dim returns n.
func (s *Sides) Dim() int { return s.N }

// SolveColumnsTo sets column j of dst to M_c⁻¹ times column j of r, c = cols[j]. Neighbors of one M go together.
func (s *Sides) SolveColumnsTo(ctx context.Context, dst, r *mat.Dense, cols []int) error {
	for j, k := 0, 0; j < len(cols); j = k {
		for k < len(cols) && cols[k] == cols[j] {
			k++
		}
		from, to := mat.DenseCopyOf(r.Slice(0, s.N, j, k)), mat.NewDense(s.N, k-j, nil)
		err := s.do(ctx, to, cols[j], func(m pcg.Preconditioner) error {
			if m == nil {
				to.Copy(from)
				return nil
			}
			if err := m.SolveTo(ctx, to, from); err != nil {
				return err
			}
			return definite(from, to, float64(s.N)*0x1p-53)
		})
		if err != nil {
			return err
		}
		dst.Slice(0, s.N, j, k).(*mat.Dense).Copy(to)
	}
	return nil
}

// definite returns what is wrong where xᵀM⁻¹x < least·‖x‖₂‖M⁻¹x‖₂ for a column x.
func definite(x, y *mat.Dense, least float64) error {
	_, t := x.Dims()
	for j := range t {
		x, y := x.ColView(j), y.ColView(j)
		if q := mat.Dot(x, y); !(q >= least*mat.Norm(x, 2)*mat.Norm(y, 2)) || math.IsInf(q, 0) {
			return fmt.Errorf("M⁻¹ is not positive definite: xᵀM⁻¹x = %.3g", q)
		}
	}
	return nil
}

// NormalColumnsTo sets column c of dst to a draw of N(0, M_c), all by the same stream.
func (s *Sides) NormalColumnsTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	to := mat.NewDense(s.N, 1, nil)
	for c := range s.Ms {
		err := s.do(ctx, to, c, func(m pcg.Preconditioner) error {
			if m == nil {
				g.Normals(to.RawMatrix().Data, 0)
				return nil
			}
			metric, ok := m.(lanczos.Metric)
			if !ok {
				return errors.ErrUnsupported
			}
			err := metric.NormalTo(ctx, to, g)
			if size := mat.Norm(to, 2); err == nil && !(size > 0 && size <= math.MaxFloat64) {
				err = fmt.Errorf("a draw of N(0, M) has norm %g", size)
			}
			return err
		})
		if err != nil {
			return err
		}
		dst.ColView(c).(*mat.VecDense).CopyVec(to.ColView(0))
	}
	return nil
}

// do makes f set to with M_c, and sets it to NaN where f fails, on one of the ranks, or did before.
func (s *Sides) do(ctx context.Context, to *mat.Dense, c int, f func(m pcg.Preconditioner) error) error {
	if s.Fails[c] == nil {
		err := f(s.Ms[c])
		all := comm.Agree(ctx, s.Comm, err)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if s.Fails[c] = all; errors.Is(err, errors.ErrUnsupported) { // which no other rank's error is
			s.Fails[c] = err
		}
	}
	if s.Fails[c] != nil {
		floats.AddConst(math.NaN(), to.RawMatrix().Data)
	}
	return nil
}

// asymmetry is how far xᵀM⁻¹y may be from yᵀM⁻¹x, in parts of ‖x‖₂‖M⁻¹y‖₂, and M⁻¹x from what it was: an M⁻¹ in
// float32 is that far.
const asymmetry = 1e-5

// Make makes the preconditioner of an entry, of the draw of row, and notes there what it is. On ranks an error is one
// of all.
func Make(ctx context.Context, b stage.Bench, e stage.Entry, row *Row) (*stage.Made, error) {
	p := b.Problem()
	m, err := b.Make(ctx, e, row.Draw)
	if err == nil {
		err = try(ctx, m.M, p.N)
	}
	if err == nil && m.M != nil {
		row.Solve, err = Seconds(ctx, m.M.SolveTo, p.Y)
	}
	if err = comm.Agree(ctx, p.Comm, err); err != nil {
		return nil, err
	}
	row.S, row.LambdaP, row.Bytes, row.Build = m.S, m.LambdaP, m.Bytes, m.Seconds
	row.BuildFlops, row.ApplyFlops = m.BuildFlops, m.ApplyFlops
	if !math.IsInf(m.CondBound, 1) {
		row.Certain = m.CondBound
	}
	return m, nil
}

// try returns what is wrong with an M that is no preconditioner of order n, by M⁻¹ of two random columns, and of one.
func try(ctx context.Context, m pcg.Preconditioner, n int) error {
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
	var e mat.Dense
	e.Mul(x.T(), z)
	size := mat.Norm(x, 2) * mat.Norm(z, 2)
	switch {
	case !(size > 0 && size <= math.MaxFloat64):
		return fmt.Errorf("M⁻¹x is zero or not finite: ‖x‖₂‖M⁻¹x‖₂ = %g", size)
	case math.Abs(e.At(0, 1)-e.At(1, 0)) > asymmetry*size:
		return fmt.Errorf("M⁻¹ is not symmetric: xᵀM⁻¹z = %.6g, zᵀM⁻¹x = %.6g", e.At(0, 1), e.At(1, 0))
	}
	first, again := z.Slice(0, n, 0, 1), mat.NewDense(n, 1, nil)
	if err := m.SolveTo(ctx, again, mat.DenseCopyOf(x.Slice(0, n, 0, 1))); err != nil {
		return err
	}
	again.Sub(again, first)
	if off := mat.Norm(again, 2) / mat.Norm(first, 2); !(off <= asymmetry) {
		return fmt.Errorf("M⁻¹x is off by %.2g of it when asked for again, alone", off)
	}
	return definite(x, z, 0)
}
