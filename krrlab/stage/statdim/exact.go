package statdim

import (
	"context"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
	"github.com/krrlab/lab/krrlab/precond/lowrank"
)

// FromDense computes s_λ = Σ_i μ_i/(μ_i+λ) from all eigenvalues μ_i of the matrix K in k, which it overwrites, at
// λ = lambda and at the curveLambdas. storageError bounds the 2-norm of the error E of k. The computed eigenvalues then
// have an error of at most ε = ‖E‖₂ + n·2⁻⁵²·max|μ_i|, by Weyl's inequality, where the second term is the customary
// allowance for LAPACK's rounding errors and not a proved bound. The interval therefore extends from Σ g((μ_i−ε)₊) to
// Σ g((μ_i)₊+ε), with g(μ) = μ/(μ+λ). FromDense returns an error if the eigenvalues cannot be computed or ctx ends.
func FromDense(ctx context.Context, k *mat.Dense, storageError, lambda float64,
	curveLambdas []float64) (*Estimates, error) {
	start := time.Now()
	raw := k.RawMatrix()
	mu, err := accel.Eigen(ctx, lapack.EVNone,
		blas64.Symmetric{Uplo: blas.Lower, N: raw.Rows, Stride: raw.Stride, Data: raw.Data})
	if err != nil {
		return nil, err
	}
	n := len(mu) // mu is in ascending order
	epsilon := storageError + float64(n)*0x1p-52*max(-mu[0], mu[n-1])
	estimates := &Estimates{WidthReached: true}
	for _, curveLambda := range lambdaGrid(lambda, curveLambdas) {
		interval := estimate.Interval{Confidence: 1, Method: "exact", Seconds: time.Since(start).Seconds()}
		for _, eigenvalue := range mu {
			interval.Value += filterFactor(max(eigenvalue, 0), curveLambda)
			interval.Lo += filterFactor(max(eigenvalue-epsilon, 0), curveLambda)
			interval.Hi += filterFactor(max(eigenvalue, 0)+epsilon, curveLambda)
		}
		rounding := float64(n) * 0x1p-52 * interval.Value // rounding error of the sums
		interval.Lo, interval.Hi = max(interval.Lo-rounding, 0), min(interval.Hi+rounding, float64(n))
		estimates.Curve = append(estimates.Curve, CurvePoint{curveLambda, interval})
		if curveLambda == lambda {
			estimates.Estimate = interval
			estimates.Storage = max(interval.Hi-interval.Value, interval.Value-interval.Lo)
		}
	}
	return estimates, nil
}

// filterFactor returns g(μ) = μ/(μ+λ), the part of a degree of freedom that the eigenvalue mu contributes to s_λ.
func filterFactor(mu, lambda float64) float64 { return mu / (mu + lambda) }

// eigenvalueDistance bounds the distance of the eigenvalues of K from those of its approximation ZZᵀ: σ_i²−Below ≤ μ_i
// ≤ σ_i²+Above, for certain, where the eigenvalues μ_i of K and σ_i² of ZᵀZ are in descending order. Both are +Inf if
// no bound is known.
type eigenvalueDistance struct {
	Below, Above float64
}

// unknownDistance restricts no eigenvalue. Random features have this distance, because no certain bound is known.
var unknownDistance = eigenvalueDistance{math.Inf(1), math.Inf(1)}

// factorDistance returns the distance of the eigenvalues of FFᵀ, for a landmark factor F, from those of K itself, not
// of the stored K. The distance includes the rounding of FᵀF and of the eigenvalues of FᵀF. It is unknown if F has no
// certain bounds.
func factorDistance(f *lowrank.Factor) eigenvalueDistance {
	if !f.Certain() {
		return unknownDistance
	}
	// With u = 2⁻⁵³, the second term is n·u·tr K for the inner products of FᵀF, and 10·rank·u·tr K, the customary
	// allowance for LAPACK, for the eigenvalues of FᵀF. Above has this rounding twice, because f.Residual, the trace of
	// K−FFᵀ, has a rounding error of the same size.
	rounding := f.Rounding + float64(f.N+10*f.Rank())*0x1p-53*f.Trace
	return eigenvalueDistance{Below: rounding, Above: max(0, f.Residual) + 2*rounding}
}

// statDims returns Σ_i μ_i/(μ_i+λ) at each λ, with negative eigenvalues set to zero.
func statDims(mu, lambdas []float64) []float64 {
	sums := make([]float64, len(lambdas))
	for i, lambda := range lambdas {
		for _, eigenvalue := range mu {
			sums[i] += filterFactor(max(eigenvalue, 0), lambda)
		}
	}
	return sums
}

// featureCurve returns s_λ(ZZᵀ) = Σ_i σ_i²/(σ_i²+λ) at each λ as the estimate of s_λ(K), for K of order n and the given
// trace. sigma2 has the eigenvalues σ_i² of ZᵀZ, in any order.
//
// The interval extends from the smallest to the largest s_λ of any K with this trace whose eigenvalues are within the
// distance of those of ZZᵀ. If the distance is unknown, only the trace restricts the eigenvalues. A value outside of
// the interval is replaced by the nearer end of the interval.
func featureCurve(n int, trace float64, sigma2 []float64, distance eigenvalueDistance, lambdas []float64) []CurvePoint {
	lo, hi := eigenvalueBoxes(n, trace, sigma2, distance)
	// μ/(μ+λ) is concave in μ, so that the majorant has the smallest s_λ and the minorant the largest, for every λ.
	loEigenvalues, hiEigenvalues := majorant(trace, lo, hi), minorant(trace, lo, hi)
	var curve []CurvePoint
	values := statDims(sigma2, lambdas)
	for k, lambda := range lambdas {
		interval := estimate.Interval{Value: values[k], Confidence: 1, Method: "free"}
		for i := range loEigenvalues {
			interval.Lo += filterFactor(loEigenvalues[i], lambda)
			interval.Hi += filterFactor(hiEigenvalues[i], lambda)
		}
		rounding := float64(n) * 0x1p-52 * interval.Hi // rounding error of the sums
		interval.Lo, interval.Hi = max(0, interval.Lo-rounding), min(float64(n), interval.Hi+rounding)
		interval.Value = max(interval.Lo, min(interval.Value, interval.Hi))
		curve = append(curve, CurvePoint{lambda, interval})
	}
	return curve
}

// eigenvalueBoxes returns intervals [lo_i, hi_i], the boxes, that contain the eigenvalues μ_1 ≥ μ_2 ≥ … of K: μ_i is
// within the distance of σ_i², the i-th largest of sigma2, or of zero if sigma2 has fewer numbers, and 0 ≤ μ_i ≤
// tr K/i, because i eigenvalues are at least as large as μ_i. If no numbers in the boxes have the sum tr K, because of
// rounding, the boxes are widened.
func eigenvalueBoxes(n int, trace float64, sigma2 []float64, distance eigenvalueDistance) (lo, hi []float64) {
	descending := slices.Sorted(slices.Values(sigma2))
	slices.Reverse(descending)
	lo, hi = make([]float64, n), make([]float64, n)
	var loSum, hiSum float64
	for i := range n {
		var approximate float64
		if i < len(descending) {
			approximate = max(descending[i], 0)
		}
		hi[i] = min(approximate+distance.Above, trace/float64(i+1))
		lo[i] = min(max(approximate-distance.Below, 0), hi[i])
		loSum += lo[i]
		hiSum += hi[i]
	}
	if loSum > trace {
		for i := range lo {
			lo[i] *= trace / loSum
		}
	}
	if hiSum < trace {
		for i := range hi {
			hi[i] += (trace - hiSum) / float64(n)
		}
	}
	return lo, hi
}

// majorant returns, among all vectors x with lo_i ≤ x_i ≤ hi_i and the given sum, the one that majorizes the others: it
// has the upper ends first, then one value between its ends, then the lower ends. Σ g(x_i) is smallest there for every
// concave function g (Marshall, Olkin and Arnold 2011). lo and hi must be in descending order, and the sum must be
// between their sums.
func majorant(sum float64, lo, hi []float64) []float64 {
	x := slices.Clone(lo)
	for _, v := range lo {
		sum -= v // from here on, the part of the sum that x does not have yet
	}
	for i := range x {
		increase := max(0, min(hi[i]-lo[i], sum))
		x[i] += increase
		sum -= increase
	}
	return x
}

// minorant returns, among the same vectors as majorant, the one that all others majorize: x_i is a common level, or the
// end of [lo_i, hi_i] that is nearer to this level. Σ g(x_i) is largest there for every concave function g.
func minorant(sum float64, lo, hi []float64) []float64 {
	clamp := func(level float64) (x []float64, total float64) {
		x = make([]float64, len(lo))
		for i := range x {
			x[i] = max(lo[i], min(level, hi[i]))
			total += x[i]
		}
		return x, total
	}
	lower, upper := 0.0, slices.Max(hi)
	for range 200 { // bisect until no float64 lies between lower and upper, usually after some 60 steps
		if mid := (lower + upper) / 2; mid == lower || mid == upper {
			break
		} else if _, total := clamp(mid); total < sum {
			lower = mid
		} else {
			upper = mid
		}
	}
	x, _ := clamp(upper)
	return x
}
