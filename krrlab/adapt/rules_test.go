package adapt

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/estimate"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/lanczos"
	"github.com/krrlab/lab/krrlab/precond/precondtest"
	"github.com/krrlab/lab/krrlab/rng"
)

// TestBoth: two conditions hold together if both do, and do not if one does not.
func TestBoth(t *testing.T) {
	all := []Verdict{Reject, Open, Accept} // the worse decides
	for i, a := range all {
		for j, b := range all {
			if got := both(a, b); got != all[min(i, j)] {
				t.Errorf("%s and %s: %s", a, b, got)
			}
		}
	}
	at := func(lo, hi float64) estimate.Interval { return estimate.Interval{Value: lo, Lo: lo, Hi: hi} }
	for _, c := range []struct {
		low, high estimate.Interval
		want      Verdict
	}{
		{at(0.75, 0.75), at(1.25, 1.25), Accept}, {at(0.7, 0.8), at(1, 1), Open}, {at(1, 1), at(1.2, 1.3), Open},
		{at(0.6, 0.7), at(1, 1), Reject}, {at(1, 1), at(1.3, 1.4), Reject}, {at(0.6, 0.7), at(1.2, 1.3), Reject},
	} {
		if got := within(c.low, c.high, 0.25); got != c.want {
			t.Errorf("%v and %v within 1±0.25: %s, want %s", c.low, c.high, got, c.want)
		}
	}
}

// TestWidened: the ends and the value of a number ≥ 0, off by at most e, and of f times it.
func TestWidened(t *testing.T) {
	for _, c := range []struct{ value, lo, hi, e, wantValue, wantLo, wantHi float64 }{
		{2, 1, 3, 0.5, 2, 0.5, 3.5}, {2, 1, 3, 1.5, 2, 0, 4.5}, {-0.1, -1, -0.05, 0.25, 0, 0, 0.2}, {-2, -3, -1, 0.5, 0, 0, 0},
	} {
		got := widened(estimate.Interval{Value: c.value, Lo: c.lo, Hi: c.hi, Confidence: 0.9, Method: "m"}, c.e)
		if math.Abs(got.Value-c.wantValue) > 1e-15 || math.Abs(got.Lo-c.wantLo) > 1e-15 || math.Abs(got.Hi-c.wantHi) > 1e-15 || got.Confidence != 0.9 || got.Method != "m" {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	if got := scaled(estimate.Interval{Value: 2, Lo: 1, Hi: 3}, 4); got.Value != 8 || got.Lo != 4 || got.Hi != 12 {
		t.Errorf("4·[1, 3] = %+v", got)
	}
}

// TestRoot: the positive root of px²+qx+r, also where the other one is far larger.
func TestRoot(t *testing.T) {
	for _, x := range []float64{1e-9, 0.5, 1, 3, 1e9} {
		for _, other := range []float64{-1e-9, -0.5, -1, -7, -1e9} {
			for _, p := range []float64{1, 0.25, 8} {
				if got, ok := root(p, -p*(x+other), p*x*other); !ok || math.Abs(got-x) > 1e-14*x {
					t.Errorf("%g(x−%g)(x+%g): %v, %v", p, x, -other, got, ok)
				}
			}
		}
	}
	if _, ok := root(0, 1, -1); ok {
		t.Error("a root of no parabola")
	}
}

// TestEnds: the ends of what an option may be are taken, and what lies next to them is refused.
func TestEnds(t *testing.T) {
	const n = 60
	ok := Options{First: 8, Max: 16}
	for _, c := range []struct {
		what            string
		fits            bool
		lambda, lambdaP float64
		set             func(o *Options)
	}{
		{"nothing", true, 1, 2, func(*Options) {}},
		{"the least target", true, 1, 1, func(o *Options) { o.Target = math.Nextafter(1, 2) }},
		{"an infinite target", false, 1, 1, func(o *Options) { o.Target = math.Inf(1) }},
		{"a target that is no number", false, 1, 1, func(o *Options) { o.Target = math.NaN() }},
		{"one feature", true, 1, 1, func(o *Options) { o.First = 1 }},
		{"as many as n−1", true, 1, 1, func(o *Options) { o.First, o.Max = n-1, n-1 }},
		{"as many as n", false, 1, 1, func(o *Options) { o.First, o.Max = n, n }},
		{"one width", true, 1, 1, func(o *Options) { o.Max = 8 }},
		{"less at most than at first", false, 1, 1, func(o *Options) { o.Max = 7 }},
		{"n at most", false, 1, 1, func(o *Options) { o.Max = n }},
		{"no λ", false, 0, 1, func(*Options) {}},
		{"λ that is no number", false, math.NaN(), 1, func(*Options) {}},
		{"no λ_p", false, 1, 0, func(*Options) {}},
		{"Theorem 7 of λ", true, 2, 2, func(o *Options) { o.Test = Theorem7 }},
		{"Theorem 7 of another", false, 2, 1, func(o *Options) { o.Test = Theorem7 }},
		{"a check as wide as Z", true, 1, 1, func(o *Options) { o.Check = 1 }},
		{"never", true, 1, 1, func(o *Options) { o.Eigen = -1 }},
		{"less than never", false, 1, 1, func(o *Options) { o.Eigen = -2 }},
		{"one step", true, 1, 1, func(o *Options) { o.Steps = 1 }},
		{"certainty", false, 1, 1, func(o *Options) { o.Confidence = 1 }},
		{"constants of none", false, 1, 1, func(o *Options) { o.Constants = Test{Theta: -1, Alpha: 1} }},
	} {
		o := ok
		c.set(&o)
		if _, err := o.Settled(n, c.lambda, c.lambdaP); (err == nil) != c.fits {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	for c, fits := range map[Test]bool{
		{Theta: 0, Alpha: 0, Gamma: 0}: true, {Gamma: math.Nextafter(1, 0)}: true, {Gamma: 1}: false, {Gamma: -1e-300}: false, {Theta: -1e-300}: false,
		{Alpha: -1e-300}: false, {Theta: math.Inf(1)}: false, {Alpha: math.Inf(1)}: false, {Alpha: math.MaxFloat64}: true,
	} {
		if err := c.Validate(); (err == nil) != fits {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// order is a K of which only the order is asked.
type order int

func (k order) Dim() int                                      { return int(k) }
func (order) MulTo(_ context.Context, _, _ *mat.Dense) error  { return nil }
func (order) KMulTo(_ context.Context, _, _ *mat.Dense) error { return nil }

// TestLadder: widths double from the first to the largest that is asked, that n leaves or that memory holds.
func TestLadder(t *testing.T) {
	for _, c := range []struct {
		n, first, most int
		memory         int64
		max, total     int
		limit          string
	}{
		{100, 8, 64, 0, 64, 4, "asked"}, {100, 8, 63, 0, 32, 3, "asked"}, {100, 8, 8, 0, 8, 1, "asked"}, {100, 8, 0, 0, 64, 4, "n"}, {65, 8, 64, 0, 64, 4, "n"},
		{100, 8, 64, 6*100*32 + 18*32*32, 32, 3, "memory"}, {100, 8, 64, 6*100*32 + 18*32*32 - 1, 16, 2, "memory"}, {100, 8, 64, 6*100*64 + 18*64*64, 64, 4, "asked"},
		{100, 8, 64, 6*100*8 + 18*8*8, 8, 1, "memory"},
	} {
		s, res, err := settle(Problem{K: order(c.n), Lambda: 1}, &Options{First: c.first, Max: c.most, Memory: c.memory})
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if res.Max != c.max || s.total != c.total || res.Limit != c.limit || res.Chosen != -1 || s.p.LambdaP != 1 || s.p.RHS != 1 || s.p.Tol != 1e-3 {
			t.Errorf("%+v: up to %d in %d rungs, limit %s, %+v", c, res.Max, s.total, res.Limit, s.p)
		}
	}
	if _, _, err := settle(Problem{K: order(100), Lambda: 1}, &Options{First: 8, Memory: 6*100*8 + 18*8*8 - 1}); err == nil {
		t.Error("one byte less than the first rung takes was enough")
	}
	for e, fits := range map[float64]bool{0: true, 1: true, -1e-300: false} {
		if _, _, err := settle(Problem{K: order(100), Lambda: 1, Error: e}, nil); (err == nil) != fits {
			t.Errorf("K off by %g: %v", e, err)
		}
	}
}

// TestPredicted: progress counts the work of the rungs; iterations are √κ/2·ln(2/τ), and times what has been
// spent and what they will take.
func TestPredicted(t *testing.T) {
	p := problem(t, kernel.Gaussian{Sigma: 2}, cloud(120, 3, 0.8), 0.05)
	for _, tol := range []float64{0, 1e-6} {
		p.Tol = tol
		var done []int
		res := search1(t, p, Options{First: 4, Max: 32, Target: 1.0001, Progress: func(d, total int) {
			if total != 1+4+16+64 {
				t.Errorf("of %d", total)
			}
			done = append(done, d)
		}}, 2)
		if !slices.Equal(done, []int{0, 1, 5, 21, 85}) {
			t.Errorf("progress %v", done)
		}
		if tol == 0 {
			tol = 1e-3
		}
		features := 0.0
		for _, r := range res.Rungs {
			if want := math.Ceil(0.5 * math.Sqrt(r.Kappa.Value) * math.Log(2/tol)); float64(r.Iterations) != want {
				t.Errorf("s = %d: %d iterations at κ = %g, want %g", r.S, r.Iterations, r.Kappa.Value, want)
			}
			s := r.Seconds
			if want := s.Features + s.Gram + s.Factor + float64(r.Iterations)*r.Iteration; math.Abs(r.Predicted-want) > 1e-12*want || r.Iteration <= 0 {
				t.Errorf("s = %d: %g s predicted, want %g", r.S, r.Predicted, want)
			}
			if s.Features < features || s.Test <= 0 || s.Rung < s.Test {
				t.Errorf("s = %d: %+v", r.S, s)
			}
			features = s.Features
		}
	}
}

// TestJudgements: the verdict, the relative width and the inner end of κ, a norm and two ratios, by hand.
func TestJudgements(t *testing.T) {
	at := func(value, lo, hi float64) estimate.Interval { return estimate.Interval{Value: value, Lo: lo, Hi: hi} }
	r := &lanczos.Result{Min: at(2, 1, 2), Max: at(8, 8, 10)} // κ in [4, 10]
	for _, c := range []struct {
		what string
		got  judgement
		want judgement
	}{
		{"κ below", ofKappa(r, 0, 10), judgement{Accept, 1.5, 4}},
		{"κ across", ofKappa(r, 0, 9), judgement{Open, 1.5, 4}},
		{"κ above", ofKappa(r, 0, 3.9), judgement{Reject, 1.5, 4}},
		{"κ with an allowance", ofKappa(r, 0.2, 10), judgement{Open, 1.5, 4}},
		{"norm below", ofNorm(r, 0, 10), judgement{Accept, 0.25, 8}},
		{"norm with an error", ofNorm(r, 0.5, 10), judgement{Open, 0.25, 8}},
		{"norm far below", ofNorm(r, 0, 400), judgement{Accept, 0.05, 8}}, // of a tenth of the limit
		{"norm above", ofNorm(r, 0.5, 7), judgement{Reject, 0.25, 8}},
		{"ratios", ofRatios(&lanczos.Result{Min: at(0.9, 0.6, 0.9), Max: at(1.2, 1.2, 1.5)}, 0, 0.5), judgement{Accept, 0.3 / 0.9, 1.2 / 0.9}},
		{"ratios with an error", ofRatios(&lanczos.Result{Min: at(0.9, 0.6, 0.9), Max: at(1.2, 1.2, 1.5)}, 0.2, 0.5), judgement{Open, 0.3 / 0.9, 1.2 / 0.9}},
		{"a ratio of nothing", ofRatios(&lanczos.Result{Min: at(0.5, 0.25, 0), Max: at(1, 1, 2)}, 0, 0.5), judgement{Reject, 1, 0x1p50}},
	} {
		if c.got.verdict != c.want.verdict || math.Abs(c.got.width-c.want.width) > 1e-14 || math.Abs(c.got.inner-c.want.inner) > 1e-14*c.want.inner {
			t.Errorf("%s: %+v, want %+v", c.what, c.got, c.want)
		}
	}
}

// counting counts the products with K+λI and K.
type counting struct {
	Operator
	both, alone int
}

func (k *counting) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	k.both++
	return k.Operator.MulTo(ctx, dst, src)
}

func (k *counting) KMulTo(ctx context.Context, dst, src *mat.Dense) error {
	k.alone++
	return k.Operator.KMulTo(ctx, dst, src)
}

// TestProducts: the rungs tell all products with K but the two that are timed.
func TestProducts(t *testing.T) {
	for _, o := range []Options{{Target: 2}, {Test: Theorem7}, {Test: Theorem7, Sketched: true}} {
		p := problem(t, kernel.Gaussian{Sigma: 2}, cloud(150, 3, 0.7), 0.5)
		k := &counting{Operator: p.K}
		p.K, o.First, o.Max = k, 16, 64
		told := 0
		for _, r := range search1(t, p, o, 3).Rungs {
			told += r.Products
		}
		if told != k.both+k.alone-2 || (k.alone > 0) != (o.Test == Theorem7) {
			t.Errorf("%+v: %d products told, %d+%d made", o, told, k.both, k.alone)
		}
	}
}

// TestLap: the seconds since the clock was set, which is set anew.
func TestLap(t *testing.T) {
	clock := time.Now().Add(-time.Hour)
	if s := lap(&clock); s < 3600 || time.Since(clock) > 30*time.Minute {
		t.Errorf("%g s since an hour ago, then %v", s, time.Since(clock))
	}
}

// TestMetric: M of a rung is a preconditioner and a metric.
func TestMetric(t *testing.T) {
	dist, err := feature.For(kernel.Gaussian{Sigma: 2})
	if err != nil {
		t.Fatal(err)
	}
	l := &ladder{x: cloud(120, 5, 1), comm: comm.Alone(), dist: feature.Doubling{Dist: dist, First: 16}, g: rng.New(1)}
	if err := l.climb(t.Context(), 32); err != nil {
		t.Fatal(err)
	}
	m, err := l.metric(t.Context(), 0.1)
	if err == nil {
		err = precondtest.Test(t.Context(), m, &precondtest.Options{InPlace: true, Strided: true, Concurrent: true})
	}
	if err != nil {
		t.Error(err)
	}
}
