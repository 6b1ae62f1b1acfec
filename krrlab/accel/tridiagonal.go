package accel

import (
	"math"

	lapack "gonum.org/v1/gonum/lapack/gonum"
)

// negligible is what an entry of a tridiagonal matrix of size 1 may be without weight.
const negligible = 0x1p-400

// Dsterf replaces diag, the diagonal of a symmetric tridiagonal matrix, by its eigenvalues, ascending,
// and spoils off, what stands beside it. It reports whether it could: a number that is not finite
// and a failed iteration say no. Eigenvalues are within about 10⁻¹⁶ of the largest one's size.
//
// It is gonum's Dsterf, the root-free QL or QR iteration, save that the matrix is scaled by a
// power of two and freed of entries below 2⁻⁴⁰⁰ of its largest first: gonum's own scaling
// of blocks that are tiny or huge panics.
func Dsterf(diag, off []float64) bool {
	var top float64
	for _, list := range [][]float64{diag, off} {
		for _, v := range list {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return false
			}
			top = max(top, math.Abs(v))
		}
	}
	_, e := math.Frexp(top)
	for _, list := range [][]float64{diag, off} {
		for i, v := range list {
			if list[i] = math.Ldexp(v, -e); math.Abs(list[i]) < negligible {
				list[i] = 0
			}
		}
	}
	if !(lapack.Implementation{}).Dsterf(len(diag), diag, off) {
		return false
	}
	for i, v := range diag {
		diag[i] = math.Ldexp(v, e)
	}
	return true
}
