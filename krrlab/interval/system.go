package interval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/loo"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
)

const (
	tile  = 256 // rows and columns of K formed at a time
	block = 64  // points whose systems are solved together
)

// System is A = K+λI of a model's training points, ready to be solved with.
type System struct {
	m     *model.Model
	arith kernel.Arithmetic
	x     points.Panel
	f     *loo.Factor // of A; nil without a factorization
	y     *mat.Dense  // AC, what the targets are but for the residual
	// iterate solves where there is no factor.
	iterate func(ctx context.Context, b *mat.Dense) (*pcg.Result, error)
}

// ErrUnsolved is that of a model whose coefficients are too far from the solution.
var ErrUnsolved = errors.New("interval: the model is too far from the solution of (K+λI)C = Y for leave-one-out and variances: fit with a smaller tolerance, or take split conformal intervals")

var errWeighted = errors.New("interval: the model was fitted with weights, which its file does not have: take split conformal intervals")

func newSystem(m *model.Model) *System {
	s := &System{m: m, x: points.NewPanel(m.X)}
	if kernel.ShiftInvariant(m.Kernel) { // nothing cancels then
		s.arith = kernel.Differences
	}
	return s
}

// Cholesky forms A again from the model and factors it in float64. Work: n²d/2 and 2n³/3 multiply-adds, memory: 8n²
// bytes. It returns an error if that is more than memory allows, A is not positive definite in float64, or
// ctx ends, and one that is ErrUnsolved where C may be off the solution C* by more than is said there: ‖c_j−c_j*‖_A, by the
// model's Error or else its residual, by a tenth of ‖c_j‖_A, or the residual by a tenth of ‖r_j‖₂ of LeaveOneOut. AC, which
// stands for Y, would then be fitted without error, and its intervals would hold few answers. A residual that was not measured is
// not known, and of a given K λ bounds no eigenvalue.
func Cholesky(ctx context.Context, m *model.Model, memory int64) (*System, error) {
	if m.Weighted {
		return nil, errWeighted
	}
	n, _, t := m.Dims()
	if need := 8 * int64(n) * int64(n); memory > 0 && need > memory {
		return nil, fmt.Errorf("interval: the factor of K+λI of %d points needs %s, %s is allowed: take split conformal intervals", n, accel.Bytes(need), accel.Bytes(memory))
	}
	s := newSystem(m)
	a := mat.NewDense(n, n, nil)
	k, err := gram.NewExact(m.Kernel, m.X, m.Lambda, m.Lambda/1e6, nil)
	if err == nil {
		err = k.DenseTo(ctx, a)
	}
	if err != nil {
		return nil, err
	}
	for i := range n {
		a.Set(i, i, a.At(i, i)+m.Lambda)
	}
	s.y = mat.NewDense(n, t, nil)
	s.y.Mul(a, m.C)
	if s.f, err = loo.NewFactor(n, a.RawMatrix().Data); err != nil {
		return nil, fmt.Errorf("interval: at λ = %g: %w", m.Lambda, err)
	}
	return s, cmp.Or(ctx.Err(), s.solved())
}

// Iterative solves with the given operator A, that of the model's points, by conjugate gradients preconditioned with p
// (nil: plain ones), 64 points at a time. Variances are then too large by at most λ/10⁶. It serves Gaussian only. Its errors
// are those of A, and ErrUnsolved by ‖c_j−c_j*‖_A as Cholesky has it.
func Iterative(ctx context.Context, m *model.Model, a pcg.Operator, p pcg.Preconditioner) (*System, error) {
	n, _, t := m.Dims()
	if a.Dim() != n {
		panic(fmt.Sprintf("interval: A of order %d for a model of %d points", a.Dim(), n))
	}
	if m.Weighted {
		return nil, errWeighted
	}
	s := newSystem(m)
	s.y = mat.NewDense(n, t, nil)
	if err := a.MulTo(ctx, s.y, m.C); err != nil {
		return nil, err
	}
	s.iterate = func(ctx context.Context, b *mat.Dense) (*pcg.Result, error) {
		// k_zᵀA⁻¹k_z − wᵀ(k_z+r) = ‖w−A⁻¹k_z‖²_A ≤ ‖r‖²/λ, r = k_z−Aw: at most λ/10⁶ if ‖r‖ ≤ λ/1000
		var most float64
		for j := range b.RawMatrix().Cols {
			most = max(most, mat.Norm(b.ColView(j), 2))
		}
		res, err := pcg.Solve(ctx, a, p, b, &pcg.Options{Tol: min(max(m.Lambda/1000/max(most, math.SmallestNonzeroFloat64), 1e-12), 1e-3), MaxIter: 10 * n})
		if err == nil && res.Status != pcg.Converged {
			err = fmt.Errorf("interval: the solve for a variance failed: %v", res.Status)
		}
		return res, err
	}
	return s, s.solved()
}

// solvedTo is what C may be off, as a share: of models that were solved to the default tolerances it is mostly below 0.01.
const solvedTo = 0.1

// solved returns ErrUnsolved, with the numbers, if C is not known to be near the solution.
func (s *System) solved() error {
	_, _, t := s.m.Dims()
	rel, root := s.residual(), s.root()
	if math.IsNaN(rel) {
		return fmt.Errorf("%w (its residual is not known)", ErrUnsolved)
	}
	for j := range t {
		left := math.Inf(1) // ‖y−Ac‖₂, as ‖y‖₂ ≤ ‖Ac‖₂+‖y−Ac‖₂
		if rel >= 0 && rel < 1 {
			left = rel / (1 - rel) * mat.Norm(s.y.ColView(j), 2)
		}
		off := 0.0
		if e := s.m.Error; e != nil {
			off = e.ANorm[j]
		} else if left > 0 {
			off = left * root
		}
		if size := s.anorm(j); !(off <= solvedTo*size) {
			return fmt.Errorf("%w (‖c−c*‖_A ≤ %s, ‖c‖_A = %.2g)", ErrUnsolved, outward.Up(off, 2), size)
		}
		if s.f == nil {
			continue
		}
		if r := mat.Norm(s.LeaveOneOut().ColView(j), 2); !(left <= solvedTo*r) {
			return fmt.Errorf("%w (‖y−Ac‖₂ ≤ %s, leave-one-out leaves %.2g)", ErrUnsolved, outward.Up(left, 2), r)
		}
	}
	return nil
}

// residual returns ‖y−Ac‖₂/‖y‖₂ of the worst column, NaN where it is not known: it was not measured, or with K as stored, which the
// fit found to be too far from K.
func (s *System) residual() float64 {
	o := s.m.Origin
	if o.TrueResidual == nil || o.Status == pcg.Inaccurate.String() && (s.m.Error == nil || !s.m.Error.Certain) {
		return math.NaN()
	}
	return *o.TrueResidual
}

// root returns a bound of 1/√λ_min(A): 1/√λ, and where K is given, and need not be positive semi-definite, √tr A⁻¹, +∞ without
// a factor.
func (s *System) root() float64 {
	switch {
	case kernel.Semidefinite(s.m.Kernel):
		return 1 / math.Sqrt(s.m.Lambda)
	case s.f == nil:
		return math.Inf(1)
	}
	return math.Sqrt(floats.Sum(s.f.Diag))
}

// anorm returns √(c_jᵀAc_j), where squares may under- or overflow.
func (s *System) anorm(j int) float64 {
	c, y := mat.Col(nil, j, s.m.C), mat.Col(nil, j, s.y)
	a, b := floats.Norm(c, math.Inf(1)), floats.Norm(y, math.Inf(1))
	if a == 0 || b == 0 {
		return 0
	}
	var sum float64
	for i, v := range c {
		sum += v / a * (y[i] / b)
	}
	return math.Sqrt(max(0, sum)) * math.Sqrt(a) * math.Sqrt(b)
}

// Scale returns s²_j = c_jᵀAc_j/n = y_jᵀA⁻¹y_j/n of every column: the maximum likelihood estimate of s² if y_j is
// Gaussian of covariance s²(K+λI). The noise is then of variance s²λ.
func (s *System) Scale() []float64 {
	n, _, t := s.m.Dims()
	out := make([]float64, t)
	for j := range out {
		v := s.anorm(j)
		out[j] = v * v / float64(n)
	}
	return out
}

// LeaveOneOut returns r_ij = c_ij/(A⁻¹)_ii, n×t: what y_ij is off the prediction of a fit without point i, as exactly
// as C solves AC = Y. Scaling and center of the data are held as they are. It panics on an Iterative system.
func (s *System) LeaveOneOut() *mat.Dense {
	if s.f == nil {
		panic("interval: leave-one-out by an iterative system")
	}
	r := mat.DenseCopyOf(s.m.C)
	r.Apply(func(i, _ int, c float64) float64 { return c / s.f.Diag[i] }, r)
	return r
}

// Variance returns v(z) = k(z,z) − k_zᵀA⁻¹k_z ≥ 0 of each point of d, raw or scaled as the model's were.
func (s *System) Variance(ctx context.Context, d *datasets.Dataset) ([]float64, error) {
	z, err := s.points(d)
	if err != nil {
		return nil, err
	}
	v := kernel.Diag(s.m.Kernel, z.X)
	subtract := func(lo int, b, w *mat.Dense) {
		rows, cols := b.Dims()
		for i := range rows {
			bi, wi := b.RawRowView(i), w.RawRowView(i)
			for j := range cols {
				v[lo+j] -= bi[j] * wi[j]
			}
		}
	}
	if s.iterate == nil {
		err = s.forward(ctx, z, func(lo int, b *mat.Dense) { subtract(lo, b, b) }) // ‖L⁻¹k_z‖²
	} else {
		err = s.columns(ctx, z, subtract)
	}
	for i := range v {
		v[i] = max(v[i], 0)
	}
	return v, err
}

// columns calls body with k_z+r and w ≈ A⁻¹k_z, r = k_z−Aw, of the points from lo on, by iteration.
func (s *System) columns(ctx context.Context, z points.Panel, body func(lo int, b, w *mat.Dense)) error {
	var work kernel.Workspace
	for lo := 0; lo < z.Len(); lo += block {
		b := s.cross(z.Slice(lo, min(lo+block, z.Len())), &work)
		res, err := s.iterate(ctx, b)
		if err != nil {
			return err
		}
		if res.R != nil {
			b.Add(b, res.R)
		}
		body(lo, b, res.X)
	}
	return nil
}

// forward calls body with L⁻¹k_z of the points from lo on, n×64 at most, from many workers.
func (s *System) forward(ctx context.Context, z points.Panel, body func(lo int, b *mat.Dense)) error {
	work := make([]kernel.Workspace, accel.Threads())
	return accel.ForEach(ctx, (z.Len()+block-1)/block, func(w, q int) {
		lo := q * block
		b := s.cross(z.Slice(lo, min(lo+block, z.Len())), &work[w])
		s.f.Forward(b)
		body(lo, b)
	})
}

// cross returns k(x_i, z_j), n×m.
func (s *System) cross(z points.Panel, w *kernel.Workspace) *mat.Dense {
	n, m := s.x.Len(), z.Len()
	b := mat.NewDense(n, m, nil)
	for i := 0; i < n; i += tile {
		kernel.Tile64(b.RawMatrix().Data[i*m:], m, s.m.Kernel, s.x.Slice(i, min(i+tile, n)), z, s.arith, w)
	}
	return b
}

// points returns the points of d scaled as the model's are.
func (s *System) points(d *datasets.Dataset) (points.Panel, error) {
	_, dim, _ := s.m.Dims()
	if _, dz := d.X.Dims(); dz != dim {
		return points.Panel{}, fmt.Errorf("interval: points have %d features, the model was fitted on %d", dz, dim)
	}
	d, err := s.m.Scaling.Apply(d)
	if err != nil {
		return points.Panel{}, fmt.Errorf("interval: %w", err)
	}
	return points.NewPanel(d.X), nil
}
