package statdim

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// studentQuantiles are the quantiles of Student's distribution at 0.975 and at 0.9, by degrees of freedom, from the
// usual tables.
var studentQuantiles = map[int][2]float64{
	6: {2.446912, 1.439756}, 7: {2.364624, 1.414924}, 9: {2.262157, 1.383029}, 13: {2.160369, 1.350171},
	14: {2.144787, 1.345030}, 15: {2.131450, 1.340606},
}

// lineAt returns the value at x of the least-squares line through the points (w_i, y_i), except the one with the index
// omitted. All points are used if omitted is −1.
func lineAt(w, y []float64, omitted int, x float64) float64 {
	if omitted >= 0 {
		w, y = slices.Delete(slices.Clone(w), omitted, omitted+1), slices.Delete(slices.Clone(y), omitted, omitted+1)
	}
	intercept, slope := stat.LinearRegression(w, y, nil, false)
	return intercept + slope*x
}

// TestPredictAt compares the results of predictAt with a linear regression by the normal equations, and the jackknife
// with refits that each omit one probe, for samples with and without a control variate.
func TestPredictAt(t *testing.T) {
	for _, test := range []struct {
		m                int // number of probes
		withControl      bool
		degreesOfFreedom int
	}{{16, true, 14}, {16, false, 15}, {8, true, 6}, {8, false, 7}, {10, false, 9}, {15, true, 13}} {
		stream := rng.New(uint64(test.m))
		var values probeValues
		for i := range test.m {
			w := 3 + stream.Normal(uint64(i))
			values.y = append(values.y, 7+2*w+0.5*stream.Normal(uint64(100+i)))
			values.halfWidths = append(values.halfWidths, 0.01*float64(i+1))
			if test.withControl {
				values.w = append(values.w, w)
			}
		}
		const at = 4.5 // far from the mean of w, so that the leverage matters
		x, columns := mat.NewDense(test.m, 1, nil), 1
		x0 := mat.NewVecDense(1, []float64{1})
		if test.withControl {
			x, columns, x0 = mat.NewDense(test.m, 2, nil), 2, mat.NewVecDense(2, []float64{1, at})
		}
		for i := range test.m {
			x.Set(i, 0, 1)
			if test.withControl {
				x.Set(i, 1, values.w[i])
			}
		}
		var gramMatrix, inverse mat.Dense
		gramMatrix.Mul(x.T(), x)
		testkit.OK(t, inverse.Inverse(&gramMatrix))
		// The prediction is vᵀy with v = X(XᵀX)⁻¹x₀.
		var coefficients, v, residuals mat.VecDense
		coefficients.MulVec(&inverse, x0)
		v.MulVec(x, &coefficients)
		y := mat.NewVecDense(test.m, values.y)
		var hat mat.Dense // X(XᵀX)⁻¹Xᵀ
		hat.Product(x, &inverse, x.T())
		residuals.MulVec(&hat, y)
		residuals.SubVec(y, &residuals)
		rss, ybar := mat.Dot(&residuals, &residuals), mat.Sum(y)/float64(test.m)
		var syy, truncation float64
		for i := range test.m {
			syy += (values.y[i] - ybar) * (values.y[i] - ybar)
			truncation += math.Abs(v.AtVec(i)) * values.halfWidths[i]
		}
		variance := rss / float64(test.m-columns) * mat.Dot(&v, &v)
		if test.withControl {
			var jackknife float64
			for i := range test.m {
				change := lineAt(values.w, values.y, i, at) - lineAt(values.w, values.y, -1, at)
				jackknife += change * change
			}
			variance = max(variance, jackknife)
		}
		for i, confidence := range []float64{0.95, 0.8} {
			halfWidth := studentQuantiles[test.degreesOfFreedom][i] * math.Sqrt(variance)
			want := []float64{mat.Dot(&v, y), halfWidth, truncation, 1 - rss/syy}
			gotValue, gotSampling, gotTruncation, gotExplained := values.predictAt(at, confidence)
			for k, got := range []float64{gotValue, gotSampling, gotTruncation, gotExplained} {
				if math.Abs(got-want[k]) > 1e-6*(1+math.Abs(want[k])) {
					t.Errorf("m = %d, with a control variate: %v, confidence %g: %s %.9g, want %.9g", test.m,
						test.withControl, confidence,
						[]string{"value", "half-width", "truncation", "explained share"}[k], got, want[k])
				}
			}
		}
	}
}

// TestCoverageRate checks how many intervals cover s_λ over 200 seeds and six spectra, with the probes of the first
// batch only. The number of intervals distinguishes a coverage of 95 % from one of 90 %: at 95 %, fewer than 1,117 of
// 1,200 intervals cover with probability 0.1 %; at 90 %, 1,117 or more cover with probability 0.02 %.
func TestCoverageRate(t *testing.T) {
	const n, seeds, minCovered = 48, 200, 1117
	for _, method := range methods {
		covered, count := 0, 0
		for _, spectrum := range spectra {
			testMatrix := spectrum.newMatrix(n, 11)
			p := &problem{K: testMatrix.k, Lambda: spectrum.lambda}
			for seed := range seeds {
				estimates := testkit.Must(method.run(t.Context(), p, &Options{probes: 12, MaxProbes: 12, Width: 1e-4,
					stream: rng.New(uint64(seed)).Sub(spectrum.name)}))
				count++
				if estimates.Estimate.Contains(testMatrix.statDim) {
					covered++
				}
			}
		}
		t.Logf("%s: %d of %d", method.name, covered, count)
		if covered < minCovered {
			t.Errorf("%s: %d of %d intervals of 95 %% cover, want %d", method.name, covered, count, minCovered)
		}
	}
}

// TestCoverageOfDominantEigenvalue checks the coverage if K has one large eigenvalue whose eigenvector is close to that
// of the control variate. The probes far from the mean then have the largest errors, and Student's interval alone
// covers in only 346 of 400 samples of 16 probes.
func TestCoverageOfDominantEigenvalue(t *testing.T) {
	const n, m, count = 60, 16, 400
	covered := 0
	for seed := range count {
		values := probeValues{halfWidths: make([]float64, m)}
		for i := range m {
			z := make([]float64, n)
			rng.New(uint64(seed)).Sub("probe", uint64(i)).Normals(z, 0)
			var constantPart, alternatingPart float64 // zᵀ(1, 1, …)/√n and zᵀ(1, −1, 1, …)/√n
			for j, v := range z {
				v = math.Copysign(1/math.Sqrt(n), v)
				constantPart, alternatingPart = constantPart+v, alternatingPart+v*float64(1-2*(j%2))
			}
			controlPart := constantPart + 0.2*alternatingPart // along the eigenvector of the control variate
			values.y, values.w = append(values.y, constantPart*constantPart), append(values.w, controlPart*controlPart)
		}
		// The expectation of w is 1+0.2² = 1.04, and that of y is 1.
		if value, sampling, _, _ := values.predictAt(1.04, 0.95); math.Abs(value-1) <= sampling {
			covered++
		}
	}
	t.Logf("%d of %d intervals cover", covered, count)
	if covered < count*93/100 {
		t.Errorf("%d of %d intervals cover, want 93 %%", covered, count)
	}
}
