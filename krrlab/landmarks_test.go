package krrlab

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// farthest chooses each landmark far from those before, from a random first one; fewer where it is told so.
type farthest struct{ short, long int }

func (farthest) String() string { return "farthest points" }

func (f farthest) Choose(_ context.Context, x points.Points, s int, g rng.Stream) ([]int, error) {
	n, d := x.Dims()
	if f.long > n {
		return nil, errors.New("there are fewer")
	}
	near := make([]float64, n)
	for i := range near {
		near[i] = math.Inf(1)
	}
	a, b := make([]float64, d), make([]float64, d)
	chosen := []int{g.IntN(0, n)}
	for len(chosen) < s-f.short+f.long {
		x.RowTo(a, chosen[len(chosen)-1])
		best := 0
		for i := range near {
			x.RowTo(b, i)
			var q float64
			for c := range a {
				q += (a[c] - b[c]) * (a[c] - b[c])
			}
			if near[i] = min(near[i], q); near[i] > near[best] {
				best = i
			}
		}
		chosen = append(chosen, best)
	}
	return chosen, nil
}

// TestChosenLandmarks: M of user-defined landmarks is that of the dense formula, with the certain bound of κ,
// and of the uniform ones where they are given; alone and on two ranks.
func TestChosenLandmarks(t *testing.T) {
	const n, s = 120, 30
	train := ranksProblem(n)
	cfg := Config{Kernel: gauss, Lambda: 0.1, Tol: 1e-6, Seed: 2, Precond: Nystrom{S: s, Landmarks: farthest{}}}
	l := newLab(t, train, cfg)
	z := testkit.Must(l.Z(t.Context(), 0))
	chosen, _ := farthest{}.Choose(t.Context(), train.X, s, rng.New(2).Sub("landmarks", 0))
	k := newReference(t, gauss, train.X, 1, l.y).a
	for i := range n {
		k.SetSym(i, i, k.At(i, i)-1)
	}
	c, w := mat.NewDense(n, s, nil), mat.NewSymDense(s, nil)
	for q, j := range chosen {
		for i := range n {
			c.Set(i, q, k.At(i, j))
		}
		for p, i := range chosen[:q+1] {
			w.SetSym(p, q, k.At(i, j))
		}
	}
	var chol mat.Cholesky
	if !chol.Factorize(w) {
		t.Fatal("K(S,S) is singular")
	}
	var right, want, got mat.Dense
	testkit.OK(t, chol.SolveTo(&right, c.T()))
	want.Mul(c, &right) // K(:,S)K(S,S)⁻¹K(S,:)
	wide := mat.NewDense(n, z.D, nil)
	for i := range n {
		for j, v := range z.Row(i) {
			wide.Set(i, j, float64(v))
		}
	}
	got.Mul(wide, wide.T())
	if e := apart(&got, &want); e > 1e-5 {
		t.Errorf("FFᵀ has an error of %.3g", e)
	}
	q, err := l.Quality(t.Context(), QualityOptions{})
	if err != nil || !(q.Certain > 1) || q.Exact.Value > q.Certain ||
		q.Precond != "Nyström landmarks (farthest points)" || q.S != s {
		t.Errorf("%+v, %v", q, err)
	}
	sol := mustSolve(t, train, cfg)
	if text := sol.String(); !sol.Converged() ||
		!strings.Contains(text, "pcg, Nyström landmarks (farthest points), s = 30") {
		t.Error(text)
	}
	onEachRank(t, 2, n, cfg, func(rank int, other *Solution) {
		if !mat.Equal(other.Model.C, sol.Model.C) {
			t.Errorf("rank %d has another answer", rank)
		}
	})

	uniform := rng.New(2).Sub("landmarks", 0).Sub("landmarks").Perm(n)[:s]
	cfg.Precond = Nystrom{S: s}
	first := mustSolve(t, train, cfg)
	cfg.Precond = Nystrom{Landmarks: Indices(uniform)}
	second := mustSolve(t, train, cfg)
	if !mat.Equal(first.Model.C, second.Model.C) || second.S != s {
		t.Errorf("given landmarks have another answer than the same ones drawn: rank %d", second.S)
	}
	cfg.Precond = Nystrom{S: s, Landmarks: farthest{short: 5}}
	if fewer := mustSolve(t, train, cfg); fewer.S != s-5 {
		t.Errorf("rank %d of %d landmarks", fewer.S, s-5)
	}
	if m, err := newLab(t, train, cfg).LambdaP(t.Context(),
		LambdaPOptions{Points: 2, Sizes: []int{10, 20}}); err != nil || len(m.Sweeps) != 2 {
		t.Errorf("%v, %v", m, err)
	}
}

// TestChosenLandmarksRefused: bad choices are errors of one line.
func TestChosenLandmarksRefused(t *testing.T) {
	train := ranksProblem(30)
	for want, p := range map[string]Nystrom{
		"row 30: want different rows of 30":              {Landmarks: Indices{1, 30}},
		"landmark 1 of 2 is row 1: want different":       {Landmarks: Indices{1, 1}},
		"landmarks 3 points: 4 are asked for":            {S: 4, Landmarks: Indices{1, 2, 3}},
		"are 7 points: want at most s = 5":               {S: 5, Landmarks: farthest{long: 2}},
		"the landmarks farthest points: there are fewer": {S: 5, Landmarks: farthest{long: 99}},
		"landmarks 0 points: 30 are asked for":           {Landmarks: Indices{}},
	} {
		l := newLab(t, train, Config{Kernel: gauss, Lambda: 0.1, Precond: p})
		testkit.Fails(t, testkit.ErrOf(l.Solve(t.Context())), want)
	}
	p := Nystrom{S: 3, Landmarks: Indices{1, 2, 3}}
	testkit.Fails(t, testkit.ErrOf(SpecOf(p, gauss)), "Nyström landmarks (3 points) is user-defined")
	l := newLab(t, train, Config{Kernel: gauss, Lambda: 0.1, Precond: p, Checkpoint: &Checkpoint{Dir: t.TempDir()}})
	testkit.Fails(t, testkit.ErrOf(l.Solve(t.Context())), "cannot be told apart")
}
