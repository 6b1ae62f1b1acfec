package krrlab

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/stage"
)

// adverseProblem is a small problem drawn at random, with data, kernel and options of a kind that often break numerical
// code.
type adverseProblem struct {
	name  string
	train *datasets.Dataset
	rows  [][]float64 // the points of train
	cfg   Config
	large bool // treat it as too large for residuals in float64
}

// pick returns one of the choices, by random number i of the stream g.
func pick[T any](g rng.Stream, i uint64, choices ...T) T { return choices[g.IntN(i, len(choices))] }

// logUniform returns 10^u, where u is random number i of the stream g, scaled to the interval [lo, hi].
func logUniform(g rng.Stream, i uint64, lo, hi float64) float64 {
	return math.Pow(10, lo+(hi-lo)*g.Float64(i))
}

// adversePoints draws n points of dimension d. The kind says how they are laid out, for example in distant groups or
// with duplicates.
func adversePoints(kind string, n, d int, g rng.Stream) [][]float64 {
	x := make([][]float64, n)
	normal, extra := g.Sub("normal"), g.Sub("extra")
	size := logUniform(extra, 0, 0, 7)
	groups := 2 + extra.IntN(1, 4)
	for i := range x {
		x[i] = make([]float64, d)
		for j := range d {
			x[i][j] = normal.Normal(uint64(i*d + j))
		}
		shift := 0.0
		switch kind {
		case "groups": // rows belong to the groups in turn
			shift = size * float64(i%groups)
		case "blocks": // one after the other
			shift = size * float64(i*groups/n)
		case "offset":
			shift = 100 * size
		case "outliers":
			if i%41 == 7 {
				shift = size * normal.Normal(uint64(n*d+i))
			}
		case "duplicates":
			copy(x[i], x[i/3])
		case "equal":
			copy(x[i], x[0])
		case "cluster": // one, dense, among noise
			if i%3 > 0 {
				for j := range d {
					x[i][j] = 1 + x[i][j]/size
				}
			}
		}
		for j := range d {
			x[i][j] += shift
			switch kind {
			case "scales":
				x[i][j] *= math.Pow(10, float64(j%7)*2-6)
			case "bytes":
				x[i][j] = math.Round(min(max(128+60*x[i][j], 0), 255))
			}
		}
	}
	return x
}

// newAdverse draws the adverse problem number i.
func newAdverse(i int) *adverseProblem {
	g := rng.New(77).Sub("hostile", uint64(i))
	c, f := g.Sub("choice"), g.Sub("float")
	n, d, t := 20+c.IntN(0, 130), pick(c, 1, 1, 2, 3, 8, 30), pick(c, 2, 1, 1, 2, 3)
	kind := pick(c, 3, "plain", "groups", "blocks", "offset", "outliers", "duplicates", "scales", "bytes")
	h := &adverseProblem{rows: adversePoints(kind, n, d, g)}
	x := points.NewDense(n, d, slices.Concat(h.rows...))
	var gaps []float64 // distances between points, most of which are not neighbors
	var norm float64
	for i := 1; i < n; i++ {
		var s float64
		for j, v := range h.rows[i] {
			s += (v - h.rows[(i*7)%n][j]) * (v - h.rows[(i*7)%n][j])
			norm += v * v / float64(n)
		}
		if s > 0 {
			gaps = append(gaps, math.Sqrt(s))
		}
	}
	gaps = append(gaps, 1)
	slices.Sort(gaps)
	sigma := gaps[len(gaps)/pick(c, 4, 2, 2, 10)] * logUniform(f, 0, -2, 2)
	k := pick[kernel.Kernel](c, 5, kernel.Gaussian{Sigma: sigma}, kernel.Gaussian{Sigma: sigma},
		kernel.Laplacian{Sigma: sigma},
		kernel.Matern32{Sigma: sigma}, kernel.Matern52{Sigma: sigma},
		kernel.Polynomial{Gamma: logUniform(f, 1, -2, 0) / norm, Coef0: f.Float64(2), Degree: 1 + c.IntN(6, 4)})
	y := make([]float64, n*t)
	for q := range y {
		y[q] = math.Sin(h.rows[q/t][0]/gaps[len(gaps)/2]*float64(1+q%t)) + 0.3*g.Sub("noise").Normal(uint64(q))
	}
	h.train = &datasets.Dataset{Name: kind, Task: datasets.Regression, X: x, Target: y}
	if t > 1 {
		h.train.Task, h.train.Target = datasets.Classification, nil
		for i := range n {
			h.train.Class = append(h.train.Class, int(uint(math.Float64bits(y[i*t])>>20)%uint(t)))
		}
		for j := range t {
			h.train.Class[j] = j
			h.train.Labels = append(h.train.Labels, fmt.Sprint(j))
		}
	}
	h.cfg = Config{
		Kernel: k, Lambda: logUniform(f, 3, -12, 1), Tol: logUniform(f, 4, -10, -1), Seed: uint64(i), MaxIter: 400,
		Storage: pick(c, 7, gram.Auto, gram.Auto, gram.Float64, gram.Float32, gram.Recompute, gram.Fixed16),
		Solver:  pick(c, 8, PCG, BlockPCG, CG, Direct, AutoSolver),
		Exact:   pick(c, 10, AutoResidual, AutoResidual, ExactResidual, StoredResidual),
	}
	if i%10 == 9 { // λ large enough for 16-bit tiles, and a kernel so wide that 16 bits round more than landmarks omit
		h.cfg.Storage, h.cfg.Lambda, h.cfg.Solver = gram.Fixed16, logUniform(f, 3, -3.5, 0),
			pick(c, 8, PCG, BlockPCG, CG)
		h.cfg.Kernel = kernel.Gaussian{Sigma: gaps[len(gaps)/2] * logUniform(f, 0, 0, 2)}
	}
	h.cfg.Precond = None{}
	if m := pick[stage.LowRank](c, 9, Features{}, Nystrom{}, RPCholesky{}, nil); m != nil {
		h.cfg.Precond = withSize(m, 1+c.IntN(11, n/2), 0)
	}
	if h.cfg.Solver == CG || h.cfg.Precond == Preconditioner(None{}) {
		h.cfg.Solver, h.cfg.Precond = CG, None{}
	}
	if h.cfg.Solver == Direct {
		h.cfg.Storage = pick(c, 7, gram.Auto, gram.Float64, gram.Float32)
		h.cfg.Precond = nil
	}
	h.large = pick(c, 13, false, true)
	h.name = fmt.Sprintf("problem %d (%s, n = %d, d = %d, t = %d, %v, λ = %.2g, τ = %.2g, %v, %v, %v, residual %v, "+
		"large %v)",
		i, kind, n, d, t, h.cfg.Kernel, h.cfg.Lambda, h.cfg.Tol, h.cfg.Storage, h.cfg.Solver, h.cfg.Precond,
		h.cfg.Exact, h.large)
	return h
}

// problems returns the number of adverse problems that a test draws.
func problems() int {
	return suite.Scale(60, 300, 3000)
}

// TestAdverseProblems solves adverse problems drawn at random. If the solver reports convergence, the residual
// computed in twice the digits of float64 has to be within the tolerance and Verify must not refute it. If the solver
// refuses a problem, rightlyRefused has to confirm the reason.
func TestAdverseProblems(t *testing.T) {
	count := map[string]int{}
	for i := range problems() {
		h := newAdverse(i)
		h.solve(t, count)
	}
	checkConvergedShare(t, count)
}

// solve solves the problem, checks the answer or the refusal, and counts the outcome in count.
func (h *adverseProblem) solve(t *testing.T, count map[string]int) {
	t.Helper()
	lab, err := New(h.train, h.cfg)
	if err != nil {
		t.Errorf("%s: %v", h.name, err)
		return
	}
	if h.large {
		lab.policy.ExactWork, lab.policy.RefineWork = 0, 0
	}
	sol, err := lab.Solve(t.Context())
	if err != nil {
		count["refused"]++
		if !isJustifiedRefusal(t, lab, h.rows, err) {
			t.Errorf("%s: refused without a reason: %v", h.name, err)
		}
		return
	}
	count[sol.Status.String()]++
	h.judge(t, sol)
}

// checkConvergedShare fails the test unless a third of the problems converged, because the checks mean little
// otherwise.
func checkConvergedShare(t *testing.T, count map[string]int) {
	t.Helper()
	t.Logf("%v", count)
	if count["converged"] < problems()/3 {
		t.Errorf("%d of %d converged: %v", count["converged"], problems(), count)
	}
}

// judge checks the solution with the residuals computed in twice the digits of float64 and with Verify. It returns
// these residuals.
func (h *adverseProblem) judge(t *testing.T, sol *Solution) []float64 {
	t.Helper()
	want := trueResiduals(h.cfg.Kernel, h.rows, h.cfg.Lambda, sol.Model.C, sol.System.Y)
	for j, r := range want {
		if sol.Converged() && !(r <= h.cfg.Tol*(1+1e-12)) {
			t.Errorf("%s: column %d is called converged by the residual %s, which is %.3g; reported %.3g, rounding %.3g, "+
				"storage %.3g", h.name, j, sol.ResidualKind, r, sol.ColumnTrueResiduals[j], sol.ColumnRoundings,
				sol.ColumnStorageResiduals)
		}
		if sol.ColumnRoundings != nil && math.Abs(r-sol.ColumnTrueResiduals[j]) > sol.ColumnRoundings[j]*(1+1e-9) {
			t.Errorf("%s: column %d has a residual of %.6g, reported %.6g ± %.2g", h.name, j, r,
				sol.ColumnTrueResiduals[j],
				sol.ColumnRoundings[j])
		}
	}
	if v := h.verify(t, sol, 1); v != nil {
		testkit.Near(t, largestOrNaN(want), float64(v.Residual), float64(v.Rounding)*(1+1e-9), h.name,
			float64(v.Rounding))
	}
	return want
}

// verify reports an error if the solver called the answer converged and Verify finds a residual above slack·τ. It
// returns nil if Verify has no formula for the kernel.
func (h *adverseProblem) verify(t *testing.T, sol *Solution, slack float64) *Verification {
	t.Helper()
	if _, err := kernel.ToSpec(h.cfg.Kernel); err != nil {
		return nil
	}
	v, err := Verify(t.Context(), sol.Model, VerifyOptions{Train: h.train, Passes: 1})
	if err != nil {
		t.Errorf("%s: verify: %v", h.name, err)
		return nil
	}
	if sol.Converged() && float64(v.Residual)-float64(v.Rounding) > slack*h.cfg.Tol {
		t.Errorf("%s: converged, and verify finds %.3g ± %.2g", h.name, float64(v.Residual), float64(v.Rounding))
	}
	return v
}

// pencil returns the eigenvalues of M⁻¹A in ascending order, with a bound of their relative error. It returns ok =
// false if float64 cannot compute the eigenvalues to 1 %. M is ZZᵀ+λ_pI, or I if z is nil.
func (h *adverseProblem) pencil(l *Lab, z *points.Dense32) (values []float64, relError float64, ok bool) {
	n := len(h.rows)
	a, m := mat.NewSymDense(n, nil), mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			a.SetSym(i, j, quadKernel(h.cfg.Kernel, h.rows[i], h.rows[j]).hi)
			if z != nil {
				var s float64
				for c, v := range z.Row(i) {
					s += float64(v) * float64(z.Row(j)[c])
				}
				m.SetSym(i, j, s)
			}
		}
		a.SetSym(i, i, a.At(i, i)+h.cfg.Lambda)
		m.SetSym(i, i, m.At(i, i)+ridge(l))
	}
	var chol mat.Cholesky
	if !chol.Factorize(m) {
		return nil, 0, false
	}
	var lower mat.TriDense
	chol.LTo(&lower)
	var w, b mat.Dense
	if w.Solve(&lower, a) != nil || b.Solve(&lower, w.T()) != nil { // L⁻¹AL⁻ᵀ
		return nil, 0, false
	}
	var eig mat.EigenSym
	if !eig.Factorize(testkit.Symmetric(&b), false) {
		return nil, 0, false
	}
	values = eig.Values(nil)
	// A and M have backward errors of a few n·u. Multiplication by L⁻¹ and L⁻ᵀ amplifies them to at most
	// n·u·κ(M)·λ_max, which is divided by the smallest eigenvalue.
	relError = 10 * float64(n) * 0x1p-53 * chol.Cond() * values[n-1] / values[0]
	return values, relError, values[0] > 0 && relError < 0.01
}

// TestAdverseCertificates checks on adverse problems that the intervals of κ(M⁻¹A) and of s_λ cover the dense
// reference at their confidence of 95 %, that the lower end of an interval is at most its upper end, that the certain
// bounds of κ always hold, and that only problems for which rightlyRefused finds a reason are refused.
func TestAdverseCertificates(t *testing.T) {
	type coverage struct{ covered, missed int }
	var kappa, statDim coverage
	certain := 0 // number of certain bounds of κ
	for i := range problems() {
		h := newAdverse(i)
		if h.cfg.Solver == Direct || h.cfg.Solver == AutoSolver {
			h.cfg.Solver = PCG
		}
		lab, err := New(h.train, h.cfg)
		if err != nil {
			t.Fatalf("%s: %v", h.name, err)
		}
		q, err := lab.Quality(t.Context(), QualityOptions{MaxExactN: -1, NoSolve: true, Width: 0.05})
		if err != nil {
			if !isJustifiedRefusal(t, lab, h.rows, err) {
				t.Errorf("%s: %v", h.name, err)
			}
			continue
		}
		for name, v := range map[string]estimate.Interval{"κ": q.Kappa, "λ_min": q.Min, "λ_max": q.Max} {
			if !(v.Lo <= v.Hi) {
				t.Errorf("%s: %s in [%g, %g]", h.name, name, v.Lo, v.Hi)
			}
		}
		for _, step := range q.Trace {
			if !(step.Min.Lo <= step.Min.Hi && step.Max.Lo <= step.Max.Hi) {
				t.Errorf("%s: step %d: λ_min in [%g, %g], λ_max in [%g, %g]", h.name, step.Step, step.Min.Lo,
					step.Min.Hi, step.Max.Lo, step.Max.Hi)
				break
			}
		}
		testkit.Equal(t, q.Indefinite, math.IsNaN(q.Min.Value), h.name, q.Min.Value)
		z := wholeZ(t, lab)
		values, relError, ok := h.pencil(lab, z)
		if !ok {
			continue
		}
		n := len(values)
		want := values[n-1] / values[0]
		if q.Kappa.Lo <= want*(1+relError) && want*(1-relError) <= q.Kappa.Hi {
			kappa.covered++
		} else {
			kappa.missed++
			t.Logf("%s: κ = %.6g, in [%.6g, %.6g]", h.name, want, q.Kappa.Lo, q.Kappa.Hi)
		}
		if q.KappaUpperBound > 0 {
			certain++
			if q.Kappa.Lo > q.KappaUpperBound {
				t.Errorf("%s: κ in [%.6g, %.6g], certainly at most %.6g", h.name, q.Kappa.Lo, q.Kappa.Hi,
					q.KappaUpperBound)
			}
			if want*(1-relError) > q.KappaUpperBound {
				t.Errorf("%s: κ = %.6g, certainly at most %.6g", h.name, want, q.KappaUpperBound)
			}
		}
		s, err := lab.StatDim(t.Context(), StatDimOptions{})
		if err != nil {
			t.Errorf("%s: s_λ: %v", h.name, err)
			continue
		}
		want = h.statDim(t)
		if e := 1e-9 * want; s.Estimate.Lo <= want+e && want-e <= s.Estimate.Hi {
			statDim.covered++
		} else {
			statDim.missed++
			t.Logf("%s: s_λ = %.9g, in [%.9g, %.9g] by %s", h.name, want, s.Estimate.Lo, s.Estimate.Hi, s.Method)
		}
	}
	t.Logf("κ covered %d of %d, s_λ %d of %d, %d certain bounds of κ", kappa.covered, kappa.covered+kappa.missed,
		statDim.covered, statDim.covered+statDim.missed, certain)
	for name, r := range map[string]coverage{"κ": kappa, "s_λ": statDim} {
		trials := float64(r.covered + r.missed)
		// The number of misses is at most binomial with probability 0.05. Three standard deviations are allowed.
		if allowed := 0.05*trials + 3*math.Sqrt(0.05*0.95*trials); float64(r.missed) > allowed {
			t.Errorf("%s: the interval of 95 %% missed %d of %.0f", name, r.missed, trials)
		}
		if r.covered < problems()/10 {
			t.Errorf("%s: only %d intervals cover, want %d", name, r.covered, problems()/10)
		}
	}
	if certain < problems()/20 {
		t.Errorf("only %d problems have a certain bound of κ, want %d", certain, problems()/20)
	}
}

// statDim returns the statistical dimension tr K(K+λI)⁻¹ from the eigenvalues of the dense K.
func (h *adverseProblem) statDim(t *testing.T) float64 {
	n := len(h.rows)
	k := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			k.SetSym(i, j, quadKernel(h.cfg.Kernel, h.rows[i], h.rows[j]).hi)
		}
	}
	mu := testkit.Eigenvalues(t, k)
	for i := range mu {
		mu[i] = max(mu[i], 0)
	}
	return dimension(mu, h.cfg.Lambda)
}

// TestResidualByTolerance checks that a smaller tolerance does not give a larger residual, up to a factor of 1.5 or the
// rounding error of the residual. It runs with 16-bit tiles, whose answers have to be refined at small tolerances,
// and with float32 tiles.
func TestResidualByTolerance(t *testing.T) {
	x := pointsByFormat(300, 4, 5)["float64"]
	for _, storage := range []gram.Storage{gram.Fixed16, gram.Float32} {
		for _, solver := range []Solver{PCG, BlockPCG, CG} {
			last := math.Inf(1)
			for _, tol := range []float64{1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14} {
				sol := mustSolve(t, classification(x, 3),
					Config{Kernel: gauss, Lambda: 0.01, Precond: precondFor(solver, Features{S: 60}), Tol: tol,
						Solver: solver, Storage: storage, MaxIter: 2000})
				want := largestOrNaN(newReference(t, gauss, x, 0.01, sol.System.Y).residuals(sol.Model.C, sol.System.Y))
				if !(want <= max(1.5*last, largestOrNaN(sol.ColumnRoundings))) || tol >= 1e-8 && !sol.Converged() {
					t.Errorf("%v, %v, τ = %g: %s, residual %.3g, with the tolerance before %.3g", storage, solver, tol,
						sol.Status, want, last)
				}
				last = want
			}
		}
	}
}
