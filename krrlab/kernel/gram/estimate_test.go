package gram

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
)

// withSpectrum returns a random symmetric matrix with the eigenvalues d: Q·diag(d)·Qᵀ with a random orthogonal Q.
func withSpectrum(seed uint64, d []float64) *mat.Dense {
	n := len(d)
	a := mat.NewDense(n, n, nil)
	rng.New(seed).Normals(a.RawMatrix().Data, 0)
	var qr mat.QR
	qr.Factorize(a)
	var q, e mat.Dense
	qr.QTo(&q)
	e.Mul(&q, mat.NewDiagDense(n, d))
	e.Mul(&e, q.T())
	return &e
}

// TestMeasure subtracts an error matrix with known eigenvalues from the entries of K on a sample, so that K seems to
// have this error, and compares the measured estimate with the formula of Estimate. The cases cover a leading
// eigenvalue that is hidden among the others and visible only along v, a leading eigenvalue that stands out, a larger
// error in the rows of the outliers, and an error of rounding alone.
func TestMeasure(t *testing.T) {
	const n, rows, m = 400, 80, 60 // points, rows of the sample, and those of them that count as random
	x := cloud(n, 3)
	mx, _, err := newMatrix(kernel.Gaussian{Sigma: 1}, x, 1, nil)
	testkit.OK(t, err)
	v := make([]float64, m) // a random unit vector, used as the leading eigenvector of K
	rng.New(5).Normals(v, 0)
	normalize(v)
	exactMethod := method{inFloat64: true, arithmetic: kernel.Differences}
	for _, c := range []struct {
		name           string
		leading        float64 // first eigenvalue of the error, in units of size
		size           float64 // magnitude of the other eigenvalues
		outlier, normK float64 // error of one entry of the outliers, in units of size; ‖K‖₂ of the sample
	}{
		{"as large as the others", 1, 1e-3, 0, 50}, {"near the edge", 2.05, 1e-3, 0, 50},
		{"beyond the edge", 2.3, 1e-3, 0, 50}, {"far beyond the edge", 10, 1e-3, 0, 50},
		{"large outlier", 10, 1e-3, 300, 50}, {"no error", 0, 0, 0, 50}, {"rounding alone", 1, 1e-3, 0, 1e16},
	} {
		d := make([]float64, m)
		for i := range d {
			d[i] = c.size * float64(1-2*(i%2))
		}
		d[0] *= c.leading
		sampleError := mat.NewDense(rows, rows, nil)
		em := withSpectrum(7, d)
		sampleError.Slice(0, m, 0, m).(*mat.Dense).Copy(em)
		sampleError.Set(m+3, m+3, c.size*c.outlier)
		s := &sample{m: mx, random: m, idx: make([]int, rows), x: x.Slice(0, rows), entries: make([]float64, rows*rows),
			errorBound: 0.25 * c.size, normK: c.normK, eigenvector: v}
		a := mat.NewDense(rows, rows, nil)
		for i := range rows {
			s.idx[i] = i
		}
		testkit.OK(t, s.formRows(t.Context(), exactMethod, mx.mean, func(i int, row []float64) {
			testkit.Equal(t, len(row), i+1, i)
			for j, k := range row {
				s.entries[i*rows+j] = k - sampleError.At(i, j)
				a.Set(i, j, k)
			}
		}))
		if want := mx.k.Eval(x.Row(70), x.Row(9)); math.Abs(a.At(70, 9)-want) > 1e-14 {
			t.Errorf("K(70, 9) = %v, want %v", a.At(70, 9), want)
		}
		got := testkit.Must(s.measure(t.Context(), exactMethod))
		rms := math.Sqrt((c.leading*c.leading+m-1)/m/m) * c.size
		largest := c.size * max(c.leading, 1)
		var ev mat.VecDense
		ev.MulVec(em, mat.NewVecDense(m, v))
		leading := math.Abs(mat.Dot(mat.NewVecDense(m, v), &ev))
		// An eigenvalue c that exceeds the noise is seen as N = c + m·rms²/c if N is beyond the edge of the semicircle,
		// 2·rms·√m; this solves for c. Estimate does so only from 2.1·rms·√m.
		if halfEdge := rms * math.Sqrt(m); largest > 2.1*halfEdge {
			leading = max(leading, (largest+math.Sqrt(largest*largest-4*rms*rms*m))/2)
		}
		norm := max(largest, c.size*c.outlier)
		predicted := 2*rms*math.Sqrt(n) + leading*n/m // noise of all of K, and the leading part in proportion to n
		rounding := 0x1p-52 * c.normK * n / m
		bound := max(predicted, 1.1*norm, rounding) + s.errorBound
		isNear := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*b+1e-14 }
		if !isNear(got.Rms, rms) || !isNear(got.Norm, norm) || !isNear(got.Bound, bound) || got.Rows != rows ||
			got.NormK != c.normK {
			t.Errorf("%s: %+v, want rms %g, norm %g and bound %g", c.name, got, rms, norm, bound)
		}
		s.entries[50*rows+20] = math.Inf(1) // Rms becomes the error of this entry, −Inf
		if got, err := s.measure(t.Context(), exactMethod); err != nil || !math.IsInf(got.Bound, 1) || !math.IsInf(got.Rms, -1) {
			t.Errorf("%s: an entry is infinite: %+v, %v", c.name, got, err)
		}
	}
}
