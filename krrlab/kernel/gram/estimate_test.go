package gram

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
)

// withSpectrum returns QDQᵀ with a random orthogonal Q.
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

// TestMeasure gives K on a sample an error of known spectrum and compares the measured estimate with the formula of
// Estimate. The cases cover a leading eigenvalue that is hidden among the others and visible only along v, a leading
// eigenvalue that stands out, a larger error in the rows of the outliers, and an error of rounding alone.
func TestMeasure(t *testing.T) {
	const n, rows, m = 400, 80, 60
	x := cloud(n, 3)
	mx, _, err := newMatrix(kernel.Gaussian{Sigma: 1}, x, 1, nil)
	testkit.OK(t, err)
	v := make([]float64, m)
	rng.New(5).Normals(v, 0)
	normalize(v)
	exactMethod := method{inFloat64: true, arithmetic: kernel.Differences}
	for _, c := range []struct{ leading, size, outlier, normK float64 }{
		{1, 1e-3, 0, 50}, {2.05, 1e-3, 0, 50}, {2.3, 1e-3, 0, 50}, {10, 1e-3, 0, 50}, {10, 1e-3, 300, 50},
		{0, 0, 0, 50}, {1, 1e-3, 0, 1e16},
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
		testkit.OK(t, s.formRows(t.Context(), exactMethod, mx.frame.mean, func(i int, row []float64) {
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
		along := math.Abs(mat.Dot(mat.NewVecDense(m, v), &ev))
		if edge := rms * math.Sqrt(m); largest > 2.1*edge {
			along = max(along, (largest+math.Sqrt(largest*largest-4*rms*rms*m))/2)
		}
		norm := max(largest, c.size*c.outlier)
		bound := max(2*rms*math.Sqrt(n)+along*n/m, 1.1*norm, 0x1p-52*c.normK*n/m) + s.errorBound
		isNear := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*b+1e-14 }
		if !isNear(got.Rms, rms) || !isNear(got.Norm, norm) || !isNear(got.Bound, bound) || got.Rows != rows ||
			got.NormK != c.normK {
			t.Errorf("%+v: %+v, want rms %g, norm %g and bound %g", c, got, rms, norm, bound)
		}
		s.entries[50*rows+20] = math.Inf(1)
		if got, err := s.measure(t.Context(), exactMethod); err != nil || !math.IsInf(got.Bound, 1) || !math.IsInf(got.Rms, 0) {
			t.Errorf("an entry is infinite: %+v, %v", got, err)
		}
	}
}
