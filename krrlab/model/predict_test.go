package model

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestDecision compares f with its definition for every kernel and format of points, for sizes around the edges of
// batches and tiles. The tolerances are the rounding errors in float64 and in float32.
func TestDecision(t *testing.T) {
	const d = 4
	for _, size := range []struct{ n, rows, t int }{{1, 1, 1}, {3, 300, 2}, {530, 5, 3}, {513, 257, 1}} {
		train, test := pointsInFormats(size.n, d, 1), pointsInFormats(size.rows, d, 2)
		for _, k := range kernels {
			for trainFormat, x := range train {
				m := randomModel(k, x, size.t)
				common, bytes := decideByDefinition(m, test["float64"]), decideByDefinition(m, test["bytes"])
				for format, z := range test {
					want := common
					if format == "bytes" {
						want = bytes
					}
					name := fmt.Sprintf("%v, %d %s points, %d rows in %s", k, size.n, trainFormat, size.rows, format)
					if e := testkit.RelativeDifference(decide(t, m, z, &Options{Float64: true}), want); e > 1e-13 {
						t.Errorf("%s: an error of %.2g in float64, want at most 1e-13", name, e)
					}
					if e := testkit.RelativeDifference(decide(t, m, z, nil), want); e > 3e-5 {
						t.Errorf("%s: an error of %.2g, want at most 3e-5", name, e)
					}
				}
			}
		}
	}
}

// TestPrecisionOfPoints checks that points far from zero, and points in groups far from each other, are predicted as
// accurately as points near zero. The model must use float64 tiles if float32 ones are not accurate enough, and shift
// the points by their mean if that saves digits.
func TestPrecisionOfPoints(t *testing.T) {
	// cloud returns n points. f computes coordinate j of point i from a normally distributed number.
	cloud := func(n, d int, seed uint64, f func(i, j int, v float64) float64) *points.Dense {
		x := testkit.RandomPoints(seed, n, d)
		for i := range n {
			for j := range d {
				x.Row(i)[j] = f(i, j, x.Row(i)[j])
			}
		}
		return x
	}
	apartBy := func(distance float64) func(i, j int, v float64) float64 {
		return func(i, _ int, v float64) float64 { return v + distance*float64(1-2*(i%2)) }
	}
	shifted := func(distance float64) func(i, j int, v float64) float64 {
		return func(_, _ int, v float64) float64 { return v + distance }
	}
	unixTime := func(_, _ int, v float64) float64 { return 1.7e9 + 1e4*v }
	twoDistantGroups := func(i, j int, v float64) float64 { return []float64{1e9, 1e8*float64(i%2) + v}[j] }
	threeOutliers := func(n int) func(i, j int, v float64) float64 { // float32 has no digits left for three points
		return func(i, j int, v float64) float64 {
			if j == 0 && (i == n/5 || i == n/2 || i == n-7) {
				v += 1000
			}
			return v
		}
	}
	sorted := func(step float64) func(i, j int, v float64) float64 {
		return func(i, _ int, _ float64) float64 { return float64(i) * step }
	}
	gauss := kernel.Gaussian{Sigma: 1}
	wideKernels := []kernel.Kernel{kernel.Gaussian{Sigma: 1e3}, kernel.Matern32{Sigma: 1e3},
		kernel.Matern52{Sigma: 1e3}, kernel.Laplacian{Sigma: 1e3}}
	for _, c := range []struct {
		name                   string
		kernels                []kernel.Kernel
		x, z                   *points.Dense
		tolerance, tolerance64 float64 // largest relative errors that are allowed by default and in float64
		usesFloat64            string  // "true" or "false": whether the default has float64 tiles; "" for either
	}{
		{"near zero", kernels[:1], cloud(200, 4, 1, shifted(0)), cloud(90, 4, 2, shifted(0)), 2e-5, 1e-9, "false"},
		{"1e3 from zero", kernels[:1], cloud(200, 4, 1, shifted(1e3)), cloud(90, 4, 2, shifted(1e3)), 2e-5, 1e-9,
			"false"},
		{"1e6 from zero", kernels[:1], cloud(200, 4, 1, shifted(1e6)), cloud(90, 4, 2, shifted(1e6)), 2e-5, 1e-9,
			"false"},
		{"two groups", kernels[:1], cloud(200, 4, 1, apartBy(1e3)), cloud(90, 4, 2, apartBy(1e3)), 2e-5, 1e-9, "true"},
		{"seconds since 1970", wideKernels, cloud(120, 1, 1, unixTime), cloud(90, 1, 2, unixTime), 2e-5, 1e-9, ""},
		{"two groups far from zero", []kernel.Kernel{gauss, kernel.Matern52{Sigma: 1}},
			cloud(60, 2, 1, twoDistantGroups), cloud(50, 2, 2, twoDistantGroups), 1e-12, 1e-12, ""},
		{"three outliers", []kernel.Kernel{gauss}, cloud(200, 2, 1, threeOutliers(200)),
			cloud(3000, 2, 2, threeOutliers(3000)), defaultAccuracy, 1e-9, ""},
		{"sorted", []kernel.Kernel{gauss}, cloud(2000, 1, 1, sorted(1./2)), cloud(6000, 1, 1, sorted(1./6)),
			defaultAccuracy, 1e-9, ""},
	} {
		for _, k := range c.kernels {
			m := randomModel(k, c.x, 1)
			got, exact, want := decide(t, m, c.z, nil), decide(t, m, c.z, &Options{Float64: true}),
				decideByDefinition(m, c.z)
			e, e64 := testkit.RelativeDifference(got, want), testkit.RelativeDifference(exact, want)
			if e > c.tolerance || e64 > c.tolerance64 || !strings.Contains(fmt.Sprint(mat.Equal(got, exact)),
				c.usesFloat64) {
				t.Errorf("%s, %v: errors of %.2g by default and %.2g in float64, want %g and %g; float64 by default: %v",
					c.name, k, e, e64, c.tolerance, c.tolerance64, mat.Equal(got, exact))
			}
		}
	}
}

// TestPrecisionOfColumns checks that each target is predicted with the required accuracy relative to its own size,
// whatever the sizes of the others. One target has coefficients that nearly cancel.
func TestPrecisionOfColumns(t *testing.T) {
	x := pointsInFormats(300, 3, 1)["float64"].(*points.Dense)
	for i := range x.Data { // the points become so close to each other that K nearly has rank one
		x.Data[i] *= 0.02
	}
	for _, unit := range []float64{1, 1e-2, 1e-5, 1e-9, 1e3} {
		for canceling := range 3 { // the target with nearly canceling coefficients
			for k, kernel := range kernels {
				m := randomModel(kernel, x, 3)
				for j := range 3 {
					var mean float64
					for i := range 300 {
						m.C.Set(i, j, 1+math.Abs(m.C.At(i, j)))
						mean += m.C.At(i, j) / 300
					}
					if j == canceling {
						for i := range 300 {
							m.C.Set(i, j, unit*(m.C.At(i, j)-mean))
						}
					}
				}
				got, want := decide(t, m, x, &Options{Accuracy: 1e-5}), decideByDefinition(m, x)
				difference := mat.NewDense(300, 3, nil)
				difference.Sub(got, want)
				for j, size := range columnMaxima(want) {
					// The model tries its arithmetic on a sample of the points, so four times the accuracy is allowed.
					if maxError := columnMaxima(difference)[j]; !(maxError <= 4e-5*size) {
						t.Errorf("kernel %d, target %d has coefficients of size %g that cancel: target %d has a relative error "+
							"of %.2g", k, canceling, unit, j, maxError/size)
					}
				}
			}
		}
	}
}

// TestScaling checks that a model scales raw points, does not scale points that are scaled already, and refuses
// points with another scaling.
func TestScaling(t *testing.T) {
	x, z := pointsInFormats(30, 4, 1)["float64"], pointsInFormats(20, 4, 2)["float64"]
	m := randomModel(kernels[0], x, 1)
	m.Scaling = exampleScaling(4)
	raw := &datasets.Dataset{Name: "z", X: z}
	scaled := testkit.Must(exampleScaling(4).Apply(raw))
	want, o := decideByDefinition(m, scaled.X), &Options{Float64: true}
	for description, got := range map[string]*mat.Dense{"raw points": decide(t, m, z, o),
		"raw data":    testkit.Must(m.Predict(t.Context(), raw, o)).Decision,
		"scaled data": testkit.Must(m.Predict(t.Context(), scaled, o)).Decision} {
		testkit.Near(t, testkit.RelativeDifference(got, want), 0, 1e-13, "error at", description)
	}
	other, _ := (&datasets.Scaling{Kind: "unit", Scale: []float64{1, 2, 3, 4}}).Apply(raw)
	testkit.Fails(t, testkit.ErrOf(m.Predict(t.Context(), other, nil)),
		"model: z: the points are scaled already (unit)")
	m.Scaling = nil
	testkit.Fails(t, testkit.ErrOf(m.Predict(t.Context(), scaled, nil)), "want them unscaled")
}

// TestThreads checks that predictions have the same bits for any number of threads, and that the progress is reported
// up to the last point.
func TestThreads(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	m, z := randomModel(kernels[0], pointsInFormats(700, 4, 1)["float32"], 3), pointsInFormats(900, 4, 2)["sparse"]
	var first *mat.Dense
	for _, threads := range []int{1, 2, 5} {
		accel.SetThreads(threads)
		var calls []int
		f := decide(t, m, z, &Options{Progress: func(done, total int) {
			if calls = append(calls, done); total != 900 {
				t.Errorf("progress of %d points", total)
			}
		}})
		if first == nil {
			first = f
		}
		if !mat.Equal(f, first) {
			t.Errorf("with %d threads the decision values have other bits than with 1", threads)
		}
		if !slices.IsSorted(calls) || len(calls) != 4 || calls[3] != 900 {
			t.Errorf("%d threads: progress %v, want 4 ascending numbers up to 900", threads, calls)
		}
	}
}

// TestDecisionErrors checks the errors for points of another dimension, no points, and a canceled context.
func TestDecisionErrors(t *testing.T) {
	m := randomModel(kernels[0], pointsInFormats(30, 4, 1)["float64"], 1)
	for _, c := range []struct {
		z    points.Points
		want string
	}{
		{points.NewDense(2, 3, nil), "points have 3 features, the model was fitted on 4"},
		{points.NewDense(0, 4, nil), "no points"},
	} {
		testkit.Fails(t, testkit.ErrOf(m.Decision(t.Context(), c.z, nil)), c.want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if f, err := m.Decision(ctx, points.NewDense(2, 4, nil), nil); !errors.Is(err, context.Canceled) || f != nil {
		t.Errorf("a canceled context: decision values %v, error %v", f, err)
	}
}

// TestPredictionText checks the texts of predicted labels of two and three classes, and of predicted numbers.
func TestPredictionText(t *testing.T) {
	x := points.NewDense(3, 1, []float64{0, 100, 200}) // with σ = 1 these points are so distant that K = I
	k := kernel.Gaussian{Sigma: 1}
	two := &Model{Kernel: k, Lambda: 1, X: x, C: mat.NewDense(3, 1, []float64{-1, 2, -3}),
		Labels: []string{"no", "yes"}}
	three := &Model{Kernel: k, Lambda: 1, X: x, C: mat.NewDense(3, 3, []float64{1, 2, 3, 5, 4, 3, -1, 0, -2}),
		Labels: []string{"a", "b", "c"}}
	regression := &Model{Kernel: k, Lambda: 1, X: x, C: mat.NewDense(3, 1, []float64{1.5, -2, 0})}
	for _, c := range []struct {
		m    *Model
		want string
	}{{two, "no yes no"}, {three, "c a b"}, {regression, "1.5 -2 0"}} {
		p := testkit.Must(c.m.Predict(t.Context(), &datasets.Dataset{X: x}, nil))
		testkit.Equal(t, strings.Join([]string{p.Text(0), p.Text(1), p.Text(2)}, " "), c.want, c.m)
	}
}

// TestScore compares the figures of a score with values computed by hand.
func TestScore(t *testing.T) {
	for _, origin := range []float64{0, 1e8} { // the answers have an origin of 0, or one far larger than their spread
		p := &Prediction{Value: []float64{origin + 1, origin + 2, origin + 4}}
		s := p.Score(&datasets.Dataset{Task: datasets.Regression, X: points.NewDense(3, 1, nil),
			Target: []float64{origin + 1, origin + 3, origin + 2}})
		// e = (0, −1, 2): RMSE √(5/3), Σ(y−2)² = 2, and from zero ‖y‖ = √14.
		if math.Abs(s.RMSE-math.Sqrt(5.0/3)) > 1e-15 || origin == 0 && math.Abs(s.RelErr-math.Sqrt(5.0/14)) > 1e-15 ||
			math.Abs(s.R2-(1-5.0/2)) > 1e-7*origin/1e8+1e-15 || !math.IsNaN(s.ErrorRate) || s.N != 3 {
			t.Errorf("answers around %g: %+v", origin, s)
		}
	}
	// Labels are compared by text; one that the model does not know is an error.
	p := &Prediction{Class: []int{0, 1, 1, 0}, Labels: []string{"a", "b"}}
	d := &datasets.Dataset{Task: datasets.Classification, X: points.NewDense(4, 1, nil), Class: []int{2, 0, 1, 2},
		Labels: []string{"b", "c", "a"}}
	if s := p.Score(d); s.ErrorRate != 0.25 || !math.IsNaN(s.RMSE) { // truth a b c a
		t.Errorf("error rate %v, want 0.25", s.ErrorRate)
	}
	m := randomModel(kernels[0], pointsInFormats(5, 2, 1)["float64"], 1)
	testkit.Fails(t, testkit.ErrOf(m.Evaluate(t.Context(), d, nil)), "regression")
}

// TestScoreText checks the line that describes a score for both tasks.
func TestScoreText(t *testing.T) {
	nan := math.NaN()
	for want, s := range map[string]Score{
		"error 12.50 % (best possible 10.00 %) on 8 points": {N: 8, ErrorRate: 0.125, BestError: 0.1},
		"RMSE 0.5 (best possible 0.4), ‖ŷ−y‖/‖y‖ 0, R² 1.0000 on 8": {N: 8, ErrorRate: nan, RMSE: 0.5, R2: 1,
			BestError: 0.4},
	} {
		if got := s.String(); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want the beginning %q", got, want)
		}
	}
}
