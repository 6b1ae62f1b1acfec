package krrlab

import (
	"math"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/checkpoint"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/results"
)

// TestSettleStatus: what the rows checked take back, and what rounding alone hides.
func TestSettleStatus(t *testing.T) {
	one := func(v float64) []float64 { return []float64{v} }
	for _, n := range []int{bound.RowsChecked, bound.RowsChecked + 1} {
		l := newLab(t, classes(points.NewDense(n, 2, nil), 2), Config{Kernel: gauss, Lambda: 0.1, Tol: 1e-3})
		root := math.Sqrt(float64(n))
		for _, c := range []struct {
			sol  results.Solution
			want pcg.Status
		}{
			{results.Solution{Status: pcg.Converged, TrueResiduals: one(0)}, pcg.Converged}, // no rows were checked
			{results.Solution{Status: pcg.Converged, TrueResiduals: one(0), StorageResiduals: one(0.8e-3), SampledResiduals: one(1)}, pcg.Converged},
			{results.Solution{Status: pcg.Converged, TrueResiduals: one(0), StorageResiduals: one(1.1e-3), SampledResiduals: one(1)}, pcg.Inaccurate},
			{results.Solution{TrueResiduals: one(0), StorageResiduals: one(0), SampledResiduals: one(0)}, pcg.Active},
			{results.Solution{Status: pcg.Inaccurate, TrueResiduals: one(1e-5), Roundings: one(8e-3)}, pcg.Undecided},
			{results.Solution{Status: pcg.Inaccurate, TrueResiduals: []float64{1e-5, 0}, Roundings: []float64{2e-3, 0.9e-3 * root}}, pcg.Undecided},
			{results.Solution{Status: pcg.Inaccurate, TrueResiduals: []float64{1e-5, 0}, Roundings: []float64{2e-3, 1.1e-3 * root}}, pcg.Inaccurate},
			{results.Solution{Status: pcg.Inaccurate, TrueResiduals: one(1.1e-3), Roundings: one(1e-9)}, pcg.Inaccurate},
			{results.Solution{Status: pcg.Inaccurate, TrueResiduals: one(math.NaN()), Roundings: one(1e-9)}, pcg.Inaccurate},
			{results.Solution{Status: pcg.Inaccurate, TrueResiduals: one(1e-5)}, pcg.Inaccurate}, // no rounding is known
			{results.Solution{Status: pcg.Stagnated, TrueResiduals: one(1e-5), Roundings: one(2e-3)}, pcg.Stagnated},
		} {
			sol := Solution{Solution: c.sol}
			if (&solve{Lab: l, sol: &sol}).settleStatus(); sol.Status != c.want {
				t.Errorf("%+v: %v", c.sol, sol.Status)
			}
		}
	}
}

// TestFingerprintOf: sparse points by their entries, of more numbers than are hashed at a time; and none are left out.
func TestFingerprintOf(t *testing.T) {
	of := func(x points.Points) [32]byte {
		return (&datasets.Dataset{Task: datasets.Regression, X: x, Target: []float64{1, 2}}).Fingerprint()
	}
	const d = 5000
	dense, sparse := points.NewDense(2, d, nil), &points.CSR{N: 2, D: d, Ptr: []int{0, d, 2 * d}}
	for i := range 2 * d {
		dense.Data[i] = float64(i)
		sparse.Col, sparse.Val = append(sparse.Col, int32(i%d)), append(sparse.Val, float64(i))
	}
	seen := map[[32]byte]bool{of(dense): true, of(sparse): true}
	for _, i := range []int{0, 1, d - 1, d, 2*d - 1} {
		x, s := points.NewDense(2, d, slices.Clone(dense.Data)), *sparse
		x.Data[i]++
		s.Val = slices.Clone(s.Val)
		s.Val[i]++
		seen[of(x)], seen[of(&s)] = true, true
	}
	moved, shorter := *sparse, *sparse
	moved.Ptr, shorter.Ptr = []int{0, d - 1, 2 * d}, []int{0, d, 2*d - 1}
	seen[of(&moved)], seen[of(&shorter)] = true, true
	if len(seen) != 14 {
		t.Errorf("%d fingerprints of 14 data sets", len(seen))
	}
	if view := (&points.CSR{N: 3, D: d, Ptr: []int{0, 0, d, 2 * d}, Col: sparse.Col, Val: sparse.Val}).Slice(1, 3); of(view) != of(sparse) {
		t.Error("a view of the same rows has another")
	}
}

// TestMedianConverged: the median of several answers has converged if its residual is within τ with its rounding.
func TestMedianConverged(t *testing.T) {
	l := newLab(t, ranksProblem(40), Config{Kernel: gauss, Lambda: 0.1, Precond: Features{S: 20}, Tol: 1e-3, Seed: 1, Storage: gram.Float64, Exact: ExactResidual, Solver: PCG})
	found := solveLab(t, l)
	a := testkit.Must(gram.New(t.Context(), gauss, l.train.X, 0.1, &gram.Options{Storage: gram.Float64}))
	answers := []*mat.Dense{found.Model.C, found.Model.C}
	run := func(status pcg.Status) (*Solution, error) {
		s := &solve{Lab: l, sol: new(Solution), a: a}
		_, err := s.median(t.Context(), answers, status)
		return s.sol, err
	}
	sol, err := run(pcg.MaxIterations)
	if err != nil || len(sol.Roundings) != 3 {
		t.Fatalf("%+v, %v", sol, err)
	}
	least := 0.0 // τ
	for j, v := range sol.TrueResiduals {
		least = max(least, v+sol.Roundings[j])
	}
	for tol, want := range map[float64]pcg.Status{least: pcg.Converged, least - 1e-2*slices.Min(sol.Roundings): pcg.MaxIterations, least / 2: pcg.MaxIterations} {
		l.cfg.Tol = tol
		if sol, err := run(pcg.MaxIterations); err != nil || sol.Status != want {
			t.Errorf("τ = %g: %v, want %v, %v", tol, sol.Status, want, err)
		}
	}
}

// TestKeptWhenDue: states are kept after so many iterations or so much time, and not before.
func TestKeptWhenDue(t *testing.T) {
	for _, c := range []struct {
		every time.Duration
		iter  int
		kept  bool
	}{{time.Hour, 0, false}, {time.Hour, 1 << 30, false}, {0, 1 << 30, false}, {0, 1, true}, {time.Hour, 3, true}, {1, 0, true}} {
		dir := t.TempDir()
		cfg := Config{Kernel: gauss, Lambda: 0.1, Tol: 1e-6, Solver: CG, Precond: None{}, Checkpoint: &Checkpoint{Dir: dir, Every: c.every, EveryIter: c.iter}}
		l := newLab(t, ranksProblem(40), cfg)
		if sol, err := l.Solve(t.Context()); err != nil || sol.Iterations < 5 {
			t.Fatalf("%v, %v", sol, err)
		}
		s := testkit.Must(checkpoint.Open(dir, l.owner()))
		if empty, err := s.Empty(); err != nil || empty == c.kept {
			t.Errorf("%+v: empty %v, %v", c, empty, err)
		}
		s.Close()
	}
}
