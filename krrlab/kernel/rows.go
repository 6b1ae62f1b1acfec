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

// Profile sets dst = exp(−r²/(2σ²)).
func (k Gaussian) Profile(dst, sq []float64) {
	c := -1 / (2 * k.Sigma * k.Sigma)
	for b, r2 := range sq {
		dst[b] = exp64(c * r2)
	}
}

// Profile sets dst = exp(−‖x−z‖₁/σ) of distances ‖x−z‖₁.
func (k Laplacian) Profile(dst, dist []float64) {
	for b, r := range dist {
		dst[b] = exp64(-r / k.Sigma)
	}
}

// Profile sets dst = (1+u)·e^−u, u = √3r/σ.
func (k Matern32) Profile(dst, sq []float64) {
	c := math.Sqrt(3) / k.Sigma
	for b, r2 := range sq {
		u := min(c*math.Sqrt(r2), beyond)
		dst[b] = (1 + u) * exp64(-u)
	}
}

// Profile sets dst = (1+u+u²/3)·e^−u, u = √5r/σ.
func (k Matern52) Profile(dst, sq []float64) {
	c := math.Sqrt(5) / k.Sigma
	for b, r2 := range sq {
		u := min(c*math.Sqrt(r2), beyond)
		dst[b] = (1 + u + u*u/3) * exp64(-u)
	}
}

// Profile sets dst = (γp+c)^q of inner products p.
func (k Polynomial) Profile(dst, inner []float64) {
	for b, p := range inner {
		dst[b] = power(k.Gamma*p+k.Coef0, k.Degree)
	}
}

func exp64(v float64) float64 {
	if v < flush64 {
		return 0
	}
	return math.Exp(v)
}

// float is the type of an inner product.
type float interface{ float32 | float64 }

// apply32 sets dst to the kernel values of a row of what k is a function of, or, for a Radial, of inner
// products. dst and row may be the same. u is scratch of len(dst).
func apply32[T float](k profile, dst []float32, row []T, xx float64, zz []float64, u []float64) {
	_, radial := k.(Radial)
	switch row := any(row).(type) {
	case []float32:
		if g, ok := k.(Gaussian); ok {
			simd.GaussianRow(dst, row, zz, xx, -1/(2*g.Sigma*g.Sigma), flush32) // exp(−r²/(2σ²))
			return
		}
		if radial {
			simd.SquaredDistances(u, row, zz, xx)
			break
		}
		for b, v := range row {
			u[b] = float64(v)
		}
	case []float64:
		if g, ok := k.(Gaussian); ok {
			simd.GaussianRow64(dst, row, zz, xx, -1/(2*g.Sigma*g.Sigma), flush32)
			return
		}
		if radial {
			simd.SquaredDistances64(u, row, zz, xx)
			break
		}
		copy(u, row)
	}
	if k, ok := k.(profile32); ok {
		k.Profile32(dst, u)
		return
	}
	k.Profile(u, u)
	simd.Round(dst, u)
}

// Profile32 sets dst = exp(−‖x−z‖₁/σ) of distances ‖x−z‖₁.
func (k Laplacian) Profile32(dst []float32, dist []float64) {
	for b, r := range dist {
		dst[b] = arg32(-r / k.Sigma)
	}
	simd.Exp32(dst, dst)
}

// Profile32 is Profile in float32.
func (k Matern32) Profile32(dst []float32, sq []float64) {
	maternArgs(dst, sq, -math.Sqrt(3)/k.Sigma) // −√3r/σ
	for b, v := range sq {
		dst[b] *= 1 - float32(v)
	}
}

// Profile32 is Profile in float32.
func (k Matern52) Profile32(dst []float32, sq []float64) {
	maternArgs(dst, sq, -math.Sqrt(5)/k.Sigma) // −√5r/σ
	for b, v := range sq {
		v := float32(v)
		dst[b] *= 1 - v + v*v/3
	}
}

// arg32 rounds an argument of the exponential to float32 and flushes.
func arg32(v float64) float32 {
	if v < flush32 {
		return zero32
	}
	return float32(v)
}

// maternArgs sets sq[b] = a, a = c·√sq[b] rounded to float32, and dst[b] = e^a.
func maternArgs(dst []float32, sq []float64, c float64) {
	dst = dst[:len(sq)]
	for b, r2 := range sq {
		dst[b] = arg32(c * math.Sqrt(r2))
		sq[b] = float64(dst[b])
	}
	simd.Exp32(dst, dst)
}
