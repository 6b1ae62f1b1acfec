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
	// AutoResidual means ExactResidual if that costs little: if the work n²d (points.DistanceWork, less for sparse
	// points) is at most 2e10 (5e11 for an expensive kernel, kernel.IsExpensive), or for 16-bit tiles of points in
	// bytes. Otherwise it means StoredResidual. If the estimated error then leaves less than half of the tolerance, and
	// the work is at most 5e11 (some seconds), ExactResidual follows.
	AutoResidual ResidualPolicy = iota
	// ExactResidual computes K again in float64, tile by tile, unless K is stored in float64 and its proved error is
	// negligible. It takes n²d/2 multiply-adds and gives a certain bound of the rounding errors (Solution.Rounding). If
	// K̃ was too inaccurate for the tolerance, the answer is refined.
	ExactResidual
	// StoredResidual multiplies once with the stored matrix K̃ and estimates the error of this product from rows of K
	// in float64, which are called the checked rows: 256 drawn at random and the 32 farthest from the mean
	// (Solution.StorageResidual).
	StoredResidual
)

var residualNames = []string{"auto", "exact", "stored"}

func (r ResidualPolicy) String() string { return enum.Name(residualNames, r) }

// MarshalText implements encoding.TextMarshaler.
func (r ResidualPolicy) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *ResidualPolicy) UnmarshalText(text []byte) (err error) {
	*r, err = enum.Parse[ResidualPolicy]("residual", residualNames, string(text))
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
	// EvalWork is the assumed work of one call of a user-defined kernel's Eval, in the unit of points.DistanceWork,
	// one coordinate of one pair of points.
	EvalWork float64

	// PreferredErrorFactor·τλ is the preferred bound of ‖E‖₂ if true residuals are computed with an exact K. A smaller
	// value requires a wider storage or computes K from differences; a larger value leaves more answers to refine. The
	// value can be above 1 because c_j lies mostly outside the leading eigenvectors, in which E is largest. For
	// example, on ADULT with λ = 0.01, τ = 1e-3 and ‖E‖₂ ≈ 2.3e-4 in float32 (without a gram.Choice.Shift), an
	// iteration ended with the recursive residual 1.9e-4; its true residual was 1.8e-3 computed in float32 and 1.9e-4
	// in float64.
	PreferredErrorFactor float64
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
	// StoredTolFraction and MinTolFraction replace TolFraction if true residuals are computed with K̃ and K̃ is not in
	// float64. The share is then StoredTolFraction − ErrorShare·‖E‖₂/(λτ), but at least MinTolFraction. On MNIST,
	// n = 20,000, the error of float32 tiles took 0.16 of τ = 1e-3.
	StoredTolFraction, MinTolFraction float64
	// ErrorShare·‖E‖₂‖y‖₂/λ is the assumed upper bound of ‖Ec‖₂; 0.006 was measured on MNIST. A larger value lets
	// iterations end at smaller residuals.
	ErrorShare float64

	// RestartReduction controls how often the solver restarts from the true residual: an iteration with K̃ ends once it
	// has multiplied the residual by RestartReduction·‖E‖₂/λ, but at most MaxRestartReduction. A smaller value wastes
	// iterations that the accuracy of K̃ cannot use; a larger value causes more restarts. An iteration with K̃ reaches
	// ‖E‖₂/λ in the worst case, and reached 0.1‖E‖₂/λ in measurements.
	RestartReduction, MaxRestartReduction float64

	// SafetyFactor times the storage residual ‖Ec‖₂/‖y‖₂, as estimated from the checked rows with the sampling error
	// of this estimate, is subtracted from τ for a refinement with K̃. K is recomputed instead if less than
	// MinRemainingShare·τ remains. A larger SafetyFactor costs iterations; a smaller one may leave an answer that
	// misses τ.
	SafetyFactor, MinRemainingShare float64
	// RecomputedTolFractions are the smallest and the largest share of τ at which a refinement aims if the recomputed K
	// is not in float64. Between them the share is TolFraction − 3·ErrorShare·‖E‖₂/(λτ), where E is the error of the
	// recomputed K, and the factor 3 is a margin.
	RecomputedTolFractions [2]float64
}

// DefaultPolicy is the policy of every solve. Its shares of errors were measured on MNIST.
var DefaultPolicy = Policy{
	ExactWork: 2e10, RefineWork: 5e11, EvalWork: 1e4,
	PreferredErrorFactor: 20, StorageErrorDivisor: 10, RecomputedErrorDivisor: 20,
	TolFraction: stage.TolFraction, StoredTolFraction: 0.8, MinTolFraction: 0.5, ErrorShare: 0.01,
	RestartReduction: 0.05, MaxRestartReduction: 0.5,
	SafetyFactor: 1.2, MinRemainingShare: 0.5, RecomputedTolFractions: [2]float64{0.25, 0.75},
}

// work returns the work of forming all of K, in the units of points.DistanceWork.
func (s *System) work() float64 {
	work := points.DistanceWork(s.Train.X)
	if n := float64(s.Train.Len()); kernel.IsExpensive(s.Kernel) {
		work += n * n * s.Policy.EvalWork
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
	choice := a.Choice()
	if choice.Sparse != nil && choice.Sparse.AssumesDecreasing { // gram.Matrix.Exact forms all entries then
		return 1
	}
	return choice.FormedShare()
}

// UsesExactResidual reports whether every true residual is computed with a float64 kernel matrix: a recomputed one, or
// a stored one for expensive kernels and where the proved error of a is negligible. a is K̃, or nil if it was not
// formed yet.
func (s *System) UsesExactResidual(a *gram.Matrix) bool {
	maxWork := s.Policy.ExactWork
	if kernel.IsExpensive(s.Kernel) {
		maxWork = s.Policy.RefineWork
	}
	// 16-bit tiles always need a refinement. For points in bytes, computing K in float64 takes little longer than in
	// float32.
	exactProducts := a != nil && a.Storage() == gram.Fixed16 && a.Choice().ExactProducts
	return s.Residual == ExactResidual || s.Residual == AutoResidual && (exactProducts ||
		s.work()*formedShare(a) <= maxWork)
}

// refinesByExact reports whether K is recomputed if the checked rows miss the tolerance. a is K̃, or nil if it was not
// formed yet.
func (s *System) refinesByExact(a *gram.Matrix) bool {
	return s.Residual == AutoResidual && s.work()*formedShare(a) <= s.Policy.RefineWork
}

// MayRecompute reports whether true residuals may be computed with a recomputed K: always, or if the checked rows miss
// the tolerance.
func (s *System) MayRecompute() bool {
	return s.Residual == ExactResidual || s.Residual == AutoResidual && s.work() <= s.Policy.RefineWork
}

// PreferredError returns the preferred bound of ‖E‖₂, Policy.PreferredErrorFactor·τλ. For an expensive kernel it
// returns 1e-300, which no storage with rounding errors meets. This forces a storage in float64: each entry of K is
// then evaluated only once and serves the residuals too.
func (s *System) PreferredError() float64 {
	if kernel.IsExpensive(s.Kernel) {
		return 1e-300
	}
	return s.Policy.PreferredErrorFactor * s.Tol * s.Lambda
}

// StorageErrorBound returns the bound of ‖E‖₂, E = K̃ − K, that K̃ must meet if the storage is chosen automatically.
func (s *System) StorageErrorBound() float64 {
	if s.MayRecompute() {
		return min(s.PreferredError(), s.Lambda/s.Policy.StorageErrorDivisor)
	}
	return s.Lambda / s.Policy.StorageErrorDivisor
}

// RecomputedErrorBound returns the largest ‖E‖₂ of a recomputed K, τλ/Policy.RecomputedErrorDivisor.
func (s *System) RecomputedErrorBound() float64 {
	return s.Tol * s.Lambda / s.Policy.RecomputedErrorDivisor
}

// DirectStorage returns the storage of a direct solve whose storage is not configured: gram.Float32, with refinement,
// or gram.Float64.
func (s *System) DirectStorage() gram.Storage {
	if direct.FasterPrecision(s.Train.Len(), slices.Max(kernel.Diag(s.Kernel, s.Train.X)), s.Lambda,
		s.Tol) == direct.Float32Refined {
		return gram.Float32
	}
	return gram.Float64
}

// setAccuracy sets options.TolFraction, the share of the tolerance at which an iteration with products by a ends. If
// exact is not nil, it also makes package pcg restart from true residuals computed with exact, or with a if the error
// of a is negligible.
func (r *run) setAccuracy(options *pcg.Options, a, exact *gram.Matrix) {
	policy, stored := &r.Policy, a.Choice()
	// The unused part of the tolerance is for the error that the checked rows will reveal.
	if options.TolFraction = policy.TolFraction; exact == nil && !r.isRefinement && a.Storage() != gram.Float64 {
		options.TolFraction = max(policy.StoredTolFraction-policy.ErrorShare*stored.Error/(r.Lambda*r.Tol),
			policy.MinTolFraction)
	}
	if exact != nil {
		options.Exact, options.ReachableReduction = r.residualOperator(a, exact),
			min(policy.RestartReduction*stored.Error/r.Lambda, policy.MaxRestartReduction)
	}
}

// refineTol returns the tolerance of a refinement with K̃, which leaves room for the storage residual ‖Ec‖₂/‖y‖₂ of the
// answer. samplingFactor covers the sampling error of that residual. suffices is false if too little of tau is left.
func (s *System) refineTol(tau, samplingFactor, storageResidual float64) (tol float64, suffices bool) {
	tol = tau - s.Policy.SafetyFactor*samplingFactor*storageResidual
	return tol, tol >= tau*s.Policy.MinRemainingShare
}

// recomputedTol returns the tolerance of a refinement with a recomputed K that is not in float64. It leaves room for
// the error that the checked rows will reveal (Policy.RecomputedTolFractions).
func (s *System) recomputedTol(tau float64, recomputed *gram.Matrix) float64 {
	policy, limits := &s.Policy, s.Policy.RecomputedTolFractions
	share := policy.TolFraction - 3*policy.ErrorShare*recomputed.Choice().Error/(s.Lambda*s.Tol)
	return tau * min(max(share, limits[0]), limits[1])
}
