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

// FromDense computes s_λ = Σ_i μ_i/(μ_i+λ) from all eigenvalues of K, which it overwrites, at λ = lambda and at the
// lambdas of the curve. storageError bounds ‖E‖₂, the 2-norm of the error of the stored matrix. The eigenvalues then
// have an error of at most ε = ‖E‖₂ + n·2⁻⁵²·max|μ|, where the second term is the customary allowance for LAPACK's
// rounding errors and not a proved bound. By Weyl's inequality the interval is Σ g((μ_i−ε)₊) … Σ g((μ_i)₊+ε), with g(μ)
// = μ/(μ+λ).
func FromDense(ctx context.Context, k *mat.Dense, storageError, lambda float64, lambdas []float64) (*Estimates, error) {
	curveLambdas := grid(lambda, lambdas)
	start := time.Now()
	raw := k.RawMatrix()
	mu, err := accel.Eigen(ctx, lapack.EVNone,
		blas64.Symmetric{Uplo: blas.Lower, N: raw.Rows, Stride: raw.Stride, Data: raw.Data})
	if err != nil {
		return nil, err
	}
	n := len(mu) // mu is in ascending order
	eps := storageError + float64(n)*0x1p-52*max(-mu[0], mu[n-1])
	res := &Estimates{WidthReached: true}
	for _, l := range curveLambdas {
		interval := estimate.Interval{Confidence: 1, Method: "exact", Seconds: time.Since(start).Seconds()}
		for _, m := range mu {
			interval.Value += degree(max(m, 0), l)
			interval.Lo += degree(max(m-eps, 0), l)
			interval.Hi += degree(max(m, 0)+eps, l)
		}
		rounding := float64(n) * 0x1p-52 * interval.Value // rounding error of the sums
		interval.Lo, interval.Hi = max(interval.Lo-rounding, 0), min(interval.Hi+rounding, float64(n))
		res.Curve = append(res.Curve, CurvePoint{l, interval})
		if l == lambda {
			res.Estimate, res.Storage = interval, max(interval.Hi-interval.Value, interval.Value-interval.Lo)
		}
	}
	return res, nil
}

// degree returns g(μ) = μ/(μ+λ), the degree of freedom that the eigenvalue mu contributes to s_λ.
func degree(mu, lambda float64) float64 { return mu / (mu + lambda) }

// distance bounds the distance of the eigenvalues of K from those of its approximation ZZᵀ: σ_i²−Below ≤ μ_i ≤
// σ_i²+Above, for certain. Both are +Inf if no bound is known.
type distance struct {
	Below, Above float64
}

// unknownDistance restricts no eigenvalue. It is that of random features, for which no certain bound is known.
var unknownDistance = distance{math.Inf(1), math.Inf(1)}

// factorDistance returns the distance of a landmark factor's FFᵀ from K itself, not from the stored K. It includes the
// rounding of FᵀF and of its eigenvalues. It is unknown if the factor has no certain bounds.
func factorDistance(f *lowrank.Factor) distance {
	if !f.Certain() {
		return unknownDistance
	}
	// The second term is n·u·tr K for the inner products of FᵀF, and 10·rank·u·tr K, the customary allowance for
	// LAPACK, for its eigenvalues, with u = 2⁻⁵³. Above has e twice, because the trace of the residual K−FFᵀ has this
	// error too.
	e := f.Rounding + float64(f.N+10*f.Rank())*0x1p-53*f.Trace
	return distance{Below: e, Above: max(0, f.Residual) + 2*e}
}

// degreesAt returns Σ_i μ_i/(μ_i+λ) at each λ, with negative eigenvalues set to zero.
func degreesAt(mu, lambdas []float64) []float64 {
	sums := make([]float64, len(lambdas))
	for i, l := range lambdas {
		for _, v := range mu {
			sums[i] += degree(max(v, 0), l)
		}
	}
	return sums
}

// featureCurve returns s_λ(ZZᵀ) = Σ_i σ_i²/(σ_i²+λ) at each λ as the estimate of s_λ(K), for K of order n and the given
// trace. sigma2 has the eigenvalues σ_i² of ZᵀZ, in any order.
//
// The interval has the smallest and the largest s_λ of any K with this trace whose eigenvalues are within the distance
// d of those of ZZᵀ. If d is unknown, only the trace restricts the eigenvalues. The interval shrinks with d. A value
// outside of the interval is moved to its nearer end.
func featureCurve(n int, trace float64, sigma2 []float64, d distance, lambdas []float64) []CurvePoint {
	lo, hi := eigenvalueBoxes(n, trace, sigma2, d)
	concentrated, leveled := majorant(trace, lo, hi), minorant(trace, lo, hi) // with the smallest and the largest s_λ
	var points []CurvePoint
	values := degreesAt(sigma2, lambdas)
	for k, l := range lambdas {
		e := estimate.Interval{Value: values[k], Confidence: 1, Method: "free"}
		for i := range concentrated {
			e.Lo += degree(concentrated[i], l)
			e.Hi += degree(leveled[i], l)
		}
		rounding := float64(n) * 0x1p-52 * e.Hi // rounding error of the sums
		e.Lo, e.Hi = max(0, e.Lo-rounding), min(float64(n), e.Hi+rounding)
		e.Value = max(e.Lo, min(e.Value, e.Hi))
		points = append(points, CurvePoint{l, e})
	}
	return points
}

// eigenvalueBoxes returns bounds of the eigenvalues μ_1 ≥ μ_2 ≥ … of K: within d of the σ_i², or of zero for i beyond
// the features, and 0 ≤ μ_i ≤ tr K/i, because i eigenvalues are at least as large as μ_i. If the boxes exclude the
// trace because of rounding, they are widened until they admit it.
func eigenvalueBoxes(n int, trace float64, sigma2 []float64, d distance) (lo, hi []float64) {
	s := slices.Sorted(slices.Values(sigma2))
	slices.Reverse(s)
	lo, hi = make([]float64, n), make([]float64, n)
	var loSum, hiSum float64
	for i := range n {
		var v float64
		if i < len(s) {
			v = max(s[i], 0)
		}
		hi[i] = min(v+d.Above, trace/float64(i+1))
		lo[i] = min(max(v-d.Below, 0), hi[i])
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

// majorant returns the vector in the boxes with the given sum that majorizes all others: upper ends first, then one
// value inside its box, then lower ends. A sum of a concave function g is smallest there. lo and hi must be in
// descending order, and the sum must be between their sums.
func majorant(sum float64, lo, hi []float64) []float64 {
	x := slices.Clone(lo)
	for _, v := range lo {
		sum -= v
	}
	for i := range x {
		add := max(0, min(hi[i]-lo[i], sum))
		x[i] += add
		sum -= add
	}
	return x
}

// minorant returns the vector in the boxes with the given sum that all others majorize: a common level, clamped to the
// boxes. A sum of a concave function g is largest there. The same must hold for lo, hi and the sum as for majorant.
func minorant(sum float64, lo, hi []float64) []float64 {
	clamped := func(level float64) (x []float64, total float64) {
		x = make([]float64, len(lo))
		for i := range x {
			x[i] = max(lo[i], min(level, hi[i]))
			total += x[i]
		}
		return x, total
	}
	lower, upper := 0.0, slices.Max(hi)
	for range 200 { // bisect until no float64 lies between the two, after some 60 steps unless the level is tiny
		if mid := (lower + upper) / 2; mid == lower || mid == upper {
			break
		} else if _, total := clamped(mid); total < sum {
			lower = mid
		} else {
			upper = mid
		}
	}
	x, _ := clamped(upper)
	return x
}
