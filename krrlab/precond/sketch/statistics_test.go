package sketch_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/precond/sketch"
)

// allowedErrors is the allowed deviation of a mean in standard errors. A mean exceeds it with probability 6e-7.
const allowedErrors = 5

// TestExpectationIsIdentity checks E[SᵀS] = I for every entry over 4,000 draws.
func TestExpectationIsIdentity(t *testing.T) {
	const m, s, draws = 11, 5, 4000
	for _, d := range dists {
		if entry, deviation := worstEntry(t, draws, m, func(draw uint64) [][]float64 {
			return matrixOf(t,
				sampleOperator(t, d, m, s, rng.New(1).Sub("draw", draw)))
		}); deviation > allowedErrors {
			t.Errorf("%v: an entry of the mean of SᵀS is %v, %.1f standard errors off", d, entry, deviation)
		}
	}
}

// TestSRHTScale checks the scale of the SRHT. For an orthonormal H it is √(M/s) (erratum 6); that scale must fail for
// an H with entries ±1.
func TestSRHTScale(t *testing.T) {
	const m, s, draws = 8, 3, 2000
	scaled := func(scale float64) func(draw uint64) [][]float64 {
		return func(draw uint64) [][]float64 {
			a := matrixOf(t, sampleOperator(t, sketch.SRHT{}, m, s, rng.New(1).Sub("draw", draw)))
			for i := range a {
				for j := range a[i] {
					a[i][j] *= scale * math.Sqrt(s) // now scale·P·H·D
				}
			}
			return a
		}
	}
	if mean, deviation := worstEntry(t, draws, m, scaled(1/math.Sqrt(s))); deviation > allowedErrors {
		t.Errorf("s^(−1/2)PHD: %v, %.1f standard errors off", mean, deviation)
	}
	// The matrix H/√M is orthonormal.
	if mean, deviation := worstEntry(t, draws, m,
		scaled(math.Sqrt(m/float64(s))/math.Sqrt(m))); deviation > allowedErrors {
		t.Errorf("√(M/s)·P·(H/√M)·D: %v, %.1f standard errors off", mean, deviation)
	}
	if mean, deviation := worstEntry(t, draws, m,
		scaled(math.Sqrt(m/float64(s)))); deviation <= allowedErrors || math.Abs(mean-m) > 1e-9 {
		t.Errorf("√(M/s)·PHD with H = ±1: worst mean %v, want M = %d and so a failure", mean, m)
	}
	if mean, deviation := worstEntry(t, draws, m, scaled(1/math.Sqrt(s)/math.Sqrt(m))); deviation <= allowedErrors ||
		math.Abs(mean-1.0/m) > 1e-9 {
		t.Errorf("s^(−1/2)·P·(H/√M)·D: worst mean %v, want 1/M = %v and so a failure", mean, 1.0/m)
	}
}

// worstEntry returns the entry of the mean of SᵀS that deviates most from I, and its deviation in standard errors.
func worstEntry(t *testing.T, draws, m int, sample func(draw uint64) [][]float64) (worst, deviation float64) {
	t.Helper()
	values := make([][]float64, m*m)
	for draw := range draws {
		matrix := sample(uint64(draw))
		for i := range m {
			for j := range m {
				var v float64
				for _, row := range matrix {
					v += row[i] * row[j]
				}
				values[i*m+j] = append(values[i*m+j], v)
			}
		}
	}
	for p, v := range values {
		want := 0.0
		if p%(m+1) == 0 {
			want = 1
		}
		mean, stdErr := meanOf(v)
		if errors := math.Abs(mean-want) / (stdErr + 1e-12); errors > deviation {
			worst, deviation = mean, errors
		}
	}
	return worst, deviation
}

// TestProductMoments compares the mean and the variance of (Sx)ᵀ(Sy) with the formulas of the package documentation,
// for x = y and x ≠ y, over 8,000 draws of Apply64.
func TestProductMoments(t *testing.T) {
	const m, s, draws = 24, 6, 8000
	const order = 32 // M
	x, y := normalVectors(1, m, 1), normalVectors(1, m, 2)
	for i := range y {
		y[i] += x[i]
	}
	var w sketch.Workspace
	for _, pair := range [][2][]float64{{x, x}, {x, y}} {
		x, y := pair[0], pair[1]
		var fourth float64
		for i := range x {
			fourth += x[i] * x[i] * y[i] * y[i]
		}
		v := floats.Dot(x, x)*floats.Dot(y, y) + floats.Dot(x, y)*floats.Dot(x, y)
		for d, want := range map[sketch.Dist]float64{
			sketch.CountSketch{}: (v - 2*fourth) / s,
			sketch.SRHT{}:        (v - 2*fourth) / s * (order - s) / (order - 1),
			sketch.Gaussian{}:    v / s,
		} {
			products, squares := make([]float64, draws), make([]float64, draws)
			src := append(append([]float64(nil), x...), y...)
			dst := make([]float64, 2*s)
			for draw := range products {
				sampleOperator(t, d, m, s, rng.New(4).Sub("draw", uint64(draw))).Apply64(rows64(dst, s, src, m, 2), &w)
				products[draw] = floats.Dot(dst[:s], dst[s:])
				squares[draw] = (products[draw] - floats.Dot(x, y)) * (products[draw] - floats.Dot(x, y))
			}
			if mean, stdErr := meanOf(products); math.Abs(mean-floats.Dot(x, y)) > allowedErrors*stdErr {
				t.Errorf("%v: mean of (Sx)ᵀ(Sy) is %v ± %v, want xᵀy = %v", d, mean, stdErr, floats.Dot(x, y))
			}
			if mean, stdErr := meanOf(squares); math.Abs(mean-want) > allowedErrors*stdErr {
				t.Errorf("%v: variance %v ± %v, want %v", d, mean, stdErr, want)
			}
		}
	}
}

// TestSubspaceEmbedding checks ‖QᵀSᵀSQ − I‖₂ for an orthonormal basis Q of dimension k. For independent normal numbers
// it is about 2√(k/s) + k/s (Marchenko and Pastur). The other sketches are close to that, and the SRHT is smaller by
// √(1−s/M). The norm halves if s grows fourfold.
func TestSubspaceEmbedding(t *testing.T) {
	const m, k, draws = 1024, 8, 12
	q := basis(m, k)
	for _, d := range []sketch.Dist{sketch.CountSketch{}, sketch.SRHT{}, sketch.Gaussian{},
		sketch.Composition{{Dist: sketch.SRHT{}, Width: 900}, {Dist: sketch.Gaussian{}}}} {
		var previous float64
		for _, s := range []int{32, 128, 512} {
			var meanDistortion float64
			for draw := range uint64(draws) {
				meanDistortion += distortion(sampleOperator(t, d, m, s, rng.New(6).Sub("draw", draw)), q, m, k) / draws
			}
			expected := 2*math.Sqrt(float64(k)/float64(s)) + float64(k)/float64(s)
			lowest := 0.5 * expected
			if _, srht := d.(sketch.SRHT); srht {
				lowest *= math.Sqrt(1 - float64(s)/m)
			}
			if meanDistortion < lowest || meanDistortion > 1.25*expected {
				t.Errorf("%v, s=%d: mean distortion %.3f, want %.3f or up to half of it less", d, s, meanDistortion,
					expected)
			}
			if previous > 0 && meanDistortion > 0.7*previous {
				t.Errorf("%v, s=%d: distortion %.3f after %.3f at s/4", d, s, meanDistortion, previous)
			}
			previous = meanDistortion
		}
	}
	if got := distortion(sampleOperator(t, sketch.SRHT{}, m, m, rng.New(1)), q, m, k); got > 1e-12 {
		t.Errorf("an SRHT with s = M is orthogonal; distortion %g", got)
	}
}

// basis returns k orthonormal vectors of R^m, one after the other.
func basis(m, k int) []float64 {
	var qr mat.QR
	qr.Factorize(mat.NewDense(m, k, normalVectors(m, k, 3)))
	var full mat.Dense
	qr.QTo(&full)
	q := make([]float64, k*m)
	for c := range k {
		mat.Col(q[c*m:(c+1)*m], c, &full)
	}
	return q
}

// distortion returns ‖QᵀSᵀSQ − I‖₂.
func distortion(op sketch.Operator, q []float64, m, k int) float64 {
	_, s := op.Dims()
	y := mat.NewDense(k, s, nil)
	op.Apply64(rows64(y.RawMatrix().Data, s, q, m, k), &sketch.Workspace{})
	var gramMatrix mat.Dense
	gramMatrix.Mul(y, y.T())
	deviation := mat.NewSymDense(k, nil)
	for i := range k {
		for j := range i + 1 {
			deviation.SetSym(i, j, gramMatrix.At(i, j))
		}
		deviation.SetSym(i, i, gramMatrix.At(i, i)-1)
	}
	var eigen mat.EigenSym
	eigen.Factorize(deviation, false)
	eigenvalues := eigen.Values(nil)
	return max(math.Abs(eigenvalues[0]), math.Abs(eigenvalues[k-1]))
}
