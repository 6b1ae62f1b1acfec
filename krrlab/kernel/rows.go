package kernel

import (
	"math"

	"github.com/krrlab/lab/krrlab/accel/simd"
)

// Arguments of the exponential below these give 0: e^flush32 = 2^-100 and
// e^flush64 = 2^-200.
const (
	flush32 = -100 * math.Ln2
	flush64 = -200 * math.Ln2
	zero32  = -1000 // an argument whose exponential is 0 in float32
)

// apply64 turns a row of inner products (of 1-distances for the Laplacian) into
// kernel values, in place. xx is ‖x‖², zz holds the ‖z_b‖².
func apply64(k Kernel, row []float64, xx float64, zz []float64) {
	zz = zz[:len(row)]
	switch k := k.(type) {
	case Gaussian:
		c := -1 / (2 * k.Sigma * k.Sigma)
		for b, p := range row {
			row[b] = exp64(c * clamp(xx+zz[b]-2*p)) // exp(−r²/(2σ²))
		}
	case Laplacian:
		for b, r := range row {
			row[b] = exp64(-r / k.Sigma) // exp(−‖x−z‖₁/σ)
		}
	case Matern32:
		c := math.Sqrt(3) / k.Sigma
		for b, p := range row {
			u := min(c*math.Sqrt(clamp(xx+zz[b]-2*p)), beyond) // √3r/σ
			row[b] = (1 + u) * exp64(-u)
		}
	case Matern52:
		c := math.Sqrt(5) / k.Sigma
		for b, p := range row {
			u := min(c*math.Sqrt(clamp(xx+zz[b]-2*p)), beyond) // √5r/σ
			row[b] = (1 + u + u*u/3) * exp64(-u)
		}
	case Polynomial:
		for b, p := range row {
			row[b] = power(k.Gamma*p+k.Coef0, k.Degree) // (γxᵀz+c)^q
		}
	}
}

func exp64(v float64) float64 {
	if v < flush64 {
		return 0
	}
	return math.Exp(v)
}

func clamp(r2 float64) float64 {
	if r2 < 0 {
		return 0
	}
	return r2
}

// float is the type of an inner product.
type float interface{ float32 | float64 }

// apply32 sets dst to the kernel values of a row of inner products (1-distances
// for the Laplacian). dst and row may be the same. u is scratch of len(dst).
func apply32[T float](k Kernel, dst []float32, row []T, xx float64, zz []float64, u []float32) {
	switch k := k.(type) {
	case Gaussian:
		gaussianRow(dst, row, xx, zz, -1/(2*k.Sigma*k.Sigma)) // exp(−r²/(2σ²))
	case Laplacian:
		for b, r := range row {
			dst[b] = arg32(-float64(r) / k.Sigma) // −‖x−z‖₁/σ
		}
		simd.Exp32(dst, dst)
	case Matern32:
		maternArgs(u, row, xx, zz, -math.Sqrt(3)/k.Sigma) // −√3r/σ
		simd.Exp32(dst, u)
		for b, v := range u {
			dst[b] *= 1 - v
		}
	case Matern52:
		maternArgs(u, row, xx, zz, -math.Sqrt(5)/k.Sigma) // −√5r/σ
		simd.Exp32(dst, u)
		for b, v := range u {
			dst[b] *= 1 - v + v*v/3
		}
	case Polynomial:
		polynomialRow(dst, row, k)
	}
}

// arg32 rounds an argument of the exponential to float32 and flushes.
func arg32(v float64) float32 {
	if v < flush32 {
		return zero32
	}
	return float32(v)
}

// gaussianRow sets dst[b] = exp(c·max(0, xx + zz_b − 2·row_b)).
func gaussianRow[T float](dst []float32, row []T, xx float64, zz []float64, c float64) {
	switch row := any(row).(type) {
	case []float32:
		simd.GaussianRow(dst, row, zz, xx, c, flush32)
	case []float64:
		simd.GaussianRow64(dst, row, zz, xx, c, flush32)
	}
}

// maternArgs sets dst[b] = c·√max(0, xx + zz_b − 2·row_b).
func maternArgs[T float](dst []float32, row []T, xx float64, zz []float64, c float64) {
	dst, zz = dst[:len(row)], zz[:len(row)]
	for b, p := range row {
		dst[b] = arg32(c * math.Sqrt(clamp(xx+zz[b]-2*float64(p))))
	}
}

// polynomialRow sets dst[b] = (γ·row_b + c)^q, subnormal results to 0.
func polynomialRow[T float](dst []float32, row []T, k Polynomial) {
	const smallest = 0x1p-126 // the least normal float32
	dst = dst[:len(row)]
	for b, p := range row {
		v := power(k.Gamma*float64(p)+k.Coef0, k.Degree)
		if v < smallest && v > -smallest {
			v = 0
		}
		dst[b] = float32(v)
	}
}
