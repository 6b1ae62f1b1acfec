package gram

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
)

// TestMeasuredEstimate subtracts an error matrix with known eigenvalues from the entries of K on a sample, so that K
// seems to have this error, and compares the measured estimate with the formula of Estimate. The cases cover a leading
// eigenvalue that is hidden among the others and visible only along v, a leading eigenvalue that stands out, a larger
// error in the rows of the outliers, and an error of rounding alone.
func TestMeasuredEstimate(t *testing.T) {
	const n, rows, randomRows = 400, 80, 60 // points, sampled rows, and those that count as random
	x := normalPoints(n, 3)
	matrix, _, err := newMatrix(kernel.Gaussian{Sigma: 1}, x, 1, nil)
	testkit.OK(t, err)
	v := make([]float64, randomRows) // a random unit vector, used as the leading eigenvector of K
	rng.New(5).Normals(v, 0)
	normalize(v)
	exactMethod := method{inFloat64: true, arithmetic: kernel.Differences}
	for _, c := range []struct {
		name           string
		leading        float64 // first eigenvalue of the error, in units of size
		size           float64 // magnitude of the other eigenvalues
		outlier, normK float64 // error of one entry of the outliers, in units of size; ‖K‖₂ of the sample
	}{
		{"leading eigenvalue as large as the others", 1, 1e-3, 0, 50},
		{"leading eigenvalue inside the edge", 2.05, 1e-3, 0, 50},
		{"leading eigenvalue beyond the edge", 2.3, 1e-3, 0, 50},
		{"leading eigenvalue far beyond the edge", 10, 1e-3, 0, 50},
		{"large outlier", 10, 1e-3, 300, 50}, {"no error", 0, 0, 0, 50}, {"rounding alone", 1, 1e-3, 0, 1e16},
	} {
		eigenvalues := make([]float64, randomRows)
		for i := range eigenvalues {
			eigenvalues[i] = c.size * float64(1-2*(i%2))
		}
		eigenvalues[0] *= c.leading
		sampleError := mat.NewDense(rows, rows, nil)
		errorMatrix, _ := testkit.WithEigenvalues(7, eigenvalues)
		sampleError.Slice(0, randomRows, 0, randomRows).(*mat.Dense).Copy(errorMatrix)
		sampleError.Set(randomRows+3, randomRows+3, c.size*c.outlier)
		s := &sample{matrix: matrix, random: randomRows, idx: make([]int, rows), x: x.Slice(0, rows),
			entries:    make([]float64, rows*rows),
			errorBound: 0.25 * c.size, normK: c.normK, eigenvector: v}
		sampleK := mat.NewDense(rows, rows, nil)
		for i := range rows {
			s.idx[i] = i
		}
		testkit.OK(t, s.formRows(t.Context(), exactMethod, matrix.mean, func(i int, row []float64) {
			testkit.Equal(t, len(row), i+1, i)
			for j, value := range row {
				s.entries[i*rows+j] = value - sampleError.At(i, j)
				sampleK.Set(i, j, value)
			}
		}))
		if want := matrix.k.Eval(x.Row(70), x.Row(9)); math.Abs(sampleK.At(70, 9)-want) > 1e-14 {
			t.Errorf("K(70, 9) = %v, want %v", sampleK.At(70, 9), want)
		}
		got := testkit.Must(s.measure(t.Context(), exactMethod))
		rms := math.Sqrt((c.leading*c.leading+randomRows-1)/randomRows/randomRows) * c.size
		largest := c.size * max(c.leading, 1)
		var errorTimesV mat.VecDense
		errorTimesV.MulVec(errorMatrix, mat.NewVecDense(randomRows, v))
		leading := math.Abs(mat.Dot(mat.NewVecDense(randomRows, v), &errorTimesV))
		// The eigenvalues of random noise of size m fill a semicircle up to the edge 2·rms·√m. An eigenvalue μ of the
		// error beyond it appears in the noise as N = μ + m·rms²/μ. The next lines solve for μ, as Estimate does if N
		// exceeds 2.1·rms·√m.
		if halfEdge := rms * math.Sqrt(randomRows); largest > 2.1*halfEdge {
			leading = max(leading, (largest+math.Sqrt(largest*largest-4*rms*rms*randomRows))/2)
		}
		norm := max(largest, c.size*c.outlier)
		// The prediction is the noise of all of K, plus the leading part in proportion to n.
		predicted := 2*rms*math.Sqrt(n) + leading*n/randomRows
		rounding := 0x1p-52 * c.normK * n / randomRows
		bound := max(predicted, 1.1*norm, rounding) + s.errorBound
		isNear := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*b+1e-14 }
		if !isNear(got.Rms, rms) || !isNear(got.Norm, norm) || !isNear(got.Bound, bound) || got.Rows != rows ||
			got.NormK != c.normK {
			t.Errorf("%s: %+v, want rms %g, norm %g and bound %g", c.name, got, rms, norm, bound)
		}
		s.entries[50*rows+20] = math.Inf(1) // Rms becomes the error of this entry, −Inf
		if got, err := s.measure(t.Context(), exactMethod); err != nil || !math.IsInf(got.Bound, 1) ||
			!math.IsInf(got.Rms, -1) {
			t.Errorf("%s, with an infinite entry: %+v, error %v; want the bound +Inf and the rms −Inf", c.name, got,
				err)
		}
	}
}
