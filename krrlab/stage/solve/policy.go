package solve

import (
	"slices"

	"github.com/krrlab/lab/krrlab/internal/enum"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/direct"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/stage"
)

// ResidualPolicy selects how the true residual Y−(K+λI)C of the answer is computed.
type ResidualPolicy int

const (
	// AutoResidual means ExactResidual if that costs little: if n²d, or points.DistanceWork, is at most 2e10, or for
	// 16-bit tiles of points in bytes. Otherwise it means StoredResidual, followed by ExactResidual for a work of up to
	// 5e11, some seconds, if the checked rows leave less than half of the tolerance.
	AutoResidual ResidualPolicy = iota
	// ExactResidual computes K again in float64, tile by tile, unless K is stored in float64 and its proved error is
	// negligible. It takes n²d/2 multiply-adds and gives a certain bound of the rounding errors (Solution.Rounding). If
	// K̃ was too inaccurate for the tolerance, the answer is refined.
	ExactResidual
	// StoredResidual takes one product with K̃ and estimates its error from rows of K in float64: 256 rows drawn at
	// random and the 32 farthest from the mean (Solution.StorageResidual).
	StoredResidual
)

var residualNames = []string{"auto", "exact", "stored"}

func (r ResidualPolicy) String() string { return enum.Name(residualNames, r) }

// MarshalText implements encoding.TextMarshaler.
func (r ResidualPolicy) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *ResidualPolicy) UnmarshalText(b []byte) (err error) {
	*r, err = enum.Parse[ResidualPolicy]("residual", residualNames, string(b))
	return err
}

// Policy has the numbers that control how much work a solve spends on the accuracy of K, of residuals and of the
// answer. E = K̃ − K is the storage error, and τ is the tolerance of the relative residual. The solution c_j for K̃ has
// the residual Ec_j in the true problem, with ‖Ec_j‖₂ ≤ ‖E‖₂‖y_j‖₂/λ. The rounding errors of float32 products add up to
// as much again.
type Policy struct {
	// ExactWork is the largest points.DistanceWork for which AutoResidual always recomputes K. A larger value certifies
	// more answers, and costs n²d/2 multiply-adds per residual.
	ExactWork float64
	// RefineWork is the largest points.DistanceWork for which AutoResidual recomputes K if the checked rows miss τ.
	RefineWork float64
	// EvalWork is the assumed work of one call of a user-defined kernel's Eval, in units of one feature of a point.
	EvalWork float64

	// PreferredError·τλ is the preferred bound of ‖E‖₂ if true residuals are computed with an exact K. A smaller value
	// requires a wider storage or computes K from differences; a larger value leaves more answers to refine. The value
	// can be above 1 because c_j lies mostly outside the leading eigenvectors, in which E is largest. (ADULT, λ = 0.01,
	// τ = 1e-3, ‖E‖₂ ≈ 2.3e-4 in float32 without a gram.Choice.Shift: the recursive residual ended at 1.9e-4, with a
	// true residual of 1.8e-3 in float32 and 1.9e-4 in float64.)
	PreferredError float64
	// λ/StorageErrorDivisor is the largest bound of ‖E‖₂ that is ever requested, whatever the residual. A larger value
	// requires a more accurate storage.
	StorageErrorDivisor float64
	// τλ/RecomputedErrorDivisor is the largest ‖E‖₂ of a recomputed K, so that the true residual has an error of at
	// most τ/RecomputedErrorDivisor. A larger value computes more kernels from differences for which inner products
	// would suffice.
	RecomputedErrorDivisor float64

	// TolFraction is the share of τ at which the iteration ends. The rest allows for the difference between the
	// recursive and the true residual, which is smaller for products with float32 tiles. A smaller share costs a few
	// more iterations.
	TolFraction float64
	// StoredTolFraction − ErrorShare·‖E‖₂/(λτ), but at least MinTolFraction, replaces TolFraction if true
	// residuals are computed with K̃ and K̃ is not in float64. On MNIST, n = 20,000, the error of float32 tiles took
	// 0.16 of τ = 1e-3.
	StoredTolFraction, MinTolFraction float64
	// ErrorShare·‖E‖₂‖y‖₂/λ is the assumed upper bound of ‖Ec‖₂. The factor measured on MNIST was 0.006.
	ErrorShare float64

	// RestartReduction controls how often the solver restarts from the true residual: an iteration with K̃ ends once it
	// has reduced the residual by the factor RestartReduction·‖E‖₂/λ, but at most MaxRestartReduction. A smaller value
	// wastes iterations that the accuracy of K̃ cannot use; a larger value causes more restarts. The worst case of the
	// factor is 1, and 0.1 was measured.
	RestartReduction, MaxRestartReduction float64

	// SafetyFactor times the storage residual, with its sampling error, is subtracted from τ for a refinement with K̃.
	// K is recomputed instead if less than MinRemainingShare·τ remains. A larger SafetyFactor costs iterations; a
	// smaller one may require a second refinement.
	SafetyFactor, MinRemainingShare float64
	// RecomputedTolFractions are the limits of the share of τ at which a refinement aims if the recomputed K is not
	// in float64. The share is TolFraction − 3·ErrorShare·‖E‖₂/(λτ) with the error E of the recomputed K.
	RecomputedTolFractions [2]float64
}

// DefaultPolicy is the policy of every solve. Its shares of errors were measured on MNIST.
var DefaultPolicy = Policy{
	ExactWork: 2e10, RefineWork: 5e11, EvalWork: 1e4,
	PreferredError: 20, StorageErrorDivisor: 10, RecomputedErrorDivisor: 20,
	TolFraction: stage.TolFraction, StoredTolFraction: 0.8, MinTolFraction: 0.5, ErrorShare: 0.01,
	RestartReduction: 0.05, MaxRestartReduction: 0.5,
	SafetyFactor: 1.2, MinRemainingShare: 0.5, RecomputedTolFractions: [2]float64{0.25, 0.75},
}

// work returns the work of forming all of K, in the units of points.DistanceWork.
func (t *System) work() float64 {
	work := points.DistanceWork(t.Train.X)
	if n := float64(t.Train.Len()); kernel.IsExpensive(t.Kernel) {
		work += n * n * t.Policy.EvalWork
	}
	return work
}

// formedShare returns the share of the entries of K that a product in float64 forms, if it skips the same tiles as a.
// a is K̃, or nil if it was not formed yet; then the share is 1. It is also 1 if tiles are skipped only because a
// user-defined kernel is declared to decrease: a float64 product does not rely on that.
func formedShare(a *gram.Matrix) float64 {
	if a == nil {
		return 1
	}
	c := a.Choice()
	if c.Sparse != nil && c.Sparse.AssumesDecreasing { // gram.Matrix.Exact forms all entries then
		return 1
	}
	return c.FormedShare()
}

// UsesExactResidual reports whether every true residual is computed with a float64 kernel matrix: a recomputed one, or
// a stored one for expensive kernels and where the proved error of a is negligible. a is K̃, or nil if it was not
// formed yet.
func (t *System) UsesExactResidual(a *gram.Matrix) bool {
	maxWork := t.Policy.ExactWork
	if kernel.IsExpensive(t.Kernel) {
		maxWork = t.Policy.RefineWork
	}
	// 16-bit tiles always need a refinement, and for points in bytes computing K in float64 takes little longer than in
	// float32
	exactProducts := a != nil && a.Storage() == gram.Fixed16 && a.Choice().ExactProducts
	return t.Residual == ExactResidual || t.Residual == AutoResidual && (exactProducts ||
		t.work()*formedShare(a) <= maxWork)
}

// refinesByExact reports whether K is recomputed if the checked rows miss the tolerance. a is K̃, or nil if it was not
// formed yet.
func (t *System) refinesByExact(a *gram.Matrix) bool {
	return t.Residual == AutoResidual && t.work()*formedShare(a) <= t.Policy.RefineWork
}

// MayRecompute reports whether true residuals may be computed with a recomputed K: always, or if the checked rows miss
// the tolerance.
func (t *System) MayRecompute() bool {
	return t.Residual == ExactResidual || t.Residual == AutoResidual && t.work() <= t.Policy.RefineWork
}

// PreferredError returns the preferred bound of ‖E‖₂, Policy.PreferredError·τλ. For an expensive kernel it is
// negligible, so that each entry is evaluated once, in float64, for both K and the residuals.
func (t *System) PreferredError() float64 {
	if kernel.IsExpensive(t.Kernel) {
		return 1e-300
	}
	return t.Policy.PreferredError * t.Tol * t.Lambda
}

// StorageErrorBound returns the bound of ‖E‖₂, E = K̃ − K, that K̃ must meet if the storage is chosen automatically.
func (t *System) StorageErrorBound() float64 {
	if t.MayRecompute() {
		return min(t.PreferredError(), t.Lambda/t.Policy.StorageErrorDivisor)
	}
	return t.Lambda / t.Policy.StorageErrorDivisor
}

// RecomputedErrorBound returns the largest ‖E‖₂ of a recomputed K, τλ/Policy.RecomputedErrorDivisor.
func (t *System) RecomputedErrorBound() float64 {
	return t.Tol * t.Lambda / t.Policy.RecomputedErrorDivisor
}

// DirectStorage returns the storage of a direct solve whose storage is not configured: gram.Float32, with refinement,
// or gram.Float64.
func (t *System) DirectStorage() gram.Storage {
	if direct.FasterPrecision(t.Train.Len(), slices.Max(kernel.Diag(t.Kernel, t.Train.X)), t.Lambda,
		t.Tol) == direct.Float32Refined {
		return gram.Float32
	}
	return gram.Float64
}

// setTolFraction sets o.TolFraction, the share of the tolerance at which an iteration with products by a ends. If
// exact is not nil, it also makes pcg compute true residuals with exact, or with a where that is as good, and restart
// from them.
func (s *run) setTolFraction(o *pcg.Options, a, exact *gram.Matrix) {
	p, stored := &s.Policy, a.Choice()
	// leave room for the error that the checked rows will reveal
	if o.TolFraction = p.TolFraction; exact == nil && !s.refining && a.Storage() != gram.Float64 {
		o.TolFraction = max(p.StoredTolFraction-p.ErrorShare*stored.Error/(s.Lambda*s.Tol), p.MinTolFraction)
	}
	if exact != nil {
		o.Exact, o.ReachableReduction = s.residualOperator(a, exact),
			min(p.RestartReduction*stored.Error/s.Lambda, p.MaxRestartReduction)
	}
}

// refineTol returns the tolerance of a refinement with K̃, which leaves room for the storage residual ‖Ec‖₂/‖y‖₂ of the
// answer. samplingFactor covers the sampling error of that residual. suffices is false if too little of tau is left.
func (t *System) refineTol(tau, samplingFactor, storageResidual float64) (tol float64, suffices bool) {
	tol = tau - t.Policy.SafetyFactor*samplingFactor*storageResidual
	return tol, tol >= tau*t.Policy.MinRemainingShare
}

// recomputedTol returns the tolerance of a refinement with a recomputed K that is not in float64. It leaves room for
// the error that the checked rows will reveal (Policy.RecomputedTolFractions).
func (t *System) recomputedTol(tau float64, recomputed *gram.Matrix) float64 {
	p, limits := &t.Policy, t.Policy.RecomputedTolFractions
	share := p.TolFraction - 3*p.ErrorShare*recomputed.Choice().Error/(t.Lambda*t.Tol)
	return tau * min(max(share, limits[0]), limits[1])
}
