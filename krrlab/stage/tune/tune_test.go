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

// fitResiduals fits the rows trainRows of the data with their weights, and returns the residuals of the rows testRows,
// computed by dense linear algebra.
func fitResiduals(t *testing.T, data *problem, k kernel.Kernel, lambda float64, trainRows, testRows []int) *mat.Dense {
	t.Helper()
	row := func(i int) []float64 {
		x := make([]float64, data.train.Dim())
		data.train.X.RowTo(x, i)
		return x
	}
	_, columns := data.y.Dims()
	trainK, y := mat.NewDense(len(trainRows), len(trainRows), nil), mat.NewDense(len(trainRows), columns, nil)
	testK, residuals := mat.NewDense(len(testRows), len(trainRows), nil), mat.NewDense(len(testRows), columns, nil)
	for p, i := range trainRows {
		for q, j := range trainRows {
			trainK.Set(p, q, k.Eval(row(i), row(j)))
		}
		trainK.Set(p, p, trainK.At(p, p)+lambda/data.train.Weight(i))
		y.SetRow(p, data.y.RawRowView(i))
		for q, j := range testRows {
			testK.Set(q, p, k.Eval(row(j), row(i)))
		}
	}
	var c, predictions mat.Dense
	testkit.OK(t, c.Solve(trainK, y))
	predictions.Mul(testK, &c)
	for q, j := range testRows {
		for column := range columns {
			residuals.Set(q, column, data.y.At(j, column)-predictions.At(q, column))
		}
	}
	return residuals
}

// looResiduals returns the leave-one-out residuals by one fit for each row.
func looResiduals(t *testing.T, data *problem, k kernel.Kernel, lambda float64) *mat.Dense {
	t.Helper()
	n, columns := data.y.Dims()
	residuals, rows := mat.NewDense(n, columns, nil), upTo(n)
	for i := range n {
		residuals.SetRow(i, fitResiduals(t, data, k, lambda, slices.Concat(rows[:i], rows[i+1:]),
			rows[i:i+1]).RawRowView(0))
	}
	return residuals
}

// TestSeriesEvaluator checks that the losses by a Fourier series equal those of leave-one-out by dense factors, also
// with length scales. The evaluator cannot evaluate a kernel without a series, and a series with too many modes is an
// error.
func TestSeriesEvaluator(t *testing.T) {
	const n = 60
	set := datasets.SyntheticRegression(n, 2, 0.1, 1)
	data := newProblem(t, set)
	stageProblem := &stage.Problem{Header: stage.Header{N: n, D: 2, T: 1}, X: set.X, Y: data.y, Train: set,
		Comm: comm.OrAlone(nil)}
	options := Options{}.withDefaults()
	if options.seriesEvaluator(stageProblem, data.y, data.judgment) != nil {
		t.Error("a series is used for few rows")
	}
	stageProblem.N = seriesRows
	evaluator := options.seriesEvaluator(stageProblem, data.y, data.judgment)
	families := testkit.Must(options.families())
	if !evaluator.canEvaluate(families[0]) || evaluator.canEvaluate(families[3]) {
		t.Errorf("the series suits the kernel %s: %t; %s: %t", families[0].name, evaluator.canEvaluate(families[0]),
			families[3].name, evaluator.canEvaluate(families[3]))
	}
	sample := (&search{data: data}).newSample(upTo(n))
	for _, shape := range [][]float64{nil, {0.5, 2}} {
		got := testkit.Must(evaluator.loss(t.Context(), shape, kernel.Gaussian{Sigma: 0.9}, 0.1))
		sample.setShape(shape)
		want := testkit.Must(sample.loss(t.Context(), kernel.Gaussian{Sigma: 0.9}, 0.1))
		for i, v := range want.rowLosses {
			if math.Abs(v-got.rowLosses[i]) > 1e-6*(1+v) {
				t.Fatalf("lengths %v: row %d is %g, want %g", shape, i, got.rowLosses[i], v)
			}
		}
	}
	testkit.Fails(t, testkit.ErrOf(evaluator.loss(t.Context(), nil, kernel.Gaussian{Sigma: 1e-4}, 0.1)),
		"the kernel is narrow")
}

// TestSeriesLevelOrHoldout checks that a last level that evaluates only the Gaussian kernel is used for a smooth
// signal. For a random walk, for which the Laplacian kernel is better, the alternative evaluator is used, and the
// Laplacian kernel is chosen.
func TestSeriesLevelOrHoldout(t *testing.T) {
	const n = 300
	for seed := uint64(1); seed <= 3; seed++ {
		for _, test := range []struct{ signal, wantLevel, wantKernel string }{
			{"smooth", "series", "gaussian"}, {"random walk", "held out", "laplacian"},
		} {
			set := datasets.SyntheticRegression(n, 1, 0.1, seed)
			noise, walk := rand.New(rand.NewPCG(seed, 0)), 0.0
			for i := range set.Target {
				x, step := float64(i)/n, noise.NormFloat64()
				walk += step
				if set.X.(*points.Dense).Row(i)[0] = x; test.signal == "smooth" {
					set.Target[i] = math.Sin(8*x) + 0.1*step
				} else {
					set.Target[i] = walk
				}
			}
			data := newProblem(t, set)
			sampleOfAll := (&search{data: data}).newSample(upTo(n))
			loss := func(ctx context.Context, _ []float64, k kernel.Kernel, lambda float64) (*loss, error) {
				return sampleOfAll.loss(ctx, k, lambda)
			}
			full := &evaluator{name: "series", loss: loss,
				canEvaluate: func(f *family) bool { return f.name == "gaussian" },
				alternative: func() (*evaluator, error) { return &evaluator{name: "held out", loss: loss}, nil }}
			options := Options{Kernels: []string{"gaussian", "laplacian"}, Rows: 120, Points: 40, Distance: "sigma"}
			result := testkit.Must(searchPoints(t.Context(), data, options, full, func(stage.Event) {}))
			if last := result.Levels[len(result.Levels)-1].Name; last != test.wantLevel ||
				result.Best.Kernel != test.wantKernel {
				t.Errorf("%s, seed %d: last level %q, chosen %s; want %q, %s", test.signal, seed, last,
					result.Best.Kernel, test.wantLevel, test.wantKernel)
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

// TestLosses compares the losses by leave-one-out and on validation rows with those of dense fits, for each kernel.
func TestLosses(t *testing.T) {
	ctx := context.Background()
	const n = 40
	rows := upTo(n)
	for _, set := range []*datasets.Dataset{datasets.SyntheticRegression(n, 3, 0.1, 1),
		datasets.SyntheticClasses(n, 3, 3, 0.05, 1)} {
		data := newProblem(t, set)
		_, columns := data.y.Dims()
		for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 0.8}, kernel.Laplacian{Sigma: 2},
			kernel.Matern32{Sigma: 1}, kernel.Matern52{Sigma: 1}, kernel.Polynomial{Gamma: 0.5, Coef0: 1, Degree: 3}} {
			for _, withValidation := range []bool{false, true} {
				residuals, y, trainRows := looResiduals(t, data, k, 0.1), data.y, rows
				tuningProblem := &problem{train: set, y: data.y, judgment: data.judgment}
				if withValidation {
					trainRows = rows[:n-10]
					residuals = fitResiduals(t, data, k, 0.1, trainRows, rows[n-10:])
					y = mat.DenseCopyOf(data.y.Slice(n-10, n, 0, columns))
					tuningProblem.validation, tuningProblem.validationY = set.Slice(n-10, n), y
				}
				got := testkit.Must((&search{data: tuningProblem}).newSample(trainRows).loss(ctx, k, 0.1))
				for i, want := range data.judgment.loss(y, residuals).rowLosses {
					if math.Abs(want-got.rowLosses[i]) > 1e-5*(1+want) {
						t.Errorf("%s, %v, with validation rows: %v; the loss of row %d is %g, want %g", set.Name, k,
							withValidation, i, got.rowLosses[i], want)
						break
					}
				}
			}
		}
	}
}

// TestDistantClusters checks that distances within clusters do not suffer from cancellation if two clusters are so far
// apart that no shift moves both of them close to zero.
func TestDistantClusters(t *testing.T) {
	const n = 60
	set := datasets.SyntheticRegression(n, 3, 0.1, 1)
	x, rows := set.X.(*points.Dense), rng.New(1).Perm(n)
	for i := range n {
		x.Row(i)[1] += float64(i%2*2-1) * (1 << 27)
	}
	data := newProblem(t, set)
	for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 0.8}, kernel.Matern32{Sigma: 1}} {
		want := mat.Norm(looResiduals(t, data, k, 0.01), 2) / math.Sqrt(n)
		loss := testkit.Must((&search{data: data}).newSample(rows).loss(t.Context(), k, 0.01))
		if value, _, _ := loss.errorInterval(); !(math.Abs(value/want-1) < 1e-9) {
			t.Errorf("%v: error %g, want %g", k, value, want)
		}
	}
}

// TestLossByHand compares losses, their intervals and the relative excess of one loss over another with values computed
// by hand.
func TestLossByHand(t *testing.T) {
	y := mat.NewDense(4, 1, []float64{1, -1, 1, -1})
	residuals := mat.NewDense(4, 1, []float64{0.5, -0.5, 1.5, 0}) // predictions 0.5, -0.5, -0.5, -1
	errorRateLoss := defaultScoring(true).loss(y, residuals)
	// The interval is Wilson's for 1 of 4.
	if value, lo, hi := errorRateLoss.errorInterval(); value != 0.25 || math.Abs(lo-0.0456) > 1e-3 ||
		math.Abs(hi-0.6994) > 1e-3 {
		t.Errorf("error rate %g in [%g, %g], want 0.25 in [0.0456, 0.6994]", value, lo, hi)
	}
	three := defaultScoring(true).loss(mat.NewDense(2, 3, []float64{1, -1, -1, -1, 1, -1}),
		mat.NewDense(2, 3, []float64{0.1, 0, 0, 0, 1.5, -1}))
	if three.rowLosses[0] != 0 || three.rowLosses[1] != 1 { // the scores of the second row are −1, −0.5 and 0
		t.Errorf("losses of three classes %v, want 0 and 1", three.rowLosses)
	}
	f1 := &scoring{metric: model.F1, positiveClass: 1} // no row is of the positive class or predicted to be
	value, _, _ := f1.loss(mat.NewDense(2, 1, []float64{-1, -1}), mat.NewDense(2, 1, nil)).errorInterval()
	if value != 1 {
		t.Errorf("1 − F1 = %g, want 1", value)
	}
	rmseLoss := defaultScoring(false).loss(y, residuals)
	if value, lo, hi := rmseLoss.errorInterval(); math.Abs(value-math.Sqrt(2.75/4)) > 1e-7 ||
		!(lo < value && value < hi) {
		t.Errorf("RMSE %g in [%g, %g], want √(2.75/4)", value, lo, hi)
	}
	worse := defaultScoring(false).loss(y, mat.NewDense(4, 1, []float64{0.55, -0.55, 1.65, 0})) // 1.1 times
	if share, standardError := worse.relativeExcess(rmseLoss); math.Abs(share-0.105) > 1e-6 || !(standardError > 0) {
		t.Errorf("worse by %g ± %g, want half of 1.21−1", share, standardError)
	}
}

// TestSearchAgainstGrid checks that the error of the chosen point is at most 5 % above the smallest one on a grid, or
// has an interval that reaches down to it. It also checks the events of the search.
func TestSearchAgainstGrid(t *testing.T) {
	ctx := context.Background()
	for _, set := range []*datasets.Dataset{datasets.SyntheticRegression(160, 3, 0.2, 1),
		datasets.SyntheticClasses(160, 3, 2, 0.05, 1)} {
		data, options := newProblem(t, set), Options{Kernels: []string{"gaussian"}, Points: 200}
		var events int
		var lastLoss float64
		result := testkit.Must(searchPoints(ctx, data, options, nil, func(event stage.Event) {
			events++
			lastLoss = event.Loss
			if !(event.Loss > 0) || event.Done < 0 || event.Done > event.Total || event.Remaining < 0 ||
				!strings.Contains(event.Detail, "best of") {
				t.Errorf("event %+v", event)
			}
		}))
		if set.Target != nil && !slices.ContainsFunc(result.Points,
			func(p Point) bool { return math.Abs(lastLoss-float64(p.Error)) < 1e-6*lastLoss }) {
			t.Errorf("the last event says %g, which is the error of no point", lastLoss)
		}
		if events != len(result.Points) || !(float64(result.ExpectedGain) < 0.002) {
			t.Errorf("%d events for %d points, ended with a gain of %g", events, len(result.Points),
				result.ExpectedGain)
		}
		search := &search{options: options.withDefaults(), data: data}
		if search.families = testkit.Must(search.options.families()); search.prepare(ctx, nil) != nil {
			t.Fatal("the grid of the search cannot be made")
		}
		gaussian, best := search.families[0], math.Inf(1)
		for i := 0; i < len(gaussian.grid[0]); i += 2 {
			for j := 0; j < len(gaussian.grid[1]); j += 2 {
				p := &point{family: gaussian, location: gridPoint{gaussian.grid[0][i], gaussian.grid[1][j]}}
				if gridLoss, err := search.levels[len(search.levels)-1].loss(ctx, nil, gaussian.kernel(p.scale()),
					p.lambda()); err == nil {
					gridError, _, _ := gridLoss.errorInterval()
					best = min(best, gridError)
				}
			}
		}
		if !(float64(result.Best.Error) < 1.05*best) && !(float64(result.Best.Lo) <= best) {
			t.Errorf("%s: the choice is %+v, while the smallest error on the grid is %g", set.Name, result.Best, best)
		}
	}
}

// TestFixedParameters checks that the search does not vary parameters that the options set.
func TestFixedParameters(t *testing.T) {
	ctx := context.Background()
	data := newProblem(t, datasets.SyntheticRegression(120, 2, 0.1, 1))
	result := testkit.Must(searchPoints(ctx, data, Options{Kernels: []string{"laplacian", "gaussian"},
		Sigma: 0.71234567}, nil,
		nil))
	for _, p := range result.Points {
		testkit.Equal(t, p.Sigma, 0.71234567)
	}
	result = testkit.Must(searchPoints(ctx, data, Options{Kernels: []string{"polynomial degree=3 coef0=0.5"},
		Lambda: 0.051234567}, nil, nil))
	for _, p := range result.Points {
		if p.Lambda != 0.051234567 || p.Degree != 3 || p.Coef0 != 0.5 || p.Sigma != 0 || p.Gamma == 0 {
			t.Errorf("%+v", p)
		}
	}
	if flags := result.Best.flags(); !strings.Contains(flags, "--kernel 'polynomial gamma=") ||
		!strings.HasSuffix(flags, "coef0=0.5 degree=3' --lambda 0.051234567") {
		t.Error(flags)
	}
	result = testkit.Must(searchPoints(ctx, data, Options{Kernels: []string{"polynomial degree=2 gamma=0.12345678"}},
		nil, nil))
	testkit.Equal(t, result.Best.Gamma, 0.12345678)
}

// TestSmoothestOfTies checks that the largest λ is chosen if λ does not change the loss, although the expected
// improvement alone does not lead the search there, and that it is not chosen if λ changes the loss.
func TestSmoothestOfTies(t *testing.T) {
	data := newProblem(t, datasets.SyntheticRegression(900, 2, 0.1, 1))
	for name, slope := range map[string]float64{"flat": 0, "steep": 0.02} {
		lastLevel := &evaluator{name: name, loss: func(_ context.Context, _ []float64, _ kernel.Kernel, lambda float64,
		) (*loss, error) {
			l := &loss{rowLosses: make([]float64, 50)}
			for i := range l.rowLosses {
				l.rowLosses[i] = (1 + float64(i%5)) * (1 + slope*math.Abs(math.Log(lambda/0.1)))
			}
			return l, nil
		}}
		s := &search{options: Options{Kernels: []string{"gaussian"}, Rows: 200, Sigma: 1}.withDefaults(), data: data,
			start: time.Now()}
		s.families = testkit.Must(s.options.families())
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
	for want, options := range map[string]Options{
		"λ = 1e-07 is the least that is searched": {Kernels: []string{"laplacian"}, Sigma: 20},
		"": {Kernels: []string{"laplacian"}, Sigma: 20, Lambda: 1e-7},
	} {
		result := testkit.Must(searchPoints(t.Context(), newProblem(t, set), options, nil, nil))
		for _, text := range []string{result.String(), result.Short()} {
			// Both reports note the end of the grid, unless λ is fixed.
			if strings.Contains(text, "searched: others") != (want != "") || !strings.Contains(text, want) {
				t.Errorf("want a note only if λ is not fixed, with %q, in:\n%s", want, text)
			}
		}
	}
	polynomial := &family{name: "polynomial", base: kernel.Polynomial{Gamma: 1, Degree: 2},
		grid: [2][]float64{{0, 1, 2}, {-1, 0, 1}}}
	for want, location := range map[string]gridPoint{"γ = 1 is the largest that is searched": {0, 0},
		"γ = 0.135 is the least that is searched; λ = 2.72 is the largest that is searched": {2, 1}, "": {1, 0}} {
		testkit.Equal(t, (&point{family: polynomial, location: location}).edge(), want, location)
	}
}

// TestLastLevelDecides checks that the search of a large problem begins on a subsample, and that the last level, whose
// loss is smallest for σ = 0.9, decides.
func TestLastLevelDecides(t *testing.T) {
	data := newProblem(t, datasets.SyntheticRegression(900, 2, 0.1, 1))
	var calls int
	full := &evaluator{name: "made up", loss: func(_ context.Context, _ []float64, k kernel.Kernel, lambda float64,
	) (*loss, error) {
		calls++
		l := &loss{rowLosses: make([]float64, 50)}
		for i := range l.rowLosses {
			// σ = 0.9 is best.
			l.rowLosses[i] = 1 + 0.1*math.Abs(math.Log(k.(kernel.Gaussian).Sigma/0.9)) + float64(i%5)*0.1
		}
		return l, nil
	}}
	result := testkit.Must(searchPoints(context.Background(), data,
		Options{Kernels: []string{"gaussian"}, Rows: 200, Lambda: 0.1}, full, nil))
	last := result.Levels[len(result.Levels)-1]
	if last.Name != "made up" || last.Rows != 900 || calls != last.Points ||
		result.Best.Level != len(result.Levels)-1 ||
		calls > maxLaterPoints/2 {
		t.Errorf("%d calls of the last level; the levels are %+v, the choice %+v", calls, result.Levels, result.Best)
	}
	first := result.Points[slices.IndexFunc(result.Points, func(p Point) bool { return p.Level == result.Best.Level })]
	if math.Abs(math.Log(result.Best.Sigma/0.9)) > math.Abs(math.Log(first.Sigma/0.9)) {
		t.Errorf("the last level goes from σ = %g to %g, away from 0.9", first.Sigma, result.Best.Sigma)
	}
}

// TestRepeatedRows checks that copies of a row do not reveal its target when the row is judged: the error stays above
// the noise, and random labels are not predicted better than by chance.
func TestRepeatedRows(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, times := range []int{2, 3} {
		distinct := datasets.SyntheticRegression(240/times, 2, 0, 1)
		coin := datasets.Dataset{Name: "coin", Task: datasets.Classification, X: distinct.X, Labels: []string{"a", "b"}}
		for i := range distinct.Target {
			distinct.Target[i] = 7 + random.NormFloat64()
			coin.Class = append(coin.Class, random.IntN(2))
		}
		rows := make([]int, 0, 240)
		for range times {
			rows = append(rows, random.Perm(240/times)...)
		}
		for name, set := range map[string]*datasets.Dataset{"noise": distinct.Subset(rows).Center(),
			"coin": coin.Subset(rows)} {
			data := newProblem(t, set)
			data.centersTargets = set.Mean != nil
			result := testkit.Must(searchPoints(t.Context(), data, Options{Distance: "auto"}, nil, nil))
			// Noise has the standard deviation 1, and a coin is guessed wrongly half of the time.
			if minError := map[string]float64{"noise": 0.8, "coin": 0.2}[name]; float64(result.Best.Error) < minError ||
				result.Repeats.Grouped != 240-240/times || !strings.Contains(result.String(),
				"are copies and stay together") ||
				!strings.Contains(result.Short(), "are copies and stay together") {
				t.Errorf("%s, %d times: %v", name, times, result)
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
	for want, options := range map[string]Options{
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
		testkit.Fails(t, options.check(), want)
	}
	testkit.OK(t, (&Options{}).check())
}

// TestReport checks that the report notes the choice of a smoother point among tied points, and checks the figure.
func TestReport(t *testing.T) {
	data := newProblem(t, datasets.SyntheticClasses(120, 2, 3, 0.05, 1))
	result := testkit.Must(searchPoints(context.Background(), data,
		Options{Kernels: []string{"gaussian", "matern32"}}, nil,
		nil))
	result.Dataset, result.Task, result.N, result.Command = "blobs", "classification", 120,
		"krrlab fit"+result.Best.flags()
	smallest := result.bestPerKernel()[0].ModeledError
	for _, test := range []struct {
		modeledError stage.Number
		hasNote      bool
	}{{smallest, false}, {2 * smallest, true}} {
		smoother := *result
		smoother.Best.ModeledError, smoother.Scaling = test.modeledError, "standard"
		if text := smoother.String(); strings.Contains(text, "the smoothest of those not told apart") != test.hasNote ||
			!strings.Contains(text, ", scaled: standard\n") {
			t.Errorf("modeled error %g, the smallest is %g; want a note: %v\n%s", test.modeledError, smallest,
				test.hasNote,
				text)
		}
	}
	figure := result.Plot()
	if err := figure.Validate(); err != nil || len(figure.Panels) != 2 || figure.Panels[0].Map == nil ||
		len(figure.Panels[0].Marks) != 1 {
		t.Errorf("error %v; want two panels, the first a map with one mark: %v", err, figure)
	}
}

// TestLevelsOfFewRows checks the levels of small problems. With a few hundred rows, the first level has half of the
// rows, and the second level, with all rows, evaluates some points whatever the expected improvement. With fewer than
// 200 rows there is one level.
func TestLevelsOfFewRows(t *testing.T) {
	for _, test := range []struct {
		n        int
		wantRows []int // number of rows of each level
	}{{150, []int{150}}, {300, []int{150, 300}}, {600, []int{250, 600}}} {
		result := testkit.Must(searchPoints(context.Background(), newProblem(t, datasets.SyntheticRegression(test.n,
			3, 0.1,
			1)),
			Options{}, nil, nil))
		var rows []int
		var work float64 // in units of one point on all rows
		for _, level := range result.Levels {
			rows = append(rows, level.Rows)
			work += float64(level.Points) * math.Pow(float64(level.Rows)/float64(test.n), 3)
		}
		last := result.Levels[len(result.Levels)-1].Points
		if !slices.Equal(rows, test.wantRows) || len(rows) > 1 && (last < 8000/test.n || work > 45) {
			t.Errorf("%d rows: levels of %v, %d points on the last, work %.3g", test.n, rows, last, work)
		}
	}
}
