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

// ResidualPolicy says how the true residual Y−(K+λI)C of the answer is recomputed.
type ResidualPolicy int

const (
	// AutoResidual is ExactResidual where that is cheap (n²d, or points.DistanceWork, ≤ 2e10; 16-bit tiles of points in bytes),
	// and otherwise StoredResidual; up to 5e11, some seconds, ExactResidual follows where the rows checked leave less
	// than half of the tolerance.
	AutoResidual ResidualPolicy = iota
	// ExactResidual forms K again, in float64, tile by tile: n²d/2 multiply-adds, with a certain
	// bound of rounding (Solution.Rounding). If K as stored was too coarse for the tolerance, the
	// answer is refined by it.
	ExactResidual
	// StoredResidual takes one product with K as it is stored, and estimates the error of that
	// from rows of K in float64, 256 drawn at random and the 32 farthest from the mean
	// (Solution.StorageResidual).
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

// Policy has the numbers by which a solve spends work on the accuracy of K, of residuals and of the answer. E is the
// error of K as stored; the answer of K+E misses the true problem by the residual Ec_j, ‖Ec_j‖₂ ≤ ‖E‖₂‖y_j‖₂/λ, and
// products in float32 miss by as much again.
type Policy struct {
	// ExactWork is the points.DistanceWork up to which AutoResidual recomputes K in any case, RefineWork that up to which it
	// does where the rows checked miss τ: larger ones certify more answers, at n²d/2 multiply-adds for each residual.
	// EvalWork is the d that a call of Eval counts as.
	ExactWork, RefineWork, EvalWork float64

	// Prefer·τλ is the ‖E‖₂ that K is stored with if the true residual decides. A smaller one takes wider storage or
	// forms K by differences; a larger one leaves more answers to be refined. c_j lies mostly outside the leading
	// directions, in which E is largest. (ADULT, λ = 0.01, τ = 1e-3, ‖E‖₂ ≈ 2.3e-4 in float32 without a
	// gram.Choice.Shift: the recurrence ended at 1.9e-4 with a true residual of 1.8e-3 in float32 and 1.9e-4 in
	// float64.)
	PreferredError float64
	// λ/Coarsest is the largest ‖E‖₂ that is asked for in any case: what a residual does not decide.
	Coarsest float64
	// τλ/Finest is the largest ‖E‖₂ of K recomputed: the true residual has an error of at most τ/Finest. Larger ones
	// take differences where inner products would do.
	Finest float64

	// Aim is the share of τ at which the recurrence ends: the rest is left for what it misses by, at a few more
	// iterations. Products with float32 tiles miss by less. AimStored is that where K as stored decides and is not in
	// float64, less Share of ‖E‖₂/(λτ), at least AimLeast: on MNIST, n = 20,000, float32 tiles cost 0.16 of τ = 1e-3.
	Aim, AimStored, MinAim float64
	// Share of ‖E‖₂‖y‖₂/λ is what ‖Ec‖₂ is taken to be at most. Measured: 0.006 on MNIST.
	ErrorShare float64

	// Reduce·‖E‖₂/λ, at most ReduceMost, is what a run with K as stored is asked to reduce a residual by, before it
	// restarts at the true one: a smaller number costs iterations that K as stored is too coarse for, a larger one
	// restarts. The worst case is 1, measured 0.1.
	RestartReduction, MaxRestartReduction float64

	// Slack times the storage residual, within its sampling error, is taken off τ to refine by K as stored, if AtLeast
	// of τ is left; else K is recomputed. A larger Slack takes more iterations, a smaller one may have to refine again.
	SafetyFactor, MinShareLeft float64
	// FinerAims bounds the share of τ that is aimed at where K recomputed is not in float64, Aim less 3·Share of its
	// ‖E‖₂/(λτ).
	RecomputedAims [2]float64
}

// Default is the policy of every solve. Shares of errors were measured on MNIST.
var Default = Policy{
	ExactWork: 2e10, RefineWork: 5e11, EvalWork: 1e4,
	PreferredError: 20, Coarsest: 10, Finest: 20,
	Aim: stage.Aim, AimStored: 0.8, MinAim: 0.5, ErrorShare: 0.01,
	RestartReduction: 0.05, MaxRestartReduction: 0.5,
	SafetyFactor: 1.2, MinShareLeft: 0.5, RecomputedAims: [2]float64{0.25, 0.75},
}

// work returns what it takes to form all of K.
func (t *System) work() float64 {
	all := points.DistanceWork(t.Train.X)
	if n := float64(t.Train.Len()); kernel.Costly(t.Kernel) {
		all += n * n * t.Policy.EvalWork
	}
	return all
}

// formed returns the share of K that is formed in float64, as far as is known of K as stored, nil before it is.
func formed(a *gram.Matrix) float64 {
	if a == nil {
		return 1
	}
	c := a.Choice()
	if c.Sparse != nil && c.Sparse.Told { // see gram.Matrix.Exact
		return 1
	}
	return c.Formed()
}

// UsesExactResidual reports whether true residuals are taken with K in float64 from the start: recomputed, or that of a costly
// kernel, which is kept for them. a is K as stored, nil before it is formed.
func (t *System) UsesExactResidual(a *gram.Matrix) bool {
	upTo := t.Policy.ExactWork
	if kernel.Costly(t.Kernel) {
		upTo = t.Policy.RefineWork
	}
	// 16-bit tiles are refined in any case, and K of points in bytes takes in float64 little longer than in float32
	whole := a != nil && a.Storage() == gram.Fixed16 && a.Choice().Whole
	return t.Residual == ExactResidual || t.Residual == AutoResidual && (whole || t.work()*formed(a) <= upTo)
}

// refines reports whether they are where the rows checked miss the tolerance.
func (t *System) refines(a *gram.Matrix) bool {
	return t.Residual == AutoResidual && t.work()*formed(a) <= t.Policy.RefineWork
}

// MayRecompute reports whether residuals are taken with all of K in float64, where that is not too much.
func (t *System) MayRecompute() bool {
	return t.Residual == ExactResidual || t.Residual == AutoResidual && t.work() <= t.Policy.RefineWork
}

// PreferredError returns Policy.Prefer·τλ; next to nothing for a kernel that is to be evaluated once, for K and for
// residuals.
func (t *System) PreferredError() float64 {
	if kernel.Costly(t.Kernel) {
		return 1e-300
	}
	return t.Policy.PreferredError * t.Tol * t.Lambda
}

// StorageErrorBound returns the bound of ‖E‖₂ that K asks for, or prefers.
func (t *System) StorageErrorBound() float64 {
	if t.MayRecompute() {
		return min(t.PreferredError(), t.Lambda/t.Policy.Coarsest)
	}
	return t.Lambda / t.Policy.Coarsest
}

// RecomputedErrorBound returns τλ/Policy.Finest, what ‖E‖₂ of K recomputed may be at most.
func (t *System) RecomputedErrorBound() float64 { return t.Tol * t.Lambda / t.Policy.Finest }

// DirectStorage returns that of a direct solve which is left open: gram.Float32, refined, or Float64.
func (t *System) DirectStorage() gram.Storage {
	if direct.Faster(t.Train.Len(), slices.Max(kernel.Diag(t.Kernel, t.Train.X)), t.Lambda,
		t.Tol) == direct.Float32Refined {
		return gram.Float32
	}
	return gram.Float64
}

// aim sets what the recurrence aims at for products with a, and how it is held against K where that is finer.
func (t *System) aim(o *pcg.Options, a, finer *gram.Matrix) {
	p, stored := &t.Policy, a.Choice()
	// leave room for what the rows will find
	if o.Aim = p.Aim; finer == nil && o.InitX == nil && a.Storage() != gram.Float64 {
		o.Aim = max(p.AimStored-p.ErrorShare*stored.Error/(t.Lambda*t.Tol), p.MinAim)
	}
	if finer != nil {
		o.Exact, o.Refine = finer, min(p.RestartReduction*stored.Error/t.Lambda, p.MaxRestartReduction)
	}
}

// refineTol returns the tolerance for K as stored that leaves room for the storage residual, which slack covers the
// sampling of; false if too little is left.
func (t *System) refineTol(tau, slack, storage float64) (float64, bool) {
	left := tau - t.Policy.SafetyFactor*slack*storage
	return left, left >= tau*t.Policy.MinShareLeft
}

// finerTol returns the tolerance for K recomputed, which leaves room for what the rows will find.
func (t *System) finerTol(tau float64, finer *gram.Matrix) float64 {
	p := &t.Policy
	return tau * min(max(p.Aim-3*p.ErrorShare*finer.Choice().Error/(t.Lambda*t.Tol), p.RecomputedAims[0]),
		p.RecomputedAims[1])
}
