package race

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
func clock(build, solve []float64) func(context.Context, []float64) error {
	return func(_ context.Context, s []float64) error {
		s[0] = 1
		for i := range build {
			s[2*i+1], s[2*i+2] = build[i], solve[i]
		}
		return nil
	}
}

// run races with seconds of no clock.
func run(t testing.TB, y *mat.Dense, a pcg.Operator, runners []runner, build, solve []float64, o terms) *outcome {
	t.Helper()
	o.share = clock(build, solve)
	res, err := hold(t.Context(), a, y, runners, &o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestAlone: every runner has the residuals bit for bit that it has alone; the winner is the first by the clocks that
// they have alone, and no other iterates longer than that takes.
func TestAlone(t *testing.T) {
	a, k, y := problem(1)
	free := func(ctx context.Context) (pcg.Preconditioner, float64, error) {
		m, _, err := maker(t, k, 1000*ridge)(ctx)
		return m, 0, err
	}
	runners := []runner{{"poor", free}, {"good", maker(t, k, 10*ridge)}, {"middling", maker(t, k, 50*ridge)}}
	alone := make([]*pcg.Result, 4)
	for i := range alone {
		o := &pcg.Options{Tol: 1e-9}
		var m pcg.Preconditioner
		if i > 0 {
			m, o.LambdaMin, _ = runners[i-1].build(t.Context())
		}
		var err error
		if alone[i], err = pcg.Solve(t.Context(), a, m, y, o); err != nil || alone[i].Status != pcg.Converged {
			t.Fatal(alone[i], err)
		}
	}
	for winner, build := range map[int][]float64{2: {0, 0.1, 0.2, 0.3}, 3: {0, 0.1, 1000, 0.3}, 0: {0, 1e6, 1e6, 1e6}} {
		solve := []float64{0, 0.1, 0.1, 0.1}
		res := run(t, y, a, runners, build, solve, terms{pcg: pcg.Options{Tol: 1e-9}})
		if res.winner != winner || res.field[winner].Phase != Done ||
			res.field[winner].Iterations != alone[winner].Iterations {
			t.Fatalf("winner %d, want %d: %+v", res.winner, winner, res.field)
		}
		end, columns := build[winner]+float64(alone[winner].Iterations)*(1+solve[winner]), 0
		for i, s := range res.field {
			columns += s.Iterations
			most := int((end - build[i]) / (1 + solve[i]))
			if s.Iterations+1 != len(s.Residuals) || i != winner && s.Iterations > max(0, most+1) || i != winner &&
				s.Iterations < most-1 {
				t.Errorf("%s: %d iterations, %d residuals, of some %d that the winner has time for", s.Name,
					s.Iterations, len(s.Residuals), most)
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
		if f := res.field; len(f[2].Bounds) != f[2].Iterations || f[1].Bounds != nil {
			t.Errorf("bounds of %d and %d iterations, want %d and none", len(f[2].Bounds), len(f[1].Bounds),
				f[2].Iterations)
		}
		if res.columns < columns || res.columns > columns || res.steps > res.columns {
			t.Errorf("%d products of %d columns for %d iterations", res.steps, res.columns, columns)
		}
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
		"cannot be built": {func(context.Context) (pcg.Preconditioner, float64, error) {
			return nil, 0,
				errors.New("no room")
		}, "no room"},
		"indefinite": {func(context.Context) (pcg.Preconditioner, float64, error) {
			return scaled{order, -1}, 0,
				nil
		}, "indefinite-preconditioner"},
		"not a number": {func(context.Context) (pcg.Preconditioner, float64,
			error) {
			return scaled{order, math.NaN()}, 0, nil
		}, "breakdown"},
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
		res := run(t, y, strict, []runner{{name, c.make}, {"good", maker(t, k, 10*ridge)}},
			[]float64{0, 0.1, 0.2}, []float64{0, 0.1, 0.1}, terms{pcg: pcg.Options{Tol: 1e-8}})
		if s := res.field[1]; s.Phase != Out || !strings.Contains(s.Why, c.why) {
			t.Errorf("%s: %v, %q; want out, %q", name, s.Phase, s.Why, c.why)
		}
		if res.winner != 2 || res.field[2].Phase != Done {
			t.Errorf("%s: winner %d, want 2: %+v", name, res.winner, res.field)
		}
	}
}

// after is c·I for that many solves, and then spoils what it gives, or fails.
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
	res := run(t, y, a, []runner{{"bad", bad}}, []float64{0, 0}, []float64{0, 0},
		terms{pcg: pcg.Options{Tol: 1e-12, MaxIter: 3}})
	if res.winner != -1 || res.field[0].Why != "max-iterations" || res.field[1].Why != "no" {
		t.Errorf("winner %d: %+v", res.winner, res.field)
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
	res, err := hold(t.Context(), counted, y, []runner{{"good", wider}},
		&terms{stream: g, pcg: pcg.Options{Tol: 1e-3}, share: clock([]float64{0, 1}, []float64{0, 0.1})})
	if err != nil || res.winner != 1 {
		t.Fatalf("winner %d, %v", res.winner, err)
	}
	for j, v := range res.field[0].Residuals {
		if v != want.History.RelRes[j][0] {
			t.Fatalf("residual %v after %d iterations, want %v", v, j, want.History.RelRes[j][0])
		}
	}
	if counted.wide[0] != columns || slices.Max(counted.wide[1:]) != 2 || wide[0] != columns ||
		slices.Max(wide[1:]) != 1 {
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

// TestEnded: the end of ctx, a product that fails, and targets that are not finite, or 0.
func TestEnded(t *testing.T) {
	a, k, y := problem(1)
	runners := []runner{{"good", maker(t, k, 10*ridge)}}
	ctx, cancel := context.WithCancel(t.Context())
	steps := 0
	o := &terms{pcg: pcg.Options{Tol: 1e-9}, share: clock([]float64{0, 0.1}, []float64{0, 0.1}),
		step: func([]Standing) {
			if steps++; steps == 6 {
				cancel()
			}
		}}
	before := runtime.NumGoroutine()
	res, err := hold(ctx, a, y, runners, o)
	if !errors.Is(err, context.Canceled) || res == nil || res.winner != -1 || steps != 6 ||
		res.field[0].Iterations < 4 {
		t.Errorf("%v after %d steps: %+v", err, steps, res)
	}
	for i := 0; runtime.NumGoroutine() > before; i++ { // those of a library may still be about to end
		if i > 1e6 {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		runtime.Gosched()
	}
	broken := errors.New("broken")
	failing := &failsAfter{Operator: a, left: 5, err: broken}
	if res, err := hold(t.Context(), failing, y, runners, nil); !errors.Is(err, broken) || res.winner != -1 {
		t.Errorf("a product that fails: %v, %+v", err, res)
	}
	y.Set(7, 0, math.NaN())
	if _, err := hold(t.Context(), a, y, runners, nil); err == nil || !strings.Contains(err.Error(), "row 7") {
		t.Errorf("targets that are not finite: %v", err)
	}
	y.Zero()
	if res, err := hold(t.Context(), a, y, runners, nil); err != nil || res.winner != 0 || res.steps != 0 {
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

// TestRanks: ranks whose clocks differ decide by that of the first, so that all have the same runs.
func TestRanks(t *testing.T) {
	accel.Use(nil)
	const n, size = 300, 3
	x, data := make([]float64, 3*n), make([]float64, n)
	rng.New(5).Normals(x, 0)
	rng.New(6).Normals(data, 0)
	results := make([]*outcome, size)
	var wg sync.WaitGroup
	for r, c := range comm.Local(size, comm.Options{}) {
		wg.Go(func() {
			a, err := gram.New(t.Context(), kernel.Gaussian{Sigma: 1}, points.NewDense(n, 3, x), 0.1,
				&gram.Options{Comm: c})
			if err != nil {
				t.Error(err)
				return
			}
			m := func(c float64) func(context.Context) (pcg.Preconditioner, float64, error) {
				return func(context.Context) (pcg.Preconditioner, float64, error) { return scaled{n, c}, 0, nil }
			}
			results[r], err = hold(t.Context(), a, mat.NewDense(n, 1, slices.Clone(data)),
				[]runner{{"a", m(2)}, {"b", m(3)}}, &terms{
					pcg: pcg.Options{Tol: 1e-6},
					share: func(ctx context.Context, s []float64) error {
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
		if res.winner != results[0].winner || !reflect.DeepEqual(res.field, results[0].field) {
			t.Errorf("rank %d: winner %d, %+v\nrank 0: winner %d, %+v", r+1, res.winner, res.field, results[0].winner,
				results[0].field)
		}
	}
}
