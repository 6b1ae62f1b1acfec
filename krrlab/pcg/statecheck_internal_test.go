package pcg

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// valid returns a state of Solve, three iterations of four columns, and the solver that it is of: column 0 goes
// on, 1 is zero, 2 has broken down in the second, 3 goes on, restarted after the first.
func valid() (*saved, *solver) {
	s := &solver{n: 5, t: 4, ynorm: []float64{1, 0, 2, 3}}
	nan := math.NaN()
	v := &saved{
		N: 5, T: 4, K: 2, Cols: []int{0, 3}, Rho: []float64{1, 2, 0, 0},
		Target: []float64{0, 0, 1e-3, 1e-3}, Before: []float64{0, 0, 0, 0.5}, RelRes: []float64{0.1, 0, nan, 0},
		Still: []int{3, 0, 0, 0}, Iterations: 3, Restarts: 1, RestartsAt: []int{1}, Kept: true,
		Columns: []Column{{Iterations: 3}, {Status: Converged}, {Status: Breakdown, Iterations: 2}, {Iterations: 3}},
	}
	for i, rows := range []int{4, 3, 3, 3} {
		last := -0.5
		if i == 0 || i == 3 {
			last = 0
		}
		for range rows {
			v.History[i] = append(v.History[i], 1, 0, nan, last)
		}
	}
	return v, s
}

// TestStateParts: a state of Solve is taken as it is and with each number at the end of its range, and refused
// with any beyond it.
func TestStateParts(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		what string
		fits bool
		set  func(v *saved)
	}{
		{"nothing", true, func(*saved) {}},
		{"other n", false, func(v *saved) { v.N++ }},
		{"other t", false, func(v *saved) { v.T++ }},
		{"of SolveBlock", false, func(v *saved) { v.Block = true }},
		{"no width", false, func(v *saved) { v.K = 0 }},
		{"too wide", false, func(v *saved) { v.K = 5 }},
		{"wider than active", false, func(v *saved) { v.K = 3 }},
		{"C", false, func(v *saved) { v.C = []float64{1} }},
		{"S", false, func(v *saved) { v.S = []float64{1} }},
		{"widths", false, func(v *saved) { v.Width = []int{1} }},

		{"less than no iterations", false, func(v *saved) { v.Iterations = -1 }},
		{"no iterations", true, func(v *saved) {
			*v = saved{N: 5, T: 4, K: 3, Cols: []int{0, 2, 3}, Rho: []float64{1, 1, 1, 0}, Target: v.Target, Before: make([]float64, 4), RelRes: make([]float64, 4),
				Still: make([]int, 4), Columns: []Column{{}, {Status: Converged}, {}, {}}, History: [5][]float64{{1, 0, 1, 1}}}
		}},
		{"less than no restarts", false, func(v *saved) { v.Restarts = -1 }},
		{"no restart", true, func(v *saved) { v.Restarts, v.RestartsAt, v.Before[3] = 0, nil, 0 }},
		{"as many restarts as may be", true, func(v *saved) { v.Restarts, v.RestartsAt = maxRestarts, make([]int, maxRestarts) }},
		{"one restart too many", false, func(v *saved) { v.Restarts, v.RestartsAt = maxRestarts+1, make([]int, maxRestarts+1) }},
		{"restarts without a place", false, func(v *saved) { v.Restarts++ }},
		{"restarts in disorder", false, func(v *saved) { v.Restarts, v.RestartsAt = 3, []int{0, 2, 1} }},
		{"restart before the first", true, func(v *saved) { v.RestartsAt[0] = 0 }},
		{"restart before that", false, func(v *saved) { v.RestartsAt[0] = -1 }},
		{"restart after the last", true, func(v *saved) { v.RestartsAt[0] = 3 }},
		{"restart after that", false, func(v *saved) { v.RestartsAt[0] = 4 }},
		{"the later restart after the last", false, func(v *saved) { v.Restarts, v.RestartsAt = 2, []int{0, 4} }},
		{"a residual less", false, func(v *saved) { v.History[0] = v.History[0][:12] }},
		{"half a row of residuals", false, func(v *saved) { v.History[0] = append(v.History[0], 1) }},
		{"an α less", false, func(v *saved) { v.History[1] = v.History[1][:8] }},
		{"a β more", false, func(v *saved) { v.History[2] = append(v.History[2], 0, 0, 0, 0) }},
		{"a residual below 0", false, func(v *saved) { v.History[0][5] = -1e-300 }},
		{"an infinite residual", false, func(v *saved) { v.History[0][4] = inf }},
		{"an infinite residual of what broke down", true, func(v *saved) { v.History[0][6] = inf }},
		{"α not a number", false, func(v *saved) { v.History[1][3] = nan }},
		{"a decrease less", false, func(v *saved) { v.History[3] = v.History[3][:8] }},
		{"a decrease below 0", false, func(v *saved) { v.History[3][0] = -1e-300 }},
		{"a decrease not a number", false, func(v *saved) { v.History[3][0] = nan }},
		{"a bound without λ_min", false, func(v *saved) { v.History[4] = make([]float64, 16) }},
		{"another λ_min", false, func(v *saved) { v.LambdaMin = 1 }},
		{"a γ without λ_min", false, func(v *saved) { v.Gamma = []float64{1} }},
		{"β not finite", false, func(v *saved) { v.History[2][0] = -inf }},

		{"column −1", false, func(v *saved) { v.Cols[0] = -1 }},
		{"column 4 of 4", false, func(v *saved) { v.Cols[1] = 4 }},
		{"a column twice", false, func(v *saved) { v.Cols[1] = 0 }},
		{"columns in disorder", false, func(v *saved) { v.Cols = []int{3, 0} }},
		{"no active column", false, func(v *saved) {
			v.Cols, v.Columns[0].Status, v.Columns[3].Status = nil, Converged, Converged
		}},
		{"ρ = 0", false, func(v *saved) { v.Rho[1] = 0 }},
		{"ρ infinite", false, func(v *saved) { v.Rho[0] = inf }},
		{"a column that has ended active", false, func(v *saved) { v.Cols[1] = 2 }},
		{"an active one ended", false, func(v *saved) { v.Columns[3].Status = Converged }},
		{"an idle one active", false, func(v *saved) { v.Columns[2].Status, v.RelRes[2] = Active, 1 }},
		{"a status below all", false, func(v *saved) { v.Columns[2].Status = -1 }},
		{"the worst status of a column", true, func(v *saved) { v.Columns[1].Status = Converged; v.Columns[2].Status = Breakdown }},
		{"a status from outside", false, func(v *saved) { v.Columns[2].Status, v.RelRes[2] = Canceled, 1 }},
		{"zeros that did not converge", false, func(v *saved) { v.Columns[1].Status = Stagnated }},
		{"zeros active", false, func(v *saved) { v.Cols, v.Columns[0].Status, v.Columns[1].Status = []int{1, 3}, Converged, Active }},
		{"a column of more iterations", false, func(v *saved) { v.Columns[0].Iterations = 4 }},
		{"a column of less than none", false, func(v *saved) { v.Columns[0].Iterations = -1 }},
		{"a column of none", true, func(v *saved) { v.Columns[0].Iterations = 0 }},
		{"still for more iterations", false, func(v *saved) { v.Still[0] = 4 }},
		{"still for less than none", false, func(v *saved) { v.Still[3] = -1 }},
		{"a target below 0", false, func(v *saved) { v.Target[0] = -1e-300 }},
		{"an infinite target", false, func(v *saved) { v.Target[3] = inf }},
		{"an earlier residual that is none", false, func(v *saved) { v.Before[3] = nan }},
		{"an earlier residual without a restart", false, func(v *saved) { v.Restarts, v.RestartsAt = 0, nil }},
		{"a residual now below 0", false, func(v *saved) { v.RelRes[3] = -1e-300 }},
		{"a residual now infinite", false, func(v *saved) { v.RelRes[0] = inf }},
	} {
		v, s := valid()
		c.set(v)
		if err := v.check(s, false); (err == nil) != c.fits {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	for i := range 6 {
		v, s := valid()
		switch i {
		case 0:
			v.Target = v.Target[:3]
		case 1:
			v.Before = v.Before[:3]
		case 2:
			v.RelRes = append(v.RelRes, 0)
		case 3:
			v.Still = append(v.Still, 0)
		case 4:
			v.Columns = append(v.Columns, Column{Status: Converged})
		case 5:
			v.Rho = v.Rho[:2]
		}
		if v.check(s, false) == nil {
			t.Errorf("numbers of other than %d columns, case %d", s.t, i)
		}
	}
}

// TestFullSteps: steps of as many directions as there are columns are taken, and of one to one.
func TestFullSteps(t *testing.T) {
	for _, width := range []int{1, 2} {
		m := width * width
		v := &saved{
			T: 2, Iterations: 2, C: make([]float64, 4), S: make([]float64, 4), Room: 100 - 3*m, Width: []int{width, width},
			LanczosPi: [][]float64{make([]float64, m), make([]float64, m)}, LanczosS: [][]float64{{}, make([]float64, m)},
		}
		if err := v.checkBlock(100); err != nil {
			t.Errorf("%d directions of 2 columns: %v", width, err)
		}
		if v.T = 1; width == 2 && v.checkBlock(100) == nil {
			t.Error("two directions of one column")
		}
	}
}

// TestFlat: a column of Q that is not zero, of norm zero by M⁻¹.
func TestFlat(t *testing.T) {
	for _, c := range []struct {
		norm, entry float64
		want        bool
	}{{0, 0, false}, {0, 1e-300, true}, {1, 2, false}, {1, 0, false}} {
		q := mat.NewDense(3, 2, []float64{1, 0, 1, 0, 1, c.entry})
		s := &block{solver: &solver{n: 3, r: q}, k: 2, h: []float64{3, 5, 5, c.norm}}
		if got := s.flat(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestExactNotFinite: a column that has converged by its recurrence, and whose true residual is not finite, has broken
// down; and one whose guess is the answer takes no step and no solve.
func TestExactNotFinite(t *testing.T) {
	a := small{mat.NewSymDense(2, []float64{2, 0, 0, 4})}
	nan := small{mat.NewSymDense(2, []float64{2, 0, 0, math.NaN()})}
	b := mat.NewDense(2, 1, []float64{2, 4})
	counted := 0
	for name, solve := range map[string]func(context.Context, Operator, Preconditioner, *mat.Dense, *Options) (*Result, error){"Solve": Solve, "SolveBlock": SolveBlock} {
		res, err := solve(t.Context(), a, nil, b, &Options{Exact: nan, Tol: 1e-9})
		if err != nil || res.Columns[0].Status != Breakdown || res.Status != Breakdown || !math.IsNaN(res.Columns[0].Curvature) {
			t.Errorf("%s: %v, %+v, %v", name, res, res.Columns, err)
		}
		m := counting{&counted}
		res, err = solve(t.Context(), a, m, b, &Options{InitX: mat.NewDense(2, 1, []float64{1, 1}), Tol: 1e-9})
		if err != nil || res.Status != Converged || res.Iterations != 0 || counted != 0 {
			t.Errorf("%s of the answer: %v, %d solves, %v", name, res, counted, err)
		}
	}
}

// counting is M = I that counts its uses.
type counting struct{ uses *int }

func (m counting) Dim() int { return 2 }

func (m counting) SolveTo(_ context.Context, dst, r *mat.Dense) error {
	*m.uses++
	dst.Copy(r)
	return nil
}
