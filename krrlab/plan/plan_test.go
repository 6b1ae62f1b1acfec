package plan

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/race"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/lowrank"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
)

// rates are those of a machine that is not there.
func rates() Rates {
	return Rates{Machine: "made up", Read: 3e10, Touch: 2e9, Gemm32: 2e11, Gemm64: 1e11, Potrf32: 1e11, Potrf64: 5e10, Exp: 3e9, Cos: 3e9,
		Product: [3]float64{3e-11, 4e-11, 6e-11}, Apply: [3]float64{1e-10, 2e-10, 4e-10}, Seconds: 1}
}

// smooth is a problem of n points in R^d.
func smooth(n, d int) *Task {
	x := points.NewDense(n, d, nil)
	rng.New(1).Normals(x.Data, 0)
	y := mat.NewDense(n, 1, nil)
	for i := range n {
		y.Set(i, 0, math.Sin(2*x.Row(i)[0])+0.3*rng.New(2).Normal(uint64(i)))
	}
	return &Task{Kernel: kernel.Gaussian{Sigma: 1}, X: x, Y: y, Lambda: 0.05, Seed: 1, PointBytes: 8 * int64(n*d), ExactWork: 2e10}
}

// TestCache: rates that are kept are taken, those of another machine, or damaged, replaced, and a folder that
// cannot be written stops nothing.
func TestCache(t *testing.T) {
	mine := rates()
	mine.Machine = here()
	measured.Lock()
	before, share := measured.Rates, measured.share
	measured.Rates, measured.share = mine, 1 // what this process measures
	measured.Unlock()
	t.Cleanup(func() { measured.Rates, measured.share = before, share })
	name := filepath.Join(t.TempDir(), "sub", "rates.json")
	read := func(name string) Rates {
		t.Helper()
		r, err := ReadRates(t.Context(), name, 0)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if read(name) != mine {
		t.Fatal("not what was measured")
	}
	kept := mine
	kept.Gemm32 *= 2
	for want, text := range map[Rates]string{
		kept: encode(t, kept), // of this machine
	} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if read(name) != want {
			t.Error("what is kept is not taken")
		}
	}
	other, zero := kept, kept
	other.Machine, zero.Apply[1] = "another", 0
	for what, text := range map[string]string{"another machine": encode(t, other), "a zero": encode(t, zero), "cut off": encode(t, kept)[:40], "nothing": ""} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if read(name) != mine {
			t.Errorf("%s: taken", what)
		}
		if b, err := os.ReadFile(name); err != nil || string(b) != encode(t, mine)+"\n" {
			t.Errorf("%s: not replaced: %s, %v", what, b, err)
		}
	}
	for _, c := range []struct {
		predicted, took, solve float64
		stays                  bool
	}{{1, 1.4, 20, true}, {1, 0.7, 20, true}, {1, 1.6, 20, false}, {1, 0.6, 20, false}, {1, 3, 9, true}} {
		read(name)
		Doubt(name, c.predicted, c.took, c.solve)
		if _, err := os.Stat(name); (err == nil) != c.stays {
			t.Errorf("doubt %+v: %v", c, err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if read("") != mine || read(filepath.Join(file, "rates.json")) != mine {
		t.Error("without a cache")
	}
}

func encode(t *testing.T, r Rates) string {
	t.Helper()
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestMeasure: every rate of this machine is a positive number, also of what fits into half of the memory allowed; what
// was measured in less than the whole is not kept.
func TestMeasure(t *testing.T) {
	const limit = 120e6
	var memory int64
	measure := func() {
		if r, err := Measure(t.Context(), memory); err != nil || !r.sane() || r.Machine != here() {
			t.Errorf("%d bytes: %+v, %v", memory, r, err)
		}
	}
	measure()
	memory = limit
	if got := testkit.Allocated(measure); got > limit/2 && !race.Enabled { // with the detector pools lose what they have
		t.Errorf("of %g bytes it allocates %d", limit, got)
	}
	name := filepath.Join(t.TempDir(), "rates.json")
	measured.Lock()
	before, share := measured.Rates, measured.share
	measured.Rates, measured.share = Rates{}, 0
	measured.Unlock()
	t.Cleanup(func() { measured.Rates, measured.share = before, share })
	if _, err := ReadRates(t.Context(), name, 3e6); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name); err == nil {
		t.Error("rates of little memory are kept")
	}
}

// TestAt interpolates between 1, 4 and 12 columns.
func TestAt(t *testing.T) {
	v := [3]float64{1, 4, 8}
	for columns, want := range map[int]float64{1: 1, 2: 2, 4: 4, 8: 6, 12: 8, 24: 16} {
		if got := at(v, columns); math.Abs(got-want) > 1e-12 {
			t.Errorf("%d columns: %g, want %g", columns, got, want)
		}
	}
}

// TestResiduals compares the residual curve with projections by dense linear algebra.
func TestResiduals(t *testing.T) {
	task := smooth(600, 8)
	task.settle()
	p, err := newPilot(t.Context(), task, 200)
	if err != nil {
		t.Fatal(err)
	}
	k := mat.NewDense(p.M, p.M, p.k)
	for _, s := range []int{1, 20, 100} {
		var w mat.Cholesky
		if !w.Factorize(mat.NewSymDense(s, mat.DenseCopyOf(k.Slice(0, s, 0, s)).RawMatrix().Data)) {
			t.Fatalf("%d points: singular", s)
		}
		var x mat.VecDense
		if err := w.SolveVecTo(&x, k.Slice(0, s, s, s+1).(*mat.Dense).ColView(0)); err != nil {
			t.Fatal(err)
		}
		want := k.At(s, s) - mat.Dot(&x, k.Slice(0, s, s, s+1).(*mat.Dense).ColView(0))
		if got := p.e[s]; math.Abs(got-want) > 1e-6 {
			t.Errorf("residual of a point by %d others: %g, want %g", s, got, want)
		}
	}
	if a, b, c := p.residual(20), p.residual(100), p.residual(500); !(a > b && b > c && c > 0) {
		t.Errorf("residuals %g, %g, %g do not fall", a, b, c)
	}
}

// TestPredictsIterations compares predicted with actual iterations on all points: within a factor of 2, which separates
// the methods from each other, whose counts differ by more.
func TestPredictsIterations(t *testing.T) {
	task := smooth(2400, 4)
	task.settle()
	ctx := t.Context()
	p, err := newPilot(ctx, task, 600)
	if err != nil {
		t.Fatal(err)
	}
	p.clock = math.Inf(1) // on a busy machine it ends counts
	a, err := gram.New(ctx, task.Kernel, task.X, task.Lambda, &gram.Options{Storage: gram.Float64})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method string
		s      int
		ridge  float64
	}{{None, 0, 1}, {Nystrom, 120, 1}, {Nystrom, 480, 1}, {RPCholesky, 240, 10}} {
		var m pcg.Preconditioner
		if c.s > 0 {
			draw := lowrank.Nystrom
			if c.method == RPCholesky {
				draw = lowrank.RPCholesky
			}
			f, err := draw(ctx, a, c.s, rng.New(3), nil)
			if err != nil {
				t.Fatal(err)
			}
			if m, err = precond.New(ctx, f.F, c.ridge*task.Lambda, nil); err != nil {
				t.Fatal(err)
			}
		}
		res, err := pcg.Solve(ctx, a, m, task.Y, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.count(ctx, c.method, c.s, c.ridge, false, mostPilot)
		if err != nil || got > 2*res.Iterations || 2*got < res.Iterations {
			t.Errorf("%s, s = %d, λ_p = %gλ: %d iterations predicted, %v; it takes %d", c.method, c.s, c.ridge, got, err, res.Iterations)
		}
	}
}

// TestChoice: what is set is held, what does not fit is refused, and the choice is the least of what is left.
func TestChoice(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(*Task)
		want func(c *Candidate) bool
	}{
		"nothing":     {func(*Task) {}, func(*Candidate) bool { return true }},
		"solver":      {func(t *Task) { t.Solver = CG }, func(c *Candidate) bool { return c.Solver == CG }},
		"method":      {func(t *Task) { t.Precond, t.S, t.LambdaP = RPCholesky, 77, 0.3 }, func(c *Candidate) bool { return c.Precond == RPCholesky && c.S == 77 && c.LambdaP == 0.3 }},
		"rank":        {func(t *Task) { t.S = 99 }, func(c *Candidate) bool { return c.S == 99 }},
		"ridge":       {func(t *Task) { t.LambdaP = 0.7 }, func(c *Candidate) bool { return c.LambdaP == 0.7 }},
		"storage":     {func(t *Task) { t.Storage = gram.Fixed16 }, func(c *Candidate) bool { return c.Stored == "fixed16" && c.Solver != Direct }},
		"no features": {func(t *Task) { t.NoFeatures = true }, func(c *Candidate) bool { return c.Precond != Features }},
		"iterative":   {func(t *Task) { t.Iterative = true }, func(c *Candidate) bool { return c.Solver != Direct }},
		"columns": {func(t *Task) {
			t.Y = mat.NewDense(1200, 3, append(t.Y.RawMatrix().Data, make([]float64, 2400)...))
			t.Solver = BlockPCG
		}, func(c *Candidate) bool { return c.Solver == BlockPCG }},
		"little memory": {func(t *Task) { t.Memory = 2e6 }, func(c *Candidate) bool { return c.Refused != "" || c.Bytes <= 2e6 }},
	} {
		task := smooth(1200, 4)
		c.set(task)
		p, err := Choose(t.Context(), task, rates())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, o := range p.Candidates {
			if !c.want(o) {
				t.Errorf("%s: %v, %+v", name, o, o)
			}
			s := o.Seconds
			if sum := s.Kernel + s.Features + s.Factor + s.Solve + s.Residual + s.Predict; !(sum > 0) || math.Abs(sum-s.Total) > 1e-12*sum || o.Bytes <= 0 {
				t.Errorf("%s: %v: %+v of %g s", name, o, s, sum)
			}
			if o.Refused == "" && o.Seconds.training() < p.Choice.Seconds.training() {
				t.Errorf("%s: %v is chosen, %v is predicted to be faster", name, &p.Choice, o)
			}
		}
		if p.Choice.Refused != "" || p.Choice.Seconds != p.Report.Seconds || p.Flags == "" {
			t.Errorf("%s: %+v", name, p.Report)
		}
		if p.RunnerUp != nil && p.RunnerUp.Precond == p.Choice.Precond && p.RunnerUp.Solver == p.Choice.Solver {
			t.Errorf("%s: %v runs up to %v", name, p.RunnerUp, &p.Choice)
		}
		if text := p.String() + p.HTML(); !strings.Contains(text, p.Choice.String()) || len(p.Plot().Series) == 0 || len(p.Table().Rows) != len(p.Candidates) {
			t.Errorf("%s: %s", name, text)
		}
	}
	none := smooth(600, 4)
	none.Memory = 1000
	if _, err := Choose(t.Context(), none, rates()); err == nil || !strings.Contains(err.Error(), "limit is 1 kB") {
		t.Errorf("in 1000 bytes: %v", err)
	}
	none.Solver, none.Precond = Direct, Nystrom
	if _, err := Choose(t.Context(), none, rates()); err == nil || !strings.Contains(err.Error(), `nothing solves with solver "direct" and preconditioner "nystrom"`) {
		t.Errorf("direct with landmarks: %v", err)
	}
}

// TestRivals: a race is planned where it pays and there is something to decide.
func TestRivals(t *testing.T) {
	slow := rates()
	slow.Product, slow.Apply = [3]float64{1e-5, 2e-5, 4e-5}, [3]float64{1e-6, 2e-6, 3e-6}
	p, err := Choose(t.Context(), smooth(1200, 4), slow)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for i, c := range p.Rivals {
		if kinds[c.Precond] || c.Solver == Direct || c.Refused != "" || c.Precond != None && c.Seconds.training() > 2*p.Choice.Seconds.training() || i == 0 && *c != p.Choice {
			t.Errorf("%v races against %v", c, p.Rivals[0])
		}
		kinds[c.Precond] = true
	}
	if len(kinds) < 2 && p.Choice.Solver != Direct {
		t.Errorf("%v: rivals %v", &p.Choice, kinds)
	}
	for name, set := range map[string]func(*Task){
		"direct": func(t *Task) { t.Solver = Direct }, "one method": func(t *Task) { t.Precond = Nystrom }, "recomputed": func(t *Task) { t.Storage = gram.Recompute },
	} {
		task := smooth(1200, 4)
		set(task)
		if p, err := Choose(t.Context(), task, slow); err != nil || p.Rivals != nil {
			t.Errorf("%s: %v, %v", name, p.Rivals, err)
		}
	}
}

// TestSmall: where the fixed rule holds it is direct, in float64.
func TestSmall(t *testing.T) {
	for _, n := range []int{2, 5, 300, 1200} {
		task := smooth(n, 2)
		task.Small = true
		p, err := Choose(t.Context(), task, rates())
		if err != nil || p.Choice.Solver != Direct || p.Choice.Stored != "float64" {
			t.Errorf("n = %d: %+v, %v", n, p, err)
		}
		if len(p.Flips) != 1 || !strings.Contains(p.Flips[0], "fixed rule") {
			t.Errorf("n = %d: the choice is said to change with %q", n, p.Flips)
		}
	}
}

// TestAdvice: where K is of low rank beside λ, or dimensions are few and points many, another tool is named.
func TestAdvice(t *testing.T) {
	task := smooth(20000, 2)
	p, err := Choose(t.Context(), task, rates())
	if err != nil || !strings.Contains(p.Advice, "equispaced Fourier methods") {
		t.Errorf("%q, %v", p.Advice, err)
	}
	task = smooth(3000, 4)
	task.Kernel, task.Lambda = kernel.Gaussian{Sigma: 50}, 1
	if p, err = Choose(t.Context(), task, rates()); err != nil || !strings.Contains(p.Advice, "random features or landmarks") {
		t.Errorf("%q, %v", p.Advice, err)
	}
	task = smooth(3000, 4)
	if p, err = Choose(t.Context(), task, rates()); err != nil || p.Advice != "" {
		t.Errorf("%q, %v", p.Advice, err)
	}
}

// TestStringPath looks for a plan that names the BLAS by its file, without the folder of one machine.
func TestStringPath(t *testing.T) {
	p := &Plan{Rates: Rates{Machine: "a processor, 2 threads, openblas 0.3.21 (/usr/lib/some-where/libopenblas.so), avx2, version 1"}}
	if s := p.String(); !strings.Contains(s, "openblas 0.3.21 (libopenblas.so), avx2") {
		t.Errorf("no file of the BLAS, or its folder, in:\n%s", s)
	}
}
