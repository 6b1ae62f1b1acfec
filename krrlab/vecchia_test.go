package krrlab

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/stage"
)

// TestVecchia: the coefficients of the direct solver, in few iterations, in every storage; what was chosen is in the
// JSON, and the preconditioner goes through data unchanged.
func TestVecchia(t *testing.T) {
	train := datasets.SyntheticRegression(600, 3, 0.1, 1)
	solve := func(p Preconditioner, solver Solver, s gram.Storage) *Solution {
		return mustSolve(t, train, Config{Kernel: kernel.Gaussian{Sigma: 0.2}, Lambda: 0.01, Precond: p, Solver: solver,
			Storage: s, Tol: 1e-6})
	}
	want := solve(nil, Direct, gram.Float64).Model.C
	plain := solve(None{}, PCG, gram.Float64).Iterations
	for _, p := range []Vecchia{{}, {S: 50}, {Neighbors: 20, Damping: 0.5}, {S: 30, Neighbors: -1},
		{Neighbors: -1}} {
		for _, s := range []gram.Storage{gram.Float32, gram.Recompute} {
			sol := solve(p, PCG, s)
			if e := apart(sol.Model.C, want); !sol.Converged() || !(e < 1e-4) {
				t.Errorf("%v, %v: %v, coefficients off by %g", p, s, sol.Status, e)
			}
			if p.Neighbors >= 0 && 3*sol.Iterations > plain {
				t.Errorf("%v: %d iterations, and %d without", p, sol.Iterations, plain)
			}
			if o := sol.Model.Origin; p.S == 0 && p.Neighbors > 0 &&
				o.Method != "pcg, preconditioner sparse inverse on 20 neighbors, ω = 0.5" {
				t.Errorf("the model's origin is %+v", o)
			}
			text, err := json.Marshal(sol)
			var got struct {
				Precond   string
				Neighbors int
				Damping   float64
				S         int
			}
			if err == nil {
				err = json.Unmarshal(text, &got)
			}
			if err != nil || got.Precond != "vecchia" || got.S != p.S || got.Neighbors != sol.Neighbors ||
				!(got.Damping > 0) {
				t.Errorf("%v: JSON says %+v (%v)", p, got, err)
			}
		}
		back := testkit.Must(stage.ParsePreconditioner(testkit.Must(stage.PreconditionerText(p, gauss))))
		testkit.Equal(t, back, Preconditioner(p))
	}
	for _, p := range []Vecchia{{S: -1}, {S: 601}, {Damping: 2}, {Damping: math.NaN()}} {
		testkit.Fails(t, testkit.ErrOf(New(train, Config{Kernel: kernel.Gaussian{Sigma: 0.2}, Lambda: 0.01, Precond: p})),
			"krrlab: Vecchia: ")
	}
}

// TestVecchiaEval: a kernel of which only values are known, whose K is kept in float64.
func TestVecchiaEval(t *testing.T) {
	k := kernel.Func{Name: "own", F: kernel.Gaussian{Sigma: 0.2}.Eval}
	sol := mustSolve(t, datasets.SyntheticRegression(300, 3, 0.1, 1),
		Config{Kernel: k, Lambda: 0.01, Precond: Vecchia{S: 9}})
	if !sol.Converged() || sol.Iterations > 12 {
		t.Error(sol)
	}
}
