package lanczos

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
)

// methodName is the Method of the intervals of this package.
const methodName = "random-start Lanczos"

// startMass returns the δ-quantile of Beta(½, (n−1)/2). The squared component, along any fixed direction, of a vector
// uniform on the unit sphere of R^n exceeds it with probability 1−δ. It panics unless n ≥ 1 and 0 < δ < 1.
func startMass(n int, delta float64) float64 {
	if n < 1 || !(delta > 0 && delta < 1) {
		panic(fmt.Sprintf("lanczos: startMass(%d, %g): want n ≥ 1 and 0 < δ < 1", n, delta))
	}
	if n == 1 {
		return 1
	}
	return mathext.InvRegIncBeta(0.5, float64(n-1)/2, delta)
}

// APrioriError returns ε such that the largest Ritz value after k steps, from a start uniform on the sphere, differs
// from the largest eigenvalue of any positive semi-definite matrix of order n by at most ε·λ_max, with probability at
// least 1−δ, by theorem 4.2 of Kuczyński and Woźniakowski 1992,
//
//	P(θ_max < (1−ε)λ_max) ≤ 1.648·√n·e^(−√ε(2k−1)).
//
// For both ends of a spectrum, replace λ_max by λ_max−λ_min. The result is at most 1, and 0 for k ≥ n. APrioriError
// panics unless n, k ≥ 1 and 0 < δ < 1.
func APrioriError(n, k int, delta float64) float64 {
	if n < 1 || k < 1 || !(delta > 0 && delta < 1) {
		panic(fmt.Sprintf("lanczos: APrioriError(%d, %d, %g): want n, k ≥ 1 and 0 < δ < 1", n, k, delta))
	}
	if k >= n {
		return 0
	}
	sqrtEps := math.Log(1.648*math.Sqrt(float64(n))/delta) / float64(2*k-1)
	return min(1, sqrtEps*sqrtEps)
}

// christoffelExceeds reports whether Σ_{j≤k} p_j(x)² exceeds limit for the orthonormal polynomials p_j of sign·T, where
// sign = ±1, and x lies outside the range of its eigenvalues. For the diagonal α_j and the off-diagonal β_j of sign·T,
//
//	β_j p_j = (x−α_j)p_{j−1} − β_{j−1}p_{j−2},  p_0 = 1.
func christoffelExceeds(alpha, beta []float64, sign, x, limit float64) bool {
	previous, p, sum := 0.0, 1.0, 1.0
	for j, alphaJ := range alpha {
		current := (x - sign*alphaJ) * p
		if j > 0 {
			current -= beta[j-1] * previous
		}
		if current == 0 {
			return false // x is a Ritz value
		}
		previous, p = p, current/beta[j] // p_j; +Inf for β_j = 0, because then no mass remains outside the Ritz values
		sum += p * p
		if sum > limit {
			return true
		}
	}
	return false
}

// outerBound returns U ≥ theta, where theta is the largest Ritz value of sign·T: λ_max of sign·A is at most U if the
// squared component of the start vector along its eigenvector is at least mass.
func outerBound(alpha, beta []float64, sign, theta, mass float64) float64 {
	scale := max(math.Abs(theta), largestEntry(alpha, beta))
	if scale == 0 {
		return theta
	}
	lo, hi := 0.0, max(0x1p-50*scale, 0x1p-1022) // bracket of U − theta, first doubled and then bisected
	for hi <= math.MaxFloat64 && !christoffelExceeds(alpha, beta, sign, theta+hi, 1/mass) {
		lo, hi = hi, 2*hi
	}
	for range 40 { // until the bracket has the relative width 2⁻⁴⁰
		if mid := (lo + hi) / 2; christoffelExceeds(alpha, beta, sign, theta+mid, 1/mass) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return theta + hi
}

// Ritz returns the eigenvalues of T in ascending order. alpha is its diagonal and beta its off-diagonal; an
// additional last number in beta is ignored.
func Ritz(alpha, beta []float64) []float64 {
	ritz := slices.Clone(alpha)
	if !accel.Dsterf(ritz, slices.Clone(beta[:len(alpha)-1])) {
		panic("lanczos: the eigenvalues of a tridiagonal matrix did not converge")
	}
	return ritz
}

// updateIntervals sets the Ritz values, the intervals and Converged from the current T.
func (r *Result) updateIntervals(o *Options) {
	if o.Quantity == TridiagonalOnly {
		return
	}
	r.Ritz = Ritz(r.Alpha, r.Beta)
	smallest, largest := r.Ritz[0], r.Ritz[r.Steps-1]
	delta, hasMin := 1-o.Confidence, o.Quantity != LargestEigenvalue
	if hasMin {
		delta /= 2
	}
	mass := startMass(r.N, delta)
	r.Min = estimate.Interval{Value: smallest, Lo: math.Inf(-1), Hi: smallest + r.Slack, Confidence: 1 - delta,
		Method: methodName, Seconds: r.Seconds}
	r.Max = estimate.Interval{Value: largest, Lo: largest - r.Slack, Hi: math.Inf(1), Confidence: 1 - delta,
		Method: methodName, Seconds: r.Seconds}
	r.Max.Hi = outerBound(r.Alpha, r.Beta, 1, largest, mass) + r.Slack
	if hasMin {
		r.Min.Lo = -outerBound(r.Alpha, r.Beta, -1, -smallest, mass) - r.Slack
	}
	if o.Definite && !r.Indefinite() {
		r.Min.Lo, r.Min.Value = max(r.Min.Lo, 0), max(r.Min.Value, 0)
	}
	var width float64
	switch o.Quantity {
	case BothEnds:
		width = max(r.Min.RelativeWidth(), r.Max.RelativeWidth())
	case LargestEigenvalue:
		width = r.Max.RelativeWidth()
	case TwoNorm:
		width = r.Norm().RelativeWidth()
	case ConditionNumber:
		width = r.Cond().RelativeWidth()
	}
	r.Converged = width <= o.Tol
}
