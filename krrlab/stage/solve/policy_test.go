package solve

import (
	"context"
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
	"github.com/krrlab/lab/krrlab/stage/plan"
)

// TestWorkOfExactResidual checks up to which work true residuals are computed with K in float64, and which storage
// error is then requested. For a user-defined kernel without a profile, each evaluation counts as Policy.EvalWork.
func TestWorkOfExactResidual(t *testing.T) {
	const work = 2 * numPoints * numPoints // n²d
	for _, test := range []struct {
		residual              ResidualPolicy
		exactWork, refineWork float64 // the limits Policy.ExactWork and Policy.RefineWork

		wantUsesExact, wantRefinesByExact, wantMayRecompute bool    // expected results of the methods of these names
		wantStorageError                                    float64 // expected StorageErrorBound, in units of λ
	}{
		{AutoResidual, work, work, true, true, true, 20e-3},
		{AutoResidual, work - 1, work, false, true, true, 20e-3},
		{AutoResidual, work - 1, work - 1, false, false, false, 0.1},
		{ExactResidual, -1, -1, true, false, true, 20e-3},
		{StoredResidual, 1e9, 1e9, false, false, false, 0.1},
	} {
		s := newSystem(func(s *System) { s.Tol, s.Residual = 1e-3, test.residual })
		s.Policy.ExactWork, s.Policy.RefineWork = test.exactWork, test.refineWork
		got := [3]bool{s.UsesExactResidual(nil), s.refinesByExact(nil), s.MayRecompute()}
		testkit.Equal(t, got, [3]bool{test.wantUsesExact, test.wantRefinesByExact, test.wantMayRecompute}, test)
		testkit.Near(t, s.StorageErrorBound()/s.Lambda, test.wantStorageError, 1e-12, test)
		// For a user-defined kernel the limit is RefineWork in both cases.
		s.Kernel, s.Policy.ExactWork, s.Policy.EvalWork = kernel.Func{F: s.Kernel.Eval}, -1, 3
		s.Policy.RefineWork += 3 * numPoints * numPoints
		if s.UsesExactResidual(nil) != test.wantMayRecompute || s.MayRecompute() != test.wantMayRecompute ||
			s.PreferredError() != 1e-300 {
			t.Errorf("%+v with a user-defined kernel: exact residuals %t, may recompute %t, preferred error %g", test,
				s.UsesExactResidual(nil), s.MayRecompute(), s.PreferredError())
		}
		testkit.Equal(t, s.DirectStorage(), gram.Float64)
	}
}

// userKernel is a user-defined kernel, which claims to decrease with distance as a Gaussian does.
type userKernel struct{ kernel.Gaussian }

// TestWorkOfSparseTiles checks that tiles that are not formed do not count as work, unless they are omitted only
// because a user-defined kernel claims to decrease.
func TestWorkOfSparseTiles(t *testing.T) {
	for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 1e-3}, userKernel{kernel.Gaussian{Sigma: 1e-3}}} {
		s := newSystem(func(s *System) { s.Kernel = k })
		a := testkit.Must(gram.New(t.Context(), k, s.Train.X, s.Lambda,
			&gram.Options{Tiles: gram.SparseTiles, TileSize: 16}))
		storage := a.Choice()
		work, share, onlyClaimed := s.work(), storage.FormedShare(), storage.Sparse.AssumesDecreasing
		s.Policy.ExactWork, s.Policy.RefineWork = work*share, work*share
		if !(share < 1) || s.UsesExactResidual(nil) || s.UsesExactResidual(a) == onlyClaimed ||
			s.refinesByExact(a) == onlyClaimed || onlyClaimed != (formedShare(a) == 1) {
			t.Errorf("%T: the share %g of K is formed, AssumesDecreasing %v, exact residuals %v", k, share, onlyClaimed,
				s.UsesExactResidual(a))
		}
	}
}

// TestTolFractions checks at which share of the tolerance iterations end, so that the rest is left for the storage
// error of K: in a first run, in a refinement with the stored K, and in one with K recomputed.
func TestTolFractions(t *testing.T) {
	s := newSystem(func(s *System) { s.Storage, s.Residual = gram.Float32, StoredResidual })
	a := testkit.Must(s.buildMatrices(t.Context(), nil, nil)).A
	storageError, exact := a.Choice().Error, a.Exact(1e-9)
	// errorShare is the part of τ that ErrorShare·‖E‖₂/λ takes. wantShares are the shares of the tolerance at which
	// iterations with the stored K and with K recomputed end.
	for errorShare, wantShares := range map[float64][2]float64{
		0.1: {0.7, 0.67}, 0.2: {0.6, 0.37}, 0.4: {0.5, 0.25}, 0.01: {0.79, 0.75},
	} {
		s.Tol = s.Policy.ErrorShare * storageError / s.Lambda / errorShare
		var options pcg.Options
		(&run{System: s}).setAccuracy(&options, a, nil)
		testkit.Near(t, options.TolFraction, wantShares[0], 1e-12, errorShare)
		testkit.Near(t, s.recomputedTol(3, a), 3*wantShares[1], 1e-12, errorShare)
	}
	var options pcg.Options
	refinement := &run{System: s, isRefinement: true}
	if refinement.setAccuracy(&options, a, nil); options.TolFraction != s.Policy.TolFraction ||
		options.Exact != nil {
		t.Errorf("a refinement has the fraction %g of the tolerance, want %g", options.TolFraction,
			s.Policy.TolFraction)
	}
	for _, restartReduction := range []float64{0.05, 1e9} {
		s.Policy.RestartReduction = restartReduction
		if refinement.setAccuracy(&options, a, exact); options.TolFraction != s.Policy.TolFraction ||
			options.Exact.(*residualOperator).Matrix != exact ||
			math.Abs(options.ReachableReduction-min(restartReduction*storageError/s.Lambda, 0.5)) > 1e-12 {
			t.Errorf("a refinement with K in float64 has the fraction %g of the tolerance and a reduction by %g",
				options.TolFraction, options.ReachableReduction)
		}
	}
	s.Policy.SafetyFactor = 1
	const tau, samplingFactor = 2, 2 // at least 1, half of tau, must remain
	for storageResidual, wantTol := range map[float64]float64{0.4: 1.2, 0.5: 1, 0.75: 0.5} {
		tol, suffices := s.refineTol(tau, samplingFactor, storageResidual)
		testkit.Equal(t, tol, wantTol, storageResidual)
		testkit.Equal(t, suffices, wantTol >= 1, storageResidual)
	}
	testkit.Near(t, s.RecomputedErrorBound(), s.Tol*s.Lambda/20, 0)
}

// TestWatch checks the monitor of an iteration: the time left is reported from the third iteration on while residuals
// decrease, and a plan ends the iteration once the earlier and the remaining iterations take longer than the direct
// solver. An error from the error bounds also ends the iteration, after the event is reported.
func TestWatch(t *testing.T) {
	s := newSystem(func(s *System) { s.Tol = 1e-8 })
	var event stage.Event
	s.Monitor = func(e stage.Event) error { event = e; return nil }
	tol := func() float64 { return s.Tol }
	s.Plan = &plan.Report{Fallback: &cost.Candidate{Seconds: cost.Seconds{Total: 5}},
		// 9 iterations and the first product take 1 s each.
		Choice: cost.Candidate{Iterations: 9, Seconds: cost.Seconds{Solve: 10}}}
	for before, wantErrs := range map[int][]error{0: {nil, nil, nil, nil, ErrLate, ErrLate}, 3: {nil, ErrLate}} {
		watch := s.watch(t.Context(), before, nil, tol)
		for k, want := range wantErrs {
			iteration := &pcg.Iteration{Index: k + 1, MaxRelRes: math.Pow(0.1, float64(k+1))}
			if err := watch(iteration); err != want || event.Iteration != k+1 ||
				event.Residual != iteration.MaxRelRes || (event.Remaining >= 0) != (k > 1) {
				t.Errorf("after %d earlier iterations, iteration %d: error %v, want %v; event %v", before, k+1, err,
					want, event)
			}
		}
	}
	s.Plan = nil
	errorBound := func(context.Context, *pcg.Iteration) (float64, error) { return 0.5, pcg.ErrStop }
	watch := s.watch(t.Context(), 0, errorBound, tol)
	for k := range 4 {
		if err := watch(&pcg.Iteration{Index: k + 1, MaxRelRes: 2}); err != pcg.ErrStop || event.Remaining != -1 ||
			event.Bound != 0.5 {
			t.Errorf("residuals that do not decrease: error %v, want %v; event %v", err, pcg.ErrStop, event)
		}
	}
}
