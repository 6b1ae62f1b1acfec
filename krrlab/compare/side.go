package compare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/lanczos"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/rng"
)

// sides are preconditioners side by side: M_c is that of column c. It is a pcg.ColumnPreconditioner. Where M_c⁻¹ fails
// its column is NaN, which ends that column alone, and fails[c] says why.
type sides struct {
	n     int
	ms    []pcg.Preconditioner // nil: M = I
	ranks comm.Comm
	fails []error
}

func (s *sides) Dim() int { return s.n }

// SolveTo sets column c of dst to M_c⁻¹ times column c of r, for all c.
func (s *sides) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	cols := make([]int, len(s.ms))
	for c := range cols {
		cols[c] = c
	}
	return s.SolveColumnsTo(ctx, dst, r, cols)
}

// SolveColumnsTo sets column j of dst to M_c⁻¹ times column j of r, c = cols[j].
func (s *sides) SolveColumnsTo(ctx context.Context, dst, r *mat.Dense, cols []int) error {
	to, from := mat.NewDense(s.n, 1, nil), mat.NewDense(s.n, 1, nil)
	for j, c := range cols {
		from.Copy(r.ColView(j))
		if s.ms[c] == nil {
			to.Copy(from)
		} else if err := s.agree(ctx, s.ms[c].SolveTo(ctx, to, from)); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			s.fails[c] = err
			for i := range s.n {
				to.Set(i, 0, math.NaN())
			}
		}
		dst.ColView(j).(*mat.VecDense).CopyVec(to.ColView(0))
	}
	return nil
}

// agree makes an error of one rank one of all.
func (s *sides) agree(ctx context.Context, err error) error { return comm.Agree(ctx, s.ranks, err) }

// processes are sides of Lanczos processes, which must not see NaN: one whose M fails takes one step more, which is not
// used, and ends.
type processes struct {
	sides
	last []bool // that step was taken
}

// SolveColumnsTo sets column j of dst to M_c⁻¹ times column j of r, c = cols[j].
func (s *processes) SolveColumnsTo(ctx context.Context, dst, r *mat.Dense, cols []int) error {
	if err := s.sides.SolveColumnsTo(ctx, dst, r, cols); err != nil {
		return err
	}
	for j, c := range cols {
		to, from := dst.ColView(j).(*mat.VecDense), r.ColView(j)
		q := mat.Dot(from, to)
		if least := float64(s.n) * 0x1p-53 * mat.Norm(from, 2) * mat.Norm(to, 2); s.fails[c] == nil &&
			(!(q >= least) || math.IsInf(q, 0)) {
			s.fails[c] = fmt.Errorf("M⁻¹ is not positive definite: xᵀM⁻¹x = %.3g", q)
		}
		switch {
		case s.fails[c] == nil:
		case s.last[c]:
			to.Zero()
		default:
			to.CopyVec(from)
			s.last[c] = true
		}
	}
	return nil
}

// NormalColumnsTo sets column c of dst to a draw of N(0, M_c), all by the same stream.
func (s *processes) NormalColumnsTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	to := mat.NewDense(s.n, 1, nil)
	for c, m := range s.ms {
		if m != nil {
			err := m.(lanczos.Metric).NormalTo(ctx, to, g)
			if size := mat.Norm(to, 2); err == nil && !(size > 0 && size <= math.MaxFloat64) {
				err = fmt.Errorf("a draw of N(0, M) has norm %g", size)
			}
			if s.fails[c] = s.agree(ctx, err); ctx.Err() != nil {
				return ctx.Err()
			}
		}
		if m == nil || s.fails[c] != nil {
			g.Normals(to.RawMatrix().Data, 0)
		}
		dst.ColView(c).(*mat.VecDense).CopyVec(to.ColView(0))
	}
	return nil
}

// draws reports whether M, nil for I, can draw normal vectors.
func draws(ctx context.Context, m pcg.Preconditioner) (bool, error) {
	if m == nil {
		return true, nil
	}
	metric, ok := m.(lanczos.Metric)
	if !ok {
		return false, nil
	}
	err := metric.NormalTo(ctx, mat.NewDense(m.Dim(), 1, nil), rng.New(0))
	if errors.Is(err, errors.ErrUnsupported) {
		return false, nil
	}
	return err == nil, err
}

// asymmetry is how far xᵀM⁻¹y may be from yᵀM⁻¹x, in parts of ‖x‖₂‖M⁻¹y‖₂: an M⁻¹ in float32 is that far.
const asymmetry = 1e-5

// try refuses an M that is none, by M⁻¹ of the t columns of y and of two random ones, and returns the seconds that the
// former take.
func try(ctx context.Context, m pcg.Preconditioner, y *mat.Dense) (seconds float64, err error) {
	n, t := y.Dims()
	if m == nil {
		return 0, nil
	}
	if m.Dim() != n {
		return 0, fmt.Errorf("M is of order %d: want %d, that of K", m.Dim(), n)
	}
	x, z := mat.NewDense(n, 2, nil), mat.NewDense(n, 2, nil)
	rng.New(0).Sub("compare").Normals(x.RawMatrix().Data, 0)
	if err := m.SolveTo(ctx, z, x); err != nil {
		return 0, err
	}
	a, b := mat.Dot(x.ColView(0), z.ColView(1)), mat.Dot(x.ColView(1), z.ColView(0))
	size := mat.Norm(x.ColView(0), 2)*mat.Norm(z.ColView(1), 2) + mat.Norm(x.ColView(1), 2)*mat.Norm(z.ColView(0), 2)
	switch least := min(mat.Dot(x.ColView(0), z.ColView(0)), mat.Dot(x.ColView(1), z.ColView(1))); {
	case math.IsNaN(size) || math.IsInf(size, 0):
		return 0, fmt.Errorf("M⁻¹x has numbers that are not finite")
	case math.Abs(a-b) > asymmetry*size:
		return 0, fmt.Errorf("M⁻¹ is not symmetric: xᵀM⁻¹z = %.6g, zᵀM⁻¹x = %.6g", a, b)
	case !(least > 0):
		return 0, fmt.Errorf("M⁻¹ is not positive definite: xᵀM⁻¹x = %.3g", least)
	}
	start := time.Now()
	err = m.SolveTo(ctx, mat.NewDense(n, t, nil), y)
	return time.Since(start).Seconds(), err
}
