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
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// rates are those of a machine that is not there.
func rates() Rates {
	return Rates{Machine: "made up", Read: 3e10, Gemm32: 2e11, Gemm64: 1e11, Exp: 3e9, Seconds: 1}
}

// smooth is a problem of n points in R^d.
func smooth(n, d int) *Task {
	x := points.NewDense(n, d, nil)
	rng.New(1).Normals(x.Data, 0)
	y := mat.NewDense(n, 1, nil)
	for i := range n {
		y.Set(i, 0, math.Sin(2*x.Row(i)[0])+0.3*rng.New(2).Normal(uint64(i)))
	}
	return &Task{Kernel: kernel.Gaussian{Sigma: 1}, X: x, Y: y, Lambda: 0.05, Seed: 1, PointBytes: 8 * int64(n*d),
		ExactWork: 2e10}
}

// chosen plans a task.
func chosen(t *testing.T, task *Task, r Rates) *Plan {
	t.Helper()
	p, err := choose(t.Context(), task, r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// pilotOf returns the pilot of a task.
func pilotOf(t *testing.T, task *Task) *Pilot {
	t.Helper()
	task.settle()
	p, err := newPilot(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestCache: rates that are kept are taken, beside those of other machines, what is damaged is replaced, a folder
// that cannot be written stops nothing, and rates of a busy machine are raised.
func TestCache(t *testing.T) {
	// no machine is faster
	idle := Rates{Machine: here(), Read: 1e18, Gemm32: 1e18, Gemm64: 1e18, Exp: 1e18, Seconds: 1}
	before := measured.Rates
	t.Cleanup(func() { measured.Rates = before })
	name := filepath.Join(t.TempDir(), "sub", "rates.json")
	read := func(name string) Rates {
		t.Helper()
		r, err := ReadRates(t.Context(), name, 1e8)
		if err != nil || !r.sane() {
			t.Fatal(r, err)
		}
		return r
	}
	measured.Rates = Rates{}
	idle.Keep(name)
	Reference().Keep(name)
	if read(name) != idle || inFile(name)[Reference().Machine] != Reference() {
		t.Errorf("%+v", inFile(name))
	}
	for what, text := range map[string]string{"cut off": `{"a": {`, "nothing": "",
		"a zero": `{"` + here() + `": {"machine": "` + here() + `"}}`} {
		measured.Rates = Rates{}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if r := read(name); r == idle || inFile(name)[here()] != r {
			t.Errorf("%s: %+v, and in the file %+v", what, r, inFile(name))
		}
	}
	busy := idle
	busy.Gemm32, busy.Gemm64 = 1, 1
	busy.Keep(name)
	if r := read(name); r.Read != 1e18 || r.Gemm32 < 2 || r.Gemm64 < 2 || inFile(name)[here()] != r {
		t.Errorf("rates of a busy machine are raised to %+v", r)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	measured.Rates = idle
	if read("") != idle || read(filepath.Join(file, "rates.json")) != idle {
		t.Error("without a cache")
	}
}

// TestMeasure: every rate of this machine is a positive number, also of what fits into half of the memory allowed.
func TestMeasure(t *testing.T) {
	const limit = 120e6
	var memory int64
	measure := func() {
		if r := Measure(t.Context(), memory); !r.sane() {
			t.Errorf("%d bytes: %+v", memory, r)
		}
	}
	measure()
	memory = limit
	// with the detector pools lose what they have
	if got := testkit.Allocated(measure); got > limit/2 && !race.Enabled {
		t.Errorf("of %g bytes it allocates %d", limit, got)
	}
}

// TestResiduals compares the residual curve and the norm with dense linear algebra, of targets in any unit.
func TestResiduals(t *testing.T) {
	task := smooth(400, 8)
	p := pilotOf(t, task)
	if p.M != 256 || p.choice != nil || !(p.Stored > 0 && p.Exact > 0) {
		t.Fatalf("%+v", p)
	}
	x := p.sub.(*points.Dense)
	at := func(i, j int) float64 { return task.Kernel.Eval(x.Row(i), x.Row(j)) }
	var first float64
	for i := range p.M {
		var sum float64
		for j := range 400 {
			sum += task.Kernel.Eval(x.Row(i), task.X.(*points.Dense).Row(j))
		}
		if i < sumRows {
			first = max(first, sum)
		}
	}
	if math.Abs(p.norm-first) > 1e-9*first {
		t.Errorf("rows of K sum to %g at most, want %g", p.norm, first)
	}
	for _, s := range []int{1, 20, 100} {
		k, b := mat.NewSymDense(s, nil), mat.NewVecDense(s, nil)
		for i := range s {
			b.SetVec(i, at(i, s))
			for j := range i + 1 {
				k.SetSym(i, j, at(i, j))
			}
		}
		var w mat.Cholesky
		var v mat.VecDense
		if !w.Factorize(k) || w.SolveVecTo(&v, b) != nil {
			t.Fatalf("%d points: singular", s)
		}
		if want := at(s, s) - mat.Dot(&v, b); math.Abs(p.e[s]-want) > 1e-6 {
			t.Errorf("residual of a point by %d others: %g, want %g", s, p.e[s], want)
		}
	}
	if a, b, c := p.residual(20), p.residual(100), p.residual(250); !(a > b && b > c && c > 0) {
		t.Errorf("residuals %g, %g, %g do not fall", a, b, c)
	}
	c := p.c
	y := mat.NewDense(400, 2, nil) // a column of zeros tells nothing, and neither does a unit
	y.ColView(0).(*mat.VecDense).ScaleVec(1e80, task.Y.ColView(0))
	task.Y = y
	if p = pilotOf(t, task); math.Abs(p.c-c) > 1e-9*c || c >= 1/task.Lambda {
		t.Errorf("‖c‖/‖y‖ = %g, and in another unit %g; 1/λ = %g", c, p.c, 1/task.Lambda)
	}
}

// TestSize: the pilot grows with n, up to 1,024 points.
func TestSize(t *testing.T) {
	for n, want := range map[int]int{1: 1, 200: 200, 2000: 256, 4000: 500, 9000: 1024} {
		if p := pilotOf(t, smooth(n, 2)); p.M != want {
			t.Errorf("n = %d: %d points, want %d", n, p.M, want)
		}
	}
}

// TestCosts: no iteration is faster than memory; an iteration in float32 leaves what products with float32 tiles are
// off, so that a small τ takes a second residual; less of K is read where tiles are left out; and the panels of a
// small factorization do not slow a large one.
func TestCosts(t *testing.T) {
	task := smooth(1500, 4)
	task.Precond = Nystrom
	residual := func(s gram.Storage, tol float64) float64 {
		task.Storage, task.Tol = s, tol
		p := chosen(t, task, rates())
		return p.Choice.Seconds.Residual / p.Pilot.Exact
	}
	one, two, wide := residual(gram.Float32, 1e-2), residual(gram.Float32, 1e-6), residual(gram.Float64, 1e-6)
	if n := 1500. * 1500 / 2; one < n || two < 1.5*one || wide > 1.5*one {
		t.Errorf("residuals of %g entries at 0.01, %g at 1e-6, and %g in float64, of %g", one, two, wide, n)
	}
	quick := rates()
	quick.Exp = 1e15
	for _, s := range []gram.Storage{gram.Float32, gram.Float64} {
		m := &Cost{Rates: quick, N: 40000, T: 1}
		_, v := m.iteration(&Candidate{Solver: PCG, Storage: s, S: 500})
		if least := (float64(m.kernelBytes(s)) + 8*40000*500) / quick.Read; v < least || v > 1.2*least {
			t.Errorf("%v: an iteration of %g s, memory is read in %g", s, v, least)
		}
	}
	cost := Cost{Rates: rates(), N: 30000, D: 3, T: 1, Entries: Entries{Stored: 1e-9, Exact: 1e-9}}
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
	if v := math.Pow(1e5, 3) / 3 / gemm / cholesky(1e5, gemm); !(v > 0.87 && v < 1/1.12) {
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
		"solver":  {func(t *Task) { t.Solver = CG }, func(c *Candidate) bool { return c.Solver == CG }},
		"direct":  {func(t *Task) { t.Solver = Direct }, func(c *Candidate) bool { return c.Solver == Direct }},
		"method": {func(t *Task) { t.Precond, t.S, t.LambdaP = RPCholesky, 77, 0.3 },
			func(c *Candidate) bool { return c.Precond == RPCholesky && c.S == 77 && c.LambdaP == 0.3 }},
		"nystrom": {func(t *Task) { t.Precond, t.S = Nystrom, 77 },
			func(c *Candidate) bool { return c.Precond == Nystrom && c.S == 77 }},
		"rank":  {func(t *Task) { t.S = 99 }, func(c *Candidate) bool { return c.S == 99 }},
		"ridge": {func(t *Task) { t.LambdaP = 0.7 }, func(c *Candidate) bool { return c.LambdaP == 0.7 }},
		"storage": {func(t *Task) { t.Storage = gram.Fixed16 },
			func(c *Candidate) bool { return c.Storage == gram.Fixed16 && c.Solver != Direct }},
		"recomputed": {func(t *Task) { t.Storage = gram.Recompute },
			func(c *Candidate) bool { return c.Storage == gram.Recompute }},
		"no features": {func(t *Task) { t.NoFeatures = true },
			func(c *Candidate) bool { return c.Precond != Features }},
		"iterative": {func(t *Task) { t.Iterative = true }, func(c *Candidate) bool { return c.Solver != Direct }},
		"columns": {func(t *Task) {
			t.Y = mat.NewDense(1200, 3, append(t.Y.RawMatrix().Data, make([]float64, 2400)...))
			t.Solver = BlockPCG
		}, func(c *Candidate) bool { return c.Solver == BlockPCG }},
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
			if o.Refused == "" && s.training() < margin*p.Choice.Seconds.training() || i > 0 && o.Refused == "" &&
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
	task.Solver, task.Precond = Direct, Nystrom
	testkit.Fails(t, testkit.ErrOf(choose(t.Context(), task, rates())), "no method has")
}

// TestRule: pivots where K has low rank, more of them and a larger λ_p the less they leave; the sparse inverse where
// K is local, by its rule; a direct solver where factorizations are fast; and float64 where float32 takes too many
// rounds.
func TestRule(t *testing.T) {
	ridge := func(sigma float64) (least, most float64) {
		task := smooth(2000, 4)
		task.Kernel, task.Iterative, task.Precond = kernel.Gaussian{Sigma: sigma}, true, RPCholesky
		list := chosen(t, task, rates()).Candidates
		ranks := map[int]bool{}
		least = math.Inf(1)
		for _, c := range list {
			ranks[c.S] = true
			least, most = min(least, c.LambdaP/task.Lambda), max(most, c.LambdaP/task.Lambda)
		}
		if len(list) != 3 || !ranks[50] || !ranks[100] || !ranks[200] {
			t.Errorf("ranks %v", ranks)
		}
		return least, most
	}
	if _, most := ridge(5); math.Abs(most-1) > 1e-12 {
		t.Errorf("a wide kernel: λ_p = %gλ", most)
	}
	if least, _ := ridge(0.5); math.Abs(least-ridges) > 1e-12 {
		t.Errorf("a narrow kernel: λ_p = %gλ", least)
	}
	local := smooth(4000, 2)
	local.Kernel, local.Iterative, local.Lambda = kernel.Gaussian{Sigma: 0.02}, true, 0.01
	p := chosen(t, local, rates())
	if c := &p.Choice; c.Precond != Vecchia || c.S > 0 || c.Damping == 0 ||
		!strings.Contains(p.Flags, "--precond vecchia --neighbors ") {
		t.Errorf("a local K: %v", c)
	}
	if p.Pilot.choice == nil || p.Chosen(gram.Auto, 0) != p.Pilot.choice || p.Chosen(gram.Float64, 0) != nil {
		t.Error("how K is kept is not handed on")
	}
	quick := rates()
	quick.Gemm32, quick.Gemm64 = 1e16, 1e16
	if p := chosen(t, smooth(2000, 4), quick); p.Choice.Solver != Direct || p.Instead != nil {
		t.Errorf("fast factorizations: %v", &p.Choice)
	}
	task := smooth(1500, 2)
	task.Kernel, task.Lambda, task.Tol, task.NoFeatures, task.Iterative = kernel.Matern52{Sigma: 30}, 1e-5, 1e-6, true, true
	if p := chosen(t, task, rates()); p.Choice.Storage != gram.Float64 {
		t.Errorf("%v in %v", &p.Choice, p.Choice.Storage)
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
	if err != nil {
		t.Fatal(err)
	}
	x.Kernel, x.X, x.NoFeatures = given, kernel.Rows(n), true
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
			task.Kernel, task.NoFeatures = kernel.Func{Name: name, F: k}, true
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
	if rows := len(p.Table().Rows); rows != len(p.Candidates) {
		t.Errorf("%d rows of %d candidates", rows, len(p.Candidates))
	}
	if f := p.Plot(); len(f.Series) < 4 || len(f.Marks) != 1 || f.Marks[0].Y != p.Choice.Seconds.Total {
		t.Errorf("%+v", f)
	}
}

// TestInstead: a solve may go over to the first direct solver that is not refused and fits the machine, is late by the
// seconds predicted alone, and at its end goes over to nothing that is far more expensive than it was.
func TestInstead(t *testing.T) {
	pcg := &Candidate{Solver: PCG, Precond: Nystrom, Iterations: 9, Seconds: Seconds{Solve: 10, Total: 10}}
	direct := func(total float64, bytes int64, refused string) *Candidate {
		return &Candidate{Solver: Direct, Precond: None, Seconds: Seconds{Factor: total, Total: total}, Bytes: bytes,
			Refused: refused}
	}
	for name, c := range map[string]struct {
		list []*Candidate
		want int // of the list; −1: none
	}{
		"one":                {[]*Candidate{pcg, direct(30, 1e6, "")}, 1},
		"refused":            {[]*Candidate{pcg, direct(30, 1e6, "no"), direct(40, 1e6, "")}, 2},
		"more than there is": {[]*Candidate{pcg, direct(30, 1<<60, "")}, -1},
		"none":               {[]*Candidate{pcg}, -1},
	} {
		if o := instead(c.list, pcg); c.want < 0 != (o == nil) || c.want >= 0 && o != c.list[c.want] {
			t.Errorf("%s: %v", name, o)
		}
	}
	if one := direct(1, 1, ""); instead([]*Candidate{one}, one) != nil {
		t.Error("direct instead of direct")
	}
	r := &Report{Choice: *pcg, Seconds: pcg.Seconds, Instead: direct(16, 1e6, "")} // an iteration takes 1 s
	for _, c := range []struct {
		done      int
		low, left float64
		late      bool
	}{{3, 100, 200, false}, {4, 16, 45, true}, {4, 15, 42, false}, {4, math.Inf(1), math.Inf(1), true}, {16, 1, 2.1,
		true}, {16, 1, 2, false}, {17, 0, 1, false}, {18, 0, 1, true}} {
		if r.Late(c.done, c.low, c.left) != c.late {
			t.Errorf("%+v", c)
		}
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
