package solve

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// numPoints is the number of points of newSystem. It is so small that the solve checks every row of K in float64, so
// that estimates from the checked rows are exact up to rounding.
const numPoints = 150

// newSystem returns a system with two random right-hand sides, the second scaled by 1,000, after applying change.
func newSystem(change func(*System)) *System {
	s := &System{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.01, MinEigenvalue: 0.01, ProvedSemidefinite: true,
		Solver: PCG, Tol: 1e-6,
		MaxIter: 500, Policy: DefaultPolicy, Comm: comm.Alone(), Monitor: func(stage.Event) error { return nil },
		Train: &datasets.Dataset{X: points.NewDense(numPoints, 2, testkit.Normals(1, 1, 2*numPoints))},
		Y:     mat.NewDense(numPoints, 2, testkit.Normals(1, 2, 2*numPoints))}
	for i := range numPoints {
		s.Y.Set(i, 1, 1000*s.Y.At(i, 1))
	}
	change(s)
	return s
}

// buildMatrices is a MatrixBuilder. It makes K with the storage error that the system requires, and M = FFᵀ+λI from 20
// landmarks unless the solver is CG.
func (s *System) buildMatrices(ctx context.Context, resumed *gram.Choice, _ *Solution) (matrices Matrices, err error) {
	matrices.LambdaP = s.Lambda
	options := &gram.Options{Storage: s.Storage, SameAs: resumed, Accuracy: s.Lambda / 10,
		PreferredAccuracy: s.StorageErrorBound()}
	if matrices.A, err = gram.New(ctx, s.Kernel, s.Train.X, s.Lambda, options); err != nil || s.Solver == CG {
		return matrices, err
	}
	if matrices.Landmarks, err = lowrank.Nystrom(ctx, matrices.A, 20, rng.New(1), nil); err == nil {
		matrices.M, err = precond.New(ctx, matrices.Landmarks.F, s.Lambda, nil)
	}
	return matrices, err
}

// checkClaims compares the residuals and error bounds in sol with those of the coefficients c, computed by dense linear
// algebra in float64. It also checks the history, the seconds and the figure.
func (s *System) checkClaims(t testing.TB, sol *Solution, c *mat.Dense) {
	t.Helper()
	var cholesky mat.Cholesky
	var r, e mat.Dense // residuals Y − Ac and errors A⁻¹Y − c
	a := testkit.AddRidge(testkit.KernelMatrix(s.Kernel, s.Train.X), s.Lambda)
	if !cholesky.Factorize(a) || cholesky.SolveTo(&e, s.Y) != nil {
		t.Fatal("K+λI is not positive definite")
	}
	r.Mul(a, c)
	r.Sub(s.Y, &r)
	e.Sub(&e, c)
	for j, reported := range sol.ColumnTrueResiduals {
		residual := mat.Norm(r.ColView(j), 2) / mat.Norm(s.Y.ColView(j), 2)
		tolerance := 1e-12 // rounding of the dense computation
		if sol.ColumnRoundings != nil {
			tolerance += sol.ColumnRoundings[j]
		}
		if sol.ColumnStorageResiduals != nil {
			tolerance += sol.ColumnStorageResiduals[j]
			testkit.Near(t, sol.ColumnSampledResiduals[j], residual, 1e-11, "sampled residual", j)
		}
		testkit.Near(t, reported, residual, tolerance, "true residual", j)
		if sol.Converged() && residual > s.Tol {
			t.Errorf("column %d is called converged with a residual of %g", j, residual)
		}
		if bounds := sol.Error; bounds != nil {
			errorNorm := math.Sqrt(mat.Dot(e.ColView(j), r.ColView(j))) // ‖e_j‖_A, since Ae = r
			if errorNorm > bounds.Bounds[j] || bounds.Certain != nil && errorNorm > bounds.Certain[j] {
				t.Errorf("column %d: the A-norm of the error is %g, above its bound in %+v", j, errorNorm, bounds)
			}
		}
	}
	// A run has one row more than iterations, and a refinement is a second run.
	if runs := len(sol.History) - sol.Iterations; runs != 1 && runs != 2 && s.Solver != Direct {
		t.Errorf("%d rows of history after %d iterations", len(sol.History), sol.Iterations)
	}
	figure := sol.Plot()
	if err := figure.Validate(); err != nil || len(figure.Series[0].X) != max(1, len(sol.History)) ||
		!strings.Contains(sol.HTML(), "the numbers") {
		t.Errorf("a figure of %d points for %d rows of history, error %v", len(figure.Series[0].X), len(sol.History),
			err)
	}
	for k, row := range sol.History {
		if row.Iteration != k || row.Residual != max(row.Columns[0], row.Columns[1]) {
			t.Errorf("row %d of the history: %+v", k, row)
		}
	}
	if seconds := sol.Seconds; s.Solver != Direct && !(seconds.Solve > 0 && seconds.Residual > 0) {
		t.Errorf("seconds %+v, want some for the solve and for the residual", seconds)
	}
}

// TestRun compares answers with dense linear algebra in float64, for each solver and each way to compute the true
// residual. Every residual, estimate and bound of a Solution must hold for the returned coefficients.
func TestRun(t *testing.T) {
	stored32 := func(s *System) { s.Residual, s.Storage = StoredResidual, gram.Float32 }
	fixed16 := func(s *System) { s.Policy.ExactWork, s.Storage = -1, gram.Fixed16 }
	for name, test := range map[string]struct {
		change          func(*System)
		wantStatus      pcg.Status
		wantKind        string // ResidualKind
		wantSampledRows int    // number of checked rows (StoredResidual)
		wantCriterion   string // criterion that the answer meets
	}{
		"pcg": {func(s *System) {}, pcg.Converged, ResidualInStored64, 0, "residual"},
		"cg":  {func(s *System) { s.Solver = CG }, pcg.Converged, ResidualInStored64, 0, "residual"},
		"block": {func(s *System) { s.Solver = BlockPCG }, pcg.Converged, ResidualInStored64, 0,
			"residual"},
		"stored": {func(s *System) { stored32(s); s.Tol = 1e-3 }, pcg.Converged, ResidualInStored, numPoints,
			"residual"},
		"stored, refined": {func(s *System) { stored32(s); s.Tol = 1e-4 }, pcg.Converged, ResidualInStored, numPoints,
			"residual"},
		"stored, too coarse": {stored32, pcg.Inaccurate, ResidualInStored, numPoints, ""},
		"exact": {func(s *System) { stored32(s); s.Residual = ExactResidual }, pcg.Converged,
			ResidualInFloat64, 0, "residual"},
		"refined": {func(s *System) { s.Policy.ExactWork, s.Storage, s.Tol = -1, gram.Float32, 1e-8 },
			pcg.Converged, ResidualInFloat64, 0, "residual"},
		"refinement not allowed": {func(s *System) {
			s.Policy.ExactWork, s.Policy.RefineWork, s.Storage, s.Tol = -1, -1, gram.Float32, 1e-8
		},
			pcg.Inaccurate, ResidualInStored, numPoints, ""},
		"fixed16": {fixed16, pcg.Converged, recomputedIn(kernel.Float64), numPoints, "residual"},
		"fixed16, no residual in float64": {func(s *System) { fixed16(s); s.Policy.RefineWork, s.Tol = -1, 1e-3 },
			pcg.Converged, recomputedIn(kernel.Float32), numPoints, "residual"},
		"fixed16, not met": {func(s *System) {
			fixed16(s)
			s.Policy.RefineWork, s.Policy.RecomputedTolFractions, s.Tol = -1, [2]float64{1e-6, 1e-6}, 1e-9
		}, pcg.Inaccurate, recomputedIn(kernel.Float32), numPoints, ""},
		"fixed16, met by a residual above the target of the iteration": {func(s *System) {
			fixed16(s)
			s.Policy.RefineWork, s.Policy.RecomputedTolFractions, s.Tol = -1, [2]float64{1e-9, 1e-9}, 1e-4
		}, pcg.Converged, recomputedIn(kernel.Float32), numPoints, "residual"},
		"points stored in bytes": {func(s *System) {
			fixed16(s)
			s.Policy.RefineWork, s.Tol = -1, 1e-9
			x := points.NewBytes(numPoints, 2, 0.1, nil)
			for i := range x.Data {
				x.Data[i] = uint8(i * i % 31)
			}
			s.Train = &datasets.Dataset{X: x}
		}, pcg.Converged, ResidualInFloat64, 0, "residual"},
		"anorm": {func(s *System) { s.Stop, s.Tol = bound.Stop{Rule: bound.ByANorm}, 1e-2 }, pcg.Stopped,
			ResidualInFloat64, 0, "anorm"},
		"labels": {func(s *System) { s.Stop = bound.Stop{Rule: bound.ByLabels, MaxUndecided: 0.05} }, pcg.Stopped,
			ResidualInStored64, 0, "labels"},
		"labels, stored in 16 bits": {func(s *System) {
			s.Stop, s.Storage, s.Tol = bound.Stop{Rule: bound.ByLabels, MaxUndecided: 0.1}, gram.Fixed16, 1e-9
		}, pcg.Converged, ResidualInFloat64, 0, "residual"},
		"few iterations": {func(s *System) { s.MaxIter = 3 }, pcg.MaxIterations, ResidualInStored64, 0, ""},
		"user-defined kernel": {func(s *System) { s.Kernel = kernel.Func{F: s.Kernel.Eval} }, pcg.Converged,
			ResidualInStored64, 0, "residual"},
		"direct": {func(s *System) { s.Solver = Direct }, pcg.Converged, ResidualInFloat64, 0, "residual"},
		"direct, again in float64": {func(s *System) {
			s.Solver, s.Storage, s.Lambda, s.RetryFloat64 = Direct, gram.Float32, 1e-6, true
		}, pcg.Undecided, ResidualInFloat64, 0, "residual"},
	} {
		t.Run(name, func(t *testing.T) {
			s, sol := newSystem(test.change), NewSolution(stage.Header{})
			sol.Tol = s.Tol
			var lastEvent stage.Event
			s.Monitor = func(event stage.Event) error { lastEvent = event; return nil }
			c := testkit.Must(Run(t.Context(), s, s.buildMatrices, sol))
			if lastRow := sol.History[len(sol.History)-1]; lastEvent.Stage == stage.Solve &&
				(lastEvent.Residual != lastRow.Residual || lastEvent.Bound != float64(lastRow.Bound)) {
				t.Errorf("the last event is %v, the last row of the history %+v", lastEvent, lastRow)
			}
			s.checkClaims(t, sol, c)
			if sol.Status != test.wantStatus || sol.ResidualKind != test.wantKind ||
				sol.SampledRows != test.wantSampledRows || sol.Criterion != test.wantCriterion {
				t.Errorf("%v, %s, %d rows, %q met, want %v, %s, %d, %q; true residuals %v, storage %v", sol.Status,
					sol.ResidualKind, sol.SampledRows, sol.Criterion, test.wantStatus, test.wantKind,
					test.wantSampledRows, test.wantCriterion,
					sol.ColumnTrueResiduals, sol.ColumnStorageResiduals)
			}
		})
	}
}

// TestEarlyEnd ends solves after five iterations: by a Monitor that returns pcg.ErrStop or another error, and by the
// context. The last iterate must be returned, together with the error unless that is pcg.ErrStop. If the context is
// canceled, only the recursive residual of the iterate is known.
func TestEarlyEnd(t *testing.T) {
	failure := errors.New("failure")
	for name, change := range map[string]func(*System){
		"pcg":    func(*System) {},
		"block":  func(s *System) { s.Solver = BlockPCG },
		"stored": func(s *System) { s.Residual, s.Storage = StoredResidual, gram.Float32 },
	} {
		for cause, wantErr := range map[error]error{pcg.ErrStop: nil, failure: failure,
			context.Canceled: context.Canceled} {
			ctx, cancel := context.WithCancel(t.Context())
			s, sol := newSystem(change), NewSolution(stage.Header{Tol: 1e-6})
			s.Monitor = func(e stage.Event) error {
				switch {
				case e.Iteration != 5:
					return nil
				case cause == context.Canceled:
					cancel()
					return nil
				}
				return cause
			}
			c, err := Run(ctx, s, s.buildMatrices, sol)
			if cancel(); err != wantErr || sol.Iterations != 5 || sol.Criterion != "" || sol.CriterionMet() {
				t.Fatalf("%s, %v: %v after %d iterations", name, cause, err, sol.Iterations)
			}
			if cause != context.Canceled {
				testkit.Equal(t, sol.Status, pcg.Stopped, name, cause)
				testkit.Equal(t, sol.SampledRows > 0, name == "stored", name, cause)
				s.checkClaims(t, sol, c)
				continue
			}
			if sol.Status != pcg.Canceled || sol.ResidualKind != ResidualRecursive || sol.TrueResidual.Known() {
				t.Errorf("%s, canceled: %v, %s", name, sol.Status, sol.ResidualKind)
			}
			// The recursive residuals differ from the true ones by more than rounding, but by at most 1e-4.
			sol.ColumnTrueResiduals, sol.ColumnRoundings = sol.History[5].Columns, []float64{1e-4, 1e-4}
			sol.Seconds.Residual = 1
			s.checkClaims(t, sol, c)
		}
	}
}
