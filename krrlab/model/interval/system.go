package interval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/outward"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/model/leaveout"
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
	f     *leaveout.Factor // of A
	y     *mat.Dense       // AC, what the targets are but for the residual
	same  []int            // for each row the first row of its group: these are left out together
	doubt string           // of the groups: why the rows are not exchangeable with a new one; "" if they are

	ones []float64 // A⁻¹1 where the targets had their mean taken off

	r, shift *mat.Dense // of LeaveOneOut: the residuals, and δ in the first row of each group
}

// ErrUnsolved is that of a model whose coefficients are too far from the solution.
var ErrUnsolved = errors.New("interval: the model is too far from the solution of (K+λI)C = Y for leave-one-out: " +
	"fit with a smaller tolerance, or take split conformal intervals")

var errThreshold = errors.New("interval: the model has a threshold, which rows left out would have to choose again: " +
	"take split intervals, of test rows")

var errWeighted = errors.New("interval: the model was fitted with weights, which its file does not have: take split " +
	"conformal intervals")

func newSystem(m *model.Model) *System {
	d, cells := &datasets.Dataset{X: m.X, Groups: m.Groups, Repeats: m.Repeats}, kernel.FirstEqual(m.Kernel, m.X)
	stated := "have the features of others, and the model, of an older version, does not say whether they are " +
		"copies: they are left out together"
	if d.Repeats == nil {
		d, _ = d.Group("together", cells) // a known rule
	} else {
		stated = inGroups(d.Repeats.Question)
	}
	groups := d.Grouping(cells)
	s := &System{m: m, x: points.NewPanel(m.X), same: groups.First,
		doubt: grouped(groups.Grouped, len(cells), stated)}
	if kernel.ShiftInvariant(m.Kernel) { // nothing cancels then
		s.arith = kernel.Differences
	}
	return s
}

// Cholesky forms A again from the model and factors it in float64. Work: n²d/2 and 2n³/3 multiply-adds, memory: 8n²
// bytes. It returns an error if that is more than memory allows, A is not positive definite in float64, or ctx ends,
// and one that is ErrUnsolved where C may differ from the solution C* by too much: ‖c_j−c_j*‖_A, by the model's
// Error or else its residual, by more than a tenth of ‖c_j‖_A, or the residual by a tenth of ‖r_j‖₂ of LeaveOneOut. AC,
// which stands for Y, would then be fitted without error, and its intervals would hold few answers. A residual that was
// not measured is not known, and of a given K λ bounds no eigenvalue.
func Cholesky(ctx context.Context, m *model.Model, memory int64) (*System, error) {
	if m.Weighted {
		return nil, errWeighted
	}
	if m.Threshold != 0 {
		return nil, errThreshold
	}
	n, _, t := m.Dims()
	if need := 8 * int64(n) * int64(n); memory > 0 && need > memory {
		return nil, fmt.Errorf("interval: the factor of K+λI of %d points needs %s, %s is allowed: take split "+
			"conformal intervals", n, accel.Bytes(need), accel.Bytes(memory))
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
	if s.f, err = leaveout.NewFactor(n, a.RawMatrix().Data); err != nil {
		return nil, fmt.Errorf("interval: at λ = %g: %w", m.Lambda, err)
	}
	if m.Mean != nil {
		s.ones = slices.Repeat([]float64{1}, n)
		x := mat.NewDense(n, 1, s.ones)
		s.f.Forward(x)
		s.f.Backward(x)
	}
	if err := s.leave(); err != nil {
		return nil, fmt.Errorf("interval: %w", err)
	}
	return s, cmp.Or(ctx.Err(), s.solved())
}

// solvedTo is what C may be off, as a share: of models that were solved to the default tolerances it is mostly below
// 0.01.
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
		if r := mat.Norm(s.r.ColView(j), 2); !(left <= solvedTo*r) {
			return fmt.Errorf("%w (‖y−Ac‖₂ ≤ %s, leave-one-out leaves %.2g)", ErrUnsolved, outward.Up(left, 2), r)
		}
	}
	return nil
}

// residual returns ‖y−Ac‖₂/‖y‖₂ of the worst column, NaN where it is not known: it was not measured, or with K as
// stored, which the fit found to be too far from K.
func (s *System) residual() float64 {
	o := s.m.Origin
	if o.TrueResidual == nil || o.Status == pcg.Inaccurate.String() && (s.m.Error == nil || !s.m.Error.Certain) {
		return math.NaN()
	}
	return *o.TrueResidual
}

// root returns a bound of 1/√λ_min(A): 1/√λ, and where K is given, and need not be positive semi-definite, √tr A⁻¹.
func (s *System) root() float64 {
	if kernel.Semidefinite(s.m.Kernel) {
		return 1 / math.Sqrt(s.m.Lambda)
	}
	return math.Sqrt(floats.Sum(s.f.Diag))
}

// anorm returns √(c_jᵀAc_j).
func (s *System) anorm(j int) float64 {
	return math.Sqrt(max(0, mat.Dot(s.m.C.ColView(j), s.y.ColView(j))))
}

// LeaveOneOut returns y_i less the prediction of a fit without the rows G of the group of i, n×t, as exactly as C
// solves AC = Y, with the mean of the targets that are left:
//
//	r_G = ((A⁻¹)_GG)⁻¹(C+δA⁻¹1)_G,  δ = Σ_G(y_i−ȳ)/(n−|G|), 0 where no mean was taken off.
//
// Scaling, kernel and λ stay as they are.
func (s *System) LeaveOneOut() *mat.Dense {
	return mat.DenseCopyOf(s.r)
}

func (s *System) leave() error {
	n, _, t := s.m.Dims()
	blocks := leaveout.Blocks(s.same)
	s.r, s.shift = mat.DenseCopyOf(s.m.C), mat.NewDense(n, t, nil)
	for _, rows := range blocks {
		delta := s.shift.RawRowView(rows[0])
		if s.ones == nil {
			break
		}
		for _, i := range rows {
			floats.Add(delta, s.y.RawRowView(i))
		}
		floats.Scale(1/max(float64(n-len(rows)), 1), delta)
		for _, i := range rows {
			floats.AddScaled(s.r.RawRowView(i), s.ones[i], delta)
		}
	}
	_, _, err := s.f.LeaveOut(s.r, blocks)
	return err
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
	d, err := s.m.Scaled(d)
	if err != nil {
		return points.Panel{}, err
	}
	return points.NewPanel(d.X), nil
}
