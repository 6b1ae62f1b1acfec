package rng_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// The statistical tests use fixed seeds, so they always pass or always fail. The probability that each one states is
// that of a failure with a new seed if the numbers were truly random.

// streams are the streams that are tested.
var streams = []rng.Stream{rng.New(0), rng.New(1), rng.New(1 << 63), rng.New(1).Sub("a"), rng.New(1).Sub("a", 1),
	rng.New(1).Sub("a", 2), rng.New(2).Sub("b").Sub("c")}

// normalCDF returns the distribution function of a standard normal number.
func normalCDF(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

// TestNormalDistribution checks the moments and the distribution function of normal numbers.
func TestNormalDistribution(t *testing.T) {
	const m = 100000
	for k, s := range streams {
		x := make([]float64, m)
		s.Normals(x, 1000)
		checkMoments(t, k, x, [8]float64{0, 1, 0, 3, 0, 15, 0, 105})
		if statistic := testkit.KolmogorovSmirnov(x, normalCDF); statistic > 2.7 { // exceeded with probability 9e-7
			t.Errorf("stream %d: Kolmogorov-Smirnov statistic of normals %.2f", k, statistic)
		}
	}
}

// checkMoments compares the means of x, x², x³ and x⁴, where x has numbers of stream k, with the first four moments
// m_1, …, m_4 of their distribution. The sampling error of the mean of power p of N numbers has the variance (m_2p −
// m_p²)/N. The threshold of five standard errors is exceeded with probability 6e-7 per moment, and 1e-5 for p = 4,
// whose tails are heavier.
func checkMoments(t *testing.T, k int, x []float64, moments [8]float64) {
	t.Helper()
	for p := 1; p <= 4; p++ {
		var sum float64
		for _, v := range x {
			sum += math.Pow(v, float64(p))
		}
		mean, want := sum/float64(len(x)), moments[p-1]
		stdErr := math.Sqrt((moments[2*p-1] - want*want) / float64(len(x)))
		if math.Abs(mean-want) > 5*stdErr {
			t.Errorf("stream %d: mean of x^%d is %.4f, want %.4f ± %.4f", k, p, mean, want, stdErr)
		}
	}
}

// TestNormalTail counts normal numbers beyond 4 in 3e6 draws, of which 190 are expected. A Poisson count is outside
// 190 ± 5√190 with probability 1e-6.
func TestNormalTail(t *testing.T) {
	const m = 3000000
	normals := make([]float64, 1000)
	var count float64
	for i := range uint64(m / 1000) {
		rng.New(11).Normals(normals, 1000*i)
		for _, v := range normals {
			if math.Abs(v) > 4 {
				count++
			}
		}
	}
	if want := m * math.Erfc(4/math.Sqrt2); math.Abs(count-want) > 5*math.Sqrt(want) {
		t.Errorf("%v of %v normals beyond 4, want %.0f", count, m, want)
	}
}

// TestUniformDistribution checks the distribution function of uniform numbers.
func TestUniformDistribution(t *testing.T) {
	const m = 100000
	for k, s := range streams {
		x := make([]float64, m)
		s.Float64s(x, 0)
		uniformCDF := func(u float64) float64 { return u }
		if statistic := testkit.KolmogorovSmirnov(x, uniformCDF); statistic > 2.7 { // exceeded with probability 9e-7
			t.Errorf("stream %d: Kolmogorov-Smirnov statistic of uniforms %.2f", k, statistic)
		}
	}
}

// TestByteFrequencies counts the bytes of words at each of the eight positions. χ² has 255 degrees of freedom, mean 255
// and standard deviation 22.6, and exceeds 395 with probability 5e-8 (Wilson-Hilferty).
func TestByteFrequencies(t *testing.T) {
	for k, s := range streams {
		var count [8][256]float64
		const m = 65536
		for i := range uint64(m) {
			w := s.Uint64(i)
			for j := range count {
				count[j][byte(w>>(8*j))]++
			}
		}
		for j := range count {
			var chiSquared float64
			for _, v := range count[j] {
				chiSquared += (v - m/256) * (v - m/256) / (m / 256)
			}
			if chiSquared > 395 || chiSquared < 145 {
				t.Errorf("stream %d, byte %d: chi-square %.0f, want about 255", k, j, chiSquared)
			}
		}
	}
}

// TestIndependence correlates normal numbers, and their squares, at lags within a stream and between streams of
// similar names, indices and seeds. Each correlation has the standard error 1/√m. |z| > 5 has probability 6e-7, which
// is 2e-5 for 38 correlations.
func TestIndependence(t *testing.T) {
	const m = 50000
	draw := func(s rng.Stream, first uint64) []float64 {
		x := make([]float64, m)
		s.Normals(x, first)
		return x
	}
	root := rng.New(1)
	base := draw(root.Sub("a", 7), 0)
	others := map[string][]float64{
		"index 8": draw(root.Sub("a", 8), 0), "name b": draw(root.Sub("b", 7), 0),
		"seed 2":   draw(rng.New(2).Sub("a", 7), 0),
		"no index": draw(root.Sub("a"), 0), "child": draw(root.Sub("a", 7).Sub("a", 7), 0), "root": draw(root, 0),
	}
	for _, lag := range []uint64{1, 2, 3, 4, 7, 8, 16, 64, 256, 1024, 1 << 32, 1 << 33, 1 << 63} {
		others[fmt.Sprint("lag ", lag)] = draw(root.Sub("a", 7), lag)
	}
	for name, y := range others {
		var products, squares float64
		for i, v := range base {
			products += v * y[i]
			squares += (v*v - 1) * (y[i]*y[i] - 1) / 2
		}
		for kind, sum := range map[string]float64{"numbers": products, "squares": squares} {
			if z := sum / math.Sqrt(m); math.Abs(z) > 5 {
				t.Errorf("%s: correlation of %s has z = %.1f", name, kind, z)
			}
		}
	}
	// The first numbers of the streams 0, 1, 2, … are a sample too.
	x := make([]float64, m)
	for i := range x {
		x[i] = root.Sub("a", uint64(i)).Normal(0)
	}
	if statistic := testkit.KolmogorovSmirnov(x, normalCDF); statistic > 2.7 { // exceeded with probability 9e-7
		t.Errorf("first numbers of streams: Kolmogorov-Smirnov statistic %.2f", statistic)
	}
}

// TestAvalanche flips each bit of a seed, an index and a position. On average half of the 64 bits of the word must
// change. One flip has the variance 16, so the mean of 64 flips has the standard error 0.5; five of them have
// probability 6e-7.
func TestAvalanche(t *testing.T) {
	for name, word := range map[string]func(v uint64) uint64{
		"seed":  func(v uint64) uint64 { return rng.New(v).Uint64(0) },
		"index": func(v uint64) uint64 { return rng.New(1).Sub("a", v).Uint64(0) },
		"word":  func(v uint64) uint64 { return rng.New(1).Sub("a").Uint64(v) },
	} {
		var sum float64
		for bit := range 64 {
			changed := word(0) ^ word(1<<bit)
			for ; changed != 0; changed &= changed - 1 {
				sum++
			}
		}
		testkit.Near(t, sum/64, 32, 2.5, name)
	}
}

// TestGammaDistribution compares gamma and χ² numbers with exact distribution functions: P(Gamma(a) ≤ x) = 1 − e^(−x)
// Σ_{k<a} x^k/k! for integers a, and erf for a = ½ and 3/2.
func TestGammaDistribution(t *testing.T) {
	const m = 40000
	erlang := func(a int) func(float64) float64 {
		return func(x float64) float64 {
			term, sum := 1.0, 0.0
			for k := range a {
				sum += term
				term *= x / float64(k+1)
			}
			return 1 - math.Exp(-x)*sum
		}
	}
	for _, distribution := range []struct {
		a   float64
		cdf func(float64) float64
	}{
		{1, erlang(1)}, {2, erlang(2)}, {7, erlang(7)},
		{0.5, func(x float64) float64 { return math.Erf(math.Sqrt(x)) }},
		{1.5, func(x float64) float64 { return math.Erf(math.Sqrt(x)) - 2*math.Sqrt(x/math.Pi)*math.Exp(-x) }},
	} {
		x := make([]float64, m)
		stream := rng.New(9).Sub("gamma test")
		var mean, variance float64
		for i := range x {
			x[i] = stream.Gamma(uint64(i), distribution.a)
			if stream.ChiSquare(uint64(i), 2*distribution.a) != 2*x[i] {
				t.Fatal("ChiSquare(i, 2a) is not 2·Gamma(i, a)")
			}
			mean += x[i] / m
			variance += (x[i] - distribution.a) * (x[i] - distribution.a) / m
		}
		// Var x = a; Var (x−a)² = 2a²+6a.
		// exceeded with probability 6e-7
		if z := (mean - distribution.a) / math.Sqrt(distribution.a/m); math.Abs(z) > 5 {
			t.Errorf("Gamma(%v): mean %.4f, z = %.1f", distribution.a, mean, z)
		}
		z := (variance - distribution.a) / math.Sqrt((2*distribution.a*distribution.a+6*distribution.a)/m)
		if math.Abs(z) > 5 {
			t.Errorf("Gamma(%v): variance %.4f, z = %.1f", distribution.a, variance, z)
		}
		// exceeded with probability 9e-7
		if statistic := testkit.KolmogorovSmirnov(x, distribution.cdf); statistic > 2.7 {
			t.Errorf("Gamma(%v): Kolmogorov-Smirnov statistic %.2f", distribution.a, statistic)
		}
	}
}
