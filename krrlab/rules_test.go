package krrlab

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/checkpoint"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/results"
	"github.com/krrlab/lab/krrlab/stage"
)

// TestDecode: the length of the progress, it, and the state; a byte less than these is cut off, and answers are given
// for the legs before the one that is resumed.
func TestDecode(t *testing.T) {
	var head bytes.Buffer
	if err := gob.NewEncoder(&head).Encode(progress{Run: 1, Answers: [][]float64{{1, 2, 3, 4, 5, 6}}}); err != nil {
		t.Fatal(err)
	}
	whole := append(binary.LittleEndian.AppendUint64(nil, uint64(head.Len())), head.Bytes()...)
	l := newLab(t, ranksProblem(2), Config{Kernel: gauss, Lambda: 0.1, Precond: Features{S: 1}, Repeat: 2})
	for _, state := range []string{"state", ""} {
		k := &checkpoints{lab: l}
		if err := k.decode(append(slices.Clone(whole), state...)); err != nil || string(k.state) != state || k.from != 1 || k.now.Run != 1 {
			t.Errorf("state %q: %+v, %v", state, k, err)
		}
		if a := k.answer(0); a == nil || a.At(1, 2) != 6 || k.answer(1) != nil || k.answer(2) != nil || k.refining() {
			t.Errorf("answers of %+v", k.now)
		}
	}
	for size := range len(whole) {
		if err := (&checkpoints{lab: l}).decode(whole[:size]); err == nil || !strings.Contains(err.Error(), "is cut off") {
			t.Errorf("%d of %d bytes: %v", size, len(whole), err)
		}
	}
	var none *checkpoints
	if none.answer(0) != nil || none.refining() || (&checkpoints{lab: l, from: 2}).refining() || !(&checkpoints{lab: l, from: 2, state: []byte{1}}).refining() {
		t.Error("what is refined")
	}
}

// TestVerifyOverflow: a model of finite coefficients and kernel values whose residual overflows float64 is an error,
// not one with a residual of 0 or labels that are proved.
func TestVerifyOverflow(t *testing.T) {
	train := classes(points.NewDense(4, 1, []float64{1e75, -2e75, 3e75, -1e75}), 2)
	test := classes(points.NewDense(3, 1, []float64{1e-75, 2e-75, -1e-75}), 2)
	for _, c := range [][]float64{{1e10, 1e10, 1e10, 1e10}, {1e160, -1e160, 1e160, 1e160}} { // to ∞, and to ∞ − ∞
		m := &model.Model{Kernel: kernel.Polynomial{Gamma: 1, Coef0: 1, Degree: 2}, Lambda: 0.1, X: train.X, C: mat.NewDense(4, 1, c), Labels: train.Labels}
		if _, err := Verify(t.Context(), m, VerifyOptions{Train: train, Test: test}); err == nil || !strings.Contains(err.Error(), "overflows float64") {
			t.Errorf("%v: %v", c, err)
		}
		v, err := Verify(t.Context(), m, VerifyOptions{Test: test}) // the targets are not to be recovered
		if err != nil || v.Targets != "unknown" || v.Residual.Known() || v.Open.Known() {
			t.Errorf("%v without targets: %+v, %v", c, v, err)
		}
	}
}

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

// TestQualityEnds: the defaults, the ends of what an option may be, and what lies next to them.
func TestQualityEnds(t *testing.T) {
	var o QualityOptions
	if err := checkQuality(&o); err != nil || o.Confidence != 0.95 || o.Width != 0.2 || o.Steps != 300 || o.ExactBelow != 2000 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, c := range []struct {
		o  QualityOptions
		ok bool
	}{
		{QualityOptions{Confidence: 0.5, Width: 1e-300, Steps: 1, ExactBelow: -1}, true}, {QualityOptions{Confidence: 1}, false},
		{QualityOptions{Width: -1}, false}, {QualityOptions{Width: math.Inf(1)}, false}, {QualityOptions{Width: math.NaN()}, false}, {QualityOptions{Steps: -1}, false},
	} {
		was := c.o
		if err := checkQuality(&c.o); (err == nil) != c.ok || c.ok && c.o != was {
			t.Errorf("%+v: %+v, %v", was, c.o, err)
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
	a, err := gram.New(t.Context(), gauss, l.train.X, 0.1, &gram.Options{Storage: gram.Float64})
	if err != nil {
		t.Fatal(err)
	}
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

// TestVerifyEvents: each part of a verification tells how far it is.
func TestVerifyEvents(t *testing.T) {
	train := classes(kinds(300, 3, 1)["float64"], 2)
	sol := mustSolve(t, train, Config{Kernel: gauss, Lambda: 0.1, Tol: 1e-2})
	last := map[stage.Name]int{}
	_, err := Verify(t.Context(), sol.Model, VerifyOptions{Train: train, Test: train, Passes: 1, Monitor: func(e Event) error {
		if e.Total != 300 || e.Done < 1 || e.Done > e.Total || e.Remaining != -1 {
			t.Errorf("%+v", e)
		}
		last[e.Stage] = max(last[e.Stage], e.Done)
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, stage := range []stage.Name{stage.Kernel, stage.Residual, stage.Lanczos, stage.Predict} {
		if last[stage] < 128 {
			t.Errorf("%s: %d of 300 rows at last", stage, last[stage])
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
		s, err := checkpoint.Open(dir, l.owner())
		if err != nil {
			t.Fatal(err)
		}
		if empty, err := s.Empty(); err != nil || empty == c.kept {
			t.Errorf("%+v: empty %v, %v", c, empty, err)
		}
		s.Close()
	}
}

// TestDirectMemory: the direct solver has what the points leave, be it nothing.
func TestDirectMemory(t *testing.T) {
	train := ranksProblem(40)
	for _, memory := range []int64{1, points.Held(train.X), points.Held(train.X) + 1} {
		l, err := New(train, Config{Kernel: gauss, Lambda: 0.1, Solver: Direct, Memory: memory})
		if err == nil {
			_, err = l.Solve(t.Context())
		}
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("in %d bytes: %v", memory, err)
		}
	}
	for _, o := range []VerifyOptions{{Memory: -1}, {Passes: -1}} {
		sol := mustSolve(t, train, Config{Kernel: gauss, Lambda: 0.1, Solver: Direct})
		if _, err := Verify(t.Context(), sol.Model, o); err == nil || !strings.Contains(err.Error(), "want positive numbers") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
