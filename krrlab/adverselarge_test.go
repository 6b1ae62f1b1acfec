package krrlab

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/bound"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
)

// newPeriodic draws problem number i: three times as many rows as ‖E‖₂ is predicted from, of which every third lies at
// the origin, and those that follow it far away on either side; or all lie at the origin but a few, far away together.
func newPeriodic(i int) *adverse {
	g := rng.New(78).Sub("periodic", uint64(i))
	c, f := g.Sub("choice"), g.Sub("float")
	d := 3 + c.IntN(0, 6)
	sigma := math.Sqrt(float64(d)) * between(f, 0, -0.3, 0.5)
	n, k := 3*512, kernel.Kernel(kernel.Laplacian{Sigma: 2 * sigma})
	few := i%4 == 3
	if few {
		k = kernel.Gaussian{Sigma: sigma}
	} else if i%3 == 2 {
		n, k = 3*1024, pick[kernel.Kernel](c, 1, kernel.Gaussian{Sigma: sigma}, kernel.Matern52{Sigma: sigma})
	}
	rows := adversePoints("plain", n, d, g)
	shift, kind := between(f, 1, 2, 3), "rows that repeat"
	side := func(r int) float64 { return []float64{0, 1, -1}[r%3] }
	if few {
		kind = "few far rows"
		at := c.IntN(2, n-3)
		side = func(r int) float64 {
			if r >= at && r < at+3 {
				return 1
			}
			return 0
		}
	}
	for r := range rows {
		for j := range d {
			rows[r][j] += shift * side(r)
		}
	}
	return largeProblem(fmt.Sprintf("%s, number %d, %.3g apart", kind, i, shift), rows, Config{
		Kernel: k, Lambda: between(f, 2, -2.5, 0), Tol: between(f, 3, -5, -2), Seed: uint64(i), MaxIter: 100,
		Solver: PCG, Precond: RPCholesky{S: 100},
	})
}

// largeProblem has a smooth target.
func largeProblem(name string, x [][]float64, cfg Config) *adverse {
	y := make([]float64, len(x))
	for i := range y {
		y[i] = math.Sin(x[i][0]) + 0.3*rng.New(79).Normal(uint64(i))
	}
	h := &adverse{rows: x, cfg: cfg}
	h.train = &datasets.Dataset{Name: "large", Task: datasets.Regression, X: points.NewDense(len(x), len(x[0]), slices.Concat(x...)), Target: y}
	h.name = fmt.Sprintf("%s (n = %d, d = %d, %v, λ = %.2g, τ = %.2g, %v)", name, len(x), len(x[0]), cfg.Kernel, cfg.Lambda, cfg.Tol, cfg.Precond)
	return h
}

// TestAdversePeriodic: rows that repeat, at the steps too at which as many could be looked at as are, or a few far ones,
// leave K as stored within twice the error predicted, and what is called converged is not refuted by verify.
func TestAdversePeriodic(t *testing.T) {
	count := map[string]int{}
	for i := range problems() / 75 {
		h := newPeriodic(i)
		lab, err := New(h.train, h.cfg)
		if err != nil {
			t.Fatalf("%s: %v", h.name, err)
		}
		if h.large = i%2 == 0; h.large {
			lab.exactUpTo, lab.refineUpTo = 0, 0
		}
		sol, err := lab.Solve(t.Context())
		if err != nil {
			t.Errorf("%s: %v", h.name, err)
			continue
		}
		count[sol.Status.String()]++
		slack := 1.0
		if sol.SampledRows > 0 {
			slack = bound.Slack(math.MaxInt)
		}
		h.verify(t, sol, slack)
		k, err := lab.K(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// Float32 products with K, for which the error of the norm is some 1e-6, add to it.
		if e := storedError(t, k); e > 2*k.Choice().Error+1e-5 {
			t.Errorf("%s: ‖E‖₂ = %.3g: %v", h.name, e, k.Choice())
		}
	}
	t.Logf("%v", count)
	if 3*count["converged"] < problems()/75 {
		t.Errorf("%v", count)
	}
}

// storedError returns the ‖E‖₂ of K as stored, from below, by power iteration.
func storedError(t *testing.T, k *gram.Matrix) (norm float64) {
	t.Helper()
	n, exact := k.Dim(), k.Exact(0)
	v, w, u := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	rng.New(80).Normals(v.RawMatrix().Data, 0)
	for range 8 {
		v.Scale(1/mat.Norm(v, 2), v)
		if err := errors.Join(k.KMulTo(t.Context(), w, v), exact.KMulTo(t.Context(), u, v)); err != nil {
			t.Fatal(err)
		}
		v.Sub(w, u)
		norm = mat.Norm(v, 2)
	}
	return norm
}

// TestAdverseWide: of a kernel so wide that landmarks leave less than float32 and 16 bits round, the landmarks are never
// refused as indefinite, and what is called certain of κ holds, however K is stored.
func TestAdverseWide(t *testing.T) {
	for i := range problems() / 75 {
		g := rng.New(82).Sub("wide", uint64(i))
		c, f := g.Sub("choice"), g.Sub("float")
		n, d := 240+c.IntN(0, 120), 1+c.IntN(1, 4)
		rows, lambda := adversePoints("plain", n, d, g), between(f, 1, -2.5, -1.5)
		for _, storage := range []gram.Storage{gram.Float32, gram.Fixed16} {
			h := largeProblem(fmt.Sprintf("wide kernel, number %d, %v", i, storage), rows, Config{
				Kernel: kernel.Gaussian{Sigma: math.Sqrt(float64(d)) * between(f, 0, 0.7, 1.6)}, Lambda: lambda, Tol: 1e-3, Seed: uint64(i),
				Solver: PCG, Storage: storage, Precond: sized(RPCholesky{}, n/10+c.IntN(2, n/3), lambda),
			})
			lab := newLab(t, h.train, h.cfg)
			z, err := lab.Z(t.Context(), 0)
			if err != nil {
				t.Errorf("%s: %v", h.name, err)
				continue
			}
			values, off, ok := h.pencil(lab, z)
			if bound := lab.z.low.CondBound(lambda, lambda); !ok || values[n-1]/values[0]*(1-off) > bound {
				t.Errorf("%s: κ = %.6g, certainly at most %.6g", h.name, values[n-1]/values[0], bound)
			}
		}
	}
}

// TestAdverseAlike: where thousands of rows are alike, so that the errors of sums add up, and the rest fill the range
// of Z, M is within a tenth of ZZᵀ+λ_pI, for λ_p of which that is predicted.
func TestAdverseAlike(t *testing.T) {
	for i := range problems() / 50 {
		g := rng.New(81).Sub("alike", uint64(i))
		c, f := g.Sub("choice"), g.Sub("float")
		n, d, s := 4096, 2+c.IntN(0, 4), 40+c.IntN(1, 40)
		rows := adversePoints("plain", n, d, g)
		for r := range n - 250 - c.IntN(2, 150) {
			rows[r] = rows[0]
		}
		cfg := Config{
			Kernel: kernel.Gaussian{Sigma: math.Sqrt(float64(d)) * between(f, 0, -0.1, 0.3)}, Lambda: 1, Tol: 1e-3, Solver: PCG, Seed: uint64(i),
			Precond: sized(pick[approximation](c, 3, Features{}, Features{}, Nystrom{}), s, 1),
		}
		h := largeProblem(fmt.Sprintf("rows alike, number %d", i), rows, cfg)
		z := wholeZ(t, newLab(t, h.train, cfg))
		predicted := precond.FastError(floats.Sum(points.SqNorms(z)), n, z.D)
		cfg.Lambda = 10 * predicted * between(f, 1, 0.01, 0.15)
		cfg.Precond = sized(cfg.Precond.(approximation), s, cfg.Lambda)
		lab := newLab(t, h.train, cfg)
		h.withinTenth(t, lab, wholeZ(t, lab))
	}
}

// withinTenth reports an M⁻¹ that is not between 0.9 and 1.1 times (ZZᵀ+λ_pI)⁻¹, by the eigenvalues of
// M⁻¹(ZZᵀ+λ_pI) on the range of Z; elsewhere they are 1. It does nothing where float64 cannot tell them.
func (h *adverse) withinTenth(t *testing.T, l *Lab, z *points.Dense32) bool {
	t.Helper()
	m, err := l.M(t.Context(), 0)
	if err != nil {
		t.Errorf("%s: %v", h.name, err)
		return false
	}
	q := basis(t, z)
	n, r := q.Dims()
	wide, solved := mat.NewDense(n, z.D, nil), mat.NewDense(n, r, nil)
	for i := range n {
		for j, v := range z.Row(i) {
			wide.Set(i, j, float64(v))
		}
	}
	var qz, p mat.Dense
	qz.Mul(q.T(), wide)
	if err := m.SolveTo(t.Context(), solved, q); err != nil {
		t.Fatal(err)
	}
	p.Mul(q.T(), solved)
	a, b := mat.NewSymDense(r, nil), mat.NewSymDense(r, nil)
	a.SymOuterK(1, &qz)
	for i := range r {
		for j := range i + 1 {
			b.SetSym(i, j, (p.At(i, j)+p.At(j, i))/2)
		}
		a.SetSym(i, i, a.At(i, i)+ridge(l))
	}
	off := 10 * float64(n) * 0x1p-53 * (mat.Trace(a)/ridge(l) + 1)
	if off > 0.01 {
		return false
	}
	var chol mat.Cholesky // B = LLᵀ
	if !chol.Factorize(b) {
		t.Errorf("%s: M is not positive definite", h.name)
		return true
	}
	var lower mat.TriDense
	var al, lal mat.Dense
	chol.LTo(&lower)
	al.Mul(a, &lower)
	lal.Mul(lower.T(), &al)
	for i := range r {
		for j := range i + 1 {
			a.SetSym(i, j, (lal.At(i, j)+lal.At(j, i))/2)
		}
	}
	var eig mat.EigenSym
	if !eig.Factorize(a, false) {
		t.Fatal("no eigenvalues")
	}
	if v := eig.Values(nil); v[0] < 0.9-off || v[r-1] > 1.1+off {
		t.Errorf("%s: M⁻¹(ZZᵀ+λ_pI) has eigenvalues from %.4g to %.4g", h.name, v[0], v[r-1])
	}
	return true
}

// basis returns an orthonormal basis of the range of Z, but for directions that float64 does not tell from rounding.
func basis(t *testing.T, z *points.Dense32) *mat.Dense {
	t.Helper()
	q := mat.NewDense(z.N, z.D, nil)
	for i := range z.N {
		for j, v := range z.Row(i) {
			q.Set(i, j, float64(v))
		}
	}
	for range 2 { // the second time for orthogonality
		var g mat.SymDense
		g.SymOuterK(1, q.T())
		var eig mat.EigenSym
		if !eig.Factorize(&g, true) {
			t.Fatal("no eigenvalues")
		}
		var v, next mat.Dense
		eig.VectorsTo(&v)
		values := eig.Values(nil)
		s := len(values)
		first := slices.IndexFunc(values, func(x float64) bool { return x > 1e-12*values[s-1] })
		for j := first; j < s; j++ {
			for i := range s {
				v.Set(i, j, v.At(i, j)/math.Sqrt(values[j]))
			}
		}
		next.Mul(q, v.Slice(0, s, first, s))
		q = &next
	}
	return q
}
