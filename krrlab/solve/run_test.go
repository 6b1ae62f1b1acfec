package solve

import (
	"encoding/hex"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/checkpoint"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// TestSettleStatus: what the rows checked take back, and what rounding alone hides.
func TestSettleStatus(t *testing.T) {
	one := func(v float64) []float64 { return []float64{v} }
	for _, n := range []int{bound.RowsChecked, bound.RowsChecked + 1} {
		task := &System{Train: &datasets.Dataset{X: points.NewDense(n, 2, nil)}, Tol: 1e-3}
		root := math.Sqrt(float64(n))
		for _, c := range []struct {
			sol  Solution
			want pcg.Status
		}{
			{Solution{Status: pcg.Converged, TrueResiduals: one(0)}, pcg.Converged}, // no rows were checked
			{Solution{Status: pcg.Converged, TrueResiduals: one(0), StorageResiduals: one(0.8e-3),
				SampledResiduals: one(1)}, pcg.Converged},
			{Solution{Status: pcg.Converged, TrueResiduals: one(0), StorageResiduals: one(1.1e-3),
				SampledResiduals: one(1)}, pcg.Inaccurate},
			{Solution{TrueResiduals: one(0), StorageResiduals: one(0), SampledResiduals: one(0)}, pcg.Active},
			{Solution{Status: pcg.Inaccurate, TrueResiduals: one(1e-5), Roundings: one(8e-3)}, pcg.Undecided},
			{Solution{Status: pcg.Inaccurate, TrueResiduals: []float64{1e-5, 0},
				Roundings: []float64{2e-3, 0.9e-3 * root}}, pcg.Undecided},
			{Solution{Status: pcg.Inaccurate, TrueResiduals: []float64{1e-5, 0},
				Roundings: []float64{2e-3, 1.1e-3 * root}}, pcg.Inaccurate},
			{Solution{Status: pcg.Inaccurate, TrueResiduals: one(1.1e-3), Roundings: one(1e-9)}, pcg.Inaccurate},
			{Solution{Status: pcg.Inaccurate, TrueResiduals: one(math.NaN()), Roundings: one(1e-9)}, pcg.Inaccurate},
			{Solution{Status: pcg.Inaccurate, TrueResiduals: one(1e-5)}, pcg.Inaccurate}, // no rounding is known
			{Solution{Status: pcg.Stagnated, TrueResiduals: one(1e-5), Roundings: one(2e-3)}, pcg.Stagnated},
		} {
			sol := c.sol
			if (&run{System: task, sol: &sol}).settleStatus(); sol.Status != c.want {
				t.Errorf("%+v: %v", c.sol, sol.Status)
			}
		}
	}
}

// TestMedianConverged: the median of several answers has converged if its residual is within τ with its rounding.
func TestMedianConverged(t *testing.T) {
	x, y := points.NewDense(40, 3, nil), mat.NewDense(40, 3, nil)
	rng.New(1).Normals(x.Data, 0)
	rng.New(2).Normals(y.RawMatrix().Data, 0)
	k := kernel.Gaussian{Sigma: 1.5}
	a := testkit.Must(gram.New(t.Context(), k, x, 0.1, &gram.Options{Storage: gram.Float64}))
	found := testkit.Must(pcg.Solve(t.Context(), a, nil, y, &pcg.Options{Tol: 1e-3}))
	answers := []*mat.Dense{found.X, found.X}
	task := &System{Kernel: k, Train: &datasets.Dataset{X: x}, Y: y, Lambda: 0.1, Tol: 1e-3, Residual: ExactResidual,
		Policy: Default, Comm: comm.Alone()}
	median := func(status pcg.Status) (*Solution, error) {
		s := &run{System: task, Matrices: Matrices{A: a}, sol: new(Solution)}
		_, err := s.median(t.Context(), answers, status)
		return s.sol, err
	}
	sol, err := median(pcg.MaxIterations)
	if err != nil || len(sol.Roundings) != 3 {
		t.Fatalf("%+v, %v", sol, err)
	}
	least := 0.0 // τ
	for j, v := range sol.TrueResiduals {
		least = max(least, v+sol.Roundings[j])
	}
	for tol, want := range map[float64]pcg.Status{least: pcg.Converged,
		least - 1e-2*slices.Min(sol.Roundings): pcg.MaxIterations, least / 2: pcg.MaxIterations} {
		task.Tol = tol
		if sol, err := median(pcg.MaxIterations); err != nil || sol.Status != want {
			t.Errorf("τ = %g: %v, want %v, %v", tol, sol.Status, want, err)
		}
	}
}

// resumed opens the checkpoints of a folder that has this one.
func resumed(t *testing.T, state []byte) (*checkpoints, *gram.Choice, *Solution, error) {
	t.Helper()
	dir, owner := t.TempDir(), [32]byte{1}
	task := &System{Checkpoint: &Checkpoint{Dir: dir, Resume: true},
		Owner: func() ([32]byte, error) { return owner, nil }, Comm: comm.Alone()}
	s := testkit.Must(checkpoint.Open(dir, owner))
	testkit.OK(t, s.Save(state))
	s.Close()
	sol := new(Solution)
	k, was, err := openCheckpoints(t.Context(), task, sol)
	k.close()
	return k, was, sol, err
}

// TestCheckpointGolden: a checkpoint that version 0.3.0 wrote, in the second of two repetitions, is read in all its
// parts. krrlab's test of that name resumes it.
func TestCheckpointGolden(t *testing.T) {
	owner := testkit.Must(hex.DecodeString("be1aafc3b86c02861af31b5375dcd361351229c7b94530040913e56df2d42a4e"))
	state := testkit.Must(checkpoint.Read("../testdata/checkpoint/checkpoint-00000015.krrc", [32]byte(owner)))
	k, was, _, err := resumed(t, state)
	if err != nil {
		t.Fatal(err)
	}
	now := k.now
	if now.Run != 1 || k.from != 1 || len(now.Answers) != 1 || len(now.Answers[0]) != 40 || now.Iterations != 15 ||
		len(now.History) != 16 || len(k.state) != 1718 {
		t.Errorf("run %d of answers %d, %d iterations, %d rows of history, %d bytes of state", now.Run,
			len(now.Answers), now.Iterations, len(now.History), len(k.state))
	}
	h := now.History[15]
	if h.Iteration != 15 || len(h.Columns) != 1 || h.Residual != h.Columns[0] || !(h.Residual <= 1e-6) ||
		!(h.Bound > 0 && h.Bound < 1) || now.History[0].Residual != 1 {
		t.Errorf("history begins with %+v, ends with %+v", now.History[0], h)
	}
	if want := (gram.Choice{Storage: gram.Float64, Arithmetic: kernel.Float64}); was == nil || !was.Same(want) {
		t.Errorf("K was %+v, want %+v", was, want)
	}
}

// TestWithin: stored residuals with what the rows say they are off by, or those of the rows, either with its sampling
// error.
func TestWithin(t *testing.T) {
	const tau = 1e-3
	for _, c := range []struct {
		n                     int
		stored, diff, sampled float64 // in units of τ
		want                  bool
	}{
		{1000, 0.5, 0.42, 9, true}, {1000, 0.5, 0.45, 9, false}, {1000, 0.99, 9, 0.86, true},
		{1000, 0.99, 9, 0.88, false},
		{1000, 0.5, math.NaN(), math.NaN(), false}, {200, 0.5, 0.49, 9, true}, {200, 0.5, 0.51, 9, false},
	} {
		s := &run{System: &System{Train: &datasets.Dataset{X: points.NewDense(c.n, 1, nil)}, Tol: tau}, sol: &Solution{
			TrueResiduals: []float64{0, c.stored * tau}, StorageResiduals: []float64{0, c.diff * tau},
			SampledResiduals: []float64{0, c.sampled * tau}}}
		if s.within() != c.want {
			t.Errorf("%+v: %v", c, !c.want)
		}
	}
}
