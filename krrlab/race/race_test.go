package race

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/stage"
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

// near makes M = K+λ_pI: the nearer λ_p is to λ the better.
func near(t testing.TB, k *mat.SymDense, lambdaP float64) maker {
	return func(context.Context) (pcg.Preconditioner, error) {
		m := mat.NewSymDense(order, nil)
		m.CopySym(k)
		for i := range order {
			m.SetSym(i, i, m.At(i, i)+lambdaP)
		}
		inv := &inverse{}
		if !inv.chol.Factorize(m) {
			t.Error("not positive definite")
		}
		return inv, nil
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

// run races to τ with seconds of no clock.
func run(ctx context.Context, y *mat.Dense, a pcg.Operator, makers []maker, tol float64, maxIter int,
	share func(context.Context, []float64) error, tell func(*Racer)) (*Result, error) {
	r := &Result{Header: stage.Header{Tol: tol}, Winner: -1, Racers: make([]Racer, len(makers))}
	for i := range r.Racers {
		r.Racers[i].Phase = Running
	}
	if tell == nil {
		tell = func(*Racer) {}
	}
	err := (&race{Result: r, a: a, tell: tell}).hold(ctx, y, makers, maxIter, rng.New(9), share)
	return r, err
}

// TestAlone: every racer has the residuals bit for bit that it has alone; the winner is the first by the clocks that
// they have alone, and no other begins an iteration that would end after it.
func TestAlone(t *testing.T) {
	a, k, y := problem(1)
	makers := []maker{nil, near(t, k, 1000*ridge), near(t, k, 10*ridge), near(t, k, 50*ridge)}
	alone := make([]*pcg.Result, len(makers))
	for i, build := range makers {
		var m pcg.Preconditioner
		if build != nil {
			m, _ = build(t.Context())
		}
		var err error
		if alone[i], err = pcg.Solve(t.Context(), a, m, y, &pcg.Options{Tol: 1e-9}); err != nil ||
			alone[i].Status != pcg.Converged {
			t.Fatal(alone[i], err)
		}
	}
	for winner, build := range map[int][]float64{2: {0, 0.1, 0.2, 0.3}, 3: {0, 0.1, 1000, 0.3}, 0: {0, 1e6, 1e6, 1e6}} {
		solve := []float64{0, 0.1, 0.1, 0.1}
		res, err := run(t.Context(), y, a, makers, 1e-9, 1000, clock(build, solve), nil)
		if err != nil || res.Winner != winner || res.Best().Phase != Done ||
			res.Best().Iterations != alone[winner].Iterations {
			t.Fatalf("winner %d, want %d: %v, %+v", res.Winner, winner, err, res.Racers)
		}
		end, columns := build[winner]+float64(alone[winner].Iterations)*(1+solve[winner]), 0
		for i, s := range res.Racers {
			columns += s.Iterations
			most := int((end - build[i]) / (1 + solve[i])) // more only beside those that are as far
			if s.Iterations+1 != len(s.Residuals) || s.Iterations > max(most, alone[winner].Iterations) ||
				s.Phase == Running && s.Iterations < most-1 {
				t.Errorf("%d: %v after %d iterations, %d residuals, of some %d that the winner has time for", i,
					s.Phase, s.Iterations, len(s.Residuals), most)
			}
			for j, v := range s.Residuals {
				if want := alone[i].History.RelRes[j][0]; v != want {
					t.Fatalf("%d: residual %v after %d iterations, %v alone", i, v, j, want)
				}
			}
		}
		if res.Columns != columns || res.Steps > columns {
			t.Errorf("%d products of %d columns for %d iterations", res.Steps, res.Columns, columns)
		}
	}
}

// TestOut: what fails is out, says why, and the others go on.
func TestOut(t *testing.T) {
	a, k, y := problem(1)
	is := func(m pcg.Preconditioner) maker {
		return func(context.Context) (pcg.Preconditioner, error) { return m, nil }
	}
	for why, make := range map[string]maker{
		"no room":                   func(context.Context) (pcg.Preconditioner, error) { return nil, errors.New("no room") },
		"indefinite-preconditioner": is(scaled{order, -1}),
		"breakdown":                 is(scaled{order, math.NaN()}),
		"it broke":                  is(&after{scaled{order, 1}, 0, 0}),
		"it broke ":                 is(&after{scaled{order, 1}, 3, 0}),
		"breakdown ":                is(&after{scaled{order, 1}, 3, math.NaN()}),
	} {
		res, err := run(t.Context(), y, a, []maker{nil, make, near(t, k, 10*ridge)}, 1e-8, 1000,
			clock([]float64{0, 0.1, 0.2}, []float64{0, 0.1, 0.1}), nil)
		if s := res.Racers[1]; err != nil || s.Phase != Out || s.Why != strings.TrimSpace(why) {
			t.Errorf("%v, %v, %q; want out, %q", err, s.Phase, s.Why, why)
		}
		if res.Winner != 2 || res.Best().Phase != Done {
			t.Errorf("%s: winner %d, want 2: %+v", why, res.Winner, res.Racers)
		}
	}
	// nobody comes through
	res, err := run(t.Context(), y, a, []maker{nil, is(scaled{order, -1})}, 1e-12, 3,
		clock([]float64{0, 0}, []float64{0, 0}), nil)
	if err != nil || res.Winner != -1 || res.Best() != nil || res.Racers[0].Why != "max-iterations" {
		t.Errorf("winner %d: %+v", res.Winner, res.Racers)
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
	wider := func(ctx context.Context) (pcg.Preconditioner, error) {
		m, err := near(t, k, 10*ridge)(ctx)
		return fn{order, func(ctx context.Context, dst, r *mat.Dense) error {
			wide = append(wide, r.RawMatrix().Cols)
			return m.SolveTo(ctx, dst, r)
		}}, err
	}
	res, err := run(t.Context(), y, counted, []maker{nil, wider}, 1e-3, 1000, clock([]float64{0, 1}, []float64{0, 0.1}),
		nil)
	if err != nil || res.Winner != 1 {
		t.Fatalf("winner %d, %v", res.Winner, err)
	}
	for j, v := range res.Racers[0].Residuals {
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
	makers, seconds := []maker{nil, near(t, k, 10*ridge)}, clock([]float64{0, 0.1}, []float64{0, 0.1})
	ctx, cancel := context.WithCancel(t.Context())
	res, err := run(ctx, y, a, makers, 1e-9, 1000, seconds, func(s *Racer) {
		if s.Iterations == 4 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || res.Winner != -1 || res.Racers[0].Iterations != 4 ||
		res.Racers[0].Phase != Running {
		t.Errorf("%v: %+v", err, res)
	}
	broken := errors.New("broken")
	failing := &failsAfter{Operator: a, left: 5, err: broken}
	if res, err := run(t.Context(), y, failing, makers, 1e-3, 1000, seconds, nil); !errors.Is(err, broken) ||
		res.Winner != -1 {
		t.Errorf("a product that fails: %v, %+v", err, res)
	}
	y.Set(7, 0, math.NaN())
	testkit.Fails(t, testkit.ErrOf(run(t.Context(), y, a, makers, 1e-3, 1000, seconds, nil)), "row 7")
	y.Zero()
	if res, err := run(t.Context(), y, a, makers, 1e-3, 1000, seconds, nil); err != nil || res.Winner != 0 ||
		res.Steps != 0 {
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
	results := make([]*Result, size)
	var wg sync.WaitGroup
	for r, c := range comm.Local(size, comm.Options{}) {
		wg.Go(func() {
			a, err := gram.New(t.Context(), kernel.Gaussian{Sigma: 1}, points.NewDense(n, 3, x), 0.1,
				&gram.Options{Comm: c})
			if err != nil {
				t.Error(err)
				return
			}
			m := func(c float64) maker {
				return func(context.Context) (pcg.Preconditioner, error) { return scaled{n, c}, nil }
			}
			results[r], err = run(t.Context(), mat.NewDense(n, 1, slices.Clone(data)), a, []maker{nil, m(2), m(3)},
				1e-6, 1000, func(ctx context.Context, s []float64) error {
					for i := range s {
						s[i] = float64(1 + (i*7+r*5)%11) // clocks that differ
					}
					return comm.ShareNumbers(ctx, c, s, 0)
				}, nil)
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
		if res.Winner != results[0].Winner || !reflect.DeepEqual(res.Racers, results[0].Racers) {
			t.Errorf("rank %d: winner %d, %+v\nrank 0: winner %d, %+v", r+1, res.Winner, res.Racers, results[0].Winner,
				results[0].Racers)
		}
	}
}
