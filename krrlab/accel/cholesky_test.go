package accel

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// waveMatrix returns the positive definite matrix e^(−|i−j|/40)·cos((i−j)/7) + 0.3·δ_ij as a lower triangle with row
// stride ld. All other elements are NaN.
func waveMatrix[T float](n, ld int) []T {
	a := make([]T, max(0, (n-1)*ld+n))
	for i := range a {
		a[i] = T(nan)
	}
	for i := range n {
		for j := range i + 1 {
			a[i*ld+j] = T(math.Exp(float64(j-i)/40) * math.Cos(float64(j-i)/7))
		}
		a[i*ld+i] += 0.3
	}
	return a
}

// lowerTriangle returns the lower triangle of a as a dense matrix in float64.
func lowerTriangle[T float](n int, a []T, ld int) *mat.Dense {
	l := mat.NewDense(n, n, nil)
	for i := range n {
		for j := range i + 1 {
			l.Set(i, j, float64(a[i*ld+j]))
		}
	}
	return l
}

// tiledOrders are the orders of matrices of one, two and three tiles.
var tiledOrders = []int{1, 40, tileOrder - 1, tileOrder, tileOrder + 1, 2*tileOrder + 100}

// resultOnThreads returns the result of factorize for waveMatrix, with zeros above the diagonal. It checks that nothing
// above the diagonal is read or written, and that the bits do not depend on the number of threads.
func resultOnThreads[T float](t *testing.T, n, ld int, factorize func(n int, a []T, lda int) bool) (result []T) {
	t.Helper()
	for _, threads := range []int{1, 2, 5} {
		useThreads(t, threads)
		a := waveMatrix[T](n, ld)
		if !factorize(n, a, ld) {
			t.Fatalf("n = %d: failed", n)
		}
		for i := range a {
			if above := i%ld > i/ld; above != (a[i] != a[i]) {
				t.Fatalf("n = %d: element (%d, %d) is %v", n, i/ld, i%ld, a[i])
			}
			if a[i] != a[i] {
				a[i] = 0
			}
		}
		if result == nil {
			result = a
		} else if !slices.Equal(a, result) {
			t.Fatalf("n = %d: %d threads change the result", n, threads)
		}
	}
	return result
}

// testCholesky checks L·Lᵀ = A, up to tol in every entry, and that a matrix that is not positive definite is refused
// with the failed pivot on the diagonal.
func testCholesky[T float](t *testing.T, tol float64, potrf func(n int, a []T, lda int) bool) {
	onEachBLAS(t, func(t *testing.T) {
		for _, n := range tiledOrders {
			ld := n + 3
			want := lowerTriangle(n, waveMatrix[T](n, ld), ld)
			l := lowerTriangle(n, resultOnThreads(t, n, ld, potrf), ld)
			var product mat.Dense
			product.Mul(l, l.T())
			for i := range n {
				for j := range i + 1 {
					if deviation := math.Abs(product.At(i, j) - want.At(i, j)); !(deviation <= tol) {
						t.Fatalf("n = %d: (LLᵀ)(%d, %d) has an error of %.3g", n, i, j, deviation)
					}
				}
			}
			for _, pivot := range []int{0, n / 2, n - 1} { // not definite
				for _, bad := range []float64{-1, nan, math.Inf(-1)} {
					a := waveMatrix[T](n, ld)
					a[pivot*ld+pivot] = T(bad)
					if potrf(n, a, ld) {
						t.Errorf("n = %d: no failure with %v on the diagonal at %d", n, bad, pivot)
						continue
					}
					for i := range pivot { // the caller looks for the first pivot that is not positive
						if !(a[i*ld+i] > 0) {
							t.Errorf("n = %d: pivot %d is %v, the bad one is %d", n, i, a[i*ld+i], pivot)
						}
					}
					if a[pivot*ld+pivot] > 0 {
						t.Errorf("n = %d: pivot %d is %v, was %v", n, pivot, a[pivot*ld+pivot], bad)
					}
				}
				if pivot > 0 {
					a := waveMatrix[T](n, ld)
					a[pivot*ld] = T(nan)
					if potrf(n, a, ld) {
						t.Errorf("n = %d: no failure with NaN at (%d, 0)", n, pivot)
					}
				}
			}
		}
	})
}

// TestFailedPivot checks that the failed pivot is on the diagonal, also if the original diagonal entry was positive.
func TestFailedPivot(t *testing.T) {
	onEachBLAS(t, func(t *testing.T) {
		a, b := []float64{1, 0, 2, 1}, []float32{1, 0, 2, 1} // 1 − 2² = −3
		if Dpotrf(2, a, 2) || Spotrf(2, b, 2) {
			t.Error("no failure for a matrix that is not definite")
		}
		if a[3] != -3 || b[3] != -3 {
			t.Errorf("pivots %v and %v, want -3", a[3], b[3])
		}
		// The identity of order n, with the 2×2 matrix from above at its end.
		for _, n := range []int{40, tileOrder + 1} {
			a, b := make([]float64, n*n), make([]float32, n*n)
			for i := range n {
				a[i*n+i], b[i*n+i] = 1, 1
			}
			a[n*n-2], b[n*n-2] = 2, 2
			if Dpotrf(n, a, n) || Spotrf(n, b, n) {
				t.Errorf("n = %d: no failure for a matrix that is not definite", n)
			}
			if a[n*n-1] != -3 || b[n*n-1] != -3 {
				t.Errorf("n = %d: pivots %v and %v, want -3", n, a[n*n-1], b[n*n-1])
			}
		}
	})
}

// TestTiledDpotrf checks the Cholesky factorization in float64 with testCholesky.
func TestTiledDpotrf(t *testing.T) { testCholesky(t, 1e-14, Dpotrf) }

// TestTiledSpotrf checks the Cholesky factorization in float32 with testCholesky.
func TestTiledSpotrf(t *testing.T) { testCholesky(t, 1e-6, Spotrf) }

// TestTiledDtrtri checks L⁻¹L = I, and that a singular matrix is refused unchanged.
func TestTiledDtrtri(t *testing.T) {
	onEachBLAS(t, func(t *testing.T) {
		for _, n := range tiledOrders {
			ld := n + 2
			l := lowerTriangle(n, waveMatrix[float64](n, ld), ld)
			x := lowerTriangle(n, resultOnThreads(t, n, ld, Dtrtri), ld)
			var product mat.Dense
			product.Mul(x, l)
			var roundingUnit mat.Dense // |X||L|, in whose units the rounding errors are bounded
			roundingUnit.Mul(abs(x), abs(l))
			for i := range n {
				for j := range n {
					want := 0.0
					if i == j {
						want = 1
					}
					if deviation := math.Abs(product.At(i,
						j) - want); !(deviation <= float64(n)*0x1p-52*(1+roundingUnit.At(i, j))) {
						t.Fatalf("n = %d: (L⁻¹L)(%d, %d) has an error of %.3g", n, i, j, deviation)
					}
				}
			}
			a := waveMatrix[float64](n, ld)
			a[(n-1)*(ld+1)] = 0
			if b := slices.Clone(a); Dtrtri(n, a, ld) || fmt.Sprint(a) != fmt.Sprint(b) {
				t.Errorf("n = %d: a singular matrix is inverted or changed", n)
			}
		}
	})
}

// abs returns |a|, element by element.
func abs(a *mat.Dense) *mat.Dense {
	var b mat.Dense
	b.Apply(func(_, _ int, v float64) float64 { return math.Abs(v) }, a)
	return &b
}
