package verify

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/kernel"
)

// unitRoundoff is u, the unit roundoff of float64.
const unitRoundoff = 0x1p-53

// kernelFunction is a kernel in the form k(x, z) = finish(s), where s is ‖x−z‖₂², ‖x−z‖₁ or xᵀz. For a user-defined
// kernel, and for a built-in kernel that newKernelFunction has no formula for, s is the value of the kernel's Eval, and
// finish is the identity.
type kernelFunction struct {
	mayBeNegative bool                      // whether k may be negative
	usesSquares   bool                      // whether s is ‖x−z‖₂²
	usesEval      bool                      // whether s is the value of Eval
	fillSums      func(dst, x, z []float64) // sets dst_j to s of x and row j of z
	finish        func(s float64) float64   // returns k(x, z)
	diagonal      func(x []float64) float64 // returns k(x, x)
	maxSlope      float64                   // bound of |dk/ds|, for kernels that are functions of ‖x−z‖₂²
	degree        int                       // degree of a polynomial kernel; else 0
}

// newKernelFunction returns the formula of the kernel, or uses the Eval of a kernel that has none here. It returns an
// error if the kernel is unknown.
func newKernelFunction(spec kernel.Spec) (*kernelFunction, error) {
	f := &kernelFunction{fillSums: fillSquareSums, usesSquares: true, diagonal: func([]float64) float64 { return 1 }}
	switch spec.Name {
	case "gaussian": // exp(−‖x−z‖²/(2σ²))
		f.finish = func(s float64) float64 { return math.Exp(-s / (2 * spec.Sigma * spec.Sigma)) }
		f.maxSlope = 0.5 / (spec.Sigma * spec.Sigma)
	case "laplacian": // exp(−‖x−z‖₁/σ)
		f.fillSums, f.usesSquares = fillAbsoluteSums, false
		f.finish = func(s float64) float64 { return math.Exp(-s / spec.Sigma) }
	case "matern32": // (1+a)e^(−a), a = √3·‖x−z‖/σ; dk/ds = −3e^(−a)/(2σ²)
		f.finish = func(s float64) float64 {
			a := math.Sqrt(3) * math.Sqrt(s) / spec.Sigma
			return math.Exp(-a) + a*math.Exp(-a)
		}
		f.maxSlope = 1.5 / (spec.Sigma * spec.Sigma)
	case "matern52": // (1+a+a²/3)e^(−a), a = √5·‖x−z‖/σ; dk/ds = −5(1+a)e^(−a)/(6σ²)
		f.finish = func(s float64) float64 {
			a := math.Sqrt(5) * math.Sqrt(s) / spec.Sigma
			return (1 + a + a*a/3) * math.Exp(-a)
		}
		f.maxSlope = 5.0 / 6 / (spec.Sigma * spec.Sigma)
	case "polynomial": // (γxᵀz+c)^q
		f.fillSums, f.usesSquares, f.mayBeNegative, f.degree = fillProducts, false, true, spec.Degree
		f.finish = func(s float64) float64 { return math.Pow(spec.Gamma*s+spec.Coef0, float64(spec.Degree)) }
		f.diagonal = func(x []float64) float64 {
			var s [1]float64
			fillProducts(s[:], x, x)
			return f.finish(s[0])
		}
	default:
		userKernel, err := kernel.FromSpec(spec)
		if err != nil {
			return nil, fmt.Errorf("verify: no formula for kernel %q: %w", spec.Name, err)
		}
		f.usesSquares, f.mayBeNegative, f.usesEval = false, true, true
		f.finish = func(s float64) float64 { return s }
		f.diagonal = func(x []float64) float64 { return userKernel.Eval(x, x) }
		f.fillSums = func(dst, x, z []float64) {
			d := len(x)
			for j := range dst {
				dst[j] = userKernel.Eval(x, z[j*d:][:d:d])
			}
		}
	}
	return f, nil
}

// entryError returns a bound of the rounding error of k(x, z), for points whose k(x, x) is at most largest and, if
// m.sqNorms is used, whose ‖x‖² is at most maxSqNorm. Let u be the unit roundoff. A sum s of d positive terms has a
// relative error of at most (d+3)u, and |s·dk/ds| ≤ 1 for all kernels that are functions of such a sum; finish rounds
// at most a dozen times. If s is computed from norms, its error is at most (d+6)u·(‖x‖+‖z‖)² ≤ 4·maxSqNorm·(d+6)u. For
// the polynomial kernel (γxᵀz+c)^q, |xᵀz| ≤ ‖x‖‖z‖, so that the error of γxᵀz+c is at most (d+4)u times the largest
// γxᵀz+c, whose q-th power is the largest k(x, x). A user-defined kernel is by definition the value of its Eval, with
// error 0.
func (m *Matrix) entryError(largest, maxSqNorm float64) float64 {
	d, f := m.D, m.function
	switch {
	case f.usesEval:
		return 0
	case f.degree > 0:
		return float64(f.degree*(d+4)+8) * unitRoundoff * largest
	case m.sqNorms != nil && f.usesSquares:
		return 4*maxSqNorm*float64(d+6)*unitRoundoff*f.maxSlope + 16*unitRoundoff
	}
	return float64(d+16) * unitRoundoff
}

// sumRowsByFour sets dst_j to a sum over row j of z, of length d. It calls sums for four rows at a time; in the last
// call the last row may repeat.
func sumRowsByFour(dst, z []float64, d int, sums func(z0, z1, z2, z3 []float64) (s0, s1, s2, s3 float64)) {
	row := func(j int) []float64 { return z[min(j, len(dst)-1)*d:][:d] }
	for j := 0; j < len(dst); j += 4 {
		s0, s1, s2, s3 := sums(row(j), row(j+1), row(j+2), row(j+3))
		copy(dst[j:], []float64{s0, s1, s2, s3})
	}
}

// fillSquareSums sets dst_j = Σ_c (x_c−z_jc)².
func fillSquareSums(dst, x, z []float64) {
	sumRowsByFour(dst, z, len(x), func(z0, z1, z2, z3 []float64) (s0, s1, s2, s3 float64) {
		z0, z1, z2, z3 = z0[:len(x)], z1[:len(x)], z2[:len(x)], z3[:len(x)] // eliminates bounds checks below
		for column, v := range x {
			e0, e1, e2, e3 := v-z0[column], v-z1[column], v-z2[column], v-z3[column]
			s0 += e0 * e0
			s1 += e1 * e1
			s2 += e2 * e2
			s3 += e3 * e3
		}
		return s0, s1, s2, s3
	})
}

// fillAbsoluteSums sets dst_j = Σ_c |x_c−z_jc|.
func fillAbsoluteSums(dst, x, z []float64) {
	d := len(x)
	for j := range dst {
		row := z[j*d:][:d]
		var s float64
		for column, v := range x {
			s += math.Abs(v - row[column])
		}
		dst[j] = s
	}
}

// fillProducts sets dst_j = Σ_c x_c·z_jc.
func fillProducts(dst, x, z []float64) {
	d := len(x)
	for j := range dst {
		row := z[j*d:][:d]
		var s float64
		for column, v := range x {
			s += v * row[column]
		}
		dst[j] = s
	}
}

// sparseRow has the indices and values of the entries of a row x that are not zero.
type sparseRow struct {
	indices []int
	values  []float64
	sqNorm  float64 // ‖x‖²
}

// newSparseRow returns x without its zeros.
func newSparseRow(x []float64) sparseRow {
	var row sparseRow
	for column, v := range x {
		if v != 0 {
			row.indices, row.values = append(row.indices, column), append(row.values, v)
			row.sqNorm += v * v
		}
	}
	return row
}

// sparseProducts sets dst_j = xᵀz_j for rows z_j of length d.
func sparseProducts(dst []float64, x sparseRow, z []float64, d int) {
	sumRowsByFour(dst, z, d, func(z0, z1, z2, z3 []float64) (s0, s1, s2, s3 float64) {
		for k, column := range x.indices {
			v := x.values[k]
			s0 += v * z0[column]
			s1 += v * z1[column]
			s2 += v * z2[column]
			s3 += v * z3[column]
		}
		return s0, s1, s2, s3
	})
}
