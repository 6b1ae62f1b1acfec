package plan

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/race"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/stage"
)

// rates are those of a machine that is not there.
func rates() Rates {
	return Rates{Machine: "made up", Read: 3e10, Gemm32: 2e11, Gemm64: 1e11, Exp: 3e9}
}

// smooth is a problem of n points in R^d.
func smooth(n, d int) *Task {
	x := points.NewDense(n, d, nil)
	rng.New(1).Normals(x.Data, 0)
	y := mat.NewDense(n, 1, nil)
	for i := range n {
		y.Set(i, 0, math.Sin(2*x.Row(i)[0])+0.3*rng.New(2).Normal(uint64(i)))
	}
	return &Task{Problem: &stage.Problem{Header: stage.Header{N: n, D: d, T: 1, Lambda: 0.05, Tol: 1e-3, Seed: 1},
		Kernel: kernel.Gaussian{Sigma: 1}, X: x, Y: y, Comm: comm.OrAlone(nil)}, Points: 8 * int64(n*d), Exact: true}
}

// chosen plans a task.
func chosen(t *testing.T, task *Task, r Rates) *Plan {
	t.Helper()
	p, err := choose(t.Context(), task, r)
	testkit.OK(t, err)
	return p
}

// pilotOf returns the pilot of a task.
func pilotOf(t *testing.T, task *Task) *Pilot {
	t.Helper()
	p, err := newPilot(t.Context(), task)
	testkit.OK(t, err)
	return p
}

// TestCache: rates that are kept are taken, what is damaged is replaced, and a folder that cannot be written stops
// nothing.
func TestCache(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	read := func() Rates {
		t.Helper()
		r, err := ReadRates(t.Context())
		if err != nil || !(min(r.Read, r.Gemm32, r.Gemm64, r.Exp) > 0) || r.Machine != here() {
			t.Fatal(r, err)
		}
		return r
	}
	if first := read(); read() != first {
		t.Error("measured again")
	}
	kept := Rates{Machine: here(), Read: 1e18, Gemm32: 1e18, Gemm64: 1e18, Exp: 1e18}
	if kept.Keep(); read() != kept {
		t.Error("what is kept is not taken")
	}
	other := kept
	other.Machine = "another"
	zero, _ := json.Marshal(Rates{Machine: here()})
	another, _ := json.Marshal(other)
	for what, text := range map[string]string{"cut off": `{"a": {`, "nothing": "", "zeros": string(zero),
		"another": string(another)} {
		testkit.OK(t, os.WriteFile(file(), []byte(text), 0o666))
		if r := read(); r.Read == 1e18 || read() != r {
			t.Errorf("%s: %+v", what, r)
		}
	}
	testkit.OK(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o666))
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "file"))
	read()
}

// TestMeasure: every rate of this machine is a positive number, and little memory is taken.
func TestMeasure(t *testing.T) {
	got := testkit.Allocated(func() {
		if r := Measure(t.Context()); !(min(r.Read, r.Gemm32, r.Gemm64, r.Exp) > 0) {
			t.Errorf("%+v", r)
		}
	})
	// with the detector pools lose what they have
	if got > 160e6 && !race.Enabled {
		t.Errorf("it allocates %d bytes", got)
	}
}

// TestPilot compares what the pilot tells of K with dense linear algebra.
func TestPilot(t *testing.T) {
	task := smooth(pilotLeast, 8) // all points
	task.Lambda, task.Kernel = 1, kernel.Gaussian{Sigma: 2}
	p := pilotOf(t, task)
	x, k := task.X.(*points.Dense), mat.NewSymDense(p.M, nil)
	order := rng.New(task.Seed).Sub("pilot").Perm(p.M)
	var sum, largest float64
	for i := range p.M {
		var row float64
		for j := range p.M {
			v := task.Kernel.Eval(x.Row(order[i]), x.Row(order[j]))
			k.SetSym(i, j, v)
			row += v
		}
		sum, largest = sum+(row-1)/float64(p.M), max(largest, row)
	}
	if p.M != pilotLeast || p.choice.Sparse != nil || math.Abs(p.Sum-sum) > 1e-9*sum || math.Abs(p.Largest-largest) > 1e-9*largest {
		t.Errorf("%+v, want sums of rows %g and %g", p, sum, largest)
	}
	var want float64 // residual of a point by those before
	for s := p.M * 4 / 5; s < p.M; s++ {
		var w mat.Cholesky
		var v mat.VecDense
		b := mat.NewVecDense(s, nil)
		for i := range s {
			b.SetVec(i, k.At(i, s))
		}
		if !w.Factorize(k.SliceSym(0, s)) || w.SolveVecTo(&v, b) != nil {
			t.Fatalf("%d points: singular", s)
		}
		want += (k.At(s, s) - mat.Dot(&v, b)) / float64(p.M-p.M*4/5)
	}
	if math.Abs(p.Left-want) > 1e-6*want || !(p.Stored > 0 && p.Exact > 0) {
		t.Errorf("%+v, want a residual of %g", p, want)
	}
	for n, m := range map[int]int{1: 1, 100: 100, 4000: 200, 30000: pilotMost} {
		if p := pilotOf(t, smooth(n, 2)); p.M != m {
			t.Errorf("n = %d: %d points, want %d", n, p.M, m)
		}
	}
}

// TestCosts: no iteration is faster than memory; less of K is read where tiles are left out; and the panels of a small
// factorization do not slow a large one.
func TestCosts(t *testing.T) {
	quick := rates()
	quick.Exp = 1e15
	for _, s := range []gram.Storage{gram.Float32, gram.Float64} {
		m := &Cost{Rates: quick, N: 40000, T: 1}
		_, v := m.iteration(&Candidate{Solver: PCG, Storage: s, S: 500})
		if least := (float64(m.kernelBytes(s)) + 8*40000*500) / quick.Read; v < least || v > 1.2*least {
			t.Errorf("%v: an iteration of %g s, memory is read in %g", s, v, least)
		}
	}
	cost := Cost{Rates: rates(), N: 30000, D: 3, T: 1, Looked: true, Entries: Entries{Stored: 1e-9, Exact: 1e-9}}
	all := Candidate{Solver: CG, Precond: None, Storage: gram.Float32, Iterations: 100}
	part := all
	cost.Of(&all)
	cost.K = &gram.Choice{Storage: gram.Float32, Bytes: gram.RankBytes(30000, gram.Float32, 1) / 100,
		Sparse: &gram.Sparse{Formed: 0.05, Kept: 0.01}}
	cost.Of(&part)
	if k := part.Seconds.Kernel / all.Seconds.Kernel; k > 0.06 || part.Seconds.Solve > 0.1*all.Seconds.Solve ||
		part.Bytes > all.Bytes/20 {
		t.Errorf("%+v of %d bytes, dense %+v of %d", part.Seconds, part.Bytes, all.Seconds, all.Bytes)
	}
	const gemm = 1e11
	if v := math.Pow(1e5, 3) / 3 / gemm / (&Cost{}).cholesky(1e5, gemm, 1); !(v > 0.87 && v < 1/1.12) {
		t.Errorf("a large factorization at %g of the rate of products", v)
	}
}

// TestChoice: what is set is held, what does not fit is refused, and the choice is the least of what is left, or as
// good.
func TestChoice(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*Task)
		want func(c *Candidate) bool
	}{
		"nothing": {func(*Task) {}, func(*Candidate) bool { return true }},
		"solver":  {func(t *Task) { t.Held.Solver = CG }, func(c *Candidate) bool { return c.Solver == CG }},
		"direct":  {func(t *Task) { t.Held.Solver = Direct }, func(c *Candidate) bool { return c.Solver == Direct }},
		"method": {func(t *Task) { t.Held.Precond, t.Held.S, t.Held.LambdaP = RPCholesky, 77, 0.3 },
			func(c *Candidate) bool { return c.Precond == RPCholesky && c.S == 77 && c.LambdaP == 0.3 }},
		"nystrom": {func(t *Task) { t.Held.Precond, t.Held.S = Nystrom, 77 },
			func(c *Candidate) bool { return c.Precond == Nystrom && c.S == 77 }},
		"rank":  {func(t *Task) { t.Held.S = 99 }, func(c *Candidate) bool { return c.S == 99 }},
		"ridge": {func(t *Task) { t.Held.LambdaP = 0.7 }, func(c *Candidate) bool { return c.LambdaP == 0.7 }},
		"neighbors": {func(t *Task) { t.Held.Precond, t.Held.Neighbors, t.Held.Named = Vecchia, 77, " --own" },
			func(c *Candidate) bool { return c.Neighbors == 77 && c.Flags() == "--solver pcg --own" }},
		"beside pivots": {func(t *Task) { t.Held.Precond, t.Held.S, t.Held.Named = Vecchia, 77, " --own" },
			func(c *Candidate) bool { return c.S == 77 && !strings.Contains(c.String(), "neighbors") }},
		"storage": {func(t *Task) { t.Held.Storage = gram.Fixed16 },
			func(c *Candidate) bool { return c.Storage == gram.Fixed16 && c.Solver != Direct }},
		"recomputed": {func(t *Task) { t.Held.Storage = gram.Recompute },
			func(c *Candidate) bool { return c.Storage == gram.Recompute }},
		"iterative": {func(t *Task) { t.Iterative = true }, func(c *Candidate) bool { return c.Solver != Direct }},
		"columns": {func(t *Task) {
			t.T = 3
			t.Held.Solver = BlockPCG
		}, func(c *Candidate) bool { return c.Solver == BlockPCG }},
		"half": {func(t *Task) { t.Memory, t.Refined = 24e5, true },
			func(c *Candidate) bool {
				return c.Refused != "" || (c.Storage == gram.Fixed16) != (c.Precond == Vecchia)
			}},
		"many columns": {func(t *Task) { t.T = 600 }, func(c *Candidate) bool { return c.Solver != BlockPCG }},
		"little memory": {func(t *Task) { t.Memory = 2e6 },
			func(c *Candidate) bool { return c.Refused != "" || c.Bytes <= 2e6 }},
	} {
		task := smooth(1200, 4)
		c.set(task)
		p := chosen(t, task, rates())
		for i, o := range p.Candidates {
			if !c.want(o) {
				t.Errorf("%s: %v, %+v", name, o, o)
			}
			s := o.Seconds
			if sum := s.Kernel + s.Features + s.Factor + s.Solve + s.Residual + s.Predict; !(sum > 0) ||
				math.Abs(sum-s.Total) > 1e-12*sum || o.Bytes <= 0 {
				t.Errorf("%s: %v: %+v, %d bytes", name, o, s, o.Bytes)
			}
			if o.Refused == "" && s.training() < p.Choice.Seconds.training() || i > 0 && o.Refused == "" &&
				p.Candidates[i-1].Refused != "" {
				t.Errorf("%s: %v is number %d, the choice %v", name, o, i, &p.Choice)
			}
		}
		if *p.Candidates[0] != p.Choice || p.Choice.Refused != "" ||
			!strings.Contains(p.Flags, "--solver "+p.Choice.Solver) {
			t.Errorf("%s: %v, by name %s", name, &p.Choice, p.Flags)
		}
	}
	task := smooth(1200, 4)
	task.Memory = 1000
	testkit.Fails(t, testkit.ErrOf(choose(t.Context(), task, rates())), "no way to solve fits")
	task = smooth(1200, 4)
	task.Held.Solver, task.Held.Precond = Direct, Nystrom
	testkit.Fails(t, testkit.ErrOf(choose(t.Context(), task, rates())), "no method whose costs it knows")
}

// TestRule: the sparse inverse where K is local, pivots where it is not, and a direct solver where factorizations are
// fast or there are near duplicates; what would change the choice does.
func TestRule(t *testing.T) {
	local := smooth(4200, 2)
	local.Kernel, local.Lambda, local.Drop = kernel.Gaussian{Sigma: 0.02}, 0.01, 1e-4
	p := chosen(t, local, rates())
	if p.Choice.Precond != Vecchia || !strings.Contains(p.Flags, "--precond vecchia") || p.Instead == nil {
		t.Errorf("a local K: %v, %v", p, p.Instead)
	}
	if p.Pilot.choice.Sparse == nil || p.Chosen(gram.Auto, 0) != &p.Pilot.choice || p.Chosen(gram.Float64, 0) != nil {
		t.Error("how K is kept is not handed on")
	}
	both := smooth(4000, 5)
	both.Kernel, both.Lambda, both.Iterative = kernel.Gaussian{Sigma: 1}, 1e-4, true
	if p = chosen(t, both, rates()); p.Choice.S != 100 || !strings.Contains(p.Flags,
		"--precond vecchia --features 100 --neighbors 15") {
		t.Errorf("neither wide nor local: %v", p)
	}
	wide := smooth(4000, 2)
	wide.Kernel, wide.Tests = kernel.Gaussian{Sigma: 3}, 7
	if p = chosen(t, wide, rates()); p.Choice.Precond != RPCholesky || p.Choice.LambdaP != ridges*wide.Lambda {
		t.Errorf("a wide kernel: %v", p)
	}
	quick := rates()
	quick.Gemm32, quick.Gemm64 = 1e16, 1e16
	if p = chosen(t, smooth(2000, 4), quick); p.Choice.Solver != Direct || p.Instead != nil || len(p.Flips) > 1 {
		t.Errorf("fast factorizations: %v", p)
	}
	near := smooth(3600, 4)
	x := near.X.(*points.Dense)
	for i := 1; i < 3600; i += 2 {
		copy(x.Row(i), x.Row(i-1))
		x.Row(i)[i%4] += math.Pow(10, -5*float64(i)/3600)
	}
	near.Lambda, near.Tol = 1e-5, 1e-5
	if p = chosen(t, near, rates()); p.Choice.Solver != Direct || p.Choice.Storage != gram.Float64 {
		t.Errorf("near duplicates: %v", p)
	}
	near.Kernel = kernel.Gaussian{Sigma: 0.2} // u‖K‖₂ is less than λ, though u·n·max k(x, x) is more
	near.Held.Solver = Direct
	if p = chosen(t, near, rates()); !slices.ContainsFunc(p.Candidates, func(c *Candidate) bool {
		return c.Storage == gram.Float32 && c.Iterations > 0
	}) {
		t.Errorf("a narrow kernel: %v", p)
	}
}

// TestGiven: a K that is given is read where it is, and planned as that.
func TestGiven(t *testing.T) {
	const n = 700
	k := points.NewDense(n, n, nil)
	x := smooth(n, 4)
	for i := range n {
		for j := range n {
			k.Row(i)[j] = x.Kernel.Eval(x.X.(*points.Dense).Row(i), x.X.(*points.Dense).Row(j))
		}
	}
	given, err := kernel.NewPrecomputed(k)
	testkit.OK(t, err)
	x.Kernel, x.X = given, kernel.Rows(n)
	for _, c := range chosen(t, x, rates()).Candidates {
		if c.Solver != Direct && c.Storage != gram.Recompute {
			t.Errorf("%v: %v", c, c.Storage)
		}
	}
}

// TestSmall: where the fixed rule holds it is direct, as stored by the rule; also of one point, with seconds that are
// finite.
func TestSmall(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 300, 1200} {
		task := smooth(n, 2)
		task.Tests, task.Small = 1, gram.Float64-gram.Storage(n%2)+1 // float64 of an odd n, else float32
		p := chosen(t, task, rates())
		if p.Choice.Solver != Direct || p.Choice.Storage != task.Small {
			t.Errorf("n = %d: %+v", n, p)
		}
		if len(p.Flips) != 1 || !strings.Contains(p.Flips[0], "fixed rule") {
			t.Errorf("n = %d: the choice is reported to change with %q", n, p.Flips)
		}
		if _, err := json.Marshal(p); err != nil {
			t.Error(n, err)
		}
	}
}

// TestTinyEntries: a plan of a K that is 0, or whose entries are about or below the least normal number, ends, also
// of one that is indefinite by their rounding.
func TestTinyEntries(t *testing.T) {
	for _, size := range []float64{0, 5e-324, 1e-310, 1e-300} {
		for name, k := range map[string]func(x, z []float64) float64{
			"rank one": func(x, z []float64) float64 { return size * x[0] * z[0] },
			"constant": func(_, _ []float64) float64 { return size },
			"full":     func(x, z []float64) float64 { return size * math.Exp(-math.Abs(x[0]-z[0])) },
		} {
			task := smooth(300, 1)
			task.Kernel = kernel.Func{Name: name, F: k}
			for _, c := range chosen(t, task, rates()).Candidates {
				if !(c.Seconds.Total >= 0) || math.IsInf(c.Seconds.Total, 1) || c.Iterations < 0 {
					t.Errorf("%s of %g: %+v", name, size, c)
				}
			}
		}
	}
}

// TestShown looks for a plan that names the BLAS by its file, without the folder of one machine, and for its pictures.
func TestShown(t *testing.T) {
	r := rates()
	r.Machine = "a processor, 2 threads, openblas 0.3.21 (/usr/lib/some-where/libopenblas.so), avx2"
	p := chosen(t, smooth(1200, 4), r)
	testkit.Contains(t, p.String(), "openblas 0.3.21 (libopenblas.so), avx2", "choice", "runner-up", "by name")
	testkit.Equal(t, len(p.Table().Rows), len(p.Candidates))
	if f := p.Plot(); len(f.Series) < 3 || f.Series[0].Y[1] != p.Choice.Seconds.Total {
		t.Errorf("%+v", f)
	}
}

// TestLate: a solve is late by the seconds predicted alone, and at its end goes over to nothing that is far more
// expensive than it was.
func TestLate(t *testing.T) {
	pcg := &Candidate{Solver: PCG, Precond: Nystrom, Iterations: 9, Seconds: Seconds{Solve: 10, Total: 10}}
	direct := &Candidate{Solver: Direct, Precond: None, Seconds: Seconds{Factor: 16, Total: 16}}
	r := &Report{Choice: *pcg, Seconds: pcg.Seconds, Instead: direct} // an iteration takes 1 s
	for _, c := range []struct {
		done      int
		low, left float64
		late      bool
	}{{3, 100, 200, false}, {4, 16, 45, true}, {4, 15, 42, false}, {4, math.Inf(1), math.Inf(1), true}, {16, 1, 2.1,
		true}, {16, 1, 2, false}, {17, 0, 1, false}, {18, 0, 1, true}} {
		testkit.Equal(t, r.Late(c.done, c.low, c.left), c.late, c)
	}
	r.Seconds = Seconds{Kernel: 4, Solve: 10, Total: 14} // K and M count
	if !r.Late(0, 16, 45) || !r.Late(12, 1, 2.1) {
		t.Error("what was spent before the iterations does not count")
	}
	if r.Worth(1) || !r.Worth(2) || (*Report)(nil).Worth(9) {
		t.Error("an end that is worth 16 s is not 1.6 s")
	}
	if (*Report)(nil).Late(1e9, 1e9, 1e9) || (&Report{}).Late(1e9, 1e9, 1e9) {
		t.Error("late without a plan")
	}
}

// TestTouch: every matrix that is formed takes the time of writing its bytes for the first time.
func TestTouch(t *testing.T) {
	const n, s = 10_000, 100
	for _, c := range []Candidate{{Solver: PCG, Precond: Features, S: s}, {Solver: PCG, Precond: Nystrom, S: s},
		{Solver: PCG, Precond: RPCholesky, S: s}, {Solver: Direct}} {
		c.Storage = gram.Float64
		var total [2]float64
		slow := Reference()
		slow.Touch = 1e6
		for i, r := range []Rates{Reference(), slow} {
			Cost{Rates: r, N: n, D: 5, T: 1}.Of(&c)
			total[i] = c.Seconds.Total
		}
		if more := (total[1] - total[0]) / (1e-6 * (8*n*n/2 + 4*n*float64(c.S))); more < 0.95 || more > 1.1 {
			t.Errorf("%v, %v: %g of the bytes", c.Solver, c.Precond, more)
		}
	}
}
