package plan

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond/recipe"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// imaginaryRates returns the rates of an imaginary machine.
func imaginaryRates() cost.Rates {
	return cost.Rates{Machine: "made up", Read: 3e10, Gemm32: 2e11, Gemm64: 1e11, Exp: 3e9}
}

// smoothTask returns a task with n points in R^d and a Gaussian kernel.
func smoothTask(n, d int) *Task {
	x, y := testkit.RandomPoints(1, n, d), mat.NewDense(n, 1, nil)
	for i := range n {
		y.Set(i, 0, math.Sin(2*x.Row(i)[0])+0.3*rng.New(2).Normal(uint64(i)))
	}
	return &Task{Problem: &stage.Problem{Header: stage.Header{N: n, D: d, T: 1, Lambda: 0.05, Tol: 1e-3, Seed: 1},
		Kernel: kernel.Gaussian{Sigma: 1}, X: x, Y: y, Comm: comm.OrAlone(nil)}, PointBytes: 8 * int64(n*d),
		ExactResidual: true}
}

// planOf returns the plan of a task on a machine with the given rates. The seconds of an entry of K are predicted from
// the rates, because the seconds that the pilot sample measures depend on the machine and its load.
func planOf(t *testing.T, task *Task, machineRates cost.Rates) *Plan {
	t.Helper()
	pilot := pilotOf(t, task)
	pilot.Entries = cost.Entries{}
	return testkit.Must(chooseByPilot(t.Context(), task, pilot, machineRates))
}

// pilotOf returns the pilot sample of a task.
func pilotOf(t *testing.T, task *Task) *Pilot {
	t.Helper()
	return testkit.Must(newPilot(t.Context(), task))
}

// TestPilot compares the row sums and the residual of the pilot sample with dense linear algebra.
func TestPilot(t *testing.T) {
	task := smoothTask(minPilotPoints, 8) // The pilot sample contains all points.
	task.Lambda, task.Kernel = 1, kernel.Gaussian{Sigma: 2}
	p := pilotOf(t, task)
	var k mat.SymDense // K in the order of the pilot sample
	k.SubsetSym(testkit.KernelMatrix(task.Kernel, task.X), rng.New(task.Seed).Sub("pilot").Perm(p.SampleSize))
	var mean, largest float64 // row sums, the mean without the diagonal
	for i := range p.SampleSize {
		row := floats.Sum(mat.Row(nil, i, &k))
		mean, largest = mean+(row-1)/float64(p.SampleSize), max(largest, row)
	}
	if p.SampleSize != minPilotPoints || p.choice.Sparse != nil || math.Abs(p.MeanRowSum-mean) > 1e-9*mean ||
		math.Abs(p.LargestRowSum-largest) > 1e-9*largest {
		t.Errorf("%+v, want row sums of the mean %g and the maximum %g", p, mean, largest)
	}
	// The residual of point s after projection on the points before it is K_ss − bᵀK⁻¹b; the last fifth is averaged.
	var want float64
	for s := p.SampleSize * 4 / 5; s < p.SampleSize; s++ {
		var factor mat.Cholesky
		var coefficients mat.VecDense
		column := mat.NewVecDense(s, nil)
		for i := range s {
			column.SetVec(i, k.At(i, s))
		}
		if !factor.Factorize(k.SliceSym(0, s)) || factor.SolveVecTo(&coefficients, column) != nil {
			t.Fatalf("%d points: singular", s)
		}
		want += (k.At(s, s) - mat.Dot(&coefficients, column)) / float64(p.SampleSize-p.SampleSize*4/5)
	}
	if math.Abs(p.Residual-want) > 1e-6*want || !(p.EntrySeconds > 0 && p.ExactEntrySeconds > 0) {
		t.Errorf("%+v, want a residual of %g", p, want)
	}
	for n, want := range map[int]int{1: 1, 100: 100, 4000: 200, 30000: maxPilotPoints} {
		if p := pilotOf(t, smoothTask(n, 2)); p.SampleSize != want {
			t.Errorf("n = %d: a pilot sample of %d points, want %d", n, p.SampleSize, want)
		}
	}
}

// TestPilotRank compares the rank of the pilot sample with a dense, randomly pivoted Cholesky factorization: with that
// many pivots tr(K−FFᵀ) is at most λ times their number, and with a fourth of them it is not. A rough kernel has no
// such rank below the size of the pilot sample.
func TestPilotRank(t *testing.T) {
	const n = 300
	for _, lambda := range []float64{1e-2, 1e-3, 1e-4} {
		task := smoothTask(n, 2)
		task.Lambda = lambda
		p := pilotOf(t, task)
		// remainingTrace returns tr(K−FFᵀ) after r steps, each of which draws pivot s with probability K_ss/tr K.
		remainingTrace := func(r int) float64 {
			k := testkit.KernelMatrix(task.Kernel, task.X)
			for step := range r {
				s, u := 0, rng.New(8).Float64(uint64(step))*mat.Trace(k)
				for u -= k.At(0, 0); u > 0 && s < n-1; u -= k.At(s, s) {
					s++
				}
				k.SymRankOne(k, -1/k.At(s, s), mat.NewVecDense(n, mat.Col(nil, s, k)))
			}
			return mat.Trace(k)
		}
		if r := p.LowRank; r <= 0 || r >= minPilotPoints || remainingTrace(r) > lambda*float64(r) ||
			remainingTrace(r/4) <= lambda*float64(r/4) {
			t.Errorf("λ = %g: rank %d leaves %g, a fourth of it %g", lambda, r, remainingTrace(r), remainingTrace(r/4))
		}
	}
	task := smoothTask(n, 8)
	task.Kernel = kernel.Laplacian{Sigma: 1}
	if r := pilotOf(t, task).LowRank; r > 0 && r < minPilotPoints {
		t.Errorf("a rough kernel: rank %d, want none", r)
	}
}

// TestChoice checks that all candidates respect the choices of the user, that candidates that need too much memory are
// refused, and that no other candidate is predicted to be faster than the choice.
func TestChoice(t *testing.T) {
	for name, test := range map[string]struct {
		fix      func(*Task)                  // sets the choice of the user
		respects func(c *cost.Candidate) bool // reports whether a candidate respects the choice
	}{
		"no choice": {func(*Task) {}, func(*cost.Candidate) bool { return true }},
		"solver": {func(t *Task) { t.Fixed.Solver = cost.CG },
			func(c *cost.Candidate) bool { return c.Solver == cost.CG }},
		"direct": {func(t *Task) { t.Fixed.Solver = cost.Direct },
			func(c *cost.Candidate) bool { return c.Solver == cost.Direct }},
		"preconditioner": {func(t *Task) { t.Fixed.Precond = recipe.RPCholesky{S: 77, LambdaP: 0.3} },
			func(c *cost.Candidate) bool {
				return c.Precond == "rpcholesky" && c.S == 77 && c.LambdaP == 0.3
			}},
		"nystrom": {func(t *Task) { t.Fixed.Precond = recipe.Nystrom{S: 77} },
			func(c *cost.Candidate) bool { return c.Precond == "nystrom" && c.S == 77 }},
		"rank": {func(t *Task) { t.Fixed.S = 99 }, func(c *cost.Candidate) bool { return c.S == 99 }},
		"ridge": {func(t *Task) { t.Fixed.LambdaP = 0.7 },
			func(c *cost.Candidate) bool { return c.LambdaP == 0.7 }},
		"neighbors": {func(t *Task) { t.Fixed.Precond = recipe.Vecchia{Neighbors: 77} },
			func(c *cost.Candidate) bool {
				return c.Neighbors == 77 && c.Flags() == "--solver pcg --precond 'vecchia neighbors=77'"
			}},
		"pivots of a sparse inverse": {func(t *Task) { t.Fixed.Precond = recipe.Vecchia{S: 77} },
			func(c *cost.Candidate) bool {
				return c.S == 77 && c.Neighbors > 0 && c.String() == "pcg, vecchia, s = 77"
			}},
		"storage": {func(t *Task) { t.Fixed.Storage = gram.Fixed16 },
			func(c *cost.Candidate) bool { return c.Storage == gram.Fixed16 && c.Solver != cost.Direct }},
		"recomputed": {func(t *Task) { t.Fixed.Storage = gram.Recompute },
			func(c *cost.Candidate) bool { return c.Storage == gram.Recompute }},
		"iterative": {func(t *Task) { t.IterativeOnly = true },
			func(c *cost.Candidate) bool { return c.Solver != cost.Direct }},
		"block solver": {func(t *Task) {
			t.T = 3
			t.Fixed.Solver = cost.BlockPCG
		}, func(c *cost.Candidate) bool { return c.Solver == cost.BlockPCG }},
		"memory for 16 bits": {func(t *Task) { t.Memory.Limit, t.MayRefine = 24e5, true },
			func(c *cost.Candidate) bool {
				return c.RefusalReason != "" || (c.Storage == gram.Fixed16) != (c.Precond == "vecchia")
			}},
		"many columns": {func(t *Task) { t.T = 600 },
			func(c *cost.Candidate) bool { return c.Solver != cost.BlockPCG }},
		"little memory": {func(t *Task) { t.Memory.Limit = 2e6 },
			func(c *cost.Candidate) bool { return c.RefusalReason != "" || c.Bytes <= 2e6 }},
	} {
		task := smoothTask(1200, 4)
		test.fix(task)
		p := planOf(t, task, imaginaryRates())
		for i, candidate := range p.Candidates {
			if !test.respects(candidate) {
				t.Errorf("%s: the candidate %v ignores the choice: %+v", name, candidate, candidate)
			}
			seconds := candidate.Seconds
			sum := seconds.Kernel + seconds.Features + seconds.Factor + seconds.Solve + seconds.Residual +
				seconds.Predict
			if !(sum > 0) || math.Abs(sum-seconds.Total) > 1e-12*sum || candidate.Bytes <= 0 {
				t.Errorf("%s: %v: seconds %+v with the sum %g, %d bytes", name, candidate, seconds, sum,
					candidate.Bytes)
			}
			if candidate.RefusalReason == "" && (seconds.Training() < p.Choice.Seconds.Training() || i > 0 &&
				p.Candidates[i-1].RefusalReason != "") {
				t.Errorf("%s: %v is number %d, after a refused one or faster than the choice %v", name, candidate, i,
					&p.Choice)
			}
		}
		if !reflect.DeepEqual(*p.Candidates[0], p.Choice) || p.Choice.RefusalReason != "" ||
			!strings.Contains(p.Flags, "--solver "+p.Choice.Solver) {
			t.Errorf("%s: the choice is %v, with the flags %s; the first candidate %v", name, &p.Choice, p.Flags,
				p.Candidates[0])
		}
	}
	task := smoothTask(1200, 4)
	task.Memory.Limit = 1000
	testkit.Fails(t, testkit.ErrOf(choose(t.Context(), task, imaginaryRates())), "no way to solve fits")
	task = smoothTask(1200, 4)
	task.Fixed.Solver, task.Fixed.Precond = cost.Direct, recipe.Nystrom{S: 9}
	testkit.Fails(t, testkit.ErrOf(choose(t.Context(), task, imaginaryRates())), "no method whose costs it knows")
}

// TestChosenMethod checks which method is chosen for local, wide and rough kernels, for fast factorizations and for
// near duplicates.
func TestChosenMethod(t *testing.T) {
	local := smoothTask(4200, 2)
	local.Kernel, local.Lambda, local.MaxDropped = kernel.Gaussian{Sigma: 0.02}, 0.01, 1e-4
	p := planOf(t, local, imaginaryRates())
	if p.Choice.Precond != "vecchia" || !strings.Contains(p.Flags, "--precond vecchia") || p.Fallback == nil {
		t.Errorf("a local K: %v, fallback %v; want vecchia and a fallback", p, p.Fallback)
	}
	if p.Pilot.choice.Sparse == nil || p.StorageChoice(gram.Auto, 0) != &p.Pilot.choice || p.StorageChoice(gram.Float64,
		0) != nil {
		t.Error("the storage choice of the pilot sample is not passed on")
	}
	mixed := smoothTask(4000, 5)
	mixed.Lambda, mixed.IterativeOnly = 1e-4, true
	mixed.Kernel = kernel.Gaussian{Sigma: 0.8}
	if p = planOf(t, mixed, imaginaryRates()); p.Choice.S != 100 || !strings.Contains(p.Flags,
		"--precond 'vecchia features=100 neighbors=15'") {
		t.Errorf("neither wide nor local: %v", p)
	}
	wide := smoothTask(4000, 2)
	wide.Kernel, wide.TestRows = kernel.Gaussian{Sigma: 3}, 7
	if p = planOf(t, wide, imaginaryRates()); p.Choice.Precond != "rpcholesky" || p.Choice.S >= 100 ||
		p.Choice.LambdaP > 1.1*wide.Lambda {
		t.Errorf("a wide kernel: %v", p)
	}
	wide.Kernel = kernel.Laplacian{Sigma: 3}
	if p = planOf(t, wide, imaginaryRates()); p.Choice.S != 200 || p.Choice.LambdaP != wide.Lambda ||
		!strings.Contains(p.Flags, "residual=0.05") {
		t.Errorf("a rough kernel: %v", p)
	}
	wide.Lambda /= 1000 // the residual of the pilot sample is 25,000 λ
	for _, candidate := range planOf(t, wide, imaginaryRates()).Candidates {
		if candidate.Precond == "rpcholesky" && (candidate.S <= 200 || candidate.LambdaP != 10*wide.Lambda) {
			t.Errorf("a rough kernel, small λ: %v", candidate)
		}
	}
	fastRates := imaginaryRates()
	fastRates.Gemm32, fastRates.Gemm64 = 1e16, 1e16
	if p = planOf(t, smoothTask(2000, 4), fastRates); p.Choice.Solver != cost.Direct || p.Fallback != nil ||
		len(p.ChangeConditions) > 1 {
		t.Errorf("fast factorizations: %v", p)
	}
	duplicates := smoothTask(3600, 4)
	x := duplicates.X.(*points.Dense)
	for i := 1; i < 3600; i += 2 {
		copy(x.Row(i), x.Row(i-1))
		x.Row(i)[i%4] += math.Pow(10, -5*float64(i)/3600)
	}
	duplicates.Lambda, duplicates.Tol = 1e-5, 1e-5
	if p = planOf(t, duplicates, imaginaryRates()); p.Choice.Solver != cost.Direct || p.Choice.Storage != gram.Float64 {
		t.Errorf("near duplicates: %v", p)
	}
	duplicates.Kernel = kernel.Gaussian{Sigma: 0.2} // for which u‖K‖₂ < λ < u·n·max k(x, x) with u = 2⁻²⁴
	duplicates.Fixed.Solver = cost.Direct
	if p = planOf(t, duplicates, imaginaryRates()); !slices.ContainsFunc(p.Candidates,
		func(candidate *cost.Candidate) bool {
			return candidate.Storage == gram.Float32 && candidate.Iterations > 0
		}) {
		t.Errorf("a narrow kernel: %v", p)
	}
}

// TestPrecomputed checks that a precomputed K is planned without storing it again.
func TestPrecomputed(t *testing.T) {
	const n = 700
	task := smoothTask(n, 4)
	k := mat.DenseCopyOf(testkit.KernelMatrix(task.Kernel, task.X))
	task.Kernel = testkit.Must(kernel.NewPrecomputed(points.NewDense(n, n, k.RawMatrix().Data)))
	task.X = kernel.PrecomputedPoints(n)
	for _, candidate := range planOf(t, task, imaginaryRates()).Candidates {
		if candidate.Solver != cost.Direct && candidate.Storage != gram.Recompute {
			t.Errorf("%v: storage %v, want %v", candidate, candidate.Storage, gram.Recompute)
		}
	}
}

// TestFixedRule checks that the fixed rule for few points leads to the direct solver in the storage of the rule, and
// that a plan for a single point has finite numbers.
func TestFixedRule(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 300, 1200} {
		task := smoothTask(n, 2)
		task.TestRows, task.DirectStorage = 1, []gram.Storage{gram.Float32, gram.Float64}[n%2]
		p := planOf(t, task, imaginaryRates())
		if p.Choice.Solver != cost.Direct || p.Choice.Storage != task.DirectStorage {
			t.Errorf("n = %d: the choice is %v in %v, want the direct solver in %v", n, &p.Choice, p.Choice.Storage,
				task.DirectStorage)
		}
		if len(p.ChangeConditions) != 1 || !strings.Contains(p.ChangeConditions[0], "fixed rule") {
			t.Errorf("n = %d: the choice is reported to change with %q", n, p.ChangeConditions)
		}
		testkit.OK(t, testkit.ErrOf(json.Marshal(p))) // Marshal returns an error for NaN and Inf.
	}
}

// TestTinyEntries checks that planning ends with finite numbers if K is zero or has subnormal entries, even if their
// rounding makes K indefinite.
func TestTinyEntries(t *testing.T) {
	for _, scale := range []float64{0, 5e-324, 1e-310, 1e-300} {
		for name, kernelFunc := range map[string]func(x, z []float64) float64{
			"rank one":  func(x, z []float64) float64 { return scale * x[0] * z[0] },
			"constant":  func(_, _ []float64) float64 { return scale },
			"full rank": func(x, z []float64) float64 { return scale * math.Exp(-math.Abs(x[0]-z[0])) },
		} {
			task := smoothTask(300, 1)
			task.Kernel = kernel.Func{Name: name, F: kernelFunc}
			for _, candidate := range planOf(t, task, imaginaryRates()).Candidates {
				if !(candidate.Seconds.Total >= 0) || math.IsInf(candidate.Seconds.Total, 1) ||
					candidate.Iterations < 0 {
					t.Errorf("%s, times %g: %+v", name, scale, candidate)
				}
			}
		}
	}
}

// TestReport checks the report, the table and the figure of a plan. The report must name the BLAS library without its
// folder.
func TestReport(t *testing.T) {
	machineRates := imaginaryRates()
	machineRates.Machine = "a processor, 2 threads, openblas 0.3.21 (/usr/lib/some-where/libopenblas.so), avx2"
	p := planOf(t, smoothTask(1200, 4), machineRates)
	testkit.Contains(t, p.String(), "openblas 0.3.21 (libopenblas.so), avx2", "choice", "runner-up", "by name")
	testkit.Equal(t, len(p.Table().Rows), len(p.Candidates))
	if figure := p.Plot(); len(figure.Series) < 3 || figure.Series[0].Y[1] != p.Choice.Seconds.Total {
		t.Errorf("the figure is %+v, want at least 3 series, and the choice to end at %g s", figure,
			p.Choice.Seconds.Total)
	}
}

// TestIsLate checks when an iteration is late according to the predicted seconds, and when the direct solver runs after
// an iteration that did not converge.
func TestIsLate(t *testing.T) {
	pcg := &cost.Candidate{Solver: cost.PCG, Precond: "nystrom", Iterations: 9,
		Seconds: cost.Seconds{Solve: 10, Total: 10}}
	direct := &cost.Candidate{Solver: cost.Direct, Precond: cost.None, Seconds: cost.Seconds{Factor: 16, Total: 16}}
	// Each of the 9 iterations and the initial residual takes 1 s.
	report := &Report{Choice: *pcg, Seconds: pcg.Seconds, Fallback: direct}
	for _, test := range []struct {
		doneIterations          int     // iterations so far
		minRemaining, remaining float64 // the smallest and the expected number of remaining iterations
		wantLate                bool
	}{
		{3, 100, 200, false}, {4, 16, 45, true}, {4, 15, 42, false}, {4, math.Inf(1), math.Inf(1), true},
		{16, 1, 2.1, true}, {16, 1, 2, false}, {17, 0, 1, false}, {18, 0, 1, true},
	} {
		testkit.Equal(t, report.IsLate(test.doneIterations, test.minRemaining, test.remaining), test.wantLate, test)
	}
	report.Seconds = cost.Seconds{Kernel: 4, Solve: 10, Total: 14}
	if !report.IsLate(0, 16, 45) || !report.IsLate(12, 1, 2.1) {
		t.Error("the seconds for K and M do not count as spent")
	}
	if report.PrefersDirect(1) || !report.PrefersDirect(2) || (*Report)(nil).PrefersDirect(9) {
		t.Error("a direct solver of 16 s must follow an iteration of at least 1.6 s, and no shorter one")
	}
	if (*Report)(nil).IsLate(1e9, 1e9, 1e9) || (&Report{}).IsLate(1e9, 1e9, 1e9) {
		t.Error("an iteration is late without a plan, or without a fallback")
	}
}

// TestFirstWrites checks that the predicted seconds include the first write of every matrix that is formed: K, 8n²/2
// bytes, and in most cases features or a factor in float32, 4ns bytes. The slow machine writes 10⁶ bytes a second for
// the first time, so that its seconds exceed those of the reference by the bytes over 10⁶.
func TestFirstWrites(t *testing.T) {
	const n, s = 10_000, 100
	for _, candidate := range []cost.Candidate{{Solver: cost.PCG, Preconditioner: recipe.Features{S: s}},
		{Solver: cost.PCG, Preconditioner: recipe.Nystrom{S: s}}, {Solver: cost.PCG,
			Preconditioner: recipe.RPCholesky{S: s}}, {Solver: cost.Direct}} {
		candidate.Storage = gram.Float64
		var total [2]float64
		slow := cost.Reference()
		slow.Touch = 1e6
		for i, machineRates := range []cost.Rates{cost.Reference(), slow} {
			cost.Model{Rates: machineRates, N: n, D: 5, T: 1}.Predict(&candidate)
			total[i] = candidate.Seconds.Total
		}
		ratio := (total[1] - total[0]) / (1e-6 * (8*n*n/2 + 4*n*float64(candidate.S)))
		if ratio < 0.95 || ratio > 1.1 { // The ratio exceeds 1 because smaller matrices are written too.
			t.Errorf("%v, %v: the first writes cost %g of the expected seconds", candidate.Solver, candidate.Precond,
				ratio)
		}
	}
}
