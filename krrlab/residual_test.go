package krrlab

import (
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
)

// TestCertainOfLandmarks checks the reported bound of κ for landmarks. It is the bound of the factor times 11/9,
// because the float32 inverse agrees with M⁻¹ to a tenth, so that κ grows at most by (1+0.1)/(1−0.1).
func TestCertainOfLandmarks(t *testing.T) {
	l := newLab(t, regression(pointsByFormat(200, 4, 6)["float64"]),
		Config{Kernel: gauss, Lambda: 0.1, Precond: RPCholesky{S: 30}, Solver: PCG})
	sol := solveLab(t, l)
	f := l.z.value.Factor
	if want := f.CondBound(l.cfg.Lambda, ridge(l)) * 11 / 9; math.Abs(float64(sol.KappaBound)/want-1) > 1e-12 {
		t.Errorf("κ ≤ %g, want %g", sol.KappaBound, want)
	}
}

// TestFewBadRows puts a few close pairs among many isolated outliers, where float32 inner products cannot resolve the
// distance of a pair. Randomly sampled rows are unlikely to include these pairs, so the rows of all outliers have to
// be checked, and the answer must not be called converged.
func TestFewBadRows(t *testing.T) {
	const n, outliers, pairs = 4000, 300, 2
	for seed := range uint64(2) {
		x, g := points.NewDense(n, 2, nil), rng.New(seed)
		g.Sub("x").Normals(x.Data, 0)
		for i := range outliers { // far from each other
			at := 5 * i
			r, angle := 2000+20*float64(i), 2*math.Pi*g.Float64(uint64(i))
			x.Row(at)[0], x.Row(at)[1] = r*math.Cos(angle), r*math.Sin(angle)
		}
		for p := range pairs {
			a, b := x.Row(5*(outliers/3+7*p)), x.Row(5*(outliers/3+7*p)+1)
			b[0], b[1] = a[0]+0.1, a[1]
		}
		train := regression(x)
		for i := range train.Target {
			train.Target[i] = 1 + 0.1*g.Sub("y").Normal(uint64(i))
		}
		lab := newLab(t, train, Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Tol: 1e-3, Solver: CG,
			Precond: None{}, MaxIter: 500, Seed: seed})
		lab.policy.ExactWork, lab.policy.RefineWork = 0, 0 // treats the problem as too large for float64 residuals
		sol := solveLab(t, lab)
		v := mustVerify(t, sol.Model, VerifyOptions{Train: train, Passes: 1})
		if !strings.Contains(sol.StorageReason, "float32 tiles") ||
			!strings.Contains(sol.StorageReason, "distances in float32") || float64(v.Residual) < 2e-3 {
			t.Fatalf("seed %d: %s, residual %.3g: nothing to be found", seed, sol.StorageReason, float64(v.Residual))
		}
		if sol.Converged() ||
			!(math.Abs(sol.ColumnSampledResiduals[0]-float64(v.Residual)) < 0.05*float64(v.Residual)) ||
			sol.SampledRows != outliers+pairs+256 {
			t.Errorf("seed %d: %s with a residual of %.3g; reported %.3g, %.3g by %d rows", seed, sol.Status,
				float64(v.Residual), sol.ColumnTrueResiduals[0], sol.ColumnSampledResiduals[0], sol.SampledRows)
		}
	}
}

// TestRowsRounding uses tolerances near the smallest residual that float64 can resolve, which is about √n·2⁻⁵³/λ for
// targets of noise. If the check of rows calls an answer converged, its residual in twice the digits has to be within
// the tolerance. The points come in groups of three equal ones, whose rounding errors add up.
func TestRowsRounding(t *testing.T) {
	converged, count := 0, problems()
	for i := range count {
		g := rng.New(5).Sub("rounding", uint64(i))
		f, n, d := g.Sub("float"), 60+g.Sub("n").IntN(0, 120), 1+g.Sub("d").IntN(0, 40)
		h := &adverseProblem{rows: adversePoints("duplicates", n, d, g)}
		h.train = &datasets.Dataset{Task: datasets.Regression, X: points.NewDense(n, d, slices.Concat(h.rows...))}
		for q := range n {
			h.train.Target = append(h.train.Target, g.Sub("noise").Normal(uint64(q)))
		}
		var norm float64
		for _, v := range h.rows[0] {
			norm += v * v
		}
		sigma := math.Sqrt(norm) * logUniform(f, 0, -0.3, 1)
		if i%2 == 0 {
			sigma *= 1e-4 // K of ones and zeros
		}
		h.cfg = Config{
			Kernel: kernel.Matern52{Sigma: sigma}, Lambda: logUniform(f, 1, -10, -5),
			Precond: Nystrom{S: n / 2}, Solver: PCG, Storage: gram.Float64, Exact: StoredResidual, Seed: uint64(i),
			MaxIter: 1000,
		}
		h.cfg.Tol = logUniform(f, 2, -1, 2) * 0x1p-53 * math.Sqrt(float64(n)) / h.cfg.Lambda
		sol := mustSolve(t, h.train, h.cfg)
		if !sol.Converged() {
			continue
		}
		converged++
		if r := trueResiduals(h.cfg.Kernel, h.rows, h.cfg.Lambda, sol.Model.C, sol.System.Y)[0]; !(r <= h.cfg.Tol) {
			t.Errorf("problem %d: converged with a residual of %.3g, τ = %.3g; reported %.3g, rows %.3g, storage %.3g",
				i, r, h.cfg.Tol, sol.ColumnTrueResiduals[0], sol.ColumnSampledResiduals[0],
				sol.ColumnStorageResiduals[0])
		}
	}
	if converged < count/10 {
		t.Errorf("%d of %d converged", converged, count)
	}
	t.Logf("%d of %d converged", converged, count)
}

// quad is the unevaluated sum hi + lo of two float64 numbers, which is accurate to about 2⁻¹⁰⁰. It computes reference
// residuals where float64 does not suffice. See Y. Hida, X. S. Li, D. H. Bailey, Algorithms for quad-double precision
// floating point arithmetic, ARITH-15, 2001.
type quad struct{ hi, lo float64 }

func twoSum(a, b float64) quad {
	s := a + b
	v := s - a
	return quad{s, (a - (s - v)) + (b - v)}
}

func twoProduct(a, b float64) quad {
	p := a * b
	return quad{p, math.FMA(a, b, -p)}
}

func (a quad) add(b quad) quad {
	s, t := twoSum(a.hi, b.hi), twoSum(a.lo, b.lo)
	s = twoSum(s.hi, s.lo+t.hi)
	return twoSum(s.hi, s.lo+t.lo)
}

func (a quad) mul(b quad) quad {
	p := twoProduct(a.hi, b.hi)
	return twoSum(p.hi, p.lo+a.hi*b.lo+a.lo*b.hi)
}

func (a quad) neg() quad { return quad{-a.hi, -a.lo} }

func (a quad) div(b quad) quad {
	q := a.hi / b.hi
	r := a.add(b.mul(quad{q, 0}).neg())
	q2 := r.hi / b.hi
	r = r.add(b.mul(quad{q2, 0}).neg())
	return twoSum(q, q2).add(quad{r.hi / b.hi, 0})
}

func (a quad) sqrt() quad {
	if a.hi <= 0 {
		return quad{}
	}
	s := math.Sqrt(a.hi)
	r := a.add(twoProduct(s, s).neg())
	return twoSum(s, r.hi/(2*s))
}

func (a quad) abs() quad {
	if a.hi < 0 {
		return a.neg()
	}
	return a
}

// exp returns e^a for a ≤ 0 as 2^k·(e^(r/512))^512, with a Taylor series for e^(r/512).
func (a quad) exp() quad {
	ln2 := quad{math.Ln2, 2.319046813846299558e-17}
	if a.hi < -740 {
		return quad{}
	}
	k := math.Round(a.hi / math.Ln2)
	r := a.add(ln2.mul(quad{k, 0}).neg())
	r.hi, r.lo = r.hi/512, r.lo/512
	sum, term := quad{}, quad{1, 0}
	for i := 1; i <= 12; i++ {
		term = term.mul(r).div(quad{float64(i), 0})
		sum = sum.add(term)
	}
	for range 9 { // (1+s)² − 1 = s(2+s)
		sum = sum.mul(sum.add(quad{2, 0}))
	}
	sum = sum.add(quad{1, 0})
	return quad{math.Ldexp(sum.hi, int(k)), math.Ldexp(sum.lo, int(k))}
}

// weightedReference is the kernel √w·√v·k(x, z) of rows whose last numbers are the roots √w and √v of the weights.
type weightedReference struct{ kernel.Kernel }

func (k weightedReference) Eval(x, z []float64) float64 {
	d := len(x) - 1
	return x[d] * k.Kernel.Eval(x[:d], z[:d]) * z[d]
}

// quadKernel returns k(x, z) computed with quad numbers by the kernel's formula.
func quadKernel(k kernel.Kernel, x, z []float64) quad {
	var sq, l1, dot quad
	for j := range x {
		e := twoSum(x[j], -z[j])
		sq, l1, dot = sq.add(e.mul(e)), l1.add(e.abs()), dot.add(twoProduct(x[j], z[j]))
	}
	matern := func(c, sigma float64) quad { return quad{c, 0}.mul(sq).sqrt().div(quad{sigma, 0}) }
	one := quad{1, 0}
	switch k := k.(type) {
	case kernel.Gaussian:
		return sq.div(twoProduct(2*k.Sigma, k.Sigma)).neg().exp()
	case kernel.Laplacian:
		return l1.div(quad{k.Sigma, 0}).neg().exp()
	case kernel.Matern32:
		u := matern(3, k.Sigma)
		return u.add(one).mul(u.neg().exp())
	case kernel.Matern52:
		u := matern(5, k.Sigma)
		return u.mul(u).div(quad{3, 0}).add(u).add(one).mul(u.neg().exp())
	case kernel.Polynomial:
		base, p := quad{k.Gamma, 0}.mul(dot).add(quad{k.Coef0, 0}), one
		for range k.Degree {
			p = p.mul(base)
		}
		return p
	case weightedReference:
		d := len(x) - 1
		return quadKernel(k.Kernel, x[:d], z[:d]).mul(twoProduct(x[d], z[d]))
	case kernel.Func: // its float64 value is exact by definition
		return quad{k.F(x, z), 0}
	}
	panic("no formula")
}

// trueResiduals returns ‖y_j−(K+λI)c_j‖₂/‖y_j‖₂ computed in twice the digits of float64.
func trueResiduals(k kernel.Kernel, x [][]float64, lambda float64, c, y *mat.Dense) []float64 {
	n, t := y.Dims()
	r := make([]quad, n*t)
	for i := range n {
		for j := range t {
			r[i*t+j] = quad{y.At(i, j), 0}.add(twoProduct(lambda, c.At(i, j)).neg())
		}
	}
	for i := range n {
		for l := range i + 1 {
			v := quadKernel(k, x[i], x[l])
			for j := range t {
				r[i*t+j] = r[i*t+j].add(v.mul(quad{c.At(l, j), 0}).neg())
				if l < i {
					r[l*t+j] = r[l*t+j].add(v.mul(quad{c.At(i, j), 0}).neg())
				}
			}
		}
	}
	rel := make([]float64, t)
	for j := range rel {
		size := mat.Norm(y.ColView(j), 2)
		for i := range n {
			rel[j] = math.Hypot(rel[j], r[i*t+j].hi) // squares could underflow
		}
		if rel[j] > 0 {
			rel[j] /= size
		}
	}
	return rel
}

// TestStoredAllowance checks that the interval of κ covers κ of K itself if the 16-bit storage error shifts λ_min by
// a good part of λ. The interval may be wider by the factor ((1+e)/(1−e))² with e = ‖E‖₂/λ only.
func TestStoredAllowance(t *testing.T) {
	different := 0
	for seed := range uint64(6) {
		train := regression(pointsByFormat(120, 4, seed)["float64"])
		cfg := Config{Kernel: kernel.Gaussian{Sigma: 3}, Lambda: 1e-3, Solver: CG, Precond: None{},
			Storage: gram.Fixed16, Seed: seed}
		a := testkit.Must(newLab(t, train, cfg).K(t.Context()))
		cfg.Lambda = 2.1 * a.Choice().Error // the least that 16 bits allow, nearly
		l := newLab(t, train, cfg)
		q := testkit.Must(l.Quality(t.Context(), QualityOptions{NoSolve: true, Width: 0.001}))
		v := denseSpectrum(t, cfg.Kernel, train.X, cfg.Lambda, points.NewDense32(120, 1, nil), 1)
		kappa := v[119] / v[0]
		if !q.Kappa.Contains(kappa) || !q.Kappa.Contains(q.Exact.Value) {
			t.Errorf("seed %d: κ = %.6g, exact %.6g, in %v", seed, kappa, q.Exact.Value, q.Kappa)
		}
		e := q.KError / cfg.Lambda
		ritz := lanczos.Ritz(q.Alpha, q.Beta)
		if stored := ritz[len(ritz)-1] / ritz[0]; math.Abs(stored/kappa-1) > 0.01 {
			different++ // κ of the stored matrix is not κ of K
		}
		if q.Kappa.Hi > 1.05*q.Kappa.Lo*math.Pow((1+e)/(1-e), 2) {
			t.Errorf("seed %d: %v is wider than ‖E‖₂ = %g·λ explains", seed, q.Kappa, e)
		}
	}
	if different < 4 {
		t.Errorf("only %d of 6 stored matrices have another κ", different)
	}
}
