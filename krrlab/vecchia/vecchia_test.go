package vecchia_test

import (
	"cmp"
	"context"
	"math"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/lanczos"
	"github.com/krrlab/lab/krrlab/lowrank"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond/precondtest"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/vecchia"
)

const lambda = 0.01

// problem returns K+λI of n points in the unit square, and a factor of K of rank r, nil for 0.
func problem(t *testing.T, n, r int, k kernel.Kernel, o *gram.Options) (*gram.Matrix, *points.Dense32) {
	t.Helper()
	x := make([]float64, 2*n)
	rng.New(1).Sub("points").Normals(x, 0)
	a, err := gram.New(t.Context(), k, points.NewDense(n, 2, x), lambda, o)
	if err != nil {
		t.Fatal(err)
	}
	if r == 0 {
		return a, nil
	}
	f, err := lowrank.RPCholesky(t.Context(), a.Exact(1e-9), r, rng.New(2), nil)
	if err != nil {
		t.Fatal(err)
	}
	return a, f.F
}

// byDefinition returns M = FFᵀ+V, V = (GᵀG)⁻¹ with rows of G by dense solves, and neighbors by sorting.
func byDefinition(t *testing.T, a *gram.Matrix, f *points.Dense32, k int, omega float64, order []int32) *mat.Dense {
	t.Helper()
	n := a.Dim()
	kk := mat.NewDense(n, n, nil)
	if err := a.Exact(1e-12).DenseTo(t.Context(), kk); err != nil {
		t.Fatal(err)
	}
	ff := mat.NewDense(n, n, nil)
	if f != nil {
		w := mat.NewDense(n, f.D, nil)
		for i := range n {
			for c, v := range f.Row(i) {
				w.Set(i, c, float64(v))
			}
		}
		ff.Mul(w, w.T())
	}
	r := mat.NewDense(n, n, nil)
	r.Sub(kk, ff)
	s := mat.NewDense(n, n, nil) // ωR+λI
	s.Scale(omega, r)
	for i := range n {
		s.Set(i, i, s.At(i, i)+lambda)
	}
	take := func(from []int, count int, by func(j int) float64) []int {
		var out []int
		used := map[int]bool{}
		for len(out) < min(count, len(from)) {
			best := -1
			for _, j := range from {
				if !used[j] && (best < 0 || by(j) > by(best)) {
					best = j
				}
			}
			used[best] = true
			out = append(out, best)
		}
		return out
	}
	g := mat.NewDense(n, n, nil)
	for i := range n {
		var before []int
		for j := range n {
			if order[j] < order[i] {
				before = append(before, j)
			}
		}
		near := take(before, 3*k, func(j int) float64 {
			return math.Abs(float64(float32(kk.At(i, j) / math.Sqrt(kk.At(i, i)*kk.At(j, j)))))
		})
		if f == nil {
			near = near[:min(k, len(near))]
		} else {
			near = take(near, k, func(j int) float64 { return math.Abs(r.At(i, j)) / math.Sqrt(s.At(i, i)*s.At(j, j)) })
		}
		idx := append(near, i)
		m := mat.NewDense(len(idx), len(idx), nil)
		for x, p := range idx {
			for y, q := range idx {
				m.Set(x, y, s.At(p, q))
			}
		}
		e, z := mat.NewVecDense(len(idx), nil), mat.NewVecDense(len(idx), nil)
		e.SetVec(len(idx)-1, 1)
		if err := z.SolveVec(m, e); err != nil {
			t.Fatal(err)
		}
		for x, p := range idx {
			g.Set(i, p, z.AtVec(x)/math.Sqrt(z.AtVec(len(idx)-1)))
		}
	}
	var p, v, m mat.Dense
	p.Mul(g.T(), g)
	if err := v.Inverse(&p); err != nil {
		t.Fatal(err)
	}
	m.Add(&v, ff)
	return &m
}

func order(n int, g rng.Stream) []int32 {
	out := make([]int32, n)
	for at, i := range g.Perm(n) {
		out[i] = int32(at)
	}
	return out
}

func TestDefinition(t *testing.T) {
	const n = 150
	for _, c := range []struct {
		k, r  int
		omega float64
		of    kernel.Kernel
	}{
		{0, 0, 1, kernel.Gaussian{Sigma: 0.3}}, {8, 0, 1, kernel.Gaussian{Sigma: 0.3}}, {8, 20, 1, kernel.Gaussian{Sigma: 1}},
		{8, 20, 0.2, kernel.Gaussian{Sigma: 1}}, {0, 20, 0.5, kernel.Matern32{Sigma: 1}},
		{6, 5, 1, kernel.Polynomial{Gamma: 0.05, Coef0: 1, Degree: 3}}, {n - 1, 10, 1, kernel.Matern32{Sigma: 1}},
	} {
		a, f := problem(t, n, c.r, c.of, nil)
		o := &vecchia.Options{Neighbors: cmp.Or(c.k, -1), Damping: c.omega, Order: order(n, rng.New(3))}
		m, err := vecchia.New(t.Context(), a, f, o)
		if err != nil {
			t.Fatal(err)
		}
		want := byDefinition(t, a, f, c.k, c.omega, o.Order)
		id, got := mat.NewDense(n, n, nil), mat.NewDense(n, n, nil)
		for i := range n {
			id.Set(i, i, 1)
		}
		if err := m.MulTo(t.Context(), got, id); err != nil {
			t.Fatal(err)
		}
		var diff mat.Dense
		diff.Sub(got, want)
		if e := mat.Norm(&diff, 2) / mat.Norm(want, 2); !(e < 1e-5) {
			t.Errorf("%+v: M is off by %.2g of its norm", c, e)
		}
		if err := m.SolveTo(t.Context(), got, want); err != nil {
			t.Fatal(err)
		}
		diff.Sub(got, id)
		if e := mat.Norm(&diff, 2); !(e < 2e-2) {
			t.Errorf("%+v: ‖M⁻¹M−I‖ = %.2g", c, e)
		}
		if c.k == n-1 { // M is K+λI
			b := mat.NewDense(n, 1, nil)
			b.Set(3, 0, 1)
			res, err := pcg.Solve(context.Background(), a, m, b, &pcg.Options{Tol: 1e-3})
			if err != nil || res.Iterations != 1 {
				t.Errorf("with all points as neighbors %d iterations (%v)", res.Iterations, err)
			}
		}
	}
}

func TestConforms(t *testing.T) {
	for _, r := range []int{0, 15} {
		a, f := problem(t, 200, r, kernel.Gaussian{Sigma: 0.5}, nil)
		m, err := vecchia.New(t.Context(), a, f, &vecchia.Options{Neighbors: 10, Seed: rng.New(4)})
		if err != nil {
			t.Fatal(err)
		}
		if err := precondtest.Test(t.Context(), m, &precondtest.Options{InPlace: true, Strided: true, Concurrent: true}); err != nil {
			t.Error(err)
		}
	}
}

// TestSame: the same bits on any number of threads and ranks.
func TestSame(t *testing.T) {
	const n = 300
	x := make([]float64, 2*n)
	rng.New(1).Sub("points").Normals(x, 0)
	p := points.NewDense(n, 2, x)
	in := mat.NewDense(n, 2, nil)
	in.Set(0, 0, 1)
	in.Set(n-1, 1, 1)
	answer := func(p points.Points, c comm.Comm, order []int32, in *mat.Dense) (*mat.Dense, error) {
		a, err := gram.New(t.Context(), kernel.Gaussian{Sigma: 0.7}, p, lambda, &gram.Options{Comm: c, TileSize: 40, Storage: gram.Float32})
		if err != nil {
			return nil, err
		}
		f, err := lowrank.NystromAt(t.Context(), a.Exact(1e-9), []int{3, 14, 15, 92, 65}, nil)
		if err != nil {
			return nil, err
		}
		m, err := vecchia.New(t.Context(), a, f.F, &vecchia.Options{Order: order, Comm: c})
		if err != nil {
			return nil, err
		}
		out := mat.NewDense(n, 2, nil)
		return out, m.SolveTo(t.Context(), out, in)
	}
	places := order(n, rng.New(5))
	want, err := answer(p, nil, places, in)
	if err != nil {
		t.Fatal(err)
	}
	for _, ranks := range []int{1, 2, 3} {
		var wg sync.WaitGroup
		for _, c := range comm.Local(ranks, comm.Options{}) {
			wg.Go(func() {
				if got, err := answer(p, c, places, in); err != nil || !mat.Equal(got, want) {
					t.Errorf("rank %d of %d: other bits (%v)", c.Rank(), ranks, err)
				}
			})
		}
		wg.Wait()
	}
	defer accel.SetThreads(accel.Threads())
	accel.SetThreads(3)
	if got, err := answer(p, nil, places, in); err != nil || !mat.Equal(got, want) {
		t.Errorf("on three threads: other bits (%v)", err)
	}
}

// TestRule: few neighbors where more say nothing, many where they do, and little damping where R is local.
func TestRule(t *testing.T) {
	settled := func(k kernel.Kernel, r int) *vecchia.Inverse {
		a, f := problem(t, 1000, r, k, nil)
		m, err := vecchia.New(t.Context(), a, f, nil)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	narrow, wide := settled(kernel.Gaussian{Sigma: 0.01}, 0), settled(kernel.Gaussian{Sigma: 0.5}, 0)
	if narrow.Neighbors() != 15 || !(narrow.Damping() > 0.9) {
		t.Errorf("narrow: %v", narrow)
	}
	if wide.Neighbors() <= 15 || !(wide.Damping() < narrow.Damping()) {
		t.Errorf("wide: %v", wide)
	}
}

// TestNotDefinite: a matrix that is no K+λI is refused with the point.
func TestNotDefinite(t *testing.T) {
	f := points.NewDense32(50, 1, nil)
	f.Row(0)[0] = 9 // FFᵀ is above K
	a, _ := problem(t, 50, 0, kernel.Gaussian{Sigma: 1}, nil)
	if m, err := vecchia.New(t.Context(), a, f, &vecchia.Options{Neighbors: 5}); err == nil || !strings.Contains(err.Error(), "not positive definite") {
		t.Errorf("%v, %v", m, err)
	}
}

// TestCond: the interval of κ holds the condition number of the dense pencil.
func TestCond(t *testing.T) {
	a, f := problem(t, 150, 5, kernel.Matern32{Sigma: 0.5}, &gram.Options{Storage: gram.Float64})
	o := &vecchia.Options{Neighbors: 6, Damping: 0.5, Order: order(150, rng.New(3))}
	m, err := vecchia.New(t.Context(), a, f, o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := lanczos.RunPencil(t.Context(), a, m, &lanczos.Options{Steps: 100, Tol: 0.05, Confidence: 0.99, Cond: true, Definite: true, Start: rng.New(6)})
	if err != nil {
		t.Fatal(err)
	}
	dense := byDefinition(t, a, f, 6, 0.5, o.Order)
	k := mat.NewDense(150, 150, nil)
	if err := a.DenseTo(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	for i := range 150 {
		k.Set(i, i, k.At(i, i)+lambda)
	}
	var x mat.Dense
	if err := x.Solve(dense, k); err != nil {
		t.Fatal(err)
	}
	var e mat.Eigen
	if !e.Factorize(&x, mat.EigenNone) {
		t.Fatal("no eigenvalues")
	}
	lo, hi := math.Inf(1), 0.0
	for _, v := range e.Values(nil) {
		lo, hi = min(lo, real(v)), max(hi, real(v))
	}
	if κ, c := hi/lo, r.Cond(); !(c.Lo <= κ*1.0001 && κ <= c.Hi*1.0001) {
		t.Errorf("κ = %g outside [%g, %g]", κ, c.Lo, c.Hi)
	}
}
