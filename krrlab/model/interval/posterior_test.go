package interval

import (
	"errors"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
)

// denseVariances returns the posterior variance k(z, z) − k_zᵀA⁻¹k_z of each point of z and the scale τ of each
// column of C, computed with an explicit inverse.
func denseVariances(t *testing.T, m *model.Model, z points.Points) (variances, tau []float64) {
	inv, cross := inverseOf(t, m.Kernel, m.X, m.Lambda), crossKernelMatrix(m.Kernel, m.X, z)
	n, _, columns := m.Dims()
	var solved mat.Dense
	solved.Mul(inv, cross)
	for i, prior := range kernel.Diag(m.Kernel, z) {
		variances = append(variances, prior-mat.Dot(cross.ColView(i), solved.ColView(i)))
	}
	for j := range columns {
		sum := 0.0
		for i := range n {
			sum += m.C.At(i, j) * m.C.At(i, j) / inv.At(i, i)
		}
		tau = append(tau, math.Sqrt(sum/float64(n)))
	}
	return variances, tau
}

// TestPosterior compares standard deviations and noise with a dense inverse, by a Fourier series and by a Cholesky
// factorization, for one and two targets. The bound of the truncation error must cover the difference, and the
// intervals must follow the Gaussian formula.
func TestPosterior(t *testing.T) {
	for name, c := range map[string]struct {
		k      kernel.Kernel
		n, d   int  // number and dimension of the points
		series bool // whether a Fourier series must be used
	}{
		"one dimension":    {kernel.Gaussian{Sigma: 0.5}, 200, 1, true},
		"two dimensions":   {kernel.Gaussian{Sigma: 2}, 400, 2, true},
		"three dimensions": {kernel.Gaussian{Sigma: 12}, 4500, 3, true},
		"few points":       {kernel.Gaussian{Sigma: 0.5}, 60, 2, false},
		"matern":           {kernel.Matern32{Sigma: 1}, 80, 2, false}, "polynomial": {kernels[4], 50, 4, false},
	} {
		if c.n > 1000 && suite.Small() {
			continue
		}
		for seed := range uint64(2) {
			d, test := datasets.SyntheticRegression(c.n, c.d, 0.1, seed),
				datasets.SyntheticRegression(40, c.d, 0.1, seed+9)
			lambda := []float64{0.02, 1}[seed]
			m := fit(t, d, c.k, lambda)
			if seed == 1 { // a second target
				both := mat.NewDense(c.n, 2, nil)
				both.Augment(m.C, m.C)
				for i := range c.n {
					both.Set(i, 1, 3*m.C.At(i, 0))
				}
				m.C, m.Targets = both, []string{"a", "b"}
			}
			p := predict(t, m, test)
			posterior := testkit.Must(NewPosterior(t.Context(), m, p, test, accel.Budget{}))
			if (posterior.Modes > 0) != c.series {
				t.Errorf("%s: %d modes of a Fourier series, want a series: %t", name, posterior.Modes, c.series)
			}
			variances, tau := denseVariances(t, m, test.X)
			// A rounding error of 1e-14·n/λ of a variance may change a standard deviation by this much.
			const rounding = 1e-7
			for j, scale := range tau {
				if e := math.Abs(posterior.Noise[j] - math.Sqrt(lambda)*scale); !(e < 1e-8*scale) {
					t.Errorf("%s: noise %g, want %g", name, posterior.Noise[j], math.Sqrt(lambda)*scale)
				}
				for i, v := range variances {
					e, tolerance := math.Abs(posterior.Std.At(i, j)-scale*math.Sqrt(v)), rounding*scale
					if !(e <= posterior.TruncationError+tolerance) ||
						posterior.TruncationError > 1e-3*scale {
						t.Errorf("%s: std %g, want %g within %g", name, posterior.Std.At(i, j), scale*math.Sqrt(v),
							posterior.TruncationError)
					}
				}
			}
			v := testkit.Must(posterior.Intervals(0.9))
			halfWidth := distuv.UnitNormal.Quantile(0.95) * math.Hypot(posterior.Noise[0], posterior.Std.At(3, 0))
			testkit.Near(t, v.Hi.At(3, 0), p.Value[3]+halfWidth, 1e-9, name, "upper end")
			testkit.Near(t, v.Lo.At(3, 0), p.Value[3]-halfWidth, 1e-9, name, "lower end")
			testkit.Contains(t, v.Guarantee(), "are a Gaussian process", "assumed and not checked")
		}
	}
}

// TestPosteriorOutliers checks that points far from those of the model do not prevent a Fourier series: their variances
// must be those of a dense inverse, as those of the other points, also if there are only outliers.
func TestPosteriorOutliers(t *testing.T) {
	for name, c := range map[string]struct {
		k    kernel.Gaussian
		n, d int
	}{"line": {kernel.Gaussian{Sigma: 0.5}, 200, 1}, "plane": {kernel.Gaussian{Sigma: 2}, 400, 2}} {
		d, test := datasets.SyntheticRegression(c.n, c.d, 0.1, 1), datasets.SyntheticRegression(20, c.d, 0.1, 9)
		m := fit(t, d, c.k, 0.1)
		x := test.X.(*points.Dense)
		for i := range 20 {
			if i%5 == 3 {
				x.Row(i)[c.d-1] += c.k.Sigma * []float64{10, 1e4, -1e7, 60}[i/5]
			}
		}
		for _, rows := range [][]int{{0, 1, 2, 3, 4, 8, 13, 17, 18}, {8, 13}} {
			some := test.Subset(rows)
			posterior := testkit.Must(NewPosterior(t.Context(), m, predict(t, m, some), some, accel.Budget{}))
			if posterior.Modes == 0 {
				t.Errorf("%s: no Fourier series", name)
			}
			variances, tau := denseVariances(t, m, some.X)
			for i, v := range variances {
				e := math.Abs(posterior.Std.At(i, 0) - tau[0]*math.Sqrt(v))
				if !(e <= posterior.TruncationError+1e-7*tau[0]) {
					t.Errorf("%s: std %g of row %d, want %g", name, posterior.Std.At(i, 0), rows[i],
						tau[0]*math.Sqrt(v))
				}
			}
			testkit.Fails(t, testkit.ErrOf(posterior.Samples(t.Context(), 0, 1, 1)), "too far from those of the fit")
		}
	}
}

// TestOutlierDistance checks that the data explain at most outlierError of the variance of an outlier, by the sum of the
// squares of n kernel values at that distance, and not much less.
func TestOutlierDistance(t *testing.T) {
	d := datasets.SyntheticRegression(50, 1, 0.1, 1)
	for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 0.5}, kernel.Matern52{Sigma: 3}, kernel.Laplacian{Sigma: 1}} {
		m := fit(t, d, k, 0.1)
		m.Weights = slices.Repeat([]float64{3}, 50)
		distance := outlierDistance(m)
		if math.IsInf(distance, 1) {
			testkit.Equal(t, k.String(), kernel.Laplacian{Sigma: 1}.String(), "kernel without a bound")
			continue
		}
		explained := func(distance float64) float64 {
			value := k.Eval([]float64{0}, []float64{distance})
			return value * value * 150 / 0.1
		}
		if far, near := explained(distance), explained(distance/2); !(far <= outlierError*(1+1e-9) && near > outlierError) {
			t.Errorf("%v: at the distance %g the data explain %g of the variance, at half of it %g", k, distance, far, near)
		}
	}
}

// TestPosteriorWeights checks that a row of weight 2 or 3 gives the same ratio of standard deviation and noise as two
// or three rows with the same answer. The noise must be that of a dense inverse of K+λW⁻¹.
func TestPosteriorWeights(t *testing.T) {
	for _, c := range []struct {
		k      kernel.Kernel
		n      int  // number of points
		series bool // whether a Fourier series must be used
	}{{kernel.Gaussian{Sigma: 0.5}, 200, true}, {kernel.Matern32{Sigma: 1}, 60, false}} {
		const lambda = 0.1
		d, queries := datasets.SyntheticRegression(c.n, 1, 0.1, 1), datasets.SyntheticRegression(30, 1, 0.1, 2)
		d.Mean = nil
		var rows []int
		weights := make([]float64, c.n)
		for i := range c.n {
			weights[i] = float64(1 + i%3)
			rows = append(rows, slices.Repeat([]int{i}, 1+i%3)...)
		}
		repeated := fit(t, d.Subset(rows), c.k, lambda)
		m := fit(t, d, c.k, lambda)
		m.Weighted, m.Weights = true, weights
		m.C.Zero()
		for copied, i := range rows {
			m.C.Set(i, 0, m.C.At(i, 0)+repeated.C.At(copied, 0))
		}
		a := testkit.KernelMatrix(c.k, d.X)
		for i, w := range weights {
			a.SetSym(i, i, a.At(i, i)+lambda/w)
		}
		var inverse mat.Dense
		testkit.OK(t, inverse.Inverse(a))
		sum := 0.0
		for i := range c.n {
			sum += m.C.At(i, 0) * m.C.At(i, 0) / inverse.At(i, i)
		}
		got := testkit.Must(NewPosterior(t.Context(), m, predict(t, m, queries), queries, accel.Budget{}))
		want := testkit.Must(NewPosterior(t.Context(), repeated, predict(t, repeated, queries), queries,
			accel.Budget{}))
		if noise := math.Sqrt(lambda * sum / float64(c.n)); !(math.Abs(got.Noise[0]-noise) < 1e-8*noise) ||
			(got.Modes > 0) != c.series {
			t.Errorf("%v: noise %g, want %g; %d modes", c.k, got.Noise[0], noise, got.Modes)
		}
		for i := range 30 {
			gotRatio, wantRatio := got.Std.At(i, 0)/got.Noise[0], want.Std.At(i, 0)/want.Noise[0]
			if !(math.Abs(gotRatio-wantRatio) < 1e-6*wantRatio) {
				t.Errorf("%v: std ÷ noise %g, want %g", c.k, gotRatio, wantRatio)
			}
		}
		testkit.Fails(t, testkit.ErrOf(NewFactoredSystem(t.Context(), m, accel.Budget{})),
			"or for a regression the posterior")
		m.C.Scale(1.5, m.C)
		m.Origin.TrueResidual = new(0.5)
		testkit.Fails(t, testkit.ErrOf(NewPosterior(t.Context(), m, predict(t, m, queries), queries, accel.Budget{})),
			"too far from the solution")
	}
}

// TestPosteriorOfConstantTarget checks a constant target, whose coefficients are 0 after centering. Its noise, standard
// deviations and truncation error must be 0 and not NaN.
func TestPosteriorOfConstantTarget(t *testing.T) {
	d, queries := datasets.SyntheticRegression(200, 1, 0.1, 1), datasets.SyntheticRegression(5, 1, 0.1, 2)
	m := fit(t, d, kernel.Gaussian{Sigma: 0.5}, 0.1)
	m.C.Zero()
	m.Mean, m.Origin.TrueResidual = []float64{7}, new(float64)
	p := predict(t, m, queries)
	posterior := testkit.Must(NewPosterior(t.Context(), m, p, queries, accel.Budget{}))
	v := testkit.Must(posterior.Intervals(0.9))
	for i := range queries.Len() {
		if posterior.Modes == 0 || posterior.Noise[0] != 0 || posterior.Std.At(i, 0) != 0 ||
			posterior.TruncationError != 0 || v.Lo.At(i, 0) != 7 || v.Hi.At(i, 0) != 7 {
			t.Fatalf("%d modes, noise %g, standard deviation %g ± %g, interval [%g, %g]; want [7, 7]", posterior.Modes,
				posterior.Noise[0], posterior.Std.At(i, 0), posterior.TruncationError, v.Lo.At(i, 0), v.Hi.At(i, 0))
		}
	}
}

// TestTruncationError checks the bound of the error of a posterior variance if entries of the kernel matrix have an
// error of at most 1e-4. The error of a perturbed kernel must be below the bound and above a thousandth of it.
func TestTruncationError(t *testing.T) {
	const n, lambda = 100, 0.5
	d := datasets.SyntheticRegression(n, 1, 0.1, 1)
	m := fit(t, d, kernel.Gaussian{Sigma: 1}, lambda)
	queries := datasets.SyntheticRegression(30, 1, 0.1, 2)
	const amplitude = 1e-4
	perturbedModel := *m
	perturbedModel.Kernel = kernel.Func{F: func(x, z []float64) float64 {
		return m.Kernel.Eval(x, z) + amplitude*math.Cos(3*(x[0]-z[0]))
	}}
	exact, _ := denseVariances(t, m, queries.X)
	perturbed, _ := denseVariances(t, &perturbedModel, queries.X)
	for i, v := range exact {
		e, limit := math.Abs(perturbed[i]-v), truncationError(perturbed[i], lambda, n, amplitude)
		if !(e <= limit) || e < limit/1000 {
			t.Errorf("variance %g, with the perturbed kernel %g: the bound of the difference is %g", v, perturbed[i],
				limit)
		}
	}
}

// TestPosteriorCoverage draws answers from a Gaussian process. The intervals must cover at their level, and the
// estimated noise must be the true one within 10 %.
func TestPosteriorCoverage(t *testing.T) {
	const n, tests, lambda, tau, level = 300, 200, 0.05, 3.0, 0.8
	k, inside, total, noise := kernel.Gaussian{Sigma: 0.4}, 0, 0, 0.0
	for seed := range uint64(4) {
		random := rng.New(seed)
		x := points.NewDense(n+tests, 2, nil)
		random.Normals(x.Data, 0)
		all := &datasets.Dataset{X: x, Target: make([]float64, n+tests)}
		var chol mat.Cholesky
		if !chol.Factorize(testkit.AddRidge(testkit.KernelMatrix(k, x), lambda)) {
			t.Fatal("K+λI is not positive definite")
		}
		var lower mat.TriDense
		chol.LTo(&lower)
		normals := make([]float64, n+tests)
		random.Sub("answers").Normals(normals, 0)
		y := mat.NewVecDense(n+tests, all.Target)
		y.MulVec(&lower, mat.NewVecDense(n+tests, normals))
		y.ScaleVec(tau, y)
		train, test := all.Slice(0, n), all.Slice(n, n+tests)
		m := fit(t, train, k, lambda)
		posterior := testkit.Must(NewPosterior(t.Context(), m, predict(t, m, test), test, accel.Budget{}))
		v := testkit.Must(posterior.Intervals(level))
		inside += int(math.Round(v.Coverage(posterior.prediction, test) * tests))
		total += tests
		noise += posterior.Noise[0] / 4
	}
	// Three standard deviations of the share of independent answers are 0.042.
	testkit.Near(t, float64(inside)/float64(total), level, 0.06, "share of covered answers")
	wantNoise := tau * math.Sqrt(lambda)
	testkit.Near(t, noise, wantNoise, 0.1*wantNoise, "noise")
}

// TestPosteriorSamples checks that samples of the posterior have the mean and the dense covariance of the posterior,
// and the same bits for the same seed. Kernels without a Fourier series are refused.
func TestPosteriorSamples(t *testing.T) {
	const n, lambda, count = 150, 0.1, 20_000
	d, queries := datasets.SyntheticRegression(n, 1, 0.3, 1), datasets.SyntheticRegression(4, 1, 0.3, 2)
	m := fit(t, d, kernel.Gaussian{Sigma: 0.5}, lambda)
	p := predict(t, m, queries)
	posterior := testkit.Must(NewPosterior(t.Context(), m, p, queries, accel.Budget{}))
	samples := testkit.Must(posterior.Samples(t.Context(), 0, count, 1))
	cross := crossKernelMatrix(m.Kernel, m.X, queries.X)
	var solved, reduction mat.Dense
	solved.Mul(inverseOf(t, m.Kernel, m.X, lambda), cross)
	reduction.Mul(cross.T(), &solved)
	prior, scale := crossKernelMatrix(m.Kernel, queries.X, queries.X), posterior.Noise[0]*posterior.Noise[0]/lambda
	for i := range queries.Len() {
		mean := mat.Sum(samples.RowView(i)) / count
		if !(math.Abs(mean-p.Value[i]) < 4*posterior.Std.At(i, 0)/math.Sqrt(count)) {
			t.Errorf("the samples at point %d have the mean %g, want %g", i, mean, p.Value[i])
		}
		for j := range queries.Len() {
			covariance := 0.0
			for c := range count {
				covariance += (samples.At(i, c) - p.Value[i]) * (samples.At(j, c) - p.Value[j]) / count
			}
			want := scale * (prior.At(i, j) - reduction.At(i, j))
			tolerance := 6 * posterior.Std.At(i, 0) * posterior.Std.At(j, 0) / math.Sqrt(count)
			if !(math.Abs(covariance-want) < tolerance) {
				t.Errorf("the samples at points %d and %d have the covariance %g, want %g", i, j, covariance, want)
			}
		}
	}
	if again := testkit.Must(posterior.Samples(t.Context(), 0, count, 1)); !mat.Equal(again, samples) {
		t.Error("samples of the same seed have other bits")
	}
	m = fit(t, d, kernel.Laplacian{Sigma: 1}, lambda)
	posterior = testkit.Must(NewPosterior(t.Context(), m, p, queries, accel.Budget{}))
	testkit.Fails(t, testkit.ErrOf(posterior.Samples(t.Context(), 0, 1, 1)), "take a Fourier series")
}

// TestPosteriorRefusals checks that the posterior is refused for classes, unknown weights, precomputed kernels,
// unsolved models and too little memory, and that an invalid level is refused.
func TestPosteriorRefusals(t *testing.T) {
	d := datasets.SyntheticRegression(300, 1, 0.1, 1)
	queries := d.Head(5)
	const tooFew = 100_000 // bytes of memory, which a dense factorization exceeds
	for want, c := range map[string]struct {
		memory int64
		change func(*model.Model)
	}{
		"is for classification": {0, func(m *model.Model) { m.Labels = []string{"a", "b"} }},
		"fitted with weights":   {0, func(m *model.Model) { m.Weighted = true }},
		"a precomputed kernel": {0, func(m *model.Model) {
			m.Kernel = testkit.Must(kernel.NewPrecomputed(points.NewDense(2, 2, nil)))
		}},
		ErrUnsolved.Error(): {0, func(m *model.Model) { m.Origin.TrueResidual = new(0.9) }},
		"residual is not known": {0, func(m *model.Model) {
			m.Origin.TrueResidual, m.Kernel = nil,
				kernel.Laplacian{Sigma: 1}
		}},
		"100 kB are free":       {tooFew, func(m *model.Model) { m.Kernel = kernel.Laplacian{Sigma: 1} }},
		"is narrow for the box": {tooFew, func(m *model.Model) { m.Kernel = kernel.Gaussian{Sigma: 1e-6} }},
	} {
		m := fit(t, d, kernel.Gaussian{Sigma: 1}, 0.1)
		p := predict(t, m, queries)
		c.change(m)
		_, err := NewPosterior(t.Context(), m, p, queries, accel.Budget{Limit: c.memory})
		testkit.Fails(t, err, want)
		testkit.Equal(t, errors.Is(err, ErrUnsolved), want == ErrUnsolved.Error() || want == "residual is not known",
			want)
	}
	m := fit(t, d, kernel.Gaussian{Sigma: 1}, 0.1)
	posterior := testkit.Must(NewPosterior(t.Context(), m, predict(t, m, queries), queries, accel.Budget{}))
	testkit.Fails(t, testkit.ErrOf(posterior.Intervals(1)), "want a number between 0 and 1")
}
