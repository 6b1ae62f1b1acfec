package solve

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/checkpoint"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/stage/cost"
	"github.com/krrlab/lab/krrlab/stage/plan"
)

// residualContext is a context whose Err is context.Canceled as soon as sol has true residuals.
type residualContext struct {
	context.Context
	sol *Solution
}

func (c residualContext) Err() error {
	if c.sol.ResidualKind != "" {
		return context.Canceled
	}
	return nil
}

// TestFourierCanceled checks that a Fourier solve that is canceled before it has computed residuals with K in float64
// reports the residuals with the series.
func TestFourierCanceled(t *testing.T) {
	s, sol := newSystem(func(s *System) { s.Solver, s.Residual = Fourier, ExactResidual }), new(Solution)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the status of the solution is taken from the inner context
	c, err := Run(residualContext{ctx, sol}, s, nil, sol)
	if c == nil || err != context.Canceled || sol.ResidualKind != ResidualInStored || sol.ColumnRoundings != nil {
		t.Errorf("error %v, residuals %q with rounding errors %v; want %q without", err, sol.ResidualKind,
			sol.ColumnRoundings, ResidualInStored)
	}
}

// checkpointContext is a context whose Err is context.Canceled as soon as dir has a checkpoint and the history of sol
// has the given number of rows.
type checkpointContext struct {
	context.Context
	dir  string
	sol  *Solution
	rows int
}

func (c checkpointContext) Err() error {
	if len(c.sol.History) >= c.rows && checkpoint.Exists(c.dir) {
		return context.Canceled
	}
	return nil
}

// TestFourierResumes interrupts a Fourier solve after the first pass over the points and after each round of
// refinement, and resumes it. The coefficients and the history must be those of an uninterrupted solve, bit for bit,
// and the resumed solve must not repeat the rounds before the checkpoint. The test also checks that a solve that fails
// leaves no checkpoint if a plan has a fallback, and otherwise keeps it.
func TestFourierResumes(t *testing.T) {
	resumed := 0 // number of solves that have noted that they resume a checkpoint
	fourierSystem := func(dir string, resume bool) *System {
		return newSystem(func(s *System) {
			s.Solver, s.Tol, s.Residual = Fourier, 1e-15, StoredResidual // no residual meets Tol, so all rounds run
			s.Fingerprint = func() (sum [32]byte, err error) { return sum, nil }
			if dir != "" {
				s.Checkpoint = &Checkpoint{Dir: dir, EveryIter: 1, Resume: resume, Note: func(note string) {
					if strings.HasPrefix(note, "resuming") {
						resumed++
					}
				}}
			}
		})
	}
	uninterrupted := new(Solution)
	want := testkit.Must(Run(t.Context(), fourierSystem("", false), nil, uninterrupted))
	testkit.Equal(t, len(uninterrupted.History), fourierRefinements+1, "rounds")
	for rows := range fourierRefinements + 1 {
		dir, interrupted := t.TempDir(), new(Solution)
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // the status of the solution is taken from the inner context
		if _, err := Run(checkpointContext{ctx, dir, interrupted, rows}, fourierSystem(dir, false), nil,
			interrupted); err == nil {
			t.Fatalf("not interrupted after %d rounds", rows)
		}
		sol := new(Solution)
		got := testkit.Must(Run(t.Context(), fourierSystem(dir, true), nil, sol))
		testkit.Equal(t, resumed, rows+1, "resumed solves")
		if !mat.Equal(got, want) || fmt.Sprint(sol.History) != fmt.Sprint(uninterrupted.History) ||
			sol.Iterations != uninterrupted.Iterations {
			t.Errorf("interrupted after %d rounds: %v, want %v", rows, sol.History, uninterrupted.History)
		}
	}
	for _, planned := range []bool{false, true} {
		dir := t.TempDir()
		failing := fourierSystem(dir, false)
		failing.Lambda = 1e-300 // K̃+λI cannot be factored
		if planned {
			failing.Plan = &plan.Report{Fallback: &cost.Candidate{Solver: cost.CG}}
		}
		_, err := Run(t.Context(), failing, nil, new(Solution))
		if err == nil || checkpoint.Exists(dir) == planned {
			t.Errorf("a failing series, with a fallback: %v; error %v, the checkpoint is kept: %v", planned, err,
				checkpoint.Exists(dir))
		}
	}
}

// TestFourierResumesWithOtherArithmetic checks that a resumed Fourier solve names the instruction sets of its rounds if
// there are several.
func TestFourierResumesWithOtherArithmetic(t *testing.T) {
	paths := simd.Paths()
	if len(paths) < 2 {
		t.Skip("the processor has one instruction set")
	}
	defer simd.UsePath(simd.CurrentPath())
	dir, sol, notes := t.TempDir(), new(Solution), ""
	s := newSystem(func(s *System) {
		s.Solver, s.Tol, s.Residual = Fourier, 1e-15, StoredResidual
		s.Fingerprint = func() (sum [32]byte, err error) { return sum, nil }
		s.Checkpoint = &Checkpoint{Dir: dir, EveryIter: 1, Note: func(note string) { notes += note }}
	})
	simd.UsePath(paths[0])
	want := arithmetic()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the status of the solution is taken from the inner context
	if _, err := Run(checkpointContext{ctx, dir, sol, 1}, s, nil, sol); err == nil {
		t.Fatal("not interrupted")
	}
	simd.UsePath(paths[len(paths)-1])
	want += ", then " + arithmetic()
	s.Checkpoint.Resume, sol = true, new(Solution)
	testkit.Must(Run(t.Context(), s, nil, sol))
	testkit.Equal(t, sol.MixedArithmetic, want)
	testkit.Contains(t, notes, want)
}
