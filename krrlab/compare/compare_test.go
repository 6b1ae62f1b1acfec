package compare_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/compare"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/stage"
)

const n, lambda = 300, 0.01

// problem is a regression with K in float64.
func problem(t *testing.T, c krrlab.Config) *krrlab.Lab {
	t.Helper()
	c.Kernel, c.Lambda, c.Solver = kernel.Gaussian{Sigma: 1.5}, lambda, krrlab.PCG
	c.Storage = gram.Float64
	lab, err := krrlab.New(datasets.SyntheticRegression(n, 4, 0.1, 1), c)
	testkit.OK(t, err)
	return lab
}

// own is an M⁻¹ = f of a user.
type own struct {
	order int
	f     func(dst, r *mat.Dense) error
}

func (o own) Dim() int { return o.order }

func (o own) SolveTo(_ context.Context, dst, r *mat.Dense) error { return o.f(dst, r) }

// TestAlone: each takes the iterations that it takes alone, a user's own M among them; its κ is that of a dense
// reference, and so are the trace and the determinant, by the quadrature of one start.
func TestAlone(t *testing.T) {
	ctx := context.Background()
	lab := problem(t, krrlab.Config{})
	mine := krrlab.Given{Name: "diagonal", M: own{n, func(dst, r *mat.Dense) error {
		dst.Scale(1/(1+lambda), r)
		return nil
	}}}
	r, err := lab.Compare(ctx, krrlab.CompareOptions{To: 1e-8, Steps: n, Width: 1e-3, ExactBelow: -1,
		With: stage.Entries{{Text: "nystrom features=60 lambda-p=0.05"}, {Text: "vecchia features=20 neighbors=10"}}}, mine)
	testkit.OK(t, err)
	a := plain(t, lab)
	for i, row := range r.Rows {
		var m pcg.Preconditioner
		switch i {
		case 1:
			m, err = krrlab.Nystrom{S: 60, LambdaP: 0.05}.Make(ctx, lab)
		case 2:
			m, err = krrlab.Vecchia{S: 20, Neighbors: 10}.Make(ctx, lab)
		case 3:
			m = mine.M
		}
		testkit.OK(t, err)
		k, err := lab.K(ctx)
		testkit.OK(t, err)
		alone, err := pcg.Solve(ctx, k, m, lab.Targets(), &pcg.Options{Tol: 1e-8})
		testkit.OK(t, err)
		if *row.Iterations != alone.Iterations || row.Status != pcg.Converged || row.Why != "" ||
			row.Reached[len(row.Reached)-1] != *row.Iterations || len(row.Reached) != 7 {
			t.Errorf("%s: %v after %d iterations (%v) %s, alone %d", row.Name, row.Status, *row.Iterations, row.Reached,
				row.Why, alone.Iterations)
		}
		values := pencil(t, a, m)
		kappa, trace, logDet := values[n-1]/values[0], 0.0, 0.0
		for _, v := range values {
			trace, logDet = trace+v/n, logDet+math.Log(v)
		}
		if i == 3 { // no draws
			if row.Kappa.Lo > kappa*(1+1e-6) || !math.IsInf(row.Kappa.Hi, 1) || row.Trace.Known() {
				t.Errorf("%s: κ %v, is %g; trace %v", row.Name, row.Kappa, kappa, row.Trace)
			}
			continue
		}
		if row.Kappa.Lo > kappa*(1+1e-6) || row.Kappa.Hi < kappa*(1-1e-6) || row.Kappa.Hi > 1.5*row.Kappa.Lo {
			t.Errorf("%s: κ %v, is %g", row.Name, row.Kappa, kappa)
		}
		if math.Abs(float64(row.Trace)/trace-1) > 0.5 || math.Abs(float64(row.LogDet)-logDet) > 0.2*math.Abs(logDet)+20 {
			t.Errorf("%s: trace %g, ln det %g; are %g, %g", row.Name, row.Trace, row.LogDet, trace, logDet)
		}
		var ones, mean float64
		for i, w := range row.Weights {
			ones, mean = ones+w, mean+w*row.Nodes[i]
		}
		if math.Abs(ones-1) > 1e-12 || math.Abs(mean/float64(row.Trace)-1) > 1e-12 || !slices.IsSorted(row.Nodes) {
			t.Errorf("%s: weights add to %g, with the nodes to %g, tr/n = %g", row.Name, ones, mean, row.Trace)
		}
		if want := n * (math.Log(float64(row.Trace)) - float64(row.LogDet)/n); math.Abs(float64(row.Kaporin)-want) > 1e-9*n {
			t.Errorf("%s: Kaporin's number %g, want %g", row.Name, row.Kaporin, want)
		}
	}
	bounds(t, a, lab.Targets(), r)
}

// TestExact: all eigenvalues of each, of one that needs another destination than its source and cannot draw, too, are
// those of a dense reference, with their sums; of one that is not definite in float64 there are none.
func TestExact(t *testing.T) {
	ctx := context.Background()
	lab := problem(t, krrlab.Config{})
	a := plain(t, lab)
	mine := own{n, func(dst, r *mat.Dense) error {
		dst.Zero()
		for i := range n {
			for j := range dst.RawRowView(i) {
				dst.Set(i, j, r.At(i, j)*(1+0.3*math.Sin(float64(i)))+0.1*r.At(n-1-i, j))
			}
		}
		return nil
	}}
	r, err := lab.Compare(ctx, krrlab.CompareOptions{}, krrlab.Given{M: mine}, krrlab.Nystrom{S: 60},
		krrlab.Vecchia{Neighbors: 10}, krrlab.Features{S: 250, LambdaP: 1e-11})
	testkit.OK(t, err)
	z := testkit.Must(problem(t, krrlab.Config{Precond: krrlab.Nystrom{S: 60}}).Z(ctx))
	for i, m := range []pcg.Preconditioner{nil, mine, testkit.Must(precond.New(ctx, z, lambda, nil)),
		testkit.Must(krrlab.Vecchia{Neighbors: 10}.Make(ctx, lab))} {
		row, values := r.Rows[i], pencil(t, a, m)
		if row.Exact == nil || len(row.Nodes) != n || !row.Exact.Covers(values[n-1]/values[0]) {
			t.Errorf("%s: κ is %v, want %g", row.Name, row.Exact, values[n-1]/values[0])
			continue
		}
		var trace, logDet float64
		for k, v := range values {
			if trace, logDet = trace+v/n, logDet+math.Log(v); math.Abs(row.Nodes[k]-v) > 1e-8*values[n-1] {
				t.Errorf("%s: eigenvalue %d is %g, want %g", row.Name, k, row.Nodes[k], v)
			}
		}
		if math.Abs(float64(row.Trace)/trace-1) > 1e-8 || math.Abs(float64(row.LogDet)-logDet) > 1e-5*n {
			t.Errorf("%s: trace %g, ln det %g; are %g, %g", row.Name, row.Trace, row.LogDet, trace, logDet)
		}
	}
	if row := r.Rows[4]; row.Exact != nil || !row.NotDefinite {
		t.Errorf("%s: κ is %v of an M⁻¹ that is not definite", row.Name, row.Exact)
	}
}

// bounds: those of the errors hold.
func bounds(t *testing.T, a *mat.SymDense, y *mat.Dense, r *krrlab.Compare) {
	t.Helper()
	var c mat.Cholesky
	if !c.Factorize(a) {
		t.Fatal("A is not definite")
	}
	var x, r0 mat.VecDense
	testkit.OK(t, c.SolveVecTo(&x, y.ColView(0)))
	r0.MulVec(a, &x)
	first := math.Sqrt(mat.Dot(&x, &r0)) / mat.Norm(y, 2) // ‖x−x_0‖_A/‖b‖
	for _, row := range r.Rows {
		if len(row.Bounds) != *row.Iterations+1 || row.Bounds[0] < first || row.Bounds[*row.Iterations] > 1e-3*first {
			t.Errorf("%s: bounds from %g to %g, of an error of %g at first", row.Name, row.Bounds[0],
				row.Bounds[len(row.Bounds)-1], first)
		}
	}
}

// pencil returns the eigenvalues of M⁻¹A, ascending.
func pencil(t *testing.T, a *mat.SymDense, m pcg.Preconditioner) []float64 {
	t.Helper()
	inv := mat.NewDense(n, n, nil)
	for i := range n {
		inv.Set(i, i, 1)
	}
	if m != nil {
		to := mat.NewDense(n, n, nil)
		testkit.OK(t, m.SolveTo(context.Background(), to, inv))
		inv = to
	}
	var p mat.Dense
	p.Mul(inv, a)
	var e mat.Eigen
	if !e.Factorize(&p, mat.EigenNone) {
		t.Fatal("no eigenvalues")
	}
	var values []float64
	for _, v := range e.Values(nil) {
		values = append(values, real(v))
	}
	slices.Sort(values)
	return values
}

// TestLeftOut: a preconditioner that is none is left out with one line that says why; the others go on.
func TestLeftOut(t *testing.T) {
	gone := errors.New("it is gone")
	calls, turns := 0, 0
	for name, c := range map[string]struct {
		m    pcg.Preconditioner
		want string
	}{
		"order": {own{n + 1, nil}, "of order 301: want 300"},
		"skew":  {own{n, func(dst, r *mat.Dense) error { dst.Copy(r); dst.Set(0, 1, 3); return nil }}, "not symmetric"},
		"minus": {own{n, func(dst, r *mat.Dense) error { dst.Scale(-1, r); return nil }}, "not positive definite"},
		"nan":   {own{n, func(dst, r *mat.Dense) error { dst.Scale(math.NaN(), r); return nil }}, "not finite"},
		"turns": {own{n, func(dst, r *mat.Dense) error { turns++; dst.Scale(float64(turns), r); return nil }},
			"off by 1 of it when asked for again"},
		"block": {own{n, func(dst, r *mat.Dense) error {
			_, k := r.Dims()
			dst.Scale(float64(k), r)
			return nil
		}}, "off by 0.5 of it when asked for again, alone"},
		"failed": {own{n, func(*mat.Dense, *mat.Dense) error { return gone }}, "it is gone"},
		"later": {own{n, func(dst, r *mat.Dense) error {
			if calls++; calls > 4 {
				return gone
			}
			dst.Copy(r)
			return nil
		}}, "it is gone"},
	} {
		r, err := problem(t, krrlab.Config{}).Compare(context.Background(), krrlab.CompareOptions{Steps: -1},
			krrlab.Given{M: c.m, Name: name}, krrlab.Nystrom{S: 30})
		testkit.OK(t, err)
		if len(r.Rows) != 3 {
			t.Fatalf("%s: %d rows", name, len(r.Rows))
		}
		for _, row := range r.Rows {
			if good := row.Name != name; good != (row.Why == "") || good && row.Status != pcg.Converged ||
				!good && !strings.Contains(row.Why, c.want) {
				t.Errorf("%s: %s %v: %q", name, row.Name, row.Status, row.Why)
			}
		}
		if text := r.String(); !strings.Contains(text, "left out: ") || strings.Contains(text, "\n\n") {
			t.Error(text)
		}
	}
}

// metric is an own that draws.
type metric struct {
	own
	draw func(dst *mat.Dense) error
}

func (m metric) NormalTo(_ context.Context, dst *mat.Dense, _ rng.Stream) error { return m.draw(dst) }

// TestLeftOutLate: one that fails as intervals of κ are found does not take those of others with it.
func TestLeftOutLate(t *testing.T) {
	calls, draws := 0, 0
	same := func(dst, r *mat.Dense) error { dst.Copy(r); return nil }
	one := func(dst *mat.Dense) error {
		for i := range n {
			dst.Set(i, 0, float64(i%2*2-1))
		}
		return nil
	}
	for name, c := range map[string]struct {
		m    metric
		want string
	}{
		"solve": {metric{own{n, func(dst, r *mat.Dense) error {
			if draws > 0 { // the start of a Lanczos process
				if calls++; calls > 4 {
					return errors.New("it is gone")
				}
			}
			return same(dst, r)
		}}, one}, "it is gone"},
		"minus": {metric{own{n, func(dst, r *mat.Dense) error {
			if dst.Copy(r); draws > 0 {
				dst.Scale(-1, r)
			}
			return nil
		}}, one}, "not positive definite"},
		"nan": {metric{own{n, func(dst, r *mat.Dense) error {
			if dst.Copy(r); draws > 0 {
				dst.Set(3, 0, math.NaN())
			}
			return nil
		}}, one}, "not positive definite"},
		"draw": {metric{own{n, same}, func(*mat.Dense) error { return errors.New("no draws") }}, "no draws"},
		"covariance": {metric{own{n, same}, func(dst *mat.Dense) error {
			err := one(dst)
			dst.Scale(2, dst)
			return err
		}}, "xᵀM⁻¹x = 1.2e+03 for a draw x of N(0, M), n = 300"},
		"zero": {metric{own{n, same}, func(dst *mat.Dense) error { dst.Zero(); return nil }}, "norm 0"},
	} {
		calls, draws = 0, 0
		draw := c.m.draw
		c.m.draw = func(dst *mat.Dense) error { draws++; return draw(dst) }
		r, err := problem(t, krrlab.Config{}).Compare(context.Background(), krrlab.CompareOptions{},
			krrlab.Given{M: c.m, Name: name}, krrlab.Nystrom{S: 30})
		testkit.OK(t, err)
		for _, row := range r.Rows {
			if bad := row.Name == name; bad != (row.Why != "") || bad && !strings.Contains(row.Why, c.want) ||
				!bad && (row.Steps == 0 || math.IsInf(row.Kappa.Hi, 1)) {
				t.Errorf("%s: %s after %d steps: κ %v %q", name, row.Name, row.Steps, row.Kappa, row.Why)
			}
		}
	}
}

// TestSameNames: entries of one name are rows and lines of their own.
func TestSameNames(t *testing.T) {
	r, err := problem(t, krrlab.Config{}).Compare(context.Background(), krrlab.CompareOptions{Steps: -1, Seeds: 2},
		krrlab.Nystrom{S: 30}, krrlab.Nystrom{S: 60})
	testkit.OK(t, err)
	text := r.String()
	for _, row := range r.Rows[1:] {
		if !strings.Contains(text, "\n"+row.Name+" ") || (row.S == 60) != strings.HasSuffix(row.Name, " (2)") {
			t.Errorf("%s, %d features:\n%s", row.Name, row.S, text)
		}
	}
}

// TestNames: an entry that names no preconditioner is refused before anything is formed.
func TestNames(t *testing.T) {
	for _, text := range []string{"", "nope", "nystrom s=3", "nystrom features", "nystrom features=0",
		"vecchia lambda-p=1", "features sketch=x", "nystrom features=20 features=30", "nystrom precond=none"} {
		_, err := problem(t, krrlab.Config{}).Compare(context.Background(),
			krrlab.CompareOptions{With: stage.Entries{{Text: text}}})
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestGroups: where the memory has no room for all at once they are judged in groups, to the same numbers, and one that
// never fits is left out.
func TestGroups(t *testing.T) {
	o := krrlab.CompareOptions{Steps: 30, Seeds: 2, With: stage.Entries{{Text: "nystrom features=40"},
		{Text: "rpcholesky features=40"}, {Text: "nystrom features=299"}}}
	all, err := problem(t, krrlab.Config{}).Compare(context.Background(), o)
	testkit.OK(t, err)
	some, err := problem(t, krrlab.Config{Memory: 1_000_000, Precond: krrlab.None{}}).Compare(context.Background(), o)
	testkit.OK(t, err)
	for i, row := range some.Rows {
		if i >= 5 { // 299 features
			if row.Why == "" {
				t.Errorf("%s has room", row.Name)
			}
			continue
		}
		if row.Why != "" || *row.Iterations != *all.Rows[i].Iterations || row.Steps != all.Rows[i].Steps {
			t.Errorf("%s, draw %d: %d iterations, %d steps, all together %d and %d: %s", row.Name, row.Draw,
				*row.Iterations, row.Steps, *all.Rows[i].Iterations, all.Rows[i].Steps, row.Why)
		}
	}
}

// TestRanks: two ranks find what one does; and the result comes back from its JSON.
func TestRanks(t *testing.T) {
	o := krrlab.CompareOptions{Steps: 20, With: stage.Entries{{Text: "nystrom features=40"}}}
	one, err := problem(t, krrlab.Config{}).Compare(context.Background(), o)
	testkit.OK(t, err)
	for i, row := range ranks(t, krrlab.Config{}, o)[1].Rows {
		if !reflect.DeepEqual(row.Residuals, one.Rows[i].Residuals) || row.Kappa.Hi != one.Rows[i].Kappa.Hi {
			t.Errorf("%s differs on ranks", row.Name)
		}
	}
	for i, row := range ranks(t, krrlab.Config{Memory: 500_000, Precond: krrlab.None{}}, o)[0].Rows { // two groups
		if row.Why != "" || !reflect.DeepEqual(row.Residuals, one.Rows[i].Residuals) {
			t.Errorf("%s differs on ranks of little memory: %s", row.Name, row.Why)
		}
	}
	js, err := json.Marshal(one)
	testkit.OK(t, err)
	back := new(compare.Result)
	testkit.OK(t, json.Unmarshal(js, back))
	if back.String() != one.String() || !reflect.DeepEqual(back.Table().Rows, one.Table().Rows) {
		t.Errorf("from JSON:\n%v\nwas\n%v", back, one)
	}
}

// ranks returns what each of two finds.
func ranks(t *testing.T, c krrlab.Config, o krrlab.CompareOptions) [2]*krrlab.Compare {
	t.Helper()
	var results [2]*krrlab.Compare
	done := make(chan error, 2)
	for i, of := range comm.Local(2, comm.Options{Limit: 10 * time.Second}) {
		go func() {
			c := c
			c.Comm = of
			var err error
			results[i], err = problem(t, c).Compare(context.Background(), o)
			done <- err
		}()
	}
	testkit.OK(t, errors.Join(<-done, <-done))
	return results
}

// TestDraws: draw 1 is what the next seed draws.
func TestDraws(t *testing.T) {
	o := krrlab.CompareOptions{Steps: -1, Seeds: 2, With: stage.Entries{{Text: "features features=50"},
		{Text: "vecchia features=10 neighbors=5"}}}
	both, err := problem(t, krrlab.Config{Seed: 3}).Compare(context.Background(), o)
	testkit.OK(t, err)
	o.Seeds = 1
	next, err := problem(t, krrlab.Config{Seed: 4}).Compare(context.Background(), o)
	testkit.OK(t, err)
	for i, row := range next.Rows[1:] {
		if first, second := both.Rows[1+2*i], both.Rows[2+2*i]; second.Draw != 1 ||
			!reflect.DeepEqual(second.Residuals, row.Residuals) || reflect.DeepEqual(first.Residuals, row.Residuals) {
			t.Errorf("%s: draw %d differs from that of the next seed", row.Name, second.Draw)
		}
	}
}
