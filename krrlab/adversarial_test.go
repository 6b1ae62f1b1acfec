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
	large bool // the lab treats the problem as too large for residuals in float64
}

// pick returns one of the choices, by random number i of the stream random.
func pick[T any](random rng.Stream, i uint64, choices ...T) T {
	return choices[random.IntN(i, len(choices))]
}

// logUniform returns 10^u, where u is random number i of the stream random, scaled to the interval [lo, hi].
func logUniform(random rng.Stream, i uint64, lo, hi float64) float64 {
	return math.Pow(10, lo+(hi-lo)*random.Float64(i))
}

// adversePoints draws n points of dimension d. The kind says how they are laid out, for example in distant groups or
// with duplicates.
func adversePoints(kind string, n, d int, random rng.Stream) [][]float64 {
	x := make([][]float64, n)
	normal, extra := random.Sub("normal"), random.Sub("extra")
	size := logUniform(extra, 0, 0, 7)
	groups := 2 + extra.IntN(1, 4)
	for i := range x {
		x[i] = make([]float64, d)
		for j := range d {
			x[i][j] = normal.Normal(uint64(i*d + j))
		}
		shift := 0.0
		switch kind {
		case "groups": // The rows belong to the groups in turn.
			shift = size * float64(i%groups)
		case "blocks": // The groups follow one after the other.
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
		case "cluster": // One dense cluster lies among noise.
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
	random := rng.New(77).Sub("hostile", uint64(i))
	choices, uniform := random.Sub("choice"), random.Sub("float")
	n, d, t := 20+choices.IntN(0, 130), pick(choices, 1, 1, 2, 3, 8, 30), pick(choices, 2, 1, 1, 2, 3)
	kind := pick(choices, 3, "plain", "groups", "blocks", "offset", "outliers", "duplicates", "scales", "bytes")
	problem := &adverseProblem{rows: adversePoints(kind, n, d, random)}
	x := points.NewDense(n, d, slices.Concat(problem.rows...))
	var gaps []float64 // distances between points, most of which are not neighbors
	var meanSqNorm float64
	for i := 1; i < n; i++ {
		var sqDistance float64
		for j, v := range problem.rows[i] {
			sqDistance += (v - problem.rows[(i*7)%n][j]) * (v - problem.rows[(i*7)%n][j])
			meanSqNorm += v * v / float64(n)
		}
		if sqDistance > 0 {
			gaps = append(gaps, math.Sqrt(sqDistance))
		}
	}
	gaps = append(gaps, 1)
	slices.Sort(gaps)
	sigma := gaps[len(gaps)/pick(choices, 4, 2, 2, 10)] * logUniform(uniform, 0, -2, 2)
	kernelFunc := pick[kernel.Kernel](choices, 5, kernel.Gaussian{Sigma: sigma}, kernel.Gaussian{Sigma: sigma},
		kernel.Laplacian{Sigma: sigma},
		kernel.Matern32{Sigma: sigma}, kernel.Matern52{Sigma: sigma},
		kernel.Polynomial{Gamma: logUniform(uniform, 1, -2, 0) / meanSqNorm, Coef0: uniform.Float64(2), Degree: 1 +
			choices.IntN(6, 4)})
	y := make([]float64, n*t)
	for entry := range y {
		y[entry] = math.Sin(problem.rows[entry/t][0]/gaps[len(gaps)/2]*float64(1+entry%t)) +
			0.3*random.Sub("noise").Normal(uint64(entry))
	}
	problem.train = &datasets.Dataset{Name: kind, Task: datasets.Regression, X: x, Target: y}
	if t > 1 {
		problem.train.Task, problem.train.Target = datasets.Classification, nil
		for i := range n {
			problem.train.Class = append(problem.train.Class, int(uint(math.Float64bits(y[i*t])>>20)%uint(t)))
		}
		for j := range t {
			problem.train.Class[j] = j
			problem.train.Labels = append(problem.train.Labels, fmt.Sprint(j))
		}
	}
	problem.cfg = Config{
		Kernel: kernelFunc, Lambda: logUniform(uniform, 3, -12, 1), Tol: logUniform(uniform, 4, -10, -1),
		Seed: uint64(i), MaxIter: 400,
		Storage: pick(choices, 7, gram.Auto, gram.Auto, gram.Float64, gram.Float32, gram.Recompute, gram.Fixed16),
		Solver:  pick(choices, 8, PCG, BlockPCG, CG, Direct, AutoSolver),
		Exact:   pick(choices, 10, AutoResidual, AutoResidual, ExactResidual, StoredResidual),
	}
	if i%10 == 9 { // λ large enough for 16-bit tiles, and a kernel so wide that 16 bits round more than landmarks omit
		problem.cfg.Storage, problem.cfg.Lambda, problem.cfg.Solver = gram.Fixed16, logUniform(uniform, 3, -3.5, 0),
			pick(choices, 8, PCG, BlockPCG, CG)
		problem.cfg.Kernel = kernel.Gaussian{Sigma: gaps[len(gaps)/2] * logUniform(uniform, 0, 0, 2)}
	}
	problem.cfg.Precond = None{}
	if method := pick[stage.LowRank](choices, 9, Features{}, Nystrom{}, RPCholesky{}, nil); method != nil {
		problem.cfg.Precond = withSize(method, 1+choices.IntN(11, n/2), 0)
	}
	if problem.cfg.Solver == CG || problem.cfg.Precond == Preconditioner(None{}) {
		problem.cfg.Solver, problem.cfg.Precond = CG, None{}
	}
	if problem.cfg.Solver == Direct {
		problem.cfg.Storage = pick(choices, 7, gram.Auto, gram.Float64, gram.Float32)
		problem.cfg.Precond = nil
	}
	problem.large = pick(choices, 13, false, true)
	problem.name = fmt.Sprintf("problem %d (%s, n = %d, d = %d, t = %d, %v, λ = %.2g, τ = %.2g, %v, %v, %v, "+
		"residual %v, large %v)", i, kind, n, d, t, problem.cfg.Kernel, problem.cfg.Lambda, problem.cfg.Tol,
		problem.cfg.Storage, problem.cfg.Solver, problem.cfg.Precond, problem.cfg.Exact, problem.large)
	return problem
}

// problems returns the number of adverse problems that a test draws.
func problems() int {
	return suite.Scale(60, 300, 3000)
}

// TestAdverseProblems solves adverse problems drawn at random. If the solver reports convergence, the residual computed
// in twice the digits of float64 has to be within the tolerance and Verify must not refute it. If the solver refuses a
// problem, isJustifiedRefusal has to confirm the reason.
func TestAdverseProblems(t *testing.T) {
	outcomes := map[string]int{}
	for i := range problems() {
		problem := newAdverse(i)
		problem.solve(t, outcomes)
	}
	checkConvergedShare(t, outcomes)
}

// solve solves the problem, checks the answer or the refusal, and counts the outcome in outcomes.
func (p *adverseProblem) solve(t *testing.T, outcomes map[string]int) {
	t.Helper()
	lab, err := New(p.train, p.cfg)
	if err != nil {
		t.Errorf("%s: %v", p.name, err)
		return
	}
	if p.large {
		lab.policy.ExactWork, lab.policy.RefineWork = 0, 0
	}
	sol, err := lab.Solve(t.Context())
	if err != nil {
		outcomes["refused"]++
		if !isJustifiedRefusal(t, lab, p.rows, err) {
			t.Errorf("%s: refused without a reason: %v", p.name, err)
		}
		return
	}
	outcomes[sol.Status.String()]++
	p.judge(t, sol)
}

// checkConvergedShare fails the test unless a third of the problems converged, because the checks mean little
// otherwise.
func checkConvergedShare(t *testing.T, outcomes map[string]int) {
	t.Helper()
	t.Logf("%v", outcomes)
	if outcomes["converged"] < problems()/3 {
		t.Errorf("%d of %d converged: %v", outcomes["converged"], problems(), outcomes)
	}
}

// judge checks the solution with the residuals computed in twice the digits of float64 and with Verify. It returns
// these residuals.
func (p *adverseProblem) judge(t *testing.T, sol *Solution) []float64 {
	t.Helper()
	residuals := trueResiduals(p.cfg.Kernel, p.rows, p.cfg.Lambda, sol.Model.C, sol.System.Y)
	for j, residual := range residuals {
		if sol.Converged() && !(residual <= p.cfg.Tol*(1+1e-12)) {
			t.Errorf("%s: column %d is called converged by the residual %s, which is %.3g; reported %.3g, rounding %.3g, "+
				"storage %.3g", p.name, j, sol.ResidualKind, residual, sol.ColumnTrueResiduals[j], sol.ColumnRoundings,
				sol.ColumnStorageResiduals)
		}
		if sol.ColumnRoundings != nil &&
			math.Abs(residual-sol.ColumnTrueResiduals[j]) > sol.ColumnRoundings[j]*(1+1e-9) {
			t.Errorf("%s: column %d has a residual of %.6g, reported %.6g ± %.2g", p.name, j, residual,
				sol.ColumnTrueResiduals[j],
				sol.ColumnRoundings[j])
		}
	}
	if verification := p.verify(t, sol, 1); verification != nil {
		testkit.Near(t, largestOrNaN(residuals), float64(verification.Residual),
			float64(verification.Rounding)*(1+1e-9), p.name, float64(verification.Rounding))
	}
	return residuals
}

// verify reports an error if the solver called the answer converged and Verify finds a residual above slack·τ. It
// returns nil if Verify has no formula for the kernel.
func (p *adverseProblem) verify(t *testing.T, sol *Solution, slack float64) *Verification {
	t.Helper()
	if _, err := kernel.ToSpec(p.cfg.Kernel); err != nil {
		return nil
	}
	verification, err := Verify(t.Context(), sol.Model, VerifyOptions{Train: p.train, Passes: 1})
	if err != nil {
		t.Errorf("%s: verify: %v", p.name, err)
		return nil
	}
	if sol.Converged() && float64(verification.Residual)-float64(verification.Rounding) > slack*p.cfg.Tol {
		t.Errorf("%s: converged, and verify finds %.3g ± %.2g", p.name, float64(verification.Residual),
			float64(verification.Rounding))
	}
	return verification
}

// pencil returns the eigenvalues of M⁻¹A in ascending order, with a bound of their relative error. It returns ok =
// false if float64 cannot compute the eigenvalues to 1 %. M is ZZᵀ+λ_pI, or I if z is nil.
func (p *adverseProblem) pencil(l *Lab, z *points.Dense32) (values []float64, relError float64, ok bool) {
	n := len(p.rows)
	a, m := mat.NewSymDense(n, nil), mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			a.SetSym(i, j, quadKernel(p.cfg.Kernel, p.rows[i], p.rows[j]).hi)
			if z != nil {
				var inner float64
				for column, value := range z.Row(i) {
					inner += float64(value) * float64(z.Row(j)[column])
				}
				m.SetSym(i, j, inner)
			}
		}
		a.SetSym(i, i, a.At(i, i)+p.cfg.Lambda)
		m.SetSym(i, i, m.At(i, i)+ridge(l))
	}
	var chol mat.Cholesky
	if !chol.Factorize(m) {
		return nil, 0, false
	}
	var lower mat.TriDense
	chol.LTo(&lower)
	var half, whitened mat.Dense // L⁻¹A, and then L⁻¹AL⁻ᵀ, which has the eigenvalues of M⁻¹A
	if half.Solve(&lower, a) != nil || whitened.Solve(&lower, half.T()) != nil {
		return nil, 0, false
	}
	var eig mat.EigenSym
	if !eig.Factorize(testkit.Symmetric(&whitened), false) {
		return nil, 0, false
	}
	values = eig.Values(nil)
	// A and M have backward errors of a few n·u, with the unit roundoff u = 2⁻⁵³. Multiplication by L⁻¹ and L⁻ᵀ
	// amplifies them to at most n·u·κ(M)·λ_max, which is divided by the smallest eigenvalue.
	relError = 10 * float64(n) * 0x1p-53 * chol.Cond() * values[n-1] / values[0]
	return values, relError, values[0] > 0 && relError < 0.01
}

// TestAdverseCertificates checks on adverse problems that the intervals of κ(M⁻¹A) and of s_λ cover the dense reference
// at their confidence of 95 %, that the lower end of an interval is at most its upper end, that the certain bounds of κ
// always hold, and that only problems for which isJustifiedRefusal finds a reason are refused.
func TestAdverseCertificates(t *testing.T) {
	type coverage struct{ covered, missed int } // numbers of intervals
	var kappa, statDim coverage
	certainBounds := 0 // number of certain upper bounds of κ
	for i := range problems() {
		problem := newAdverse(i)
		if problem.cfg.Solver == Direct || problem.cfg.Solver == AutoSolver {
			problem.cfg.Solver = PCG
		}
		lab, err := New(problem.train, problem.cfg)
		if err != nil {
			t.Fatalf("%s: %v", problem.name, err)
		}
		quality, err := lab.Quality(t.Context(), QualityOptions{MaxExactN: -1, NoSolve: true, Width: 0.05})
		if err != nil {
			if !isJustifiedRefusal(t, lab, problem.rows, err) {
				t.Errorf("%s: %v", problem.name, err)
			}
			continue
		}
		for name, interval := range map[string]estimate.Interval{"κ": quality.Kappa, "λ_min": quality.Min,
			"λ_max": quality.Max} {
			if !(interval.Lo <= interval.Hi) {
				t.Errorf("%s: %s in [%g, %g]", problem.name, name, interval.Lo, interval.Hi)
			}
		}
		for _, step := range quality.Trace {
			if !(step.Min.Lo <= step.Min.Hi && step.Max.Lo <= step.Max.Hi) {
				t.Errorf("%s: step %d: λ_min in [%g, %g], λ_max in [%g, %g]", problem.name, step.Step, step.Min.Lo,
					step.Min.Hi, step.Max.Lo, step.Max.Hi)
				break
			}
		}
		testkit.Equal(t, quality.Indefinite, math.IsNaN(quality.Min.Value), problem.name, quality.Min.Value)
		z := wholeZ(t, lab)
		values, relError, ok := problem.pencil(lab, z)
		if !ok {
			continue
		}
		n := len(values)
		want := values[n-1] / values[0]
		if quality.Kappa.Lo <= want*(1+relError) && want*(1-relError) <= quality.Kappa.Hi {
			kappa.covered++
		} else {
			kappa.missed++
			t.Logf("%s: κ = %.6g, in [%.6g, %.6g]", problem.name, want, quality.Kappa.Lo, quality.Kappa.Hi)
		}
		if quality.KappaUpperBound > 0 {
			certainBounds++
			if quality.Kappa.Lo > quality.KappaUpperBound {
				t.Errorf("%s: κ in [%.6g, %.6g], certainly at most %.6g", problem.name, quality.Kappa.Lo,
					quality.Kappa.Hi, quality.KappaUpperBound)
			}
			if want*(1-relError) > quality.KappaUpperBound {
				t.Errorf("%s: κ = %.6g, certainly at most %.6g", problem.name, want, quality.KappaUpperBound)
			}
		}
		result, err := lab.StatDim(t.Context(), StatDimOptions{})
		if err != nil {
			t.Errorf("%s: s_λ: %v", problem.name, err)
			continue
		}
		want = problem.statDim(t)
		if rounding := 1e-9 * want; result.Estimate.Lo <= want+rounding && want-rounding <= result.Estimate.Hi {
			statDim.covered++
		} else {
			statDim.missed++
			t.Logf("%s: s_λ = %.9g, in [%.9g, %.9g] by %s", problem.name, want, result.Estimate.Lo, result.Estimate.Hi,
				result.Method)
		}
	}
	t.Logf("κ covered %d of %d, s_λ %d of %d, %d certain bounds of κ", kappa.covered, kappa.covered+kappa.missed,
		statDim.covered, statDim.covered+statDim.missed, certainBounds)
	for name, counts := range map[string]coverage{"κ": kappa, "s_λ": statDim} {
		trials := float64(counts.covered + counts.missed)
		// The number of misses is at most binomial with probability 0.05. Three standard deviations are allowed.
		if allowed := 0.05*trials + 3*math.Sqrt(0.05*0.95*trials); float64(counts.missed) > allowed {
			t.Errorf("%s: the interval of 95 %% missed %d of %.0f", name, counts.missed, trials)
		}
		if counts.covered < problems()/10 {
			t.Errorf("%s: only %d intervals cover, want %d", name, counts.covered, problems()/10)
		}
	}
	if certainBounds < problems()/20 {
		t.Errorf("only %d problems have a certain bound of κ, want %d", certainBounds, problems()/20)
	}
}

// statDim returns the statistical dimension tr K(K+λI)⁻¹ from the eigenvalues of the dense K.
func (p *adverseProblem) statDim(t *testing.T) float64 {
	n := len(p.rows)
	k := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			k.SetSym(i, j, quadKernel(p.cfg.Kernel, p.rows[i], p.rows[j]).hi)
		}
	}
	mu := testkit.Eigenvalues(t, k)
	for i := range mu {
		mu[i] = max(mu[i], 0)
	}
	return dimension(mu, p.cfg.Lambda)
}

// TestResidualByTolerance checks that a smaller tolerance does not give a larger residual, up to a factor of 1.5 or the
// rounding error of the residual. It runs with 16-bit tiles, whose answers have to be refined at small tolerances,
// and with float32 tiles.
func TestResidualByTolerance(t *testing.T) {
	x := pointsByFormat(300, 4, 5)["float64"]
	for _, storage := range []gram.Storage{gram.Fixed16, gram.Float32} {
		for _, solver := range []Solver{PCG, BlockPCG, CG} {
			previous := math.Inf(1)
			for _, tol := range []float64{1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14} {
				sol := mustSolve(t, classification(x, 3),
					Config{Kernel: gauss, Lambda: 0.01, Precond: precondFor(solver, Features{S: 60}), Tol: tol,
						Solver: solver, Storage: storage, MaxIter: 2000})
				residual := largestOrNaN(newReference(t, gauss, x, 0.01, sol.System.Y).residuals(sol.Model.C,
					sol.System.Y))
				if !(residual <= max(1.5*previous, largestOrNaN(sol.ColumnRoundings))) || tol >= 1e-8 &&
					!sol.Converged() {
					t.Errorf("%v, %v, τ = %g: %s, residual %.3g, with the tolerance before %.3g", storage, solver, tol,
						sol.Status, residual, previous)
				}
				previous = residual
			}
		}
	}
}
