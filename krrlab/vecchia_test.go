package krrlab_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
)

// TestVecchia: the coefficients of the direct solver, in few iterations, in every storage; what was chosen is in the
// JSON, and the preconditioner goes through data unchanged.
func TestVecchia(t *testing.T) {
	train := datasets.SyntheticRegression(600, 3, 0.1, 1)
	solve := func(p krrlab.Preconditioner, solver krrlab.Solver, s gram.Storage) *krrlab.Solution {
		l, err := krrlab.New(train, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 0.2}, Lambda: 0.01, Precond: p,
			Solver: solver, Storage: s, Tol: 1e-6})
		if err != nil {
			t.Fatal(err)
		}
		sol, err := l.Solve(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return sol
	}
	want := solve(nil, krrlab.Direct, gram.Float64).Model.C
	plain := solve(krrlab.None{}, krrlab.PCG, gram.Float64).Iterations
	for _, p := range []krrlab.Vecchia{{}, {S: 50}, {Neighbors: 20, Damping: 0.5}, {S: 30, Neighbors: -1},
		{Neighbors: -1}} {
		for _, s := range []gram.Storage{gram.Float32, gram.Recompute} {
			sol := solve(p, krrlab.PCG, s)
			var diff mat.Dense
			diff.Sub(sol.Model.C, want)
			if e := mat.Norm(&diff, 2) / mat.Norm(want, 2); sol.Status != pcg.Converged || !(e < 1e-4) {
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
		if q, err := (krrlab.PrecondSpec{S: p.S, Neighbors: 9}).Preconditioner(nil); err != nil ||
			q != krrlab.Preconditioner(krrlab.Vecchia{S: p.S, Neighbors: 9}) {
			t.Errorf("neighbors without a name give %v (%v)", q, err)
		}
		spec, err := krrlab.SpecOf(p, kernel.Gaussian{Sigma: 1})
		if back, e := spec.Preconditioner(kernel.Gaussian{Sigma: 1}); err != nil || e != nil ||
			back != krrlab.Preconditioner(p) {
			t.Errorf("%v comes back as %v (%v, %v)", p, back, err, e)
		}
	}
	for _, p := range []krrlab.Vecchia{{S: -1}, {S: 601}, {Damping: 2}, {Damping: math.NaN()}} {
		l, err := krrlab.New(train, krrlab.Config{Kernel: kernel.Gaussian{Sigma: 0.2}, Lambda: 0.01, Precond: p})
		if err == nil {
			_, err = l.Solve(t.Context())
		}
		if err == nil {
			t.Errorf("%+v is accepted", p)
		}
	}
}

// TestVecchiaEval: a kernel of which only values are known, whose K is kept in float64.
func TestVecchiaEval(t *testing.T) {
	k := kernel.Func{Name: "own", F: kernel.Gaussian{Sigma: 0.2}.Eval}
	l, err := krrlab.New(datasets.SyntheticRegression(300, 3, 0.1, 1),
		krrlab.Config{Kernel: k, Lambda: 0.01, Precond: krrlab.Vecchia{S: 9}})
	if err != nil {
		t.Fatal(err)
	}
	if sol, err := l.Solve(t.Context()); err != nil || !sol.Converged() || sol.Iterations > 12 {
		t.Errorf("%v, %v", sol, err)
	}
}

// TestVecchiaQuality: both ends of κ.
func TestVecchiaQuality(t *testing.T) {
	l, err := krrlab.New(datasets.SyntheticRegression(500, 3, 0.1, 1),
		krrlab.Config{Kernel: kernel.Gaussian{Sigma: 0.5}, Lambda: 0.01, Precond: krrlab.Vecchia{S: 20}})
	if err != nil {
		t.Fatal(err)
	}
	q, err := l.Quality(t.Context(), krrlab.QualityOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if q.S != 20 || q.Neighbors < 15 || q.Damping == 0 || q.Exact == nil || !q.Kappa.Covers(q.Exact.Value) ||
		!strings.Contains(q.String(), "beside 20 pivots\n") {
		t.Errorf("%+v", q)
	}
	if !q.Narrow || !(q.Kappa.Hi < 1e3) || q.Iterations == nil || float64(*q.Iterations) > 2*float64(q.Bound) {
		t.Errorf("%v", q)
	}
}
