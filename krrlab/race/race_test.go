package race_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/race"
	"github.com/krrlab/lab/krrlab/rng"
)

// dense is a symmetric matrix whose products have the same bits for any number of columns.
type dense struct{ *mat.SymDense }

func (a dense) Dim() int { return a.SymmetricDim() }

func (a dense) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	n, k := src.Dims()
	for i := range n {
		for j := range k {
			var sum float64
			for l := range n {
				sum += float64(a.At(i, l) * src.At(l, j))
			}
			dst.Set(i, j, sum)
		}
	}
	return ctx.Err()
}

// inverse is M by its Cholesky factor.
type inverse struct{ chol mat.Cholesky }

func (m *inverse) Dim() int { return m.chol.SymmetricDim() }

func (m *inverse) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	if err := m.chol.SolveTo(dst, r); err != nil {
		return err
	}
	return ctx.Err()
}

// scaled is c·I.
type scaled struct {
	n int
	c float64
}

func (m scaled) Dim() int { return m.n }

func (m scaled) SolveTo(_ context.Context, dst, r *mat.Dense) error {
	dst.Scale(m.c, r)
	return nil
}

const (
	order = 120
	ridge = 1e-3
)

// problem is K+λI with K = UΣUᵀ, σ_j = 2^(−j/4), and right-hand sides.
func problem(t int) (a dense, k *mat.SymDense, y *mat.Dense) {
	g := rand.New(rand.NewPCG(3, 4))
	x := mat.NewDense(order, order, nil)
	y = mat.NewDense(order, t, nil)
	for i := range order {
		for j := range order {
			x.Set(i, j, g.NormFloat64())
		}
		for j := range t {
			y.Set(i, j, g.NormFloat64())
		}
	}
	var qr mat.QR
	qr.Factorize(x)
	var q mat.Dense
	qr.QTo(&q)
	k, full := mat.NewSymDense(order, nil), mat.NewSymDense(order, nil)
	for j := range order {
		k.SymRankOne(k, math.Exp2(-float64(j)/4), q.ColView(j))
	}
	full.CopySym(k)
	for i := range order {
		full.SetSym(i, i, full.At(i, i)+ridge)
	}
	return dense{full}, k, y
}

// maker makes M = K+λ_pI: the nearer λ_p is to λ the better.
func maker(t testing.TB, k *mat.SymDense, lambdaP float64) func(context.Context) (pcg.Preconditioner, float64, error) {
	return func(context.Context) (pcg.Preconditioner, float64, error) {
		m := mat.NewSymDense(order, nil)
		m.CopySym(k)
		for i := range order {
			m.SetSym(i, i, m.At(i, i)+lambdaP)
		}
		inv := &inverse{}
		if !inv.chol.Factorize(m) {
			t.Error("not positive definite")
		}
		return inv, min(1, ridge/lambdaP), nil
	}
}

// clock makes seconds of no clock: a product takes 1, building and M⁻¹R what it says for each runner.
func clock(build, solve []float64, field func() []race.Standing) func(context.Context, []float64) error {
	return func(_ context.Context, s []float64) error {
		s[0] = 1
		for i := range build {
			its := 0
			if field != nil {
				its = field()[i].Iterations
			}
			s[3*i+1], s[3*i+2], s[3*i+3] = build[i], solve[i], solve[i]*float64(its)
		}
		return nil
	}
}

// run races with seconds of no clock.
func run(t testing.TB, y *mat.Dense, a pcg.Operator, runners []race.Runner, build, solve []float64, o race.Options) *race.Result {
	t.Helper()
	var last []race.Standing
	o.Share = clock(build, solve, func() []race.Standing {
		if last == nil {
			return make([]race.Standing, len(build))
		}
		return last
	})
	monitor := o.Monitor
	o.Monitor = func(field []race.Standing) error {
		last = field
		if monitor != nil {
			return monitor(field)
		}
		return nil
	}
	res, err := race.Run(t.Context(), a, y, runners, &o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestAlone: every runner, those that rest or wait among them, has the residuals bit for bit that it has
// alone, the winner its iterates too, and a solve that goes on from its state ends where it ends alone.
func TestAlone(t *testing.T) {
	a, k, y := problem(1)
	free := func(ctx context.Context) (pcg.Preconditioner, float64, error) {
		m, _, err := maker(t, k, 1000*ridge)(ctx)
		return m, 0, err
	}
	runners := []race.Runner{{Name: "poor", Make: free}, {Name: "good", Make: maker(t, k, 10*ridge)}, {Name: "middling", Make: maker(t, k, 50*ridge)}}
	alone := make([]*pcg.Result, 4)
	for i := range alone {
		o := &pcg.Options{Tol: 1e-9}
		var m pcg.Preconditioner
		if i > 0 {
			m, o.LambdaMin, _ = runners[i-1].Make(t.Context())
		}
		var err error
		if alone[i], err = pcg.Solve(t.Context(), a, m, y, o); err != nil || alone[i].Status != pcg.Converged {
			t.Fatal(alone[i], err)
		}
	}
	for _, finish := range []bool{false, true} {
		o := race.Options{PCG: pcg.Options{Tol: 1e-9}, Finish: finish}
		res := run(t, y, a, runners, []float64{0, 0.1, 0.2, 0.3}, []float64{0, 0.1, 0.1, 0.1}, o)
		if res.Winner != 2 {
			t.Fatalf("finish %t: winner %d, want 2: %+v", finish, res.Winner, res.Field)
		}
		for i, s := range res.Field {
			if s.Iterations+1 != len(s.Residuals) && s.Phase != race.Waiting {
				t.Errorf("%s: %d iterations, %d residuals", s.Name, s.Iterations, len(s.Residuals))
			}
			for j, v := range s.Residuals {
				if want := alone[i].History.RelRes[j][0]; v != want {
					t.Fatalf("%s: residual %v after %d iterations, %v alone", s.Name, v, j, want)
				}
			}
			for j, v := range s.Bounds {
				if want := alone[i].History.Error[j+1][0]; v != want {
					t.Fatalf("%s: bound %v after %d iterations, %v alone", s.Name, v, j+1, want)
				}
			}
		}
		if len(res.Field[2].Bounds) != res.Field[2].Iterations || res.Field[1].Bounds != nil {
			t.Errorf("bounds of %d and %d iterations, want %d and none", len(res.Field[2].Bounds), len(res.Field[1].Bounds), res.Field[2].Iterations)
		}
		end := res.Solved
		if finish != (end != nil) || finish != (res.State == nil) {
			t.Fatalf("finish %t: solved %v, a state of %d bytes", finish, end, len(res.State))
		}
		if !finish {
			var err error
			if end, err = pcg.Solve(t.Context(), a, res.M, y, &pcg.Options{Tol: 1e-9, LambdaMin: res.LambdaMin, Resume: res.State}); err != nil {
				t.Fatal(err)
			}
		}
		if !reflect.DeepEqual(end.X, alone[2].X) || end.Iterations != alone[2].Iterations {
			t.Errorf("finish %t: another answer, after %d iterations, than alone, after %d", finish, end.Iterations, alone[2].Iterations)
		}
		var chol mat.Cholesky
		chol.Factorize(a)
		var want mat.Dense
		if err := chol.SolveTo(&want, y); err != nil {
			t.Fatal(err)
		}
		want.Sub(&want, end.X)
		if off := mat.Norm(&want, 2); !(off <= 1e-9*mat.Norm(y, 2)/ridge) {
			t.Errorf("off the dense answer by %g", off)
		}
	}
}

// TestGram: the same with K of package gram and landmarks' like, on any number of threads: the bits of K·P do
// not depend on how many run.
func TestGram(t *testing.T) {
	const n = 400
	x := make([]float64, 3*n)
	rng.New(5).Normals(x, 0)
	data := make([]float64, n)
	rng.New(6).Normals(data, 0)
	y := mat.NewDense(n, 1, data)
	for _, storage := range []gram.Storage{gram.Float32, gram.Float64, gram.Recompute} {
		a, err := gram.New(t.Context(), kernel.Gaussian{Sigma: 1}, points.NewDense(n, 3, x), 0.1, &gram.Options{Storage: storage})
		if err != nil {
			t.Fatal(err)
		}
		m := func(c float64) func(context.Context) (pcg.Preconditioner, float64, error) {
			return func(context.Context) (pcg.Preconditioner, float64, error) { return scaled{n, c}, 0, nil }
		}
		alone, err := pcg.Solve(t.Context(), a, scaled{n, 2}, y, nil)
		if err != nil {
			t.Fatal(err)
		}
		was := runtime.GOMAXPROCS(0)
		for _, threads := range []int{1, 3} {
			runtime.GOMAXPROCS(threads)
			res := run(t, y, a, []race.Runner{{Name: "a", Make: m(2)}, {Name: "b", Make: m(3)}}, make([]float64, 3), []float64{0.5, 0.1, 0.2}, race.Options{Finish: true})
			if res.Winner < 0 {
				t.Fatalf("%v: %+v", storage, res.Field)
			}
			if s := res.Field[1]; s.Iterations < 4 {
				t.Errorf("%v: %d iterations of the first", storage, s.Iterations)
			} else {
				for j, v := range s.Residuals {
					if want := alone.History.RelRes[j][0]; v != want {
						t.Fatalf("%v, %d threads: residual %v after %d iterations, %v alone", storage, threads, v, j, want)
					}
				}
			}
		}
		runtime.GOMAXPROCS(was)
	}
}

// TestOut: what fails is out, says why, and the others go on.
func TestOut(t *testing.T) {
	a, k, y := problem(1)
	strict := fn{order, func(ctx context.Context, dst, src *mat.Dense) error { // as K is
		for _, v := range src.RawMatrix().Data {
			if math.IsNaN(v - v) {
				return errors.New("not finite")
			}
		}
		return a.MulTo(ctx, dst, src)
	}}
	for name, c := range map[string]struct {
		make func(context.Context) (pcg.Preconditioner, float64, error)
		why  string
	}{
		"cannot be built": {func(context.Context) (pcg.Preconditioner, float64, error) { return nil, 0, errors.New("no room") }, "no room"},
		"indefinite":      {func(context.Context) (pcg.Preconditioner, float64, error) { return scaled{order, -1}, 0, nil }, "indefinite-preconditioner"},
		"not a number":    {func(context.Context) (pcg.Preconditioner, float64, error) { return scaled{order, math.NaN()}, 0, nil }, "breakdown"},
		"overflows": {func(context.Context) (pcg.Preconditioner, float64, error) {
			return scaled{order, math.MaxFloat64}, 0, nil
		}, "breakdown"},
		"a direction overflows": {func(context.Context) (pcg.Preconditioner, float64, error) {
			return &after{scaled{order, 1e-150}, 2, 1e200}, 0, nil
		}, "breakdown"},
		"fails": {func(context.Context) (pcg.Preconditioner, float64, error) {
			return &after{scaled{order, 1}, 0, 0}, 0, nil
		}, "it broke"},
		"fails on the way": {func(context.Context) (pcg.Preconditioner, float64, error) {
			return &after{scaled{order, 1}, 3, 0}, 0, nil
		}, "it broke"},
		"NaN on the way": {func(context.Context) (pcg.Preconditioner, float64, error) {
			return &after{scaled{order, 1}, 3, math.NaN()}, 0, nil
		}, "breakdown"},
		"indefinite on the way": {func(context.Context) (pcg.Preconditioner, float64, error) {
			return &after{scaled{order, 1}, 3, -1}, 0, nil
		}, "indefinite-preconditioner"},
	} {
		o := race.Options{PCG: pcg.Options{Tol: 1e-8}, Finish: true}
		res := run(t, y, strict, []race.Runner{{Name: name, Make: c.make, Iterations: 1}, {Name: "good", Make: maker(t, k, 10*ridge), Iterations: 5}},
			[]float64{0, 0.1, 0.2}, []float64{0, 0.1, 0.1}, o)
		if s := res.Field[1]; s.Phase != race.Out || !strings.Contains(s.Why, c.why) {
			t.Errorf("%s: %v, %q; want out, %q", name, s.Phase, s.Why, c.why)
		}
		if res.Winner != 2 || res.Solved == nil || res.Solved.Status != pcg.Converged {
			t.Errorf("%s: winner %d, want 2: %+v", name, res.Winner, res.Field)
		}
	}
}

// after is c·I for so many solves, and then spoils what it gives, or fails.
type after struct {
	scaled
	solves int
	spoil  float64 // 0: it fails
}

func (m *after) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	m.solves--
	switch {
	case m.solves >= 0:
		dst.Scale(m.c, r)
	case m.spoil == 0:
		return errors.New("it broke")
	default:
		dst.Scale(m.spoil, r)
	}
	return nil
}

// TestAllOut: nobody comes through, and nobody wins.
func TestAllOut(t *testing.T) {
	a, _, y := problem(1)
	bad := func(context.Context) (pcg.Preconditioner, float64, error) { return nil, 0, errors.New("no") }
	res := run(t, y, a, []race.Runner{{Name: "bad", Make: bad}}, []float64{0, 0}, []float64{0, 0}, race.Options{PCG: pcg.Options{Tol: 1e-12, MaxIter: 3}})
	if res.Winner != -1 || res.Field[0].Why != "max-iterations" || res.Field[1].Why != "no" {
		t.Errorf("winner %d: %+v", res.Winner, res.Field)
	}
}

// TestRests: one that cannot win stops, and the one that is dear to build is not built.
func TestRests(t *testing.T) {
	a, k, y := problem(1)
	built := 0
	dear := func(ctx context.Context) (pcg.Preconditioner, float64, error) {
		built++
		return maker(t, k, ridge)(ctx)
	}
	runners := []race.Runner{{Name: "good", Make: maker(t, k, 10*ridge)}, {Name: "dear", Make: dear}}
	res := run(t, y, a, runners, []float64{0, 2, 1e6}, []float64{0, 0.1, 0.1}, race.Options{PCG: pcg.Options{Tol: 1e-9}, Finish: true})
	if f := res.Field; built != 0 || f[2].Phase != race.Waiting || f[0].Phase != race.Resting || f[1].Phase != race.Done || f[0].Iterations > f[1].Iterations+12 {
		t.Errorf("built %d times: %+v", built, res.Field)
	}
	if res.Columns != res.Field[0].Iterations+res.Field[1].Iterations+1 || res.Steps >= res.Columns { // 1 for the true residual
		t.Errorf("%d products of %d columns for %d and %d iterations", res.Steps, res.Columns, res.Field[0].Iterations, res.Field[1].Iterations)
	}
}

// TestColumns: for several right-hand sides the runners take a combination of them with random signs, and
// what is measured is of all of them.
func TestColumns(t *testing.T) {
	const columns = 3
	a, k, y := problem(columns)
	g := rng.New(9)
	b := mat.NewDense(order, 1, nil)
	for c := range columns {
		for i := range order {
			b.Set(i, 0, b.At(i, 0)+[]float64{1, -1}[g.Uint64(uint64(c))&1]*y.At(i, c))
		}
	}
	want, err := pcg.Solve(t.Context(), a, nil, b, nil)
	if err != nil {
		t.Fatal(err)
	}
	counted := &counting{Operator: a}
	var wide []int
	wider := func(ctx context.Context) (pcg.Preconditioner, float64, error) {
		m, mu, err := maker(t, k, 10*ridge)(ctx)
		return fn{order, func(ctx context.Context, dst, r *mat.Dense) error {
			wide = append(wide, r.RawMatrix().Cols)
			return m.SolveTo(ctx, dst, r)
		}}, mu, err
	}
	res, err := race.Run(t.Context(), counted, y, []race.Runner{{Name: "good", Make: wider, Iterations: 3}}, &race.Options{Stream: g, Share: clock([]float64{0, 1}, []float64{0, 0.1}, nil)})
	if err != nil || res.Winner != 1 || res.State != nil || res.Solved != nil {
		t.Fatalf("winner %d, %d bytes, %v, %v", res.Winner, len(res.State), res.Solved, err)
	}
	for j, v := range res.Field[0].Residuals {
		if v != want.History.RelRes[j][0] {
			t.Fatalf("residual %v after %d iterations, want %v", v, j, want.History.RelRes[j][0])
		}
	}
	if counted.wide[0] != columns || slices.Max(counted.wide[1:]) != 2 || wide[0] != columns || slices.Max(wide[1:]) != 1 {
		t.Errorf("products of %v columns, solves of %v", counted.wide, wide)
	}
}

// counting notes how many columns products have.
type counting struct {
	pcg.Operator
	wide []int
}

func (a *counting) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	a.wide = append(a.wide, src.RawMatrix().Cols)
	return a.Operator.MulTo(ctx, dst, src)
}

// fn is an operator and preconditioner made of a function.
type fn struct {
	n int
	f func(ctx context.Context, dst, r *mat.Dense) error
}

func (m fn) Dim() int { return m.n }

func (m fn) MulTo(ctx context.Context, dst, src *mat.Dense) error { return m.f(ctx, dst, src) }

func (m fn) SolveTo(ctx context.Context, dst, r *mat.Dense) error { return m.f(ctx, dst, r) }

// TestEnded: the end of ctx, the Monitor, and a product that fails.
func TestEnded(t *testing.T) {
	a, k, y := problem(1)
	runners := []race.Runner{{Name: "good", Make: maker(t, k, 10*ridge), Iterations: 5}}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		monitor func(cancel func()) error
		want    error
	}{
		"canceled": {func(cancel func()) error { cancel(); return nil }, context.Canceled},
		"stopped":  {func(func()) error { return pcg.ErrStop }, nil},
		"broken":   {func(func()) error { return broken }, broken},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		steps := 0
		o := &race.Options{PCG: pcg.Options{Tol: 1e-9}, Share: clock([]float64{0, 0.1}, []float64{0, 0.1}, nil), Monitor: func([]race.Standing) error {
			if steps++; steps == 6 {
				return c.monitor(cancel)
			}
			return nil
		}}
		before := runtime.NumGoroutine()
		res, err := race.Run(ctx, a, y, runners, o)
		if !errors.Is(err, c.want) || res == nil || res.Winner != -1 || steps != 6 || res.Field[0].Iterations < 4 {
			t.Errorf("%s: %v after %d steps: %+v", name, err, steps, res)
		}
		for i := 0; runtime.NumGoroutine() > before; i++ { // those of a library may still be about to end
			if i > 1e6 {
				t.Fatalf("%s: %d goroutines, %d before", name, runtime.NumGoroutine(), before)
			}
			runtime.Gosched()
		}
		cancel()
	}
	failing := &failsAfter{Operator: a, left: 5, err: broken}
	if res, err := race.Run(t.Context(), failing, y, runners, nil); !errors.Is(err, broken) || res.Winner != -1 {
		t.Errorf("a product that fails: %v, %+v", err, res)
	}
	y.Set(7, 0, math.NaN())
	if _, err := race.Run(t.Context(), a, y, runners, nil); err == nil || !strings.Contains(err.Error(), "row 7") {
		t.Errorf("targets that are not finite: %v", err)
	}
	y.Zero()
	if res, err := race.Run(t.Context(), a, y, runners, nil); err != nil || res.Winner != 0 || res.Solved == nil || res.Steps != 0 {
		t.Errorf("targets of 0: %v, %+v", err, res)
	}
}

type failsAfter struct {
	pcg.Operator
	left int
	err  error
}

func (a *failsAfter) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	if a.left--; a.left < 0 {
		return a.err
	}
	return a.Operator.MulTo(ctx, dst, src)
}

// TestPanics: shapes that do not fit.
func TestPanics(t *testing.T) {
	a, _, _ := problem(1)
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	_, _ = race.Run(t.Context(), a, mat.NewDense(order-1, 1, nil), nil, nil)
}

// TestRanks: ranks whose clocks differ decide by that of the first, so that all have the same runs.
func TestRanks(t *testing.T) {
	accel.Use(nil)
	const n, size = 300, 3
	x, data := make([]float64, 3*n), make([]float64, n)
	rng.New(5).Normals(x, 0)
	rng.New(6).Normals(data, 0)
	results := make([]*race.Result, size)
	var wg sync.WaitGroup
	for r, c := range comm.Local(size, comm.Options{}) {
		wg.Go(func() {
			a, err := gram.New(t.Context(), kernel.Gaussian{Sigma: 1}, points.NewDense(n, 3, x), 0.1, &gram.Options{Comm: c})
			if err != nil {
				t.Error(err)
				return
			}
			m := func(c float64) func(context.Context) (pcg.Preconditioner, float64, error) {
				return func(context.Context) (pcg.Preconditioner, float64, error) { return scaled{n, c}, 0, nil }
			}
			results[r], err = race.Run(t.Context(), a, mat.NewDense(n, 1, slices.Clone(data)), []race.Runner{{Name: "a", Make: m(2)}, {Name: "b", Make: m(3)}}, &race.Options{
				PCG: pcg.Options{Tol: 1e-6},
				Share: func(ctx context.Context, s []float64) error {
					for i := range s {
						s[i] = float64(1 + (i*7+r*5)%11) // clocks that differ
					}
					return comm.ShareNumbers(ctx, c, s, 0)
				},
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	for r, res := range results[1:] {
		if res.Winner != results[0].Winner || !reflect.DeepEqual(res.Field, results[0].Field) || !slices.Equal(res.State, results[0].State) {
			t.Errorf("rank %d: winner %d, %+v\nrank 0: winner %d, %+v", r+1, res.Winner, res.Field, results[0].Winner, results[0].Field)
		}
	}
	if results[0].Field[1].Iterations == 0 {
		t.Error("nothing was built")
	}
}
