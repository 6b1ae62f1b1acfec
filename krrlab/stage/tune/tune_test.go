package tune

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// newProblem returns the tuning problem of a data set.
func newProblem(t *testing.T, set *datasets.Dataset) *problem {
	t.Helper()
	y := testkit.Must(datasets.Coding{Labels: set.Labels}.EncodeForFit(set))
	return &problem{train: set, y: y, seed: 1, judgment: *defaultScoring(set.Class != nil)}
}

// fitResiduals fits the rows trainRows with their weights and returns the residuals of the rows testRows, computed with
// plain dense algebra.
func fitResiduals(t *testing.T, d *problem, k kernel.Kernel, lambda float64, trainRows, testRows []int) *mat.Dense {
	t.Helper()
	row := func(i int) []float64 {
		x := make([]float64, d.train.Dim())
		d.train.X.RowTo(x, i)
		return x
	}
	_, cols := d.y.Dims()
	a, y := mat.NewDense(len(trainRows), len(trainRows), nil), mat.NewDense(len(trainRows), cols, nil)
	b, e := mat.NewDense(len(testRows), len(trainRows), nil), mat.NewDense(len(testRows), cols, nil)
	for p, i := range trainRows {
		for q, j := range trainRows {
			a.Set(p, q, k.Eval(row(i), row(j)))
		}
		a.Set(p, p, a.At(p, p)+lambda/d.train.Weight(i))
		y.SetRow(p, d.y.RawRowView(i))
		for q, j := range testRows {
			b.Set(q, p, k.Eval(row(j), row(i)))
		}
	}
	var c, f mat.Dense
	testkit.OK(t, c.Solve(a, y))
	f.Mul(b, &c)
	for q, j := range testRows {
		for col := range cols {
			e.Set(q, col, d.y.At(j, col)-f.At(q, col))
		}
	}
	return e
}

// looResiduals returns the leave-one-out residuals by one fit for each row.
func looResiduals(t *testing.T, d *problem, k kernel.Kernel, lambda float64) *mat.Dense {
	t.Helper()
	n, cols := d.y.Dims()
	e, rows := mat.NewDense(n, cols, nil), upTo(n)
	for i := range n {
		e.SetRow(i, fitResiduals(t, d, k, lambda, slices.Concat(rows[:i], rows[i+1:]), rows[i:i+1]).RawRowView(0))
	}
	return e
}

// TestSeriesLevel checks that the losses by a Fourier series are those of leave-one-out by dense factors, also with
// length scales. The series evaluates no kernel without a series, and one with too many modes is an error.
func TestSeriesLevel(t *testing.T) {
	const n = 60
	set := datasets.SyntheticRegression(n, 2, 0.1, 1)
	d := newProblem(t, set)
	p := &stage.Problem{Header: stage.Header{N: n, D: 2, T: 1}, X: set.X, Y: d.y, Train: set, Comm: comm.OrAlone(nil)}
	o := Options{}.withDefaults()
	if o.seriesEvaluator(p, d.y, d.judgment) != nil {
		t.Error("a series is used for few rows")
	}
	p.N = seriesRows
	e := o.seriesEvaluator(p, d.y, d.judgment)
	families := testkit.Must(o.families())
	if !e.canEvaluate(families[0]) || e.canEvaluate(families[3]) {
		t.Errorf("the series suits the kernel %s: %t; %s: %t", families[0].name, e.canEvaluate(families[0]),
			families[3].name, e.canEvaluate(families[3]))
	}
	sample := (&search{data: d}).newSample(upTo(n))
	for _, shape := range [][]float64{nil, {0.5, 2}} {
		got := testkit.Must(e.loss(t.Context(), shape, kernel.Gaussian{Sigma: 0.9}, 0.1))
		sample.setShape(shape)
		want := testkit.Must(sample.loss(t.Context(), kernel.Gaussian{Sigma: 0.9}, 0.1))
		for i, v := range want.rows {
			if math.Abs(v-got.rows[i]) > 1e-6*(1+v) {
				t.Fatalf("lengths %v: row %d is %g, want %g", shape, i, got.rows[i], v)
			}
		}
	}
	testkit.Fails(t, testkit.ErrOf(e.loss(t.Context(), nil, kernel.Gaussian{Sigma: 1e-4}, 0.1)), "the kernel is narrow")
}

// TestSeriesLevelOrHoldout checks that a last level that evaluates only the Gaussian is used for a smooth signal. For a
// random walk, for which the Laplacian is better, the other evaluator replaces it, and the Laplacian is chosen.
func TestSeriesLevelOrHoldout(t *testing.T) {
	const n = 300
	for seed := uint64(1); seed <= 3; seed++ {
		for _, c := range []struct{ signal, level, kernel string }{
			{"smooth", "series", "gaussian"}, {"random walk", "held out", "laplacian"},
		} {
			set := datasets.SyntheticRegression(n, 1, 0.1, seed)
			noise, walk := rand.New(rand.NewPCG(seed, 0)), 0.0
			for i := range set.Target {
				x, step := float64(i)/n, noise.NormFloat64()
				walk += step
				if set.X.(*points.Dense).Row(i)[0] = x; c.signal == "smooth" {
					set.Target[i] = math.Sin(8*x) + 0.1*step
				} else {
					set.Target[i] = walk
				}
			}
			d := newProblem(t, set)
			all := (&search{data: d}).newSample(upTo(n))
			loss := func(ctx context.Context, _ []float64, k kernel.Kernel, lambda float64) (*loss, error) {
				return all.loss(ctx, k, lambda)
			}
			full := &evaluator{name: "series", loss: loss,
				canEvaluate: func(f *family) bool { return f.name == "gaussian" },
				alternative: func() (*evaluator, error) { return &evaluator{name: "held out", loss: loss}, nil }}
			o := Options{Kernels: []string{"gaussian", "laplacian"}, Rows: 120, Points: 40, Distance: "sigma"}
			r := testkit.Must(searchPoints(t.Context(), d, o, full, func(stage.Event) {}))
			if last := r.Levels[len(r.Levels)-1].Name; last != c.level || r.Best.Kernel != c.kernel {
				t.Errorf("%s, seed %d: last level %q, chosen %s; want %q, %s", c.signal, seed, last, r.Best.Kernel,
					c.level, c.kernel)
			}
		}
	}
}

// upTo returns the rows 0, …, n−1.
func upTo(n int) []int {
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	return rows
}

// TestLosses compares leave-one-out and validation with plain fits, for each kernel.
func TestLosses(t *testing.T) {
	ctx := context.Background()
	const n = 40
	rows := upTo(n)
	for _, set := range []*datasets.Dataset{datasets.SyntheticRegression(n, 3, 0.1, 1),
		datasets.SyntheticClasses(n, 3, 3, 0.05, 1)} {
		d := newProblem(t, set)
		_, cols := d.y.Dims()
		for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 0.8}, kernel.Laplacian{Sigma: 2},
			kernel.Matern32{Sigma: 1}, kernel.Matern52{Sigma: 1}, kernel.Polynomial{Gamma: 0.5, Coef0: 1, Degree: 3}} {
			for _, valid := range []bool{false, true} {
				residuals, y, trainRows := looResiduals(t, d, k, 0.1), d.y, rows
				p := &problem{train: set, y: d.y, judgment: d.judgment}
				if valid {
					trainRows = rows[:n-10]
					residuals = fitResiduals(t, d, k, 0.1, trainRows, rows[n-10:])
					y = mat.DenseCopyOf(d.y.Slice(n-10, n, 0, cols))
					p.validation, p.validationY = set.Slice(n-10, n), y
				}
				got := testkit.Must((&search{data: p}).newSample(trainRows).loss(ctx, k, 0.1))
				for i, want := range d.judgment.loss(y, residuals).rows {
					if math.Abs(want-got.rows[i]) > 1e-5*(1+want) {
						t.Errorf("%s, %v, with validation rows: %v; the loss of row %d is %g, want %g", set.Name, k,
							valid, i, got.rows[i], want)
						break
					}
				}
			}
		}
	}
}

// TestDistantClusters checks that distances within clusters do not suffer from cancellation if the clusters are so far
// apart that no shift moves all of them close to zero.
func TestDistantClusters(t *testing.T) {
	const n = 60
	set := datasets.SyntheticRegression(n, 3, 0.1, 1)
	x, rows := set.X.(*points.Dense), rng.New(1).Perm(n)
	for i := range n {
		x.Row(i)[1] += float64(i%2*2-1) * (1 << 27)
	}
	d := newProblem(t, set)
	for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 0.8}, kernel.Matern32{Sigma: 1}} {
		want := mat.Norm(looResiduals(t, d, k, 0.01), 2) / math.Sqrt(n)
		l := testkit.Must((&search{data: d}).newSample(rows).loss(t.Context(), k, 0.01))
		if v, _, _ := l.Error(); !(math.Abs(v/want-1) < 1e-9) {
			t.Errorf("%v: error %g, want %g", k, v, want)
		}
	}
}

// TestLossByHand compares losses, their intervals and the relative excess of one loss over another with values computed
// by hand.
func TestLossByHand(t *testing.T) {
	y := mat.NewDense(4, 1, []float64{1, -1, 1, -1})
	e := mat.NewDense(4, 1, []float64{0.5, -0.5, 1.5, 0}) // predictions 0.5, -0.5, -0.5, -1
	l := defaultScoring(true).loss(y, e)
	// The interval is Wilson's for 1 of 4.
	if v, lo, hi := l.Error(); v != 0.25 || math.Abs(lo-0.0456) > 1e-3 || math.Abs(hi-0.6994) > 1e-3 {
		t.Errorf("error rate %g in [%g, %g], want 0.25 in [0.0456, 0.6994]", v, lo, hi)
	}
	three := defaultScoring(true).loss(mat.NewDense(2, 3, []float64{1, -1, -1, -1, 1, -1}),
		mat.NewDense(2, 3, []float64{0.1, 0, 0, 0, 1.5, -1}))
	if three.rows[0] != 0 || three.rows[1] != 1 { // the scores of the second row are −1, −0.5 and 0
		t.Errorf("losses of three classes %v, want 0 and 1", three.rows)
	}
	f1 := &scoring{metric: model.F1, positiveClass: 1} // no row is of the positive class or predicted to be
	if v, _, _ := f1.loss(mat.NewDense(2, 1, []float64{-1, -1}), mat.NewDense(2, 1, nil)).Error(); v != 1 {
		t.Errorf("1 − F1 = %g, want 1", v)
	}
	r := defaultScoring(false).loss(y, e)
	if v, lo, hi := r.Error(); math.Abs(v-math.Sqrt(2.75/4)) > 1e-7 || !(lo < v && v < hi) {
		t.Errorf("RMSE %g in [%g, %g], want √(2.75/4)", v, lo, hi)
	}
	worse := defaultScoring(false).loss(y, mat.NewDense(4, 1, []float64{0.55, -0.55, 1.65, 0})) // 1.1 times
	if share, se := worse.relativeExcess(r); math.Abs(share-0.105) > 1e-6 || !(se > 0) {
		t.Errorf("worse by %g ± %g, want half of 1.21−1", share, se)
	}
}

// TestSearchAgainstGrid checks that the error of the chosen point is at most 5 % above the smallest one on a grid, or
// has an interval that reaches down to it. It also checks the events of the search.
func TestSearchAgainstGrid(t *testing.T) {
	ctx := context.Background()
	for _, set := range []*datasets.Dataset{datasets.SyntheticRegression(160, 3, 0.2, 1),
		datasets.SyntheticClasses(160, 3, 2, 0.05, 1)} {
		d, o := newProblem(t, set), Options{Kernels: []string{"gaussian"}, Points: 200}
		var events int
		var loss float64
		r := testkit.Must(searchPoints(ctx, d, o, nil, func(e stage.Event) {
			events++
			loss = e.Loss
			if !(e.Loss > 0) || e.Done < 0 || e.Done > e.Total || e.Remaining < 0 ||
				!strings.Contains(e.Detail, "best of") {
				t.Errorf("event %+v", e)
			}
		}))
		if set.Target != nil && !slices.ContainsFunc(r.Points,
			func(p Point) bool { return math.Abs(loss-float64(p.Error)) < 1e-6*loss }) {
			t.Errorf("the last event says %g, which is the error of no point", loss)
		}
		if events != len(r.Points) || !(float64(r.ExpectedGain) < 0.002) {
			t.Errorf("%d events for %d points, ended with a gain of %g", events, len(r.Points), r.ExpectedGain)
		}
		s := &search{opt: o.withDefaults(), data: d}
		if s.families = testkit.Must(s.opt.families()); s.prepare(ctx, nil) != nil {
			t.Fatal("the grid of the search cannot be made")
		}
		f, best := s.families[0], math.Inf(1)
		for i := 0; i < len(f.grid[0]); i += 2 {
			for j := 0; j < len(f.grid[1]); j += 2 {
				p := &point{family: f, location: gridPoint{f.grid[0][i], f.grid[1][j]}}
				if l, err := s.levels[len(s.levels)-1].loss(ctx, nil, f.kernel(p.scale()), p.lambda()); err == nil {
					v, _, _ := l.Error()
					best = min(best, v)
				}
			}
		}
		if !(float64(r.Best.Error) < 1.05*best) && !(float64(r.Best.Lo) <= best) {
			t.Errorf("%s: the choice is %+v, while the smallest error on the grid is %g", set.Name, r.Best, best)
		}
	}
}

// TestFixedParameters checks that the search does not vary parameters that the options set.
func TestFixedParameters(t *testing.T) {
	ctx := context.Background()
	d := newProblem(t, datasets.SyntheticRegression(120, 2, 0.1, 1))
	r := testkit.Must(searchPoints(ctx, d, Options{Kernels: []string{"laplacian", "gaussian"}, Sigma: 0.71234567}, nil,
		nil))
	for _, p := range r.Points {
		testkit.Equal(t, p.Sigma, 0.71234567)
	}
	r = testkit.Must(searchPoints(ctx, d, Options{Kernels: []string{"polynomial degree=3 coef0=0.5"},
		Lambda: 0.051234567}, nil, nil))
	for _, p := range r.Points {
		if p.Lambda != 0.051234567 || p.Degree != 3 || p.Coef0 != 0.5 || p.Sigma != 0 || p.Gamma == 0 {
			t.Errorf("%+v", p)
		}
	}
	if flags := r.Best.flags(); !strings.Contains(flags, "--kernel 'polynomial gamma=") ||
		!strings.HasSuffix(flags, "coef0=0.5 degree=3' --lambda 0.051234567") {
		t.Error(flags)
	}
	r = testkit.Must(searchPoints(ctx, d, Options{Kernels: []string{"polynomial degree=2 gamma=0.12345678"}},
		nil, nil))
	testkit.Equal(t, r.Best.Gamma, 0.12345678)
}

// TestSmoothestOfTies checks that the largest λ is chosen if λ does not matter, although the search does not evaluate
// it by itself, and that it is not chosen if λ matters.
func TestSmoothestOfTies(t *testing.T) {
	d := newProblem(t, datasets.SyntheticRegression(900, 2, 0.1, 1))
	for name, slope := range map[string]float64{"flat": 0, "steep": 0.02} {
		lastLevel := &evaluator{name: name, loss: func(_ context.Context, _ []float64, _ kernel.Kernel, lambda float64,
		) (*loss, error) {
			l := &loss{rows: make([]float64, 50)}
			for i := range l.rows {
				l.rows[i] = (1 + float64(i%5)) * (1 + slope*math.Abs(math.Log(lambda/0.1)))
			}
			return l, nil
		}}
		s := &search{opt: Options{Kernels: []string{"gaussian"}, Rows: 200, Sigma: 1}.withDefaults(), data: d,
			start: time.Now()}
		s.families = testkit.Must(s.opt.families())
		testkit.OK(t, s.prepare(t.Context(), lastLevel))
		s.levels = s.levels[len(s.levels)-1:]
		s.levels[0].maxPoints = 4 // the search ends after its first points
		s.models = append(s.models, make([]*gaussianProcess, len(s.families)))
		testkit.OK(t, s.explore(t.Context(), 0, s.families))
		grid := s.families[0].grid[1]
		if p := s.choosePoint(0); slope == 0 && p.location[1] != grid[len(grid)-1] ||
			slope > 0 && math.Abs(math.Log(p.lambda()/0.1)) > 1 {
			t.Errorf("a %s loss: λ = %g is chosen", name, p.lambda())
		}
	}
}

// TestBestAtEndOfGrid checks that the report notes a best point at an end of the grid, but not for a fixed value.
func TestBestAtEndOfGrid(t *testing.T) {
	set := datasets.SyntheticRegression(80, 1, 0, 1) // without noise, so that no λ is too small
	for i := range set.Target {
		set.Target[i] = math.Sin(set.Target[i])
	}
	for want, o := range map[string]Options{
		"λ = 1e-07 is the least that is searched": {Kernels: []string{"laplacian"}, Sigma: 20},
		"": {Kernels: []string{"laplacian"}, Sigma: 20, Lambda: 1e-7},
	} {
		r := testkit.Must(searchPoints(t.Context(), newProblem(t, set), o, nil, nil))
		for _, text := range []string{r.String(), r.Short()} {
			// Both reports note the end of the grid, unless λ is fixed.
			if strings.Contains(text, "searched: others") != (want != "") || !strings.Contains(text, want) {
				t.Errorf("want a note only if λ is not fixed, with %q, in:\n%s", want, text)
			}
		}
	}
	f := &family{name: "polynomial", base: kernel.Polynomial{Gamma: 1, Degree: 2},
		grid: [2][]float64{{0, 1, 2}, {-1, 0, 1}}}
	for want, x := range map[string]gridPoint{"γ = 1 is the largest that is searched": {0, 0},
		"γ = 0.135 is the least that is searched; λ = 2.72 is the largest that is searched": {2, 1}, "": {1, 0}} {
		testkit.Equal(t, (&point{family: f, location: x}).edge(), want, x)
	}
}

// TestLastLevelDecides checks that the search of a large problem begins on a subsample, and that the last level, whose
// loss is smallest for σ = 0.9, decides.
func TestLastLevelDecides(t *testing.T) {
	d := newProblem(t, datasets.SyntheticRegression(900, 2, 0.1, 1))
	var calls int
	full := &evaluator{name: "made up", loss: func(_ context.Context, _ []float64, k kernel.Kernel, lambda float64,
	) (*loss, error) {
		calls++
		l := &loss{rows: make([]float64, 50)}
		for i := range l.rows {
			l.rows[i] = 1 + 0.1*math.Abs(math.Log(k.(kernel.Gaussian).Sigma/0.9)) + float64(i%5)*0.1 // σ = 0.9 is best
		}
		return l, nil
	}}
	r := testkit.Must(searchPoints(context.Background(), d,
		Options{Kernels: []string{"gaussian"}, Rows: 200, Lambda: 0.1}, full, nil))
	last := r.Levels[len(r.Levels)-1]
	if last.Name != "made up" || last.Rows != 900 || calls != last.Points || r.Best.Level != len(r.Levels)-1 ||
		calls > maxLaterPoints/2 {
		t.Errorf("%d calls of the last level; the levels are %+v, the choice %+v", calls, r.Levels, r.Best)
	}
	first := r.Points[slices.IndexFunc(r.Points, func(p Point) bool { return p.Level == r.Best.Level })]
	if math.Abs(math.Log(r.Best.Sigma/0.9)) > math.Abs(math.Log(first.Sigma/0.9)) {
		t.Errorf("the last level goes from σ = %g to %g, away from 0.9", first.Sigma, r.Best.Sigma)
	}
}

// TestRepeatedRows checks that copies of a judged row do not reveal its answer: the error stays above the noise, and
// random labels are not predicted better than by chance.
func TestRepeatedRows(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 2))
	for _, times := range []int{2, 3} {
		distinct := datasets.SyntheticRegression(240/times, 2, 0, 1)
		coin := datasets.Dataset{Name: "coin", Task: datasets.Classification, X: distinct.X, Labels: []string{"a", "b"}}
		for i := range distinct.Target {
			distinct.Target[i] = 7 + g.NormFloat64()
			coin.Class = append(coin.Class, g.IntN(2))
		}
		rows := make([]int, 0, 240)
		for range times {
			rows = append(rows, g.Perm(240/times)...)
		}
		for name, set := range map[string]*datasets.Dataset{"noise": distinct.Subset(rows).Center(),
			"coin": coin.Subset(rows)} {
			d := newProblem(t, set)
			d.centersTargets = set.Mean != nil
			r := testkit.Must(searchPoints(t.Context(), d, Options{Distance: "auto"}, nil, nil))
			// Noise has the standard deviation 1, and a coin is guessed wrongly half of the time.
			if least := map[string]float64{"noise": 0.8, "coin": 0.2}[name]; float64(r.Best.Error) < least ||
				r.Repeats.Grouped != 240-240/times || !strings.Contains(r.String(), "are copies and stay together") ||
				!strings.Contains(r.Short(), "are copies and stay together") {
				t.Errorf("%s, %d times: %v", name, times, r)
			}
		}
	}
	grouped := testkit.Must(datasets.SyntheticRegression(9, 2, 0, 1).Subset(make([]int, 9)).GroupByRule("together",
		nil))
	testkit.Fails(t, testkit.ErrOf(searchPoints(t.Context(), newProblem(t, grouped), Options{}, nil, nil)),
		"in one group")
}

// TestInvalidOptions checks that each invalid option is refused by an error with its name or value.
func TestInvalidOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"coef0":  {Kernels: []string{"polynomial coef0=-1"}},
		"sigma":  {Sigma: 1e200},
		"+Inf":   {Kernels: []string{"polynomial gamma=1e-310"}},
		"kernel": {Kernels: []string{"cosine"}},
		"λ":      {Lambda: -1},
		"Sigma":  {Sigma: math.NaN()},
		"degree": {Kernels: []string{"polynomial degree=-1"}},
		"1e100":  {Lambda: 1e308},
		"Rows":   {Rows: -1},
	} {
		testkit.Fails(t, o.check(), want)
	}
	testkit.OK(t, (&Options{}).check())
}

// TestReport checks the note on a smoother choice among tied points, and the figure of a search.
func TestReport(t *testing.T) {
	d := newProblem(t, datasets.SyntheticClasses(120, 2, 3, 0.05, 1))
	r := testkit.Must(searchPoints(context.Background(), d, Options{Kernels: []string{"gaussian", "matern32"}}, nil,
		nil))
	r.Dataset, r.Task, r.N, r.Command = "blobs", "classification", 120, "krrlab fit"+r.Best.flags()
	smallest := r.bestPerKernel()[0].ModeledError
	for _, c := range []struct {
		modeledError stage.Number
		hasNote      bool
	}{{smallest, false}, {2 * smallest, true}} {
		smoother := *r
		smoother.Best.ModeledError, smoother.Scaling = c.modeledError, "standard"
		if s := smoother.String(); strings.Contains(s, "the smoothest of those not told apart") != c.hasNote ||
			!strings.Contains(s, ", scaled: standard\n") {
			t.Errorf("modeled error %g, the smallest is %g; want a note: %v\n%s", c.modeledError, smallest, c.hasNote,
				s)
		}
	}
	f := r.Plot()
	if err := f.Validate(); err != nil || len(f.Panels) != 2 || f.Panels[0].Map == nil || len(f.Panels[0].Marks) != 1 {
		t.Errorf("error %v; want two panels, the first a map with one mark: %v", err, f)
	}
}

// TestFewRows checks the levels of small problems. With a few hundred rows half of them come first, and then all rows
// get some points, whatever the expected improvement. With fewer than 200 rows there is one level.
func TestFewRows(t *testing.T) {
	for _, c := range []struct {
		n    int
		rows []int
	}{{150, []int{150}}, {300, []int{150, 300}}, {600, []int{250, 600}}} {
		r := testkit.Must(searchPoints(context.Background(), newProblem(t, datasets.SyntheticRegression(c.n, 3, 0.1,
			1)),
			Options{}, nil, nil))
		var rows []int
		var work float64
		for _, l := range r.Levels {
			rows = append(rows, l.Rows)
			work += float64(l.Points) * math.Pow(float64(l.Rows)/float64(c.n), 3)
		}
		last := r.Levels[len(r.Levels)-1].Points
		if !slices.Equal(rows, c.rows) || len(rows) > 1 && (last < 8000/c.n || work > 45) {
			t.Errorf("%d rows: levels of %v, %d points on the last, work %.3g", c.n, rows, last, work)
		}
	}
}
