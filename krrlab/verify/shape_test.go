package verify

import (
	"math"
	"slices"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// TestOne: one point, and one coordinate, make a matrix of one number; no point or no coordinate is an error.
func TestOne(t *testing.T) {
	poly := kernel.Spec{Name: "polynomial", Gamma: 1, Coef0: 1, Degree: 2}
	for _, memory := range []int64{0, 8} {
		m := formed(t, poly, points.NewDense(1, 1, []float64{2}), memory)
		if m.Stored != (memory == 8) {
			t.Errorf("stored: %v in %d bytes", m.Stored, memory)
		}
		s, err := m.Cond(t.Context(), 5, 6, rng.New(1))
		if err != nil {
			t.Fatal(err)
		}
		if !s.Largest.Covers(25) || s.Largest.Width() > 1+1e-9 || !s.Cond.Covers(1) || !(s.Simple >= 6 && s.Simple <= 6*(1+1e-13)) || s.Passes != 6 { // K = 25
			t.Errorf("%+v", s)
		}
	}
	for _, x := range []*points.Dense{points.NewDense(0, 1, nil), points.NewDense(1, 0, nil)} {
		if _, err := New(t.Context(), nil, poly, x, 0, nil); err == nil {
			t.Errorf("%d×%d points", x.N, x.D)
		}
	}
}

// TestKrylov: power steps and Lanczos steps give what their definitions do, of the matrix as Eval has it: the
// Rayleigh quotient and the largest ratio of K^(s−1)·1, and the Ritz values of span{v, Kv, …}.
func TestKrylov(t *testing.T) {
	const n = 24
	for _, spec := range []kernel.Spec{{Name: "gaussian", Sigma: 2}, {Name: "matern32", Sigma: 1}} {
		x := cloud(n, 3, 1, 12)
		k := reference(t, spec, x)
		m := formed(t, spec, x, 1<<20)
		v := mat.NewVecDense(n, nil)
		for i := range n {
			v.SetVec(i, 1)
		}
		upper := float64(n)
		for steps := range 4 {
			lo, hi, err := m.perron(t.Context(), steps)
			if err != nil {
				t.Fatal(err)
			}
			var lower float64
			if steps > 0 {
				var kv mat.VecDense
				kv.MulVec(k, v)
				lower = mat.Dot(v, &kv) / mat.Dot(v, v)
				kv.DivElemVec(&kv, v)
				upper = min(upper, mat.Max(&kv))
				v.MulVec(k, v)
			}
			if math.Abs(lo-lower) > 1e-13*lower || math.Abs(hi-upper) > 1e-13*upper || hi < upper*(1-1e-15) {
				t.Errorf("%s: %d power steps: [%v, %v], want [%v, %v]", spec.Name, steps, lo, hi, lower, upper)
			}
		}
		for _, steps := range []int{1, 2, 4} {
			ritz, err := m.lanczos(t.Context(), steps, rng.New(3))
			if err != nil {
				t.Fatal(err)
			}
			start := make([]float64, n)
			rng.New(3).Normals(start, 0)
			if want := ritzValues(k, start, steps); len(ritz) != steps || !within(ritz, want, 1e-9) {
				t.Errorf("%s: %d Lanczos steps: %v, want %v", spec.Name, steps, ritz, want)
			}
		}
	}
}

// ritzValues returns the eigenvalues of K on the span of v, Kv, … by a QR factorization of these.
func ritzValues(k *mat.SymDense, v []float64, steps int) []float64 {
	n := k.SymmetricDim()
	space, col := mat.NewDense(n, steps, nil), mat.NewVecDense(n, slices.Clone(v))
	for j := range steps {
		col.ScaleVec(1/mat.Norm(col, 2), col)
		space.SetCol(j, col.RawVector().Data)
		col.MulVec(k, col)
	}
	var qr mat.QR
	var q, kq, h mat.Dense
	qr.Factorize(space)
	qr.QTo(&q)
	basis := q.Slice(0, n, 0, steps)
	kq.Mul(k, basis)
	h.Mul(basis.T(), &kq)
	sym := mat.NewSymDense(steps, nil)
	for i := range steps {
		for j := range i + 1 {
			sym.SetSym(i, j, h.At(i, j))
		}
	}
	var e mat.EigenSym
	e.Factorize(sym, false)
	return e.Values(nil)
}

func within(a, b []float64, tol float64) bool {
	for i := range a {
		if math.Abs(a[i]-b[i]) > tol*math.Abs(b[len(b)-1]) {
			return false
		}
	}
	return len(a) == len(b)
}

// TestProgress: of each pass over K, of the rows done after every eighth group, which never exceed all.
func TestProgress(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	accel.SetThreads(1)
	const n = 16*16 - 3
	var done []int
	m, err := New(t.Context(), nil, specs[0], cloud(n, 2, 1, 1), 0, func(d, total int) {
		if total != n {
			t.Errorf("of %d rows, want %d", total, n)
		}
		done = append(done, d)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Mul(t.Context(), make([]float64, n), make([]float64, n), 1, false); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(done, []int{128, n}) {
		t.Errorf("rows done: %v", done)
	}
}

// TestThin: products skip zeros where at least half of the coordinates are zeros, of kernels of xᵀz and ‖x−z‖².
func TestThin(t *testing.T) {
	for zeros := range 11 {
		x := points.NewDense(5, 2, nil)
		for i := range 10 - zeros {
			x.Data[i] = float64(i + 1)
		}
		for _, spec := range specs {
			m := formed(t, spec, x, 0)
			if want := zeros >= 5 && spec.Name != "laplacian"; (m.sq != nil) != want {
				t.Errorf("%s, %d zeros of 10: skipped %v", spec.Name, zeros, m.sq != nil)
			}
			var norm float64
			for i, sq := range m.sq {
				want := x.Data[2*i]*x.Data[2*i] + x.Data[2*i+1]*x.Data[2*i+1]
				if norm = max(norm, want); sq != want {
					t.Errorf("‖x_%d‖² = %v, want %v", i, sq, want)
				}
			}
			if m.norm != norm {
				t.Errorf("largest ‖x‖² = %v, want %v", m.norm, norm)
			}
		}
	}
}

// TestOwnMemory: ranks hold their rows where these fit to the byte, all of them or none.
func TestOwnMemory(t *testing.T) {
	for _, c := range []struct {
		n, ranks int
		own      int64 // rows of the rank that has most, in groups of 16
	}{{33, 2, 32}, {33, 3, 16}, {64, 2, 32}, {65, 4, 32}, {10, 2, 16}} {
		need := 8 * c.own * int64(c.n)
		for _, less := range []int64{0, 1} {
			var wg sync.WaitGroup
			for _, group := range comm.Local(c.ranks, comm.Options{}) {
				wg.Go(func() {
					memory := need
					if group.Rank() == c.ranks-1 {
						memory -= less // of one rank only
					}
					m, err := New(t.Context(), group, specs[0], cloud(c.n, 2, 1, 1), memory, nil)
					if err != nil || m.Stored != (less == 0) {
						t.Errorf("%+v, %d bytes less: stored %v, %v", c, less, m != nil && m.Stored, err)
					}
				})
			}
			wg.Wait()
		}
	}
	for memory, stored := range map[int64]bool{8 * 100: true, 8*100 - 1: false} {
		if m, err := New(t.Context(), nil, specs[0], cloud(10, 2, 1, 1), memory, nil); err != nil || m.Stored != stored {
			t.Errorf("in %d bytes: %v", memory, err)
		}
	}
}

// TestResidualFormula: R, its norms and the bound of their rounding for three points and two columns, by hand.
func TestResidualFormula(t *testing.T) {
	m := &Matrix{N: 3}
	v, y, c := []float64{1, 0, 2, 0, 3, 1}, []float64{1, 4, 5, 0, 7, 1}, []float64{-1, 2, 3, -4, 5, 6}
	r := m.Residual(v, []float64{0.5, 0.25}, c, y, 2, 10)
	norm := func(x ...float64) float64 {
		var s float64
		for _, v := range x {
			s += v * v
		}
		return math.Sqrt(s)
	}
	for _, w := range []struct {
		what      string
		got, want []float64
	}{
		{"R", r.R, []float64{0, 4, 3, 0, 4, 0}},
		{"norms", r.Norm, []float64{5, 4}},
		{"norms of y", r.Target, []float64{norm(1, 5, 7), norm(4, 0, 1)}},
		{"1-norms", r.OneNorm, []float64{9, 12}},
		{"rounding", r.Rounding, []float64{math.Sqrt(3) * 0.5, math.Sqrt(3) * 0.25}}, // and some units
		{"of differences", r.Cross, []float64{0, norm(4, 3, 4), norm(4, 3, 4), 0}},
	} {
		if len(w.got) != len(w.want) || !within(append(w.got, 1), append(w.want, 1), 1e-13) {
			t.Errorf("%s: %v, want %v", w.what, w.got, w.want)
		}
	}
	r = m.Residual(v, []float64{0, 0}, c, y, 2, 10)
	for j, want := range []float64{4*norm(11, 35, 57) + 3*5, 4*norm(24, 40, 61) + 3*4} { // 4u‖|y|+λ|c|‖ + nu‖r‖
		if got := r.Rounding[j] / unit; math.Abs(got-want) > 1e-12*want {
			t.Errorf("rounding of column %d: %v u, want %v u", j, got, want)
		}
	}
}

// TestNorm2: of numbers whose squares overflow or are lost, and of those that are none.
func TestNorm2(t *testing.T) {
	of := func(v ...float64) float64 { return norm2(len(v), func(i int) float64 { return v[i] }) }
	for _, unit := range []float64{1, 0x1p-1000, 0x1p-1070, 0x1p1000, 0x1p1020} {
		if got := of(3*unit, -4*unit); got != 5*unit {
			t.Errorf("‖(3, −4)‖·%g is %g", unit, got)
		}
	}
	inf, nan := math.Inf(1), math.NaN()
	if of() != 0 || of(0, 0) != 0 || of(-inf, 1) != inf || !math.IsNaN(of(nan, 1)) || !math.IsNaN(of(1, nan)) {
		t.Error("numbers that are none")
	}
	r := Residual{Norm: []float64{1, 0, 6}, Rounding: []float64{0.5, 0, 9}, Target: []float64{2, 0, 4}}
	if a, b := r.relative(false), r.relative(true); a != 1.5 || b != 3.75 {
		t.Errorf("worst %v, with rounding %v", a, b)
	}
	r = Residual{Norm: []float64{1, nan}, Rounding: []float64{0, 0}, Target: []float64{2, 1}}
	if a, b := r.relative(false), r.relative(true); !math.IsNaN(a) || !math.IsNaN(b) {
		t.Errorf("worst %v, with rounding %v, of one that is NaN", a, b)
	}
	p := Prediction{Gap: []float64{0, 1, 2, inf, nan}}
	if p.Open(1) != 0.6 || p.Open(0.5) != 0.4 || p.Open(2) != 0.8 || (&Prediction{}).Open(1) != 0 {
		t.Error("shares of open labels")
	}
}

// TestSteep: |dk/d‖x−z‖²| at 0, by hand for σ = 2.
func TestSteep(t *testing.T) {
	for name, want := range map[string]float64{"gaussian": 0.125, "matern32": 0.375, "matern52": 5.0 / 24, "laplacian": 0} {
		f, err := newFunction(kernel.Spec{Name: name, Sigma: 2})
		if err != nil || math.Abs(f.steep-want) > 1e-16 {
			t.Errorf("%s: %v, want %g", name, f, want)
		}
	}
}
