package plan

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/race"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	decision "github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// rates are those of a machine that is not there.
func rates() Rates {
	return Rates{Machine: "made up", Read: 3e10, Touch: 2e9, Gemm32: 2e11, Gemm64: 1e11, Potrf32: 1e11, Potrf64: 5e10, Exp: 3e9, Cos: 3e9,
		Product: [3]float64{3e-11, 4e-11, 6e-11}, Apply: [3]float64{1e-10, 2e-10, 4e-10}, Nystrom: 1e-8, RPCholesky: 1.2e-8, Gram: 4e-9,
		Scan: 3e-8, Rows: 4e9, Sparse: [3]float64{1.5e-9, 4e-9, 1e-8}, Seconds: 1}
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
	mine.Machine, mine.Gemm32 = here(), 1e18 // no machine is faster
	measured.Lock()
	before, share := measured.Rates, measured.share
	measured.Rates, measured.share = mine, 1 // what this process measures
	measured.Unlock()
	t.Cleanup(func() { measured.Rates, measured.share = before, share })
	name := filepath.Join(t.TempDir(), "sub", "rates.json")
	read := func(name string) Rates {
		t.Helper()
		r, err := ReadRates(t.Context(), name, 0, math.MaxInt)
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
	}{{1, 1.4, 20, true}, {1, 0.7, 20, true}, {1, 1.6, 20, false}, {1, 0.6, 20, false}, {1, 3, 0.9, true}} {
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
	busy := mine
	busy.Gemm32 = 1
	if err := os.WriteFile(name, []byte(encode(t, busy)), 0o666); err != nil {
		t.Fatal(err)
	}
	measured.Lock()
	measured.Rates = Rates{}
	measured.Unlock()
	for _, file := range []string{name, ""} { // nothing is that much slower: the file is of something else
		if r, err := ReadRates(t.Context(), file, 0, few-1); err != nil || !r.sane() || math.Abs(r.Read/r.Gemm32*Reference().Gemm32/Reference().Read-1) > 1e-12 || math.Abs(r.Potrf64/r.Gemm64*Reference().Gemm64/Reference().Potrf64-1) > 1e-12 {
			t.Errorf("for few points, file %q: %+v, %v", file, r, err)
		}
	}
	if b, err := os.ReadFile(name); err != nil || string(b) != encode(t, busy) {
		t.Errorf("for few points: the file is now %s, %v", b, err)
	}
	if r := read(name); r.Gemm32 < 2 || r.Gemm32 == mine.Gemm32 {
		t.Errorf("rates of a busy machine are taken: %+v", r)
	}
}

// TestFaster: all rates go up by the same factor.
func TestFaster(t *testing.T) {
	one := Reference()
	r, v, w := one.faster(2), reflect.ValueOf(one), reflect.ValueOf(one.faster(2))
	for i := range v.NumField() {
		switch name := v.Type().Field(i).Name; name {
		case "Machine", "Seconds": // the same
		case "Nystrom", "RPCholesky", "Gram", "Scan":
			if w.Field(i).Float() != v.Field(i).Float()/2 {
				t.Errorf("%s is %g, and was %g", name, w.Field(i).Float(), v.Field(i).Float())
			}
		case "Product", "Apply", "Sparse":
			for j := range v.Field(i).Len() {
				if w.Field(i).Index(j).Float() != v.Field(i).Index(j).Float()/2 {
					t.Errorf("%s is %v, and was %v", name, w.Field(i), v.Field(i))
				}
			}
		default:
			if w.Field(i).Float() != 2*v.Field(i).Float() {
				t.Errorf("%s is %g, and was %g", name, w.Field(i).Float(), v.Field(i).Float())
			}
		}
	}
	if r.Machine != one.Machine || r.Seconds != one.Seconds {
		t.Errorf("%+v", r)
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
		if r, err := Measure(t.Context(), memory); err != nil || !r.sane() || r.Machine != here() || !slices.IsSorted(r.Product[:]) || !slices.IsSorted(r.Apply[:]) {
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
	if _, err := ReadRates(t.Context(), name, 3e6, math.MaxInt); err != nil {
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
	task := smooth(400, 8)
	task.settle()
	p, err := newPilot(t.Context(), task, rates())
	if err != nil || p.M != 256 || p.choice != nil {
		t.Fatalf("%+v, %v", p, err)
	}
	order := p.rows
	at := func(i, j int) float64 {
		return task.Kernel.Eval(task.X.(*points.Dense).Row(order[i]), task.X.(*points.Dense).Row(order[j]))
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
		if !w.Factorize(k) {
			t.Fatalf("%d points: singular", s)
		}
		var x mat.VecDense
		if err := w.SolveVecTo(&x, b); err != nil {
			t.Fatal(err)
		}
		want := at(s, s) - mat.Dot(&x, b)
		if got := p.e[s]; math.Abs(got-want) > 1e-6 {
			t.Errorf("residual of a point by %d others: %g, want %g", s, got, want)
		}
	}
	if a, b, c := p.residual(20), p.residual(100), p.residual(250); !(a > b && b > c && c > 0) {
		t.Errorf("residuals %g, %g, %g do not fall", a, b, c)
	}
}

// TestCosts: no iteration is faster than memory; an iteration in float32 leaves what products with float32 tiles are off, so that a small τ takes a second residual;
// entries are timed as they are computed; and the panels of a small factorization do not slow a large one.
func TestCosts(t *testing.T) {
	task := smooth(1500, 4)
	task.Tol, task.Precond = 1e-6, Nystrom
	residual := func(s gram.Storage, tol float64) float64 {
		task.Storage, task.Tol = s, tol
		p, err := Choose(t.Context(), task, rates())
		if err != nil {
			t.Fatal(err)
		}
		n, k := float64(task.n), p.Choice.Seconds.Kernel
		if touch := float64(gram.RankBytes(task.n, p.Choice.Storage, 1)) / rates().Touch; p.Pilot.Look <= 0 || math.Abs(k-touch-n*n/2*p.Pilot.Stored) > 1e-12 {
			t.Errorf("%g s of looking at K, and %g of forming it", p.Pilot.Look, k)
		}
		return p.Choice.Seconds.Residual / p.Pilot.Exact
	}
	one, two, wide := residual(gram.Float32, 1e-2), residual(gram.Float32, 1e-6), residual(gram.Float64, 1e-6)
	if n := 1500. * 1500 / 2; one < n || two < 2*n || wide > 1.5*n+two/4 {
		t.Errorf("residuals of %g entries at 0.01, %g at 1e-6, and %g in float64, of %g", one, two, wide, n)
	}
	quick := rates()
	quick.Product, quick.Apply = [3]float64{1e-13, 1e-13, 1e-13}, [3]float64{1e-13, 1e-13, 1e-13} // of a cache
	for _, s := range []gram.Storage{gram.Float32, gram.Float64} {
		bytes, _, v := (&Cost{Rates: quick, N: 40000, T: 1}).iteration(&Candidate{Solver: PCG, Storage: s, S: 500})
		if least := (bytes + 8*40000*500) / quick.Read; v < least || v > 1.1*least {
			t.Errorf("%v: an iteration of %g s, memory is read in %g", s, v, least)
		}
	}
	const gemm, potrf = 1e11, 5e10
	if v := cholesky(potrfOrder, gemm, potrf) * potrf * 3 / math.Pow(potrfOrder, 3); math.Abs(v-1) > 1e-12 {
		t.Errorf("%g times what was measured", v)
	}
	if v := math.Pow(1e5, 3) / 3 / gemm / cholesky(1e5, gemm, potrf); !(v > 0.87 && v < 1/1.12) {
		t.Errorf("a large factorization at %g of the rate of products", v)
	}
}

// TestSize: the pilot grows with n, beyond 1,024 points as its cost is to stay a fortieth of forming K.
func TestSize(t *testing.T) {
	for n, want := range map[int]int{1: 1, 200: 200, 2000: 256, 4000: 500, 10000: 1024, 200000: 4096} {
		p := &Pilot{task: &Task{n: n}, Entries: Entries{Stored: 1e-9, Columns: 3e-9}}
		if m := p.size(rates()); m != want {
			t.Errorf("n = %d: %d points, want %d", n, m, want)
		}
	}
	p := &Pilot{task: &Task{n: 200000, Memory: 2e8}, Entries: Entries{Stored: 1e-9, Columns: 3e-9}}
	if m := p.size(rates()); m < 1024 || 16*m*m > 5e7 {
		t.Errorf("%d points in a memory of 200 MB", m)
	}
}

// TestGrown: tiles of predictions are timed where the pilot has more points than tiles are timed of.
func TestGrown(t *testing.T) {
	task := smooth(6000, 2)
	task.Tests = 1
	task.settle()
	p, err := newPilot(t.Context(), task, rates())
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := p.x.Dims(); p.M <= n || p.Test == 0 {
		t.Errorf("%d points, %d of whose tiles are timed, %g s an entry", p.M, n, p.Test)
	}
}

// TestPredictions: ‖c‖₂ is estimated from a subsample within a factor of 1.4, and the tiles of predictions are those that
// package model takes with the coefficients themselves.
func TestPredictions(t *testing.T) {
	const n = 1600
	for _, lambda := range []float64{1e-3, 0.05, 2} {
		task := smooth(n, 4)
		task.Lambda, task.Tests = lambda, n
		task.settle()
		k := mat.NewSymDense(n, nil)
		for i := range n {
			for j := range i + 1 {
				k.SetSym(i, j, task.Kernel.Eval(task.X.(*points.Dense).Row(i), task.X.(*points.Dense).Row(j)))
			}
			k.SetSym(i, i, 1+lambda)
		}
		var f mat.Cholesky
		var c mat.Dense
		if !f.Factorize(k) {
			t.Fatal("singular")
		}
		if err := f.SolveTo(&c, task.Y); err != nil {
			t.Fatal(err)
		}
		m := &decision.Model{Kernel: task.Kernel, Lambda: lambda, X: task.X, C: &c}
		exact, err := m.Decision(t.Context(), task.X, &decision.Options{Float64: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, accuracy := range []float64{1e-2, 1e-8} {
			task.Predict = &decision.Options{Accuracy: accuracy}
			p, err := newPilot(t.Context(), task, rates())
			if err != nil {
				t.Fatal(err)
			}
			want := mat.Norm(&c, 2) / mat.Norm(task.Y, 2)
			t.Logf("λ = %g, %d points: ‖c‖/‖y‖ = %.4g estimated, is %.4g", lambda, p.M, p.c, want)
			if p.M >= n || p.c > 1.4*want || p.c < want/1.4 {
				t.Errorf("λ = %g, %d points: ‖c‖/‖y‖ = %g estimated, is %g", lambda, p.M, p.c, want)
			}
			k, err := gram.NewExact(task.Kernel, points.Gather(task.X, p.rows), lambda, lambda/1000, nil)
			dense := mat.NewDense(p.M, p.M, nil)
			if err == nil {
				err = k.DenseTo(t.Context(), dense)
			}
			if err != nil {
				t.Fatal(err)
			}
			arith, _, err := p.predictions(dense)
			got, err2 := m.Decision(t.Context(), task.X, task.Predict)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			if wide := mat.Equal(got, exact); (arith == kernel.Float64) != wide || p.Test <= 0 {
				t.Errorf("λ = %g, accuracy %g: %v tiles, %g s an entry; in float64 in fact: %v", lambda, accuracy, arith, p.Test, wide)
			}
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
		"16 bits":     {func(t *Task) { t.Storage, t.Lambda = gram.Fixed16, 1e-3 }, func(c *Candidate) bool { return c.Stored == "fixed16" }},
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
			if o.Refused == "" && o.Precond != Vecchia && o.Seconds.training() < p.Choice.Seconds.training() {
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
	if _, err := Choose(t.Context(), none, rates()); err == nil || !strings.Contains(err.Error(), `no method has the solver "direct" and the preconditioner "nystrom"`) {
		t.Errorf("direct with landmarks: %v", err)
	}
}

// TestKinds: a narrow kernel takes a sparse inverse, a wide one random pivots, which take what steps expects, and few points
// a direct solver; on a machine that factors slowly, too, but with fewer points.
func TestKinds(t *testing.T) {
	for name, c := range map[string]struct {
		n, d      int
		sigma     float64
		iterative bool
		want      string
	}{
		"narrow":      {2500, 3, 0.12, true, Vecchia},
		"narrow, 2":   {2500, 2, 0.03, true, Vecchia},
		"wide":        {2500, 8, 2, true, RPCholesky},
		"wide, 4":     {2500, 4, 1, true, RPCholesky},
		"few":         {500, 8, 2, false, None},
		"few, narrow": {500, 3, 0.1, false, None},
	} {
		task := smooth(c.n, c.d)
		task.Kernel, task.Iterative, task.Lambda = kernel.Gaussian{Sigma: c.sigma}, c.iterative, 0.01
		p, err := Choose(t.Context(), task, rates())
		if err != nil {
			t.Fatal(err)
		}
		if p.Choice.Precond != c.want || (p.Choice.Solver == Direct) == c.iterative {
			t.Errorf("%s: %v", name, p)
		}
		if f := p.Choice.Flags(); c.want == Vecchia && !strings.Contains(f, fmt.Sprintf("--precond vecchia --neighbors %d --damping ", p.Choice.Neighbors)) {
			t.Errorf("%s: %s", name, f)
		}
	}
}

// TestSparseTiles: of a K most of which is left out less is formed, read and held, by how it is kept.
func TestSparseTiles(t *testing.T) {
	cost := Cost{Rates: rates(), N: 30000, D: 3, T: 1, Entries: Entries{Stored: 1e-9}}
	all := Candidate{Solver: CG, Precond: None, Storage: gram.Float32, Iterations: 100}
	part := all
	cost.Of(&all)
	cost.K = &gram.Choice{Storage: gram.Float32, Bytes: gram.RankBytes(30000, gram.Float32, 1) / 100, Sparse: &gram.Sparse{Formed: 0.05, Kept: 0.01}}
	cost.Of(&part)
	if k := part.Seconds.Kernel / all.Seconds.Kernel; k > 0.06 || part.Seconds.Solve > 0.1*all.Seconds.Solve || part.Bytes > all.Bytes/20 {
		t.Errorf("%+v of %d bytes, dense %+v of %d", part.Seconds, part.Bytes, all.Seconds, all.Bytes)
	}
}

// TestFloat64: where K in float32 would cost so many rounds of refinement that a direct solver is faster, but in float64 iterations are fastest, they are chosen.
func TestFloat64(t *testing.T) {
	task := func() *Task {
		task := smooth(1500, 2)
		task.Kernel, task.Lambda, task.Tol, task.NoFeatures = kernel.Matern52{Sigma: 30}, 1e-5, 1e-6, true
		return task
	}
	quick := rates()
	quick.Product, quick.Apply = [3]float64{1e-14, 1e-14, 1e-14}, [3]float64{1e-14, 1e-14, 1e-14}
	narrow := task()
	narrow.Solver, narrow.Storage = PCG, gram.Float32
	p, err := Choose(t.Context(), narrow, quick)
	if err != nil {
		t.Fatal(err)
	}
	one := 1500 * 1500 / 2 * p.Pilot.Exact
	if p.Choice.Seconds.Residual < 11*one {
		t.Fatalf("residuals of %g s in float32, one takes %g", p.Choice.Seconds.Residual, one)
	}
	quick.Potrf64 = 1500 * 1500 * 1500 / 3 / (5 * one)
	quick.Potrf32, quick.Gemm64, quick.Gemm32 = quick.Potrf64, 1e15, 1e15
	if p, err = Choose(t.Context(), task(), quick); err != nil || p.Choice.Solver == Direct || p.Choice.Storage != gram.Float64 {
		t.Errorf("%v, %+v, %v", &p.Choice, p.Choice.Seconds, err)
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
	p, err := Choose(t.Context(), x, rates())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Candidates {
		if c.Solver != Direct && c.Storage != gram.Recompute {
			t.Errorf("%v: %v", c, c.Storage)
		}
	}
}

// TestRivals: a race is planned where it pays and there is something to decide.
func TestRivals(t *testing.T) {
	slow := rates()
	slow.Product, slow.Apply = [3]float64{1e-5, 2e-5, 4e-5}, [3]float64{1e-3, 2e-3, 3e-3} // M⁻¹R takes as long as K·P
	slow.Sparse, slow.Rows = slow.Apply, 1e6
	slow.Potrf32, slow.Potrf64 = 1e5, 1e5 // the factor of K takes longest, and that of M, which depends on the threads, next to nothing
	p, err := Choose(t.Context(), smooth(1200, 4), slow)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for i, c := range p.Rivals {
		kind := c.Precond
		if c.S == 0 {
			kind += " alone"
		}
		if kinds[kind] || c.Solver == Direct || c.Refused != "" || c.Precond != None && c.Seconds.training() > within*p.Choice.Seconds.training() || i == 0 && *c != p.Choice {
			t.Errorf("%v races against %v", c, p.Rivals[0])
		}
		kinds[kind] = true
	}
	if len(kinds) < 2 && p.Choice.Solver != Direct {
		t.Errorf("%v: rivals %v", &p.Choice, kinds)
	}
	if len(p.Rivals) > 0 { // without the memory that a race takes it is chosen all the same
		task := smooth(1200, 4)
		task.Memory = p.Choice.Bytes - 1
		alone, err := Choose(t.Context(), task, slow)
		if err != nil || alone.Choice.Bytes > task.Memory || alone.Rivals != nil {
			t.Errorf("in %d bytes: %v of %d, rivals %v, %v", task.Memory, &alone.Choice, alone.Choice.Bytes, alone.Rivals, err)
		}
	} else {
		t.Errorf("%v: no rivals", &p.Choice)
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

// TestSmall: where the fixed rule holds it is direct, as stored by the rule.
func TestSmall(t *testing.T) {
	for _, n := range []int{2, 5, 300, 1200} {
		task := smooth(n, 2)
		task.Small = gram.Float64 - gram.Storage(n%2) + 1 // float64 of an odd n, else float32
		p, err := Choose(t.Context(), task, rates())
		if err != nil || p.Choice.Solver != Direct || p.Choice.Storage != task.Small || p.Candidates[0].Storage != task.Small {
			t.Errorf("n = %d: %+v, %v", n, p, err)
		}
		if len(p.Flips) != 1 || !strings.Contains(p.Flips[0], "fixed rule") {
			t.Errorf("n = %d: the choice is said to change with %q", n, p.Flips)
		}
	}
}

// TestZero: K = 0 has a plan, that of a problem with nothing to iterate on.
func TestZero(t *testing.T) {
	for _, n := range []int{80, 6000} {
		task := smooth(n, 4)
		task.X, task.Kernel = points.NewDense(n, 4, nil), kernel.Polynomial{Gamma: 1, Degree: 2}
		p, err := Choose(t.Context(), task, rates())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Candidates {
			if !(c.Seconds.Total >= 0) || math.IsInf(c.Seconds.Total, 1) || c.Iterations < 0 {
				t.Errorf("n = %d: %+v", n, c)
			}
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

// TestZeroColumn: a column of targets that is zero tells nothing of the coefficients, and neither does the targets' unit.
func TestZeroColumn(t *testing.T) {
	const n = 1600
	var want float64
	for i, unit := range []float64{1, 1e150, 1e-200} {
		task := smooth(n, 4)
		y := mat.NewDense(n, 2, nil)
		for r := range n {
			y.Set(r, 0, unit*task.Y.At(r, 0))
		}
		task.Y = y
		task.settle()
		p, err := newPilot(t.Context(), task, rates())
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			want = p.c
		}
		if math.Abs(p.c-want) > 1e-9*want || p.c > 0.99/task.Lambda {
			t.Errorf("targets of %g: ‖c‖/‖y‖ = %g, want %g, below 1/λ = %g", unit, p.c, want, 1/task.Lambda)
		}
	}
}

// TestTiny: seconds of few points, of one too, are finite.
func TestTiny(t *testing.T) {
	for n := 1; n <= 3; n++ {
		task := smooth(n, 2)
		task.Tests = 1
		p, err := Choose(t.Context(), task, rates())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(p); err != nil {
			t.Error(n, err)
		}
	}
}

// TestTinyEntries: a plan of a K whose entries are about or below the least normal number ends, also of one that is indefinite by their rounding.
func TestTinyEntries(t *testing.T) {
	for _, size := range []float64{0, 5e-324, 1e-320, 1e-310, 1e-300} {
		for name, k := range map[string]func(x, z []float64) float64{
			"rank one": func(x, z []float64) float64 { return size * x[0] * z[0] },
			"constant": func(_, _ []float64) float64 { return size },
			"full":     func(x, z []float64) float64 { return size * math.Exp(-math.Abs(x[0]-z[0])) },
		} {
			task := smooth(300, 1)
			task.Kernel, task.NoFeatures, task.Solver, task.Precond = kernel.Func{Name: name, F: k}, true, PCG, Nystrom
			if _, err := Choose(t.Context(), task, rates()); err != nil {
				t.Errorf("%s of %g: %v", name, size, err)
			}
		}
	}
}

// TestInstead: a solve may go over to the first direct solver that is not refused and fits the machine, is late by the
// seconds predicted alone, and at its end goes over to nothing that is far dearer than it was.
func TestInstead(t *testing.T) {
	pcg := &Candidate{Solver: PCG, Precond: Nystrom, Iterations: 9, Seconds: Seconds{Solve: 10, Total: 20}}
	direct := func(total float64, bytes int64, refused string) *Candidate {
		return &Candidate{Solver: Direct, Precond: None, Seconds: Seconds{Factor: total, Total: total}, Bytes: bytes, Refused: refused}
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
		r := (&Plan{Candidates: c.list}).Of(pcg)
		if c.want < 0 != (r.Instead == nil) || c.want >= 0 && r.Instead != c.list[c.want] {
			t.Errorf("%s: %v", name, r.Instead)
		}
	}
	if r := (&Plan{Candidates: []*Candidate{direct(1, 1, "")}}).Of(direct(1, 1, "")); r.Instead != nil {
		t.Error("direct in place of direct")
	}
	r := (&Plan{Candidates: []*Candidate{pcg, direct(15, 1e6, "")}}).Of(pcg) // an iteration takes 1 s
	for _, c := range []struct {
		done      int
		low, left float64
		late      bool
	}{{3, 100, 200, false}, {4, 15, 45, true}, {4, 14, 42, false}, {4, math.Inf(1), math.Inf(1), true}, {15, 1, 2, true}, {15, 1, 1.8, false}, {29, 0, 1, false}, {30, 0, 1, true}} {
		if r.Late(c.done, c.low, c.left) != c.late {
			t.Errorf("%+v", c)
		}
	}
	if r.Worth(1) || !r.Worth(2) || (*Report)(nil).Worth(9) {
		t.Error("an end that is worth 15 s is not 1.5 s")
	}
	if (*Report)(nil).Late(1e9, 1e9, 1e9) || (&Report{}).Late(1e9, 1e9, 1e9) {
		t.Error("late without a plan")
	}
}
