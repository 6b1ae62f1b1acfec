package multilevel

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond/precondtest"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/sketch"
	"github.com/krrlab/lab/krrlab/suite"
)

// TestOuter compares ZZᵀv − Kv, with Z held and mapped again, with dense matrices, and the bits
// over threads and over the ways of having Z.
func TestOuter(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	for _, n := range []int{100, 700} {
		p, k := setup(t, n, 0.1, 0.1)
		m := drawn(t, 90, srhtGauss, 1)
		src := mat.NewDense(n, 1, nil)
		rng.New(2).Normals(src.RawMatrix().Data, 0)
		var want, kv mat.Dense
		want.Mul(outerOf(m, p.X), src)
		kv.Mul(k, src)
		want.Sub(&kv, &want)
		first := map[bool][]float64{}
		for _, threads := range []int{1, 2, 5} {
			accel.SetThreads(threads)
			for _, hold := range []bool{true, false} {
				z := testkit.Must(form(t.Context(), m, p, hold, nil))
				dst := mat.NewDense(n, 1, nil)
				o := z.outer.From(p.A)
				for range 2 { // the scratch of the first does not show in the second
					testkit.OK(t, o.MulTo(t.Context(), dst, src))
				}
				if e := apart(dst, &want); e > 1e-5 {
					t.Errorf("n=%d, held %v: off by %g", n, hold, e)
				}
				if first[hold] == nil {
					first[hold] = slices.Clone(dst.RawMatrix().Data)
				}
				if !slices.Equal(first[hold], dst.RawMatrix().Data) {
					t.Errorf("n=%d, held %v: %d threads change the bits", n, hold, threads)
				}
			}
		}
		// A library may round rows of products of other heights otherwise.
		if accel.InUse().Path == "" && !slices.Equal(first[true], first[false]) {
			t.Errorf("n=%d: held or not changes the bits", n)
		}
	}
}

// TestDense compares M⁻¹r and the draws of N(0, M) for s ≥ n with dense float64 matrices.
func TestDense(t *testing.T) {
	const n, s = 90, 700
	p, _ := setup(t, n, 0.1, 0.1)
	m := drawn(t, s, nil, 1)
	z := testkit.Must(form(t.Context(), m, p, true, nil))
	zz := outerOf(m, p.X)
	for _, c := range []struct {
		lambdaP, tol float64
	}{{0.5, 1e-5}, {1e-5, 0.05}} {
		ref := mat.NewSymDense(n, nil)
		for i := range n {
			for j := range i + 1 {
				ref.SetSym(i, j, zz.At(i, j))
			}
			ref.SetSym(i, i, ref.At(i, i)+c.lambdaP)
		}
		var chol mat.Cholesky
		chol.Factorize(ref)
		inv := testkit.Must(newDense(t.Context(), z.held, c.lambdaP))
		if err := precondtest.Test(t.Context(), inv, &precondtest.Options{Tol: c.tol, InPlace: true, Strided: true,
			Concurrent: true}); err != nil {
			t.Errorf("λ_p = %g: %v", c.lambdaP, err)
		}
		var want mat.Dense
		testkit.OK(t, chol.SolveTo(&want, p.Y))
		got := mat.NewDense(n, 3, nil)
		testkit.OK(t, inv.SolveTo(t.Context(), got, p.Y))
		if e := apart(got, &want); e > c.tol {
			t.Errorf("λ_p = %g: M⁻¹r has an error of %g", c.lambdaP, e)
		}
		draw, g := mat.NewDense(n, 1, nil), mat.NewVecDense(n, nil)
		testkit.OK(t, inv.NormalTo(t.Context(), draw, rng.New(3)))
		rng.New(3).Normals(g.RawVector().Data, 0)
		var l mat.TriDense
		chol.LTo(&l)
		var lg mat.Dense
		lg.Mul(&l, g)
		if e := apart(draw, &lg); e > 1e-4 {
			t.Errorf("λ_p = %g: the draw has an error of %g", c.lambdaP, e)
		}
	}
	testkit.Fails(t, testkit.ErrOf(newDense(t.Context(), z.held, -10)), "not positive definite")
}

// TestCoverage counts how often the intervals of ‖ZZᵀ−K‖₂ and κ(M⁻¹A) cover the values that
// dense eigenvalues give, for Z narrower and wider than n and for a chain: at least 90 % at
// confidence 0.95 for both together. 40 seeds each; 200 with KRRLAB_LONG=1.
func TestCoverage(t *testing.T) {
	const n, lambda, lambdaP = 120, 0.05, 0.1
	seeds := suite.Scale(20, 40, 200)
	p, k := setup(t, n, lambda, lambdaP)
	for _, c := range []struct {
		name     string
		width    int
		sketches sketch.Composition
	}{{"narrow", 50, nil}, {"wide", 300, nil}, {"chain", 300, srhtGauss}} {
		covered, narrow := 0, 0
		for seed := range uint64(seeds) {
			m := drawn(t, c.width, c.sketches, seed)
			l := testkit.Must(measure(t.Context(), p, m, rng.New(seed).Sub("measure"), &Options{}))
			norm, kappa := exact(t, outerOf(m, p.X), k, lambda, lambdaP)
			slack := 1e-4 // Z is rounded to float32
			in := func(lo, hi, v float64) bool { return lo <= v*(1+slack) && v*(1-slack) <= hi }
			if in(l.Error.Lo, l.Error.Hi, norm) && in(l.Kappa.Lo, l.Kappa.Hi, kappa) {
				covered++
			}
			if l.Kappa.Hi <= 1.5*l.Kappa.Lo && l.Error.Hi <= 1.3*l.Error.Lo {
				narrow++
			}
			if l.Error.Confidence != 0.975 || l.Kappa.Confidence != 0.95 || !l.Converged || l.TrueResidual > 1e-3 ||
				l.Left != "" {
				t.Fatalf("%s, seed %d: %+v", c.name, seed, l)
			}
			_, s := m.Dims()
			if wide := l.Form == "dense"; wide != (s >= n) {
				t.Fatalf("%s: form %s for s = %d", c.name, l.Form, s)
			}
		}
		t.Logf("%s: %d of %d pairs of intervals cover, %d are narrow", c.name, covered, seeds, narrow)
		if 10*covered < 9*seeds || 10*narrow < 9*seeds {
			t.Errorf("%s: %d of %d pairs of intervals cover, %d are narrow; want 90 %%", c.name, covered, seeds, narrow)
		}
	}
}

// TestOpenEnd checks that where the Lanczos process is too short to say anything of λ_min,
// the error gives κ an upper bound, and that it holds.
func TestOpenEnd(t *testing.T) {
	const n, lambda = 120, 0.01
	p, k := setup(t, n, lambda, lambda)
	m := drawn(t, 20, nil, 3)
	l := testkit.Must(measure(t.Context(), p, m, rng.New(1), &Options{steps: 4, width: 1e-3}))
	_, kappa := exact(t, outerOf(m, p.X), k, lambda, lambda)
	if math.IsInf(l.Kappa.Hi, 1) || l.Kappa.Hi < kappa || l.Kappa.Lo > kappa {
		t.Errorf("κ in [%g, %g] after 4 steps, want bounds of %g", l.Kappa.Lo, l.Kappa.Hi, kappa)
	}
}

// TestLimits checks that a level too expensive to make a preconditioner of is measured for its
// error alone, and that with too little memory for Z the same bits come out.
func TestLimits(t *testing.T) {
	const n = 300
	p, _ := setup(t, n, 0.1, 0.1)
	m := drawn(t, 90, nil, 1)
	full := testkit.Must(measure(t.Context(), p, m, rng.New(1), &Options{}))
	for what, o := range map[string]*Options{"flops": {Work: 1e5}, "GB": {memory: 1000},
		"GB beside Z": {memory: 4*n*90 + 1000}} {
		l := testkit.Must(measure(t.Context(), p, m, rng.New(1), o))
		unit, _, _ := strings.Cut(what, " ")
		if !strings.Contains(l.Left, unit) || l.Iterations != 0 || l.Form != "" {
			t.Errorf("%s: %+v", what, l)
		}
		if l.Error.Lo != full.Error.Lo || l.Error.Hi != full.Error.Hi {
			t.Errorf("%s: error %v, with all at hand %v", what, l.Error, full.Error)
		}
	}
}

// TestControl checks progress, and the ends of contexts at every part.
func TestControl(t *testing.T) {
	p, _ := setup(t, 200, 0.1, 0.1)
	m := drawn(t, 50, nil, 1)
	if _, err := measure(canceled(), p, m, rng.New(1), &Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
	for _, part := range []string{"features", "error", "factor", "kappa", "solve"} {
		ctx, cancel := context.WithCancel(t.Context())
		seen := false
		_, err := measure(ctx, p, m, rng.New(1), &Options{progress: func(_, what string, done, total int) {
			if what == part {
				seen = true
				cancel()
			}
		}})
		if !seen || !errors.Is(err, context.Canceled) {
			t.Errorf("canceled in %s: seen %v, error %v", part, seen, err)
		}
		cancel()
	}
}

// withNaN is a map whose feature of the third point of a panel is NaN.
type withNaN struct{ feature.Map }

func (m withNaN) MapTo(dst []float64, ld int, x points.Points, w *feature.Workspace) {
	m.Map.MapTo(dst, ld, x, w)
	if n, _ := x.Dims(); n > 2 {
		dst[2*ld] = math.NaN()
	}
}

// TestRanksRefuse: a NaN in Z, where that is not held, is an error on all ranks, whatever numbers
// follow it.
func TestRanksRefuse(t *testing.T) {
	p, _ := setup(t, 700, 0.1, 0.1)
	m := withNaN{drawn(t, 20, nil, 1)}
	var wg sync.WaitGroup
	for _, c := range comm.Local(2, comm.Options{}) {
		wg.Go(func() {
			q := *p
			q.Comm = c
			testkit.Fails(t, testkit.ErrOf(form(t.Context(), m, &q, false, nil)), "Z has NaN")
		})
	}
	wg.Wait()
}
