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

// TestKappaBoundOfLandmarks checks the reported bound of κ for landmarks. It is the bound of the factor times 11/9,
// because the float32 inverse agrees with M⁻¹ to a tenth, so that κ grows at most by (1+0.1)/(1−0.1).
func TestKappaBoundOfLandmarks(t *testing.T) {
	lab := newLab(t, regression(pointsByFormat(200, 4, 6)["float64"]),
		Config{Kernel: gauss, Lambda: 0.1, Precond: RPCholesky{S: 30}, Solver: PCG})
	sol := solveLab(t, lab)
	factor := lab.z.value.Factor
	if want := factor.CondBound(lab.cfg.Lambda, ridge(lab)) * 11 / 9; math.Abs(float64(sol.KappaBound)/want-1) > 1e-12 {
		t.Errorf("κ ≤ %g, want %g", sol.KappaBound, want)
	}
}

// TestRowCheckFindsFewBadRows puts a few close pairs among many isolated outliers, where float32 inner products cannot
// resolve the distance of a pair. Randomly sampled rows are unlikely to include these pairs, so the rows of all
// outliers have to be checked, and the answer must not be called converged.
func TestRowCheckFindsFewBadRows(t *testing.T) {
	const n, outliers, pairs = 4000, 300, 2
	for seed := range uint64(2) {
		x, random := points.NewDense(n, 2, nil), rng.New(seed)
		random.Sub("x").Normals(x.Data, 0)
		for i := range outliers { // far from each other
			row := 5 * i
			radius, angle := 2000+20*float64(i), 2*math.Pi*random.Float64(uint64(i))
			x.Row(row)[0], x.Row(row)[1] = radius*math.Cos(angle), radius*math.Sin(angle)
		}
		for pair := range pairs {
			first, second := x.Row(5*(outliers/3+7*pair)), x.Row(5*(outliers/3+7*pair)+1)
			second[0], second[1] = first[0]+0.1, first[1]
		}
		train := regression(x)
		for i := range train.Target {
			train.Target[i] = 1 + 0.1*random.Sub("y").Normal(uint64(i))
		}
		lab := newLab(t, train, Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Tol: 1e-3, Solver: CG,
			Precond: None{}, MaxIter: 500, Seed: seed})
		lab.policy.ExactWork, lab.policy.RefineWork = 0, 0 // treats the problem as too large for float64 residuals
		sol := solveLab(t, lab)
		verified := mustVerify(t, sol.Model, VerifyOptions{Train: train, Passes: 1})
		if !strings.Contains(sol.StorageReason, "float32 tiles") ||
			!strings.Contains(sol.StorageReason, "distances in float32") || float64(verified.Residual) < 2e-3 {
			t.Fatalf("seed %d: %s, residual %.3g: nothing to be found", seed, sol.StorageReason,
				float64(verified.Residual))
		}
		if sol.Converged() ||
			!(math.Abs(sol.ColumnSampledResiduals[0]-float64(verified.Residual)) < 0.05*float64(verified.Residual)) ||
			sol.SampledRows != outliers+pairs+256 {
			t.Errorf("seed %d: %s with a residual of %.3g; reported %.3g, %.3g by %d rows", seed, sol.Status,
				float64(verified.Residual), sol.ColumnTrueResiduals[0], sol.ColumnSampledResiduals[0], sol.SampledRows)
		}
	}
}

// TestRowCheckNearRounding uses tolerances near the smallest residual that float64 can resolve, which is about
// √n·2⁻⁵³/λ for targets of noise. If the check of rows calls an answer converged, its residual in twice the digits has
// to be within the tolerance. The points come in groups of three equal ones, whose rounding errors add up.
func TestRowCheckNearRounding(t *testing.T) {
	converged, count := 0, problems()
	for i := range count {
		random := rng.New(5).Sub("rounding", uint64(i))
		uniform, n, d := random.Sub("float"), 60+random.Sub("n").IntN(0, 120), 1+random.Sub("d").IntN(0, 40)
		problem := &adverseProblem{rows: adversePoints("duplicates", n, d, random)}
		problem.train = &datasets.Dataset{Task: datasets.Regression,
			X: points.NewDense(n, d, slices.Concat(problem.rows...))}
		for row := range n {
			problem.train.Target = append(problem.train.Target, random.Sub("noise").Normal(uint64(row)))
		}
		var sqNorm float64
		for _, value := range problem.rows[0] {
			sqNorm += value * value
		}
		sigma := math.Sqrt(sqNorm) * logUniform(uniform, 0, -0.3, 1)
		if i%2 == 0 {
			sigma *= 1e-4 // K of ones and zeros
		}
		problem.cfg = Config{
			Kernel: kernel.Matern52{Sigma: sigma}, Lambda: logUniform(uniform, 1, -10, -5),
			Precond: Nystrom{S: n / 2}, Solver: PCG, Storage: gram.Float64, Exact: StoredResidual, Seed: uint64(i),
			MaxIter: 1000,
		}
		problem.cfg.Tol = logUniform(uniform, 2, -1, 2) * 0x1p-53 * math.Sqrt(float64(n)) / problem.cfg.Lambda
		sol := mustSolve(t, problem.train, problem.cfg)
		if !sol.Converged() {
			continue
		}
		converged++
		if residual := trueResiduals(problem.cfg.Kernel, problem.rows, problem.cfg.Lambda, sol.Model.C,
			sol.System.Y)[0]; !(residual <= problem.cfg.Tol) {
			t.Errorf("problem %d: converged with a residual of %.3g, τ = %.3g; reported %.3g, rows %.3g, storage %.3g",
				i, residual, problem.cfg.Tol, sol.ColumnTrueResiduals[0], sol.ColumnSampledResiduals[0],
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

// twoSum returns a+b without a rounding error (Knuth).
func twoSum(a, b float64) quad {
	sum := a + b
	bPart := sum - a
	return quad{sum, (a - (sum - bPart)) + (b - bPart)}
}

// twoProduct returns a·b without a rounding error, which a fused multiply-add computes.
func twoProduct(a, b float64) quad {
	product := a * b
	return quad{product, math.FMA(a, b, -product)}
}

// add returns a+b.
func (a quad) add(b quad) quad {
	high, low := twoSum(a.hi, b.hi), twoSum(a.lo, b.lo)
	high = twoSum(high.hi, high.lo+low.hi)
	return twoSum(high.hi, high.lo+low.lo)
}

// mul returns a·b.
func (a quad) mul(b quad) quad {
	product := twoProduct(a.hi, b.hi)
	return twoSum(product.hi, product.lo+a.hi*b.lo+a.lo*b.hi)
}

// neg returns −a.
func (a quad) neg() quad { return quad{-a.hi, -a.lo} }

// div returns a/b. Each of three steps divides the remainder of the step before by b.hi.
func (a quad) div(b quad) quad {
	quotient := a.hi / b.hi
	remainder := a.add(b.mul(quad{quotient, 0}).neg())
	correction := remainder.hi / b.hi
	remainder = remainder.add(b.mul(quad{correction, 0}).neg())
	return twoSum(quotient, correction).add(quad{remainder.hi / b.hi, 0})
}

// sqrt returns √a, by one Newton step from the root in float64, or 0 if a is not positive.
func (a quad) sqrt() quad {
	if a.hi <= 0 {
		return quad{}
	}
	root := math.Sqrt(a.hi)
	remainder := a.add(twoProduct(root, root).neg())
	return twoSum(root, remainder.hi/(2*root))
}

// abs returns |a|.
func (a quad) abs() quad {
	if a.hi < 0 {
		return a.neg()
	}
	return a
}

// exp returns e^a for a ≤ 0 as 2^k·(e^(r/512))^512, with a Taylor series for e^(r/512).
func (a quad) exp() quad {
	ln2 := quad{math.Ln2, 2.319046813846299558e-17}
	if a.hi < -740 { // e^a is then near the smallest positive float64
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
		difference := twoSum(x[j], -z[j])
		sq, l1, dot = sq.add(difference.mul(difference)), l1.add(difference.abs()), dot.add(twoProduct(x[j], z[j]))
	}
	matern := func(c, sigma float64) quad { return quad{c, 0}.mul(sq).sqrt().div(quad{sigma, 0}) }
	one := quad{1, 0}
	switch k := k.(type) {
	case kernel.Gaussian:
		return sq.div(twoProduct(2*k.Sigma, k.Sigma)).neg().exp()
	case kernel.Laplacian:
		return l1.div(quad{k.Sigma, 0}).neg().exp()
	case kernel.Matern32:
		scaled := matern(3, k.Sigma)
		return scaled.add(one).mul(scaled.neg().exp())
	case kernel.Matern52:
		scaled := matern(5, k.Sigma)
		return scaled.mul(scaled).div(quad{3, 0}).add(scaled).add(one).mul(scaled.neg().exp())
	case kernel.Polynomial:
		base, power := quad{k.Gamma, 0}.mul(dot).add(quad{k.Coef0, 0}), one
		for range k.Degree {
			power = power.mul(base)
		}
		return power
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
	residuals := make([]quad, n*t)
	for i := range n {
		for j := range t {
			residuals[i*t+j] = quad{y.At(i, j), 0}.add(twoProduct(lambda, c.At(i, j)).neg())
		}
	}
	for i := range n {
		for column := range i + 1 {
			value := quadKernel(k, x[i], x[column])
			for j := range t {
				residuals[i*t+j] = residuals[i*t+j].add(value.mul(quad{c.At(column, j), 0}).neg())
				if column < i {
					residuals[column*t+j] = residuals[column*t+j].add(value.mul(quad{c.At(i, j), 0}).neg())
				}
			}
		}
	}
	relative := make([]float64, t)
	for j := range relative {
		norm := mat.Norm(y.ColView(j), 2)
		for i := range n {
			relative[j] = math.Hypot(relative[j], residuals[i*t+j].hi) // squares could underflow
		}
		if relative[j] > 0 {
			relative[j] /= norm
		}
	}
	return relative
}

// TestKappaCoversStorageError checks that the interval of κ covers κ of K itself if the 16-bit storage error shifts
// λ_min by a good part of λ. The interval may be wider by the factor ((1+e)/(1−e))² with e = ‖E‖₂/λ only, for the
// storage error E.
func TestKappaCoversStorageError(t *testing.T) {
	different := 0
	for seed := range uint64(6) {
		train := regression(pointsByFormat(120, 4, seed)["float64"])
		cfg := Config{Kernel: kernel.Gaussian{Sigma: 3}, Lambda: 1e-3, Solver: CG, Precond: None{},
			Storage: gram.Fixed16, Seed: seed}
		a := testkit.Must(newLab(t, train, cfg).K(t.Context()))
		cfg.Lambda = 2.1 * a.Choice().Error // a little more than the least λ that 16 bits allow, 2‖E‖₂
		lab := newLab(t, train, cfg)
		quality := testkit.Must(lab.Quality(t.Context(), QualityOptions{NoSolve: true, Width: 0.001}))
		spectrum := denseSpectrum(t, cfg.Kernel, train.X, cfg.Lambda, points.NewDense32(120, 1, nil), 1)
		kappa := spectrum[119] / spectrum[0]
		if !quality.Kappa.Contains(kappa) || !quality.Kappa.Contains(quality.Exact.Value) {
			t.Errorf("seed %d: κ = %.6g, exact %.6g, in %v", seed, kappa, quality.Exact.Value, quality.Kappa)
		}
		relativeShift := quality.KError / cfg.Lambda
		ritz := lanczos.Ritz(quality.Alpha, quality.Beta)
		if stored := ritz[len(ritz)-1] / ritz[0]; math.Abs(stored/kappa-1) > 0.01 {
			different++ // κ of the stored matrix is not κ of K
		}
		if quality.Kappa.Hi > 1.05*quality.Kappa.Lo*math.Pow((1+relativeShift)/(1-relativeShift), 2) {
			t.Errorf("seed %d: %v is wider than ‖E‖₂ = %g·λ explains", seed, quality.Kappa, relativeShift)
		}
	}
	if different < 4 {
		t.Errorf("only %d of 6 stored matrices have another κ", different)
	}
}
