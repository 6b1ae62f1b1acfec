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
	tileSize    = 256 // number of rows of K that are computed at a time; more need more memory
	blockPoints = 64  // number of points whose systems are solved together; more need more memory
)

// FactoredSystem is the system AC = Y of a model with the factored matrix A = K+λI of its training points. With weights
// W of the points, A = K+λW⁻¹.
type FactoredSystem struct {
	m            *model.Model
	arith        kernel.Arithmetic       // how entries of K for new points are computed
	x            points.Panel            // training points
	factor       *leaveout.InverseFactor // inverse of the Cholesky factor of A
	ac           *mat.Dense              // AC, which replaces the targets Y: a model does not store them
	firstInGroup []int                   // first row of the group of each row; the rows of a group are left out together
	doubt        string                  // reason why the rows are not exchangeable with a new one; "" if they are

	inverseOnes []float64 // A⁻¹1; nil unless the mean was subtracted from the targets

	residuals *mat.Dense // result of LeaveOneOut
	shift     *mat.Dense // δ of LeaveOneOut, in the first row of each group
}

// ErrUnsolved is the error for a model whose coefficients are too far from the solution.
var ErrUnsolved = errors.New("interval: the model is too far from the solution of (K+λI)C = Y for leave-one-out: " +
	"fit with a smaller tolerance, or take split conformal intervals")

// errThreshold is the error for leave-one-out of a model with a threshold.
var errThreshold = errors.New("interval: the model has a threshold, which rows left out would have to choose again: " +
	"take split intervals, of test rows")

// errWeighted is the error for leave-one-out of a model that was fitted with weights.
var errWeighted = errors.New("interval: the model was fitted with weights: errors of its rows are not those of rows " +
	"that all count once: take split conformal intervals, of test rows, or for a regression the posterior")

// errUnknownWeights is the error for a posterior of a model whose weights are not known.
var errUnknownWeights = errors.New("interval: the model was fitted with weights, which its file does not have: take " +
	"split conformal intervals")

// newUnfactoredSystem returns the system with the groups of its rows, but without a factor and without residuals.
func newUnfactoredSystem(m *model.Model) *FactoredSystem {
	d, firstEqual := &datasets.Dataset{X: m.X, Groups: m.Groups, Repeats: m.Repeats}, kernel.FirstEqual(m.Kernel, m.X)
	description := "have the features of others, and the model, of an older version, does not say whether they are " +
		"copies: they are left out together"
	if d.Repeats == nil {
		d, _ = d.GroupByRule("together", firstEqual) // "together" is a valid rule, so there is no error
	} else {
		description = repeatDescription(d.Repeats.RowKind)
	}
	groups := d.Grouping(firstEqual)
	s := &FactoredSystem{m: m, x: points.NewPanel(m.X), firstInGroup: groups.FirstRow,
		doubt: doubtReason(groups.Grouped, len(firstEqual), description)}
	if kernel.ShiftInvariant(m.Kernel) { // differences of coordinates avoid cancellation
		s.arith = kernel.Differences
	}
	return s
}

// NewFactoredSystem computes A from the model and factors it in float64. Work: n²d/2 and 2n³/3 multiply-adds, memory:
// 8n² bytes. NewFactoredSystem returns an error if the memory does not suffice, A is not positive definite in float64,
// or ctx ends.
//
// It returns an error that wraps ErrUnsolved if C may differ too much from the solution C*: if ‖c_j−c_j*‖_A, bounded by
// the model's ErrorBounds or else from its residual, exceeds a tenth of ‖c_j‖_A, or ‖y_j−Ac_j‖₂ may exceed a tenth of
// the norm of column j of LeaveOneOut. AC, which replaces Y, would then be fitted without error, and the intervals
// would contain few answers. The error is unknown, and therefore too large, if the residual of the model was not
// measured.
func NewFactoredSystem(ctx context.Context, m *model.Model, memory accel.Budget) (*FactoredSystem, error) {
	if m.Weighted {
		return nil, errWeighted
	}
	if m.Threshold != 0 {
		return nil, errThreshold
	}
	return newFactoredSystem(ctx, m, memory)
}

// newFactoredSystem does the same as NewFactoredSystem without the checks for weights and for a threshold. If the model
// has weights, it must contain them.
func newFactoredSystem(ctx context.Context, m *model.Model, memory accel.Budget) (*FactoredSystem, error) {
	n, _, t := m.Dims()
	item := fmt.Sprintf("interval: the factor of K+λI of %d points", n)
	if err := memory.Check(8*int64(n)*int64(n), item,
		"take split conformal intervals, or allow more by --memory"); err != nil {
		return nil, err
	}
	s := newUnfactoredSystem(m)
	a := mat.NewDense(n, n, nil)
	k, err := gram.NewExact(m.Kernel, m.X, m.Lambda, m.Lambda/1e6, nil)
	if err == nil {
		err = k.DenseTo(ctx, a)
	}
	if err != nil {
		return nil, err
	}
	for i := range n {
		a.Set(i, i, a.At(i, i)+m.Lambda/weight(m, i))
	}
	s.ac = mat.NewDense(n, t, nil)
	s.ac.Mul(a, m.C)
	if s.factor, err = leaveout.NewInverseFactor(n, a.RawMatrix().Data); err != nil {
		return nil, fmt.Errorf("interval: at λ = %g: %w", m.Lambda, err)
	}
	if m.Mean != nil {
		s.inverseOnes = slices.Repeat([]float64{1}, n)
		x := mat.NewDense(n, 1, s.inverseOnes)
		s.factor.Forward(x)
		s.factor.Backward(x)
	}
	if err := s.computeResiduals(); err != nil {
		return nil, fmt.Errorf("interval: %w", err)
	}
	return s, cmp.Or(ctx.Err(), s.checkSolved())
}

// maxSolveError is the largest relative error of C that is accepted. Models that were solved to the default tolerances
// usually have less than 0.01.
const maxSolveError = 0.1

// checkSolved returns ErrUnsolved, with the numbers, unless C is known to be close to the solution.
func (s *FactoredSystem) checkSolved() error {
	_, _, t := s.m.Dims()
	relResidual, inverseRoot := worstResidual(s.m), s.inverseRootBound()
	smallestWeight, _ := weightRange(s.m)
	if math.IsNaN(relResidual) {
		return fmt.Errorf("%w (its residual is not known)", ErrUnsolved)
	}
	for j := range t {
		residualBound := math.Inf(1) // bound of ‖y−Ac‖₂, from ‖W^½y‖₂ ≤ ‖W^½Ac‖₂+‖W^½(y−Ac)‖₂
		if relResidual >= 0 && relResidual < 1 {
			sum := 0.0
			for i := range s.ac.RawMatrix().Rows {
				sum += weight(s.m, i) * s.ac.At(i, j) * s.ac.At(i, j)
			}
			residualBound = relResidual / (1 - relResidual) * math.Sqrt(sum/smallestWeight)
		}
		errorBound := 0.0
		if bounds := s.m.ErrorBounds; bounds != nil {
			errorBound = bounds.ANorm[j]
		} else if residualBound > 0 {
			errorBound = residualBound * inverseRoot
		}
		if anorm := s.anorm(j); !(errorBound <= maxSolveError*anorm) {
			return fmt.Errorf("%w (‖c−c*‖_A ≤ %s, ‖c‖_A = %.2g)", ErrUnsolved, outward.Up(errorBound, 2), anorm)
		}
		if loo := mat.Norm(s.residuals.ColView(j), 2); !(residualBound <= maxSolveError*loo) {
			return fmt.Errorf("%w (‖y−Ac‖₂ ≤ %s, leave-one-out leaves %.2g)", ErrUnsolved,
				outward.Up(residualBound, 2), loo)
		}
	}
	return nil
}

// weight returns the weight of row i of the fit.
func weight(m *model.Model, i int) float64 {
	if m.Weights == nil {
		return 1
	}
	return m.Weights[i]
}

// weightRange returns the smallest and the largest weight of the rows of the fit.
func weightRange(m *model.Model) (smallest, largest float64) {
	if m.Weights == nil {
		return 1, 1
	}
	return slices.Min(m.Weights), slices.Max(m.Weights)
}

// worstResidual returns ‖W^½(y−Ac)‖₂/‖W^½y‖₂ of the worst column, or NaN if it is unknown. The residual is unknown if
// it was not measured, or if it was measured with a stored K that the fit found to be too inaccurate.
func worstResidual(m *model.Model) float64 {
	origin := m.Origin
	certain := m.ErrorBounds != nil && m.ErrorBounds.Certain
	if origin.TrueResidual == nil || origin.Status == pcg.Inaccurate.String() && !certain {
		return math.NaN()
	}
	return *origin.TrueResidual
}

// inverseRootBound returns an upper bound of 1/√λ_min(A): √(max w_i/λ) if K is positive semi-definite. A precomputed K
// may be indefinite; the bound is then √tr A⁻¹.
func (s *FactoredSystem) inverseRootBound() float64 {
	if kernel.IsSemidefinite(s.m.Kernel) {
		_, largest := weightRange(s.m)
		return math.Sqrt(largest / s.m.Lambda)
	}
	return math.Sqrt(floats.Sum(s.factor.Diag))
}

// anorm returns √(c_jᵀAc_j).
func (s *FactoredSystem) anorm(j int) float64 {
	return math.Sqrt(max(0, mat.Dot(s.m.C.ColView(j), s.ac.ColView(j))))
}

// LeaveOneOut returns the n×t residuals y_i minus the prediction for row i of a fit without the rows G of its group:
//
//	r_G = ((A⁻¹)_GG)⁻¹(C+δA⁻¹1)_G,  δ = Σ_G(y_i−ȳ)/(n−|G|), or 0 if no mean was subtracted.
//
// The fit without G uses the mean of the remaining targets, and the same scaling, kernel and λ. The targets are AC, so
// the residuals are as accurate as C is.
func (s *FactoredSystem) LeaveOneOut() *mat.Dense {
	return mat.DenseCopyOf(s.residuals)
}

// computeResiduals sets residuals and shift, by the formulas of LeaveOneOut.
func (s *FactoredSystem) computeResiduals() error {
	n, _, t := s.m.Dims()
	blocks := leaveout.Blocks(s.firstInGroup)
	s.residuals, s.shift = mat.DenseCopyOf(s.m.C), mat.NewDense(n, t, nil)
	for _, rows := range blocks {
		delta := s.shift.RawRowView(rows[0])
		if s.inverseOnes == nil {
			break
		}
		for _, i := range rows {
			floats.Add(delta, s.ac.RawRowView(i))
		}
		floats.Scale(1/max(float64(n-len(rows)), 1), delta)
		for _, i := range rows {
			floats.AddScaled(s.residuals.RawRowView(i), s.inverseOnes[i], delta)
		}
	}
	_, _, err := s.factor.LeaveOut(s.residuals, blocks)
	return err
}

// forEachBlock divides the points z into blocks of at most blockPoints. For each block, in parallel, it calls body with
// the number lo of the block's first point, and an n×m matrix whose columns are L⁻¹k_z for its points z, where A = LLᵀ.
func (s *FactoredSystem) forEachBlock(ctx context.Context, z points.Panel, body func(lo int, block *mat.Dense)) error {
	workspaces := make([]kernel.Workspace, accel.Threads())
	return accel.ForEach(ctx, (z.Len()+blockPoints-1)/blockPoints, func(goroutine, index int) {
		lo := index * blockPoints
		block := s.kernelBlock(z.Slice(lo, min(lo+blockPoints, z.Len())), &workspaces[goroutine])
		s.factor.Forward(block)
		body(lo, block)
	})
}

// kernelBlock returns k(x_i, z_j) for the n training points x_i and the m points of z, n×m.
func (s *FactoredSystem) kernelBlock(z points.Panel, workspace *kernel.Workspace) *mat.Dense {
	n, m := s.x.Len(), z.Len()
	block := mat.NewDense(n, m, nil)
	for i := 0; i < n; i += tileSize {
		kernel.Tile64(block.RawMatrix().Data[i*m:], m, s.m.Kernel, s.x.Slice(i, min(i+tileSize, n)), z, s.arith,
			workspace)
	}
	return block
}

// points returns the points of d with the model's scaling.
func (s *FactoredSystem) points(d *datasets.Dataset) (points.Panel, error) {
	d, err := s.m.Scaled(d)
	if err != nil {
		return points.Panel{}, err
	}
	return points.NewPanel(d.X), nil
}
