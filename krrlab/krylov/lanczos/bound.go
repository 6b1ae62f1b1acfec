package lanczos

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mathext"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
)

const method = "random-start Lanczos"

// mass returns the δ-quantile of Beta(½, (n−1)/2): the squared component along any fixed
// direction of a vector uniform on the unit sphere of R^n exceeds it with probability 1−δ.
// It panics unless n ≥ 1 and 0 < δ < 1.
func mass(n int, delta float64) float64 {
	if n < 1 || !(delta > 0 && delta < 1) {
		panic(fmt.Sprintf("lanczos: mass(%d, %g): want n ≥ 1 and 0 < δ < 1", n, delta))
	}
	if n == 1 {
		return 1
	}
	return mathext.InvRegIncBeta(0.5, float64(n-1)/2, delta)
}

// APriori returns ε for which the largest Ritz value of k steps from a start uniform on the
// sphere misses the largest eigenvalue of a positive semi-definite matrix of order n by at
// most ε·λ_max, with probability at least 1−δ, whatever the spectrum,
//
//	P(θ_max < (1−ε)λ_max) ≤ 1.648·√n·e^(−√ε(2k−1)),
//
// Kuczyński and Woźniakowski 1992, theorem 4.2; for both ends of a spectrum take λ_max−λ_min in
// place of λ_max. It is at most 1, and panics unless n, k ≥ 1 and 0 < δ < 1.
func APriori(n, k int, delta float64) float64 {
	if n < 1 || k < 1 || !(delta > 0 && delta < 1) {
		panic(fmt.Sprintf("lanczos: APriori(%d, %d, %g): want n, k ≥ 1 and 0 < δ < 1", n, k, delta))
	}
	if k >= n {
		return 0
	}
	e := math.Log(1.648*math.Sqrt(float64(n))/delta) / float64(2*k-1)
	return min(1, e*e)
}

// christoffel reports whether Σ_{j≤k} p_j(x)² exceeds limit, where sign·x lies outside of
// the Ritz values; sign = −1 stands for −T instead of T:
//
//	β_j p_j = (x−α_j)p_{j−1} − β_{j−1}p_{j−2},  p_0 = 1.
func christoffel(alpha, beta []float64, sign, x, limit float64) bool {
	before, p, sum := 0.0, 1.0, 1.0
	for j, a := range alpha {
		next := (x - sign*a) * p
		if j > 0 {
			next -= beta[j-1] * before
		}
		if next == 0 {
			return false // a Ritz value
		}
		before, p = p, next/beta[j] // p_j; +Inf for β_j = 0, where no mass is left
		sum += p * p
		if sum > limit {
			return true
		}
	}
	return false
}

// beyond returns U ≥ theta, the largest Ritz value of sign·T, such that λ_max of sign·A is at
// most U if the start has a component of square mass or more along its eigenvector.
func beyond(alpha, beta []float64, sign, theta, mass float64) float64 {
	size := math.Abs(theta)
	for j := range alpha {
		size = max(size, math.Abs(alpha[j]), beta[j])
	}
	if size == 0 {
		return theta
	}
	lo, hi := 0.0, max(0x1p-50*size, 0x1p-1022)
	for hi <= math.MaxFloat64 && !christoffel(alpha, beta, sign, theta+hi, 1/mass) {
		lo, hi = hi, 2*hi
	}
	for range 40 {
		if mid := (lo + hi) / 2; christoffel(alpha, beta, sign, theta+mid, 1/mass) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return theta + hi
}

// Ritz returns the eigenvalues of T, ascending: diagonal alpha, and beside it beta, of
// which the last may follow.
func Ritz(alpha, beta []float64) []float64 {
	d := append([]float64(nil), alpha...)
	e := append([]float64(nil), beta[:len(alpha)-1]...)
	if !accel.Dsterf(d, e) {
		panic("lanczos: the eigenvalues of a tridiagonal matrix did not converge")
	}
	return d
}

// judge sets the Ritz values, the intervals and Converged of what has been found so far.
func (r *Result) judge(o *Options) {
	if o.Ends == Neither {
		return
	}
	r.Ritz = Ritz(r.Alpha, r.Beta)
	least, most := r.Ritz[0], r.Ritz[r.Steps-1]
	delta := 1 - o.Confidence
	if o.Ends == Both {
		delta /= 2
	}
	mass := mass(r.N, delta)
	r.Min = estimate.Interval{Value: least, Lo: math.Inf(-1), Hi: least + r.Slack, Confidence: 1 - delta,
		Method: method, Seconds: r.Seconds}
	r.Max = estimate.Interval{Value: most, Lo: most - r.Slack, Hi: math.Inf(1), Confidence: 1 - delta, Method: method,
		Seconds: r.Seconds}
	r.Max.Hi = beyond(r.Alpha, r.Beta, 1, most, mass) + r.Slack
	done := r.Max.Width() <= o.Tol
	if o.Ends == Both {
		r.Min.Lo = -beyond(r.Alpha, r.Beta, -1, -least, mass) - r.Slack
		done = done && r.Min.Width() <= o.Tol
	}
	if o.Definite && !r.Indefinite() {
		r.Min.Lo, r.Min.Value = max(r.Min.Lo, 0), max(r.Min.Value, 0)
	}
	switch {
	case o.Norm:
		done = r.Norm().Width() <= o.Tol
	case o.Cond:
		done = r.Cond().Width() <= o.Tol
	}
	r.Converged = done
}
