package feature_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond/feature"
)

// pairsOfPoints returns four points x and points z = x+δ, at which the tests compare features with kernels.
func pairsOfPoints() (x, z *points.Dense) {
	x = points.NewDense(4, 3, []float64{0.3, -0.2, 0.5, 0, 0, 0, 1, 2, -1, 0.7, 0.1, -0.4})
	delta := []float64{0, 0, 0, 0.2, -0.3, 0.1, 1, -0.5, 1.2, 3, 2, -2}
	z = points.NewDense(4, 3, nil)
	for i, v := range x.Data {
		z.Data[i] = v + delta[i]
	}
	return x, z
}

// featureProducts returns the products 2cos(w_jᵀx+b_j)cos(w_jᵀz+b_j) of all features for pair i. Each is s times the
// contribution of a feature to φ(x)ᵀφ(z).
func featureProducts(m feature.Map, i int, x, z *points.Dense) []float64 {
	_, s := m.Dims()
	products := featuresOf(m, x.Slice(i, i+1))
	for j, v := range featuresOf(m, z.Slice(i, i+1)) {
		products[j] *= v * float64(s)
	}
	return products
}

// TestFourierMoments checks E[φ(x)ᵀφ(z)] = k(x, z) and s·Var[φ(x)ᵀφ(z)] = 1 + ½k(2δ) − k(δ)² over 60,000 features,
// with the threshold of five standard errors (deviates). Section 2.2 of the paper prints the map without its
// factor √2: that map must fail.
func TestFourierMoments(t *testing.T) {
	x, z := pairsOfPoints()
	n, d := x.Dims()
	origin := make([]float64, d)
	for _, dist := range fourierDists() {
		m := sampleMap(t, dist, d, 60000, 11)
		for i := range n {
			products := featureProducts(m, i, x, z)
			k := dist.Kernel.Eval(x.Row(i), z.Row(i))
			if deviates(products, k) {
				mean, stdErr := meanOf(products)
				t.Errorf("%v, pair %d: mean of φ(x)ᵀφ(z) is %.4f ± %.4f, want %.4f", dist, i, mean, stdErr, k)
			}
			misprint := slices.Clone(products)
			for j := range misprint {
				misprint[j] /= 2 // φ(x) = √(1/s)·cos(Wx+b)
			}
			if k > 0.2 && !deviates(misprint, k) { // half of a smaller k is within five standard errors
				t.Errorf("%v, pair %d: the mean of the map without √2 is k to five standard errors", dist, i)
			}
			doubleDelta := make([]float64, d)
			for c := range doubleDelta {
				doubleDelta[c] = 2 * (z.Row(i)[c] - x.Row(i)[c])
			}
			want := 1 + dist.Kernel.Eval(origin, doubleDelta)/2 - k*k
			for j, v := range products {
				products[j] = (v - k) * (v - k)
			}
			if deviates(products, want) {
				mean, stdErr := meanOf(products)
				t.Errorf("%v, pair %d: variance of a feature's product is %.4f ± %.4f, want %.4f", dist, i, mean,
					stdErr, want)
			}
		}
	}
}

// rationalQuadratic is a user-defined scale mixture of Gaussians, 2/(1+r²/c).
type rationalQuadratic struct{ c float64 }

func (k rationalQuadratic) String() string              { return "rational quadratic" }
func (k rationalQuadratic) Slope() float64              { return 2 / k.c }
func (k rationalQuadratic) Spread(g rng.Stream) float64 { return math.Sqrt(g.ChiSquare(0, 2) / k.c) }
func (k rationalQuadratic) Profile(dst, sq []float64) {
	for i, v := range sq {
		dst[i] = 2 / (1 + v/k.c)
	}
}
func (k rationalQuadratic) Eval(x, z []float64) float64 {
	var sq float64
	for i, v := range x {
		sq += (v - z[i]) * (v - z[i])
	}
	return 2 / (1 + sq/k.c)
}

// cosine is a user-defined shift-invariant kernel with a single frequency, cos(wᵀ(x−z)).
type cosine struct{ w []float64 }

func (k cosine) String() string { return "cosine" }
func (k cosine) Frequency(w []float64, _ rng.Stream) {
	copy(w, k.w)
}
func (k cosine) Eval(x, z []float64) float64 {
	var p float64
	for i, v := range x {
		p += k.w[i] * (v - z[i])
	}
	return math.Cos(p)
}

// TestUserDefinedSpectrum checks that features of a user-defined kernel have the kernel as their mean, also if k(x, x)
// is not 1. The statistics are those of TestFourierMoments.
func TestUserDefinedSpectrum(t *testing.T) {
	x, z := pairsOfPoints()
	n, d := x.Dims()
	mixture, cos := rationalQuadratic{1.7}, cosine{[]float64{0.3, -1, 0.5}}
	for _, dist := range []feature.Fourier{{Kernel: mixture}, {Kernel: cos}} {
		if got, err := feature.For(dist.Kernel); err != nil ||
			got.String() != (feature.Fourier{Kernel: dist.Kernel}).String() {
			t.Errorf("For(%v) = %v, %v", dist.Kernel, got, err)
		}
		m := sampleMap(t, dist, d, 60000, 13)
		for i := range n {
			products := featureProducts(m, i, x, z)
			if k := dist.Kernel.Eval(x.Row(i), z.Row(i)); deviates(products, k) {
				mean, stdErr := meanOf(products)
				t.Errorf("%v, pair %d: mean of φ(x)ᵀφ(z) is %.4f ± %.4f, want %.4f", dist, i, mean, stdErr, k)
			}
		}
	}
}

// TestSpectralDistributions checks the distribution of a coordinate of σw_j, of the phase, and of ‖σw_j‖² for the
// isotropic kernels (χ², or d times an F variable) by the Kolmogorov-Smirnov test over 40,000 frequencies. The
// statistic √m·sup|F_m−F| exceeds 2.7 with probability 9e-7. Compared with the distribution of another kernel, the test
// must fail.
func TestSpectralDistributions(t *testing.T) {
	const d, s = 3, 40000
	student := func(nu float64) func(float64) float64 {
		return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: nu}.CDF
	}
	squared := func(nu float64) func(float64) float64 {
		f := distuv.F{D1: d, D2: nu}
		return func(v float64) float64 { return f.CDF(v / d) }
	}
	distributions := map[string]struct{ coordinate, squaredNorm, other func(float64) float64 }{
		"gaussian":  {distuv.UnitNormal.CDF, distuv.ChiSquared{K: d}.CDF, student(5)},
		"laplacian": {func(v float64) float64 { return 0.5 + math.Atan(v)/math.Pi }, nil, student(3)},
		"matern32":  {student(3), squared(3), student(5)},
		"matern52":  {student(5), squared(5), student(3)},
	}
	for _, dist := range fourierDists() {
		spec := testkit.Must(kernel.ToSpec(dist.Kernel))
		distribution := distributions[spec.Name]
		m := sampleMap(t, dist, d, s, 5).(*feature.FourierMap)
		w := make([]float64, d)
		coordinates, sqNorms, phases := make([]float64, s), make([]float64, s), make([]float64, s)
		for j := range s {
			phases[j] = m.Frequency(w, j) / (2 * math.Pi)
			for c := range w {
				w[c] *= spec.Sigma
			}
			coordinates[j], sqNorms[j] = w[j%d], floats.Dot(w, w)
		}
		check := func(name string, sample []float64, cdf func(float64) float64, pass bool) {
			if statistic := testkit.KolmogorovSmirnov(sample, cdf); (statistic <= 2.7) != pass {
				t.Errorf("%v: Kolmogorov-Smirnov statistic of %s is %.2f", dist, name, statistic)
			}
		}
		check("a coordinate", coordinates, distribution.coordinate, true)
		check("a coordinate against another distribution", coordinates, distribution.other, false)
		check("the phase", phases, func(u float64) float64 { return u }, true)
		if distribution.squaredNorm != nil {
			check("‖σw‖²", sqNorms, distribution.squaredNorm, true)
		}
	}
}

// TestFourierFormula compares the features with √(2/s)·cos(Wx+b), for W and b from Frequency, for every kind of
// points, in float64 and float32.
func TestFourierFormula(t *testing.T) {
	const n, d, s = 300, 40, 37
	for _, dist := range fourierDists() {
		m := sampleMap(t, dist, d, s, 21).(*feature.FourierMap)
		x, csr := sparsify(normalPoints(n, d, 0.5, 2))
		x32 := testkit.RoundToFloat32(x)
		for i, v := range csr.Val {
			csr.Val[i] = float64(float32(v))
		}
		want := make([]float64, n*s)
		w := make([]float64, d)
		for j := range s {
			b := m.Frequency(w, j)
			for i := range n {
				want[i*s+j] = math.Sqrt(2.0/s) * math.Cos(floats.Dot(w, x.Row(i))+b)
			}
		}
		for _, pts := range []points.Points{x, x32, csr, points.Shift(x, make([]float64, d))} {
			name := fmt.Sprintf("%v of %T", dist, pts)
			// The Laplacian's frequencies have heavy tails, so phases reach about 1e5.
			checkNear(t, name, featuresOf(m, pts), want, 1e-11)
			z := make([]float32, n*s)
			m.MapTo32(z, s, pts, &feature.Workspace{})
			checkNear(t, name+" in float32", inFloat64(z), want, 1e-4*math.Sqrt(2.0/s))
		}
	}
}

// TestFourierLargePhases checks that float32 features are accurate if some or all phases are too large for float32.
func TestFourierLargePhases(t *testing.T) {
	const d, s = 5, 64
	dense, csr := sparsify(normalPoints(20, d, 1, 8))
	for _, sigma := range []float64{0.05, 1e-3, 1e-9} {
		for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: sigma}, kernel.Laplacian{Sigma: sigma}} {
			m := sampleMap(t, feature.Fourier{Kernel: k}, d, s, 4).(*feature.FourierMap)
			for _, pts := range []points.Points{dense, csr} {
				z := make([]float32, 20*s)
				m.MapTo32(z, s, pts, &feature.Workspace{})
				// Phases up to 1024 in float32 have errors of 1024·2⁻²⁴ = 6e-5 and a few more roundings.
				checkNear(t, fmt.Sprintf("%v of %T", k, pts), inFloat64(z), featuresOf(m, pts),
					3e-4*math.Sqrt(2.0/s)+1e-15/sigma)
			}
		}
	}
}

// TestFourierPrefix checks that the first s features of a map with 2s features are √½ times those of the map with s
// features.
func TestFourierPrefix(t *testing.T) {
	const d, s = 9, 25
	x := normalPoints(6, d, 1, 1)
	for _, dist := range fourierDists() {
		short, long := featuresOf(sampleMap(t, dist, d, s, 7), x), featuresOf(sampleMap(t, dist, d, 2*s, 7), x)
		for i := range 6 {
			got := slices.Clone(long[i*2*s : i*2*s+s])
			for j := range got {
				got[j] *= math.Sqrt2
			}
			checkNear(t, dist.String(), got, short[i*s:(i+1)*s], 1e-12)
		}
	}
}

// inFloat64 returns z in float64.
func inFloat64(z []float32) []float64 {
	w := make([]float64, len(z))
	points.Widen(w, z)
	return w
}

// checkNear checks |got−want| ≤ tol elementwise.
func checkNear(t *testing.T, name string, got, want []float64, tol float64) {
	t.Helper()
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tol) {
			t.Errorf("%s: element %d is %g, want %g ± %.1g", name, i, got[i], want[i], tol)
			return
		}
	}
}
