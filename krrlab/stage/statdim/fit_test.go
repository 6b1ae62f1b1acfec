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

// TestPredictAt compares the fit with a linear regression by the normal equations, and its jackknife with refits
// without one probe each, for samples with and without a control variate.
func TestPredictAt(t *testing.T) {
	for _, c := range []struct {
		m           int // number of probes
		withControl bool
		dof         int // degrees of freedom
	}{{16, true, 14}, {16, false, 15}, {8, true, 6}, {8, false, 7}, {10, false, 9}, {15, true, 13}} {
		g := rng.New(uint64(c.m))
		var s sample
		for i := range c.m {
			w := 3 + g.Normal(uint64(i))
			s.y = append(s.y, 7+2*w+0.5*g.Normal(uint64(100+i)))
			s.halfWidths = append(s.halfWidths, 0.01*float64(i+1))
			if c.withControl {
				s.w = append(s.w, w)
			}
		}
		const at = 4.5 // far from the mean of w, so that the leverage matters
		x, p := mat.NewDense(c.m, 1, nil), 1
		x0 := mat.NewVecDense(1, []float64{1})
		if c.withControl {
			x, p, x0 = mat.NewDense(c.m, 2, nil), 2, mat.NewVecDense(2, []float64{1, at})
		}
		for i := range c.m {
			x.Set(i, 0, 1)
			if c.withControl {
				x.Set(i, 1, s.w[i])
			}
		}
		var xx, inv mat.Dense
		xx.Mul(x.T(), x)
		testkit.OK(t, inv.Inverse(&xx))
		// The prediction is vᵀy with v = X(XᵀX)⁻¹x₀.
		var u, v, r mat.VecDense
		u.MulVec(&inv, x0)
		v.MulVec(x, &u)
		y := mat.NewVecDense(c.m, s.y)
		var hat mat.Dense // X(XᵀX)⁻¹Xᵀ
		hat.Product(x, &inv, x.T())
		r.MulVec(&hat, y)
		r.SubVec(y, &r)
		rss, ybar := mat.Dot(&r, &r), mat.Sum(y)/float64(c.m)
		var syy, truncation float64
		for i := range c.m {
			syy += (s.y[i] - ybar) * (s.y[i] - ybar)
			truncation += math.Abs(v.AtVec(i)) * s.halfWidths[i]
		}
		variance := rss / float64(c.m-p) * mat.Dot(&v, &v)
		if c.withControl {
			var jackknife float64
			for i := range c.m {
				d := lineAt(s.w, s.y, i, at) - lineAt(s.w, s.y, -1, at)
				jackknife += d * d
			}
			variance = max(variance, jackknife)
		}
		for i, confidence := range []float64{0.95, 0.8} {
			want := []float64{mat.Dot(&v, y), studentQuantiles[c.dof][i] * math.Sqrt(variance), truncation, 1 - rss/syy}
			a, sampling, trunc, explained := s.predictAt(at, confidence)
			for k, got := range []float64{a, sampling, trunc, explained} {
				if math.Abs(got-want[k]) > 1e-6*(1+math.Abs(want[k])) {
					t.Errorf("m = %d, with a control variate: %v, confidence %g: %s %.9g, want %.9g", c.m,
						c.withControl,
						confidence, []string{"value", "half-width", "truncation", "explained share"}[k], got, want[k])
				}
			}
		}
	}
}

// TestCoverageRate checks the rate of coverage over 200 seeds and six spectra, with the probes of the first batch only.
// The number of intervals distinguishes a coverage of 95 % from one of 90 %: at 95 %, fewer than 1,117 of 1,200
// intervals cover with probability 0.1 %; at 90 %, 1,117 or more cover with probability 0.02 %.
func TestCoverageRate(t *testing.T) {
	const n, seeds, minCovered = 48, 200, 1117
	for _, m := range methods {
		covered, count := 0, 0
		for _, s := range spectra {
			d := s.newMatrix(n, 11)
			p := &problem{K: d.k, Lambda: s.lambda}
			for seed := range seeds {
				r := testkit.Must(m.run(t.Context(), p, &Options{stream: rng.New(uint64(seed)).Sub(s.name), probes: 12,
					MaxProbes: 12, Width: 1e-4}))
				count++
				if r.Estimate.Contains(d.statDim) {
					covered++
				}
			}
		}
		t.Logf("%s: %d of %d", m.name, covered, count)
		if covered < minCovered {
			t.Errorf("%s: %d of %d intervals of 95 %% cover, want %d", m.name, covered, count, minCovered)
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
		s := sample{halfWidths: make([]float64, m)}
		for i := range m {
			z := make([]float64, n)
			rng.New(uint64(seed)).Sub("probe", uint64(i)).Normals(z, 0)
			var a, b float64 // along (1, 1, …)/√n, and along (1, −1, 1, …)/√n
			for j, v := range z {
				v = math.Copysign(1/math.Sqrt(n), v)
				a, b = a+v, b+v*float64(1-2*(j%2))
			}
			s.y, s.w = append(s.y, a*a), append(s.w, (a+0.2*b)*(a+0.2*b))
		}
		if a, sampling, _, _ := s.predictAt(1.04, 0.95); math.Abs(a-1) <= sampling {
			covered++
		}
	}
	t.Logf("%d of %d intervals cover", covered, count)
	if covered < count*93/100 {
		t.Errorf("%d of %d intervals cover, want 93 %%", covered, count)
	}
}
