package lanczos

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestFullRun checks that T has the eigenvalues of A after n steps, and that the intervals then have no width.
func TestFullRun(t *testing.T) {
	for name, spectrum := range spectra(40) {
		slices.Sort(spectrum)
		a, _ := testkit.WithEigenvalues(1, spectrum)
		op := &countingOperator{Operator: dense{a}}
		res := run(t, op, &Options{Tol: -1})
		norm := max(math.Abs(spectrum[0]), math.Abs(spectrum[39]))
		testkit.Equal(t, res.Steps, 40, name)
		testkit.Equal(t, op.products, 40, name)
		for i, ritz := range res.Ritz {
			testkit.Near(t, ritz, spectrum[i], 1e-12*norm, name, i)
		}
		for _, width := range []float64{res.Min.Hi - res.Min.Lo, res.Max.Hi - res.Max.Lo} {
			if width < 0 || width > 1e-10*norm {
				t.Errorf("%s: an interval has the width %g, want none: %v", name, width, res)
			}
		}
		if !res.Min.Contains(spectrum[0]) || !res.Max.Contains(spectrum[39]) || res.Slack > 1e-11*norm {
			t.Errorf("%s: %v, slack %g", name, res, res.Slack)
		}
	}
}

// TestPencil compares a full run on (A, M) with the dense generalized eigenvalues.
func TestPencil(t *testing.T) {
	const n = 30
	spectrum := spectra(n)["geometric"]
	a, _ := testkit.WithEigenvalues(2, spectrum)
	b := testkit.RandomMatrix(3, n, n+5)
	m := newMetric(t, b)
	want := testkit.PencilEigenvalues(t, a, m)
	op := &countingOperator{Operator: dense{a}}
	res := testkit.Must(RunPencil(t.Context(), op, m, &Options{Tol: -1}))
	for i, ritz := range res.Ritz {
		testkit.Near(t, ritz, want[i], 1e-11*want[n-1], i)
	}
	testkit.Equal(t, op.products, n)
	testkit.Equal(t, m.solves, n+1)
	if kappa := res.Cond(); !kappa.Contains(want[n-1]/want[0]) || kappa.Confidence != 0.95 {
		t.Errorf("κ: %v, want it to cover %v", kappa, want[n-1]/want[0])
	}
}

// countMisses returns for how many seeds λ_min and λ_max lie outside their intervals at any of the given steps.
func countMisses(t *testing.T, spectrum []float64, seeds, steps int, opts Options) (low, high int) {
	t.Helper()
	slices.Sort(spectrum)
	n := len(spectrum)
	for seed := range seeds {
		var missLow, missHigh bool
		opts := opts
		opts.Steps, opts.Tol, opts.Start = steps, -1, rng.New(uint64(seed))
		opts.Monitor = func(result *Result) error {
			missLow = missLow || !result.Min.Contains(spectrum[0])
			missHigh = missHigh || !result.Max.Contains(spectrum[n-1])
			return nil
		}
		testkit.Must(Run(t.Context(), diagonal(spectrum), &opts))
		if missLow {
			low++
		}
		if missHigh {
			high++
		}
	}
	return low, high
}

// TestCoverage counts how often an end is outside its interval at any step. The count must be compatible with the
// stated probability (Clopper and Pearson's bound at 1e-4). For a confidence of 0.4 there must be failures: a bound
// that never fails would be loose.
func TestCoverage(t *testing.T) {
	seeds := suite.Scale(60, 60, 400)
	for name, spectrum := range spectra(300) {
		for _, confidence := range []float64{0.4, 0.95} {
			low, high := countMisses(t, spectrum, seeds, 40, Options{Confidence: confidence})
			delta := (1 - confidence) / 2
			for end, misses := range map[string]int{"λ_min": low, "λ_max": high} {
				t.Logf("%s, %s: %d of %d missed, δ = %g", name, end, misses, seeds, delta)
				if p := probabilityAtLeast(seeds, misses, delta); p < 1e-4 {
					t.Errorf("%s, %s: %d of %d missed, stated probability %g", name, end, misses, seeds, delta)
				}
			}
			if confidence < 0.5 && low+high == 0 {
				t.Errorf("%s: no failure in %d, stated probability %g: the bound is loose", name, 2*seeds, delta)
			}
		}
	}
}

// probabilityAtLeast returns P(X ≥ misses) for X ~ Binomial(n, p).
func probabilityAtLeast(n, misses int, p float64) float64 {
	if misses == 0 {
		return 1
	}
	return 1 - distuv.Binomial{N: float64(n), P: p}.CDF(float64(misses)-1)
}

// TestOneEnd checks that a bound of one end with failure probability δ equals that of two ends with 2δ.
func TestOneEnd(t *testing.T) {
	spectrum := spectra(200)["even"]
	twoEnds := run(t, diagonal(spectrum), &Options{Steps: 20, Confidence: 0.9, Tol: -1})
	oneEnd := run(t, diagonal(spectrum), &Options{Steps: 20, Confidence: 0.95, Quantity: LargestEigenvalue, Tol: -1})
	if math.Abs(oneEnd.Max.Hi-twoEnds.Max.Hi) > 1e-9 || !math.IsInf(oneEnd.Min.Lo, -1) {
		t.Errorf("two ends: %v\none end: %v", twoEnds, oneEnd)
	}
}

// TestTolerance checks that a process with a tolerance ends early, with intervals that are as narrow as requested.
func TestTolerance(t *testing.T) {
	for name, spectrum := range spectra(400) {
		res := run(t, diagonal(spectrum), &Options{Steps: 400, Tol: 0.2})
		// The small eigenvalues of the geometric spectrum lie close together, so that its lower end converges slowly.
		if !res.Converged || res.Min.RelativeWidth() > 0.2 || res.Max.RelativeWidth() > 0.2 ||
			name != "geometric" && res.Steps > 200 {
			t.Errorf("%s: %v", name, res)
		}
	}
	spectrum := spectra(400)["cluster"]
	slices.Sort(spectrum)
	res, err := Run(t.Context(), diagonal(spectrum), &Options{Steps: 400, Quantity: ConditionNumber, Tol: 0.05})
	if err != nil || !res.Converged || res.Cond().RelativeWidth() > 0.05 ||
		!res.Cond().Contains(spectrum[399]/spectrum[0]) {
		t.Errorf("κ %v, %v", res.Cond(), err)
	}
	spectrum = spectra(400)["indefinite"] // from −3 to 2
	res, err = Run(t.Context(), diagonal(spectrum), &Options{Steps: 400, Quantity: TwoNorm, Tol: 0.05})
	if err != nil || !res.Converged || res.Norm().RelativeWidth() > 0.05 || !res.Norm().Contains(3) {
		t.Errorf("norm %v, %v", res.Norm(), err)
	}
	if kappa := res.Cond(); !math.IsInf(kappa.Hi, 1) || !math.IsNaN(kappa.Value) {
		t.Errorf("κ of an indefinite matrix: %v", kappa)
	}
}

// TestStartMass compares startMass with the distribution of the squared component of a random unit vector.
func TestStartMass(t *testing.T) {
	for _, n := range []int{2, 3, 50, 3000} {
		for _, delta := range []float64{0.01, 0.3} {
			mass := startMass(n, delta)
			testkit.Near(t, (distuv.Beta{Alpha: 0.5, Beta: float64(n-1) / 2}).CDF(mass), delta, 1e-9, n, mass)
		}
	}
	const n, draws = 40, 20000
	belowMass := 0
	for i := range draws {
		normals := make([]float64, n)
		rng.New(7).Sub("draw", uint64(i)).Normals(normals, 0)
		var sum float64
		for _, normal := range normals {
			sum += normal * normal
		}
		if normals[3]*normals[3]/sum < startMass(n, 0.1) {
			belowMass++
		}
	}
	testkit.Near(t, float64(belowMass)/draws, 0.1, 0.01)
	testkit.Equal(t, startMass(1, 0.5), 1)
	// About (0.0313)²/n, from the quantile of a normal number.
	if mass := startMass(1000000, 0.025); mass < 0.9e-9 || mass > 1.1e-9 {
		t.Errorf("startMass(1e6, 0.025) is %g, want about 1e-9", mass)
	}
}

// TestAPrioriError compares the a-priori bound with a value worked out by hand, and with the bounds from runs.
func TestAPrioriError(t *testing.T) {
	// 1.648·√1000·e^(−√ε·99) = 0.05 by hand; 99 = 2·50 − 1.
	bound := APrioriError(1000, 50, 0.05)
	if math.Abs(1.648*math.Sqrt(1000)*math.Exp(-math.Sqrt(bound)*99)-0.05) > 1e-12 {
		t.Errorf("ε = %g", bound)
	}
	if APrioriError(1000, 1, 0.05) != 1 || APrioriError(20, 20, 0.05) != 0 {
		t.Error("APrioriError of 1 step is not 1, or that of n steps is not 0")
	}
	// The a-priori bound holds, and the bound from the run is sharper.
	spectrum := spectra(300)["even"]
	eps := APrioriError(300, 30, 0.025)
	for seed := range 20 {
		res := run(t, diagonal(spectrum), &Options{Steps: 30, Tol: -1, Start: rng.New(uint64(seed))})
		if res.Max.Value < (1-eps)*300 || res.Max.Hi > res.Max.Value/(1-eps) {
			t.Errorf("θ = %v, ε = %v, bound %v", res.Max.Value, eps, res.Max.Hi)
		}
	}
}

// inexactProducts is a diagonal matrix that adds noise that is not symmetric to each product.
type inexactProducts struct {
	diagonal
	noise float64
	calls *int
}

func (a inexactProducts) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	err := a.diagonal.MulTo(ctx, dst, src)
	*a.calls++
	noise := make([]float64, a.Dim())
	rng.New(11).Sub("noise", uint64(*a.calls)).Normals(noise, 0)
	for i, normal := range noise {
		dst.Set(i, 0, dst.At(i, 0)+a.noise*normal/math.Sqrt(float64(a.Dim())))
	}
	return err
}

// TestSlackOfInexactProducts checks that products with errors of norm ε give a slack of about ε and valid intervals.
func TestSlackOfInexactProducts(t *testing.T) {
	spectrum := spectra(500)["cluster"]
	for _, noise := range []float64{1e-8, 1e-4} {
		calls := 0
		res := run(t, inexactProducts{diagonal(spectrum), noise, &calls}, &Options{Steps: 30, Tol: -1})
		if res.Slack < noise || res.Slack > 30*noise {
			t.Errorf("noise %g: slack %g", noise, res.Slack)
		}
		if !res.Min.Contains(slices.Min(spectrum)) || !res.Max.Contains(slices.Max(spectrum)) {
			t.Errorf("noise %g: %v", noise, res)
		}
	}
}

// TestFewEigenvalues checks matrices with three different eigenvalues and with one, and a matrix of order 1.
func TestFewEigenvalues(t *testing.T) {
	// With three different eigenvalues the process ends after three steps.
	spectrum := make([]float64, 60)
	for i := range spectrum {
		spectrum[i] = float64(1 + i%3)
	}
	res := run(t, diagonal(spectrum), &Options{Tol: -1})
	if !res.Min.Contains(1) || !res.Max.Contains(3) || res.Max.Hi > 3.000001 || res.Min.Lo < 0.999999 {
		t.Errorf("%v", res)
	}
	for _, eigenvalue := range []float64{0, 5} { // a multiple of the identity
		for i := range spectrum {
			spectrum[i] = eigenvalue
		}
		res, err := Run(t.Context(), diagonal(spectrum), nil)
		if err != nil || res.Steps != 1 || !res.Max.Contains(eigenvalue) || !res.Min.Contains(eigenvalue) ||
			res.Max.Hi > eigenvalue+1e-10 {
			t.Errorf("%g·I: %v, %v", eigenvalue, res, err)
		}
	}
	order1, err := Run(t.Context(), diagonal([]float64{-4}), nil)
	if err != nil || order1.Max.Value != -4 || !order1.Norm().Contains(4) {
		t.Errorf("order 1: %v, %v", order1, err)
	}
}

// failingThirdProduct is a diagonal matrix whose third product is the error err, or contains a NaN if err is nil.
type failingThirdProduct struct {
	diagonal
	calls int
	err   error
}

func (a *failingThirdProduct) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	if a.calls++; a.calls == 3 && a.err != nil {
		return a.err
	}
	err := a.diagonal.MulTo(ctx, dst, src)
	if a.calls == 3 {
		dst.Set(1, 0, math.NaN())
	}
	return err
}

// indefinite is a metric M = −I, which is not positive definite.
type indefinite int

func (m indefinite) Dim() int { return int(m) }

func (m indefinite) NormalTo(_ context.Context, dst *mat.Dense, stream rng.Stream) error {
	stream.Normals(dst.RawMatrix().Data, 0)
	return nil
}

func (m indefinite) SolveTo(_ context.Context, dst, r *mat.Dense) error {
	dst.Scale(-1, r)
	return nil
}

// TestRunErrors checks that errors of products, of the metric and of the monitor, NaN, and a canceled context end a run
// with the result so far.
func TestRunErrors(t *testing.T) {
	a := spectra(30)["even"]
	errProduct := errors.New("boom")
	res, err := Run(t.Context(), &failingThirdProduct{diagonal: diagonal(a), err: errProduct}, nil)
	if !errors.Is(err, errProduct) || res == nil || res.Steps != 2 {
		t.Errorf("%v, %v", res, err)
	}
	if _, err = Run(t.Context(), &failingThirdProduct{diagonal: diagonal(a)}, nil); err == nil ||
		!strings.Contains(err.Error(), "finite") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	res, err = Run(ctx, diagonal(a), &Options{Tol: -1, Monitor: func(result *Result) error {
		if result.Steps == 4 {
			cancel()
		}
		return nil
	}})
	if !errors.Is(err, context.Canceled) || res == nil || res.Steps != 4 || !res.Max.Contains(30) {
		t.Errorf("%v, %v", res, err)
	}
	if res, err = Run(ctx, diagonal(a), nil); err == nil || res != nil {
		t.Errorf("a context that has ended: %v, %v", res, err)
	}
	if _, err = Run(t.Context(), diagonal(a),
		&Options{Monitor: func(*Result) error { return errProduct }}); !errors.Is(err, errProduct) {
		t.Error(err)
	}
	if _, err = RunPencil(t.Context(), diagonal(a), indefinite(30), nil); err == nil ||
		!strings.Contains(err.Error(), "not positive definite") {
		t.Error(err)
	}
}

// scaledDraws is a metric whose draws are multiplied by a factor.
type scaledDraws struct {
	*metric
	factor float64
}

func (m scaledDraws) NormalTo(ctx context.Context, dst *mat.Dense, stream rng.Stream) error {
	err := m.metric.NormalTo(ctx, dst, stream)
	dst.Scale(m.factor, dst)
	return err
}

// TestCovarianceOfDraws checks that draws with another covariance than M are an error, and that draws with covariance M
// never are.
func TestCovarianceOfDraws(t *testing.T) {
	for _, n := range []int{1, 2, 7, 150} {
		b, a := mat.NewDense(n, n, nil), make(diagonal, n)
		for i := range a {
			b.Set(i, i, math.Exp(float64(i%9)))
			b.Set(i, 0, b.At(i, 0)+1)
			a[i] = 1 + float64(i)
		}
		m := newMetric(t, b)
		for seed := range uint64(400) {
			_, err := RunPencil(t.Context(), a, m, &Options{Steps: 1, Start: rng.New(seed)})
			testkit.OK(t, err)
		}
		// A small χ²_n is not improbable enough with few degrees of freedom.
		for factor, isError := range map[float64]bool{100: true, 0.1: n > 120} {
			if _, err := RunPencil(t.Context(), a, scaledDraws{m, factor},
				&Options{Start: rng.New(1)}); (err != nil) != isError ||
				isError && !strings.Contains(err.Error(), "another covariance") {
				t.Errorf("n = %d, %g times a draw: %v", n, factor, err)
			}
		}
	}
}

// TestMisuse checks that invalid options and arguments panic.
func TestMisuse(t *testing.T) {
	a := diagonal(spectra(30)["even"])
	for _, opts := range []Options{{Steps: -1}, {Confidence: 1}, {Confidence: -0.1}, {Tol: math.NaN()}, {Quantity: 7},
		{Quantity: -1}} {
		testkit.Panics(t, map[string]func(){fmt.Sprint(opts): func() { _, _ = Run(t.Context(), a, &opts) }})
	}
	testkit.Panics(t, map[string]func(){
		"different orders": func() { _, _ = RunPencil(t.Context(), a, indefinite(31), nil) },
		"mass 0":           func() { startMass(0, 0.5) }, "mass 1": func() { startMass(5, 1) },
		"no steps": func() { APrioriError(5, 0, 0.5) }, "probability 0": func() { APrioriError(5, 1, 0) },
	})
}

// shiftedMetrics are the metrics D + s·I for the shifts s, with a diagonal D. The draws of all of them come from one
// noise vector, so that RunMany and RunPencil see the same numbers.
type shiftedMetrics struct {
	d      diagonal
	shifts []float64
}

func (m shiftedMetrics) Dim() int { return len(m.d) }

func (m shiftedMetrics) SolveColumnsTo(ctx context.Context, dst, r *mat.Dense, cols []int) error {
	for j, c := range cols {
		for i, v := range m.d {
			dst.Set(i, j, r.At(i, j)/(v+m.shifts[c]))
		}
	}
	return ctx.Err()
}

func (m shiftedMetrics) NormalColumnsTo(_ context.Context, dst *mat.Dense, stream rng.Stream) error {
	for c, shift := range m.shifts {
		for i, diagonalEntry := range m.d {
			dst.Set(i, c, math.Sqrt(diagonalEntry+shift)*stream.Normal(uint64(i)))
		}
	}
	return nil
}

// oneShift is the metric with the shift at the given index.
type oneShift struct {
	shiftedMetrics
	index int
}

func (m oneShift) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	return m.SolveColumnsTo(ctx, dst, r, []int{m.index})
}

func (m oneShift) NormalTo(ctx context.Context, dst *mat.Dense, stream rng.Stream) error {
	draws := mat.NewDense(m.Dim(), len(m.shifts), nil)
	err := m.NormalColumnsTo(ctx, draws, stream)
	dst.Copy(draws.Slice(0, m.Dim(), m.index, m.index+1))
	return err
}

// TestRunMany checks that RunMany takes the same steps for each of several pencils as a separate RunPencil, and ends
// each after as many.
func TestRunMany(t *testing.T) {
	spectrum := spectra(400)["geometric"]
	m := shiftedMetrics{diagonal(spectrum), []float64{0.001, 0.1, 10}}
	opts := &Options{Steps: 60, Tol: 0.05, Start: rng.New(4)}
	results := testkit.Must(RunMany(t.Context(), diagonal(spectrum), m, 3, opts))
	for c, res := range results {
		alone := testkit.Must(RunPencil(t.Context(), diagonal(spectrum), oneShift{m, c}, opts))
		if !slices.Equal(alone.Alpha, res.Alpha) || !slices.Equal(alone.Beta, res.Beta) ||
			alone.Converged != res.Converged {
			t.Errorf("shift %g: %v\nalone %v", m.shifts[c], res, alone)
		}
		low, high := spectrum[0]/(spectrum[0]+m.shifts[c]), spectrum[399]/(spectrum[399]+m.shifts[c])
		if !res.Min.Contains(low) || !res.Max.Contains(high) {
			t.Errorf("shift %g: %v, is [%g, %g]", m.shifts[c], res, low, high)
		}
	}
	if results[0].Steps == results[2].Steps {
		t.Errorf("two pencils end after %d steps, want pencils that end at different steps", results[0].Steps)
	}
}
