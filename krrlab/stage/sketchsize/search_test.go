package sketchsize

import (
	"context"
	"sync"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// TestSearchAgainstDense compares every quantity of a ladder with dense linear algebra, for features that are nested by
// index and by stacking.
func TestSearchAgainstDense(t *testing.T) {
	const lambda = 0.5
	for _, kern := range []kernel.Kernel{kernel.Gaussian{Sigma: 2},
		kernel.Polynomial{Gamma: 0.5, Coef0: 0.3, Degree: 2}} {
		x := scaledNormals(300, 4, 0.7)
		p := newTestProblem(t, kern, x, lambda)
		dense := testkit.KernelMatrix(kern, x)
		options := Options{Test: Theorem7, First: 16, Max: 256,
			Constants: ConditionConstants{Theta: 0.3, Alpha: 0.01, Gamma: 0.001}}
		result := searchSeed(t, p, options, 3)
		if len(result.Rungs) != 5 || result.Status != None {
			t.Fatalf("%v: %d rungs, status %s", kern, len(result.Rungs), result.Status)
		}
		for _, rung := range result.Rungs {
			want := newReference(t, dense, denseFeatures(t, p.Map, x, 16, rung.S, rng.New(3)), lambda, 0.3)
			conditions := rung.Conditions
			if conditions == nil || conditions.Rank != want.rank {
				t.Fatalf("%v, s = %d: conditions %+v, want rank %d", kern, rung.S, conditions, want.rank)
			}
			want.checkRung(t, rung, kern, rung.S)
			for _, interval := range []estimate.Interval{rung.Kappa, rung.Min, rung.Max, conditions.Norm,
				conditions.Low, conditions.High} {
				if interval.RelativeWidth() > 0.5 && interval.Hi > 1e-3 {
					t.Errorf("%v, s = %d: the interval %v has a relative width above 0.5", kern, rung.S, interval)
				}
			}
			if rung.Verdict == Accept {
				t.Errorf("%v, s = %d: accepted with γ = 0.001", kern, rung.S)
			}
		}
	}
}

// TestTargetOfKappa checks by dense linear algebra that the first rung within the target of κ is accepted, and that the
// rung with the least predicted time is chosen if there is none.
func TestTargetOfKappa(t *testing.T) {
	const lambda, target = 0.2, 12
	kern := kernel.Gaussian{Sigma: 1.5}
	x := scaledNormals(400, 3, 0.8)
	p := newTestProblem(t, kern, x, lambda)
	dense := testkit.KernelMatrix(kern, x)
	found := searchSeed(t, p, Options{First: 8, Target: target}, 5)
	if found.Status != Found || chosenRung(found) != len(found.Rungs)-1 || chosenRung(found) < 1 {
		t.Fatalf("status %s, rung %d of %d", found.Status, chosenRung(found), len(found.Rungs))
	}
	for i, rung := range found.Rungs {
		reference := newReference(t, dense, denseFeatures(t, p.Map, x, 8, rung.S, rng.New(5)), lambda, 0.3)
		if within := reference.kappa <= target; within != (i == chosenRung(found)) ||
			within != (rung.Verdict == Accept) {
			t.Errorf("s = %d: κ = %g, verdict %s", rung.S, reference.kappa, rung.Verdict)
		}
	}
	none := searchSeed(t, p, Options{First: 8, Target: 1.001}, 5)
	if none.Status != None || chosenRung(none) < 0 {
		t.Fatalf("target 1.001: status %s, rung %d", none.Status, chosenRung(none))
	}
	shortest := none.Rungs[chosenRung(none)].PredictedSeconds
	for i, rung := range none.Rungs {
		if rung.Verdict == Accept || rung.PredictedSeconds < shortest {
			t.Errorf("rung %d: %s, %g s predicted, the chosen one %g s", i, rung.Verdict, rung.PredictedSeconds,
				shortest)
		}
	}
	testkit.Equal(t, none.Rungs[len(none.Rungs)-1].S, 256)
}

// TestEigenLimit checks that the conditions of rungs that κ refutes are measured only up to s = Options.Eigen.
func TestEigenLimit(t *testing.T) {
	p := newTestProblem(t, kernel.Gaussian{Sigma: 2}, scaledNormals(150, 4, 0.7), 0.05)
	for _, rung := range searchSeed(t, p, Options{Test: Theorem7, First: 8, Max: 32, Eigen: 16}, 3).Rungs {
		if rung.Verdict != Reject || (rung.Conditions != nil) != (rung.S <= 16) {
			t.Errorf("s = %d: %s, conditions %v", rung.S, rung.Verdict, rung.Conditions)
		}
	}
}

// TestCanceledSearch checks that a canceled search returns the completed rungs together with the error of the context.
func TestCanceledSearch(t *testing.T) {
	p := newTestProblem(t, kernel.Gaussian{Sigma: 2}, scaledNormals(300, 4, 0.7), 0.05)
	ctx, cancel := context.WithCancel(context.Background())
	options := &Options{First: 16, Target: 1.01, progress: func(completed, total int) {
		if completed == 1+4 { // the progress at the end of the second rung
			cancel()
		}
	}}
	result, err := Search(ctx, p, options, rng.New(1))
	if err != context.Canceled || result == nil || len(result.Rungs) != 2 || result.Status != Interrupted ||
		chosenRung(result) < 0 {
		t.Errorf("%+v, error %v", result, err)
	}
}

// TestMemoryLimitsLadder checks that the ladder ends within the memory budget, and that a budget that is too small for
// the first rung is an error.
func TestMemoryLimitsLadder(t *testing.T) {
	p := newTestProblem(t, kernel.Gaussian{Sigma: 2}, scaledNormals(300, 4, 0.7), 0.05)
	result := searchSeed(t, p, Options{First: 16, Target: 1.01, memory: accel.Budget{Limit: 200e3}}, 1)
	if result.Limit != "memory" || result.Max != 64 {
		t.Errorf("with 200 kB the ladder ends at s = %d by the limit %q, want 64 by memory", result.Max, result.Limit)
	}
	_, err := Search(context.Background(), p, &Options{First: 16, memory: accel.Budget{Limit: 10e3}}, rng.New(1))
	testkit.Fails(t, err, "memory")
}

// slowOperator is an operator whose products take longer on all ranks but the first.
type slowOperator struct {
	stage.Operator
	rank int
}

func (s slowOperator) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	err := s.Operator.MulTo(ctx, dst, src)
	if s.rank > 0 {
		time.Sleep(time.Millisecond)
	}
	return err
}

// TestRanksChoose checks that ranks with different clocks predict the same times and choose the same rung.
func TestRanksChoose(t *testing.T) {
	p := newTestProblem(t, kernel.Gaussian{Sigma: 1.5}, scaledNormals(200, 3, 0.8), 0.05)
	results := make([]*Result, 2)
	var wg sync.WaitGroup
	for rank, communicator := range comm.Local(2, 0) {
		wg.Go(func() {
			p := p
			p.K, p.Comm = slowOperator{p.K, rank}, communicator
			var err error
			if results[rank], err = Search(t.Context(), p, &Options{Target: 1.01, First: 8, Max: 64},
				rng.New(3)); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	if results[0].Status != None || len(results[0].Rungs) != 4 {
		t.Fatalf("%s after %d rungs", results[0].Status, len(results[0].Rungs))
	}
	testkit.Equal(t, chosenRung(results[0]), chosenRung(results[1]))
	for i, rung0 := range results[0].Rungs {
		if rung1 := results[1].Rungs[i]; rung0.PredictedSeconds != rung1.PredictedSeconds ||
			rung0.IterationSeconds != rung1.IterationSeconds || rung0.Seconds != rung1.Seconds {
			t.Errorf("s = %d: %g s predicted by rank 0, %g s by rank 1", rung0.S, rung0.PredictedSeconds,
				rung1.PredictedSeconds)
		}
	}
}
