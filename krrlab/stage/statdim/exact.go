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

// Dense computes s_λ = Σ_i μ_i/(μ_i+λ) from all eigenvalues of K, which it overwrites, for
// the problem's λ and the further lambdas. The eigenvalues are known to
// ε = err + n·2⁻⁵²·max|μ|, err bounding the error of k's entries in the 2-norm, and the
// interval is that of Weyl, Σ g((μ_i−ε)₊) … Σ g((μ_i)₊+ε).
func Dense(k *mat.Dense, err, lambda float64, lambdas []float64) (*Numbers, error) {
	all := grid(lambda, lambdas)
	start := time.Now()
	raw := k.RawMatrix()
	mu, e := accel.Eigen(context.Background(), lapack.EVNone,
		blas64.Symmetric{Uplo: blas.Lower, N: raw.Rows, Stride: raw.Stride, Data: raw.Data})
	if e != nil {
		return nil, e
	}
	n := len(mu)
	eps := err + float64(n)*0x1p-52*max(-mu[0], mu[n-1])
	res := &Numbers{Reached: true}
	for _, l := range all {
		at := estimate.Interval{Confidence: 1, Method: "exact", Seconds: time.Since(start).Seconds()}
		for _, m := range mu {
			at.Value += degree(max(m, 0), l)
			at.Lo += degree(max(m-eps, 0), l)
			at.Hi += degree(max(m, 0)+eps, l)
		}
		round := float64(n) * 0x1p-52 * at.Value // of the sums
		at.Lo, at.Hi = max(at.Lo-round, 0), min(at.Hi+round, float64(n))
		res.Curve = append(res.Curve, Point{l, at})
		if l == lambda {
			res.Estimate, res.Storage = at, math.Max(at.Hi-at.Value, at.Value-at.Lo)
		}
	}
	return res, nil
}

// degree returns g(μ) = μ/(μ+λ).
func degree(mu, lambda float64) float64 { return mu / (mu + lambda) }

// distance says how far the eigenvalues of K can lie from those of its approximation ZZᵀ:
// σ_i²−Below ≤ μ_i ≤ σ_i²+Above, for certain. Nothing is known where both are +Inf.
type distance struct {
	Below, Above float64
}

// unknown is the distance of random features.
var unknown = distance{math.Inf(1), math.Inf(1)}

// factorDistance is that of landmarks' FFᵀ from K itself, however K is stored, with the rounding of FᵀF and its
// eigenvalues; unknown where nothing is certain of it.
func factorDistance(f *lowrank.Factor) distance {
	if !f.Certain() {
		return unknown
	}
	e := f.Rounding + float64(f.N+10*f.Rank())*0x1p-53*f.Trace
	return distance{Below: e, Above: max(0, f.Residual) + 2*e}
}

// degreesAt returns Σ_i μ_i/(μ_i+λ) of eigenvalues at each λ.
func degreesAt(mu, lambdas []float64) []float64 {
	sums := make([]float64, len(lambdas))
	for i, l := range lambdas {
		for _, v := range mu {
			sums[i] += degree(max(v, 0), l)
		}
	}
	return sums
}

// free returns s_λ(ZZᵀ) = Σ_i σ_i²/(σ_i²+λ), from the eigenvalues σ_i² of ZᵀZ, as the estimate
// of s_λ(K) for K of order n and the given trace, at each λ; at λ = λ_p it is ‖U‖_F². The interval
// is the least and the largest s_λ of any K with this trace whose eigenvalues have the
// distance d from those of ZZᵀ: for an unknown distance those of the trace, and narrower the closer Z
// is known to be. The value is moved into the interval where it lies outside.
func free(n int, trace float64, sigma2 []float64, d distance, lambdas []float64) []Point {
	lo, hi := boxes(n, trace, sigma2, d)
	most, least := majorant(trace, lo, hi), minorant(trace, lo, hi)
	var out []Point
	values := degreesAt(sigma2, lambdas)
	for k, l := range lambdas {
		e := estimate.Interval{Value: values[k], Confidence: 1, Method: "free"}
		for i := range most {
			e.Lo += degree(most[i], l)
			e.Hi += degree(least[i], l)
		}
		round := float64(n) * 0x1p-52 * e.Hi // of the sums
		e.Lo, e.Hi = max(0, e.Lo-round), min(float64(n), e.Hi+round)
		e.Value = max(e.Lo, min(e.Value, e.Hi))
		out = append(out, Point{l, e})
	}
	return out
}

// boxes returns bounds of the eigenvalues of K, descending: those of d about the σ_i², then
// about zero, and 0 ≤ μ_i ≤ tr K/i, as i of them are at least as large. Rounding could make
// the boxes miss the trace by a little; they are then opened to admit it.
func boxes(n int, trace float64, sigma2 []float64, d distance) (lo, hi []float64) {
	s := slices.Sorted(slices.Values(sigma2))
	slices.Reverse(s)
	lo, hi = make([]float64, n), make([]float64, n)
	var least, most float64
	for i := range n {
		var v float64
		if i < len(s) {
			v = max(s[i], 0)
		}
		hi[i] = min(v+d.Above, trace/float64(i+1))
		lo[i] = min(max(v-d.Below, 0), hi[i])
		least += lo[i]
		most += hi[i]
	}
	if least > trace {
		for i := range lo {
			lo[i] *= trace / least
		}
	}
	if most < trace {
		for i := range hi {
			hi[i] += (trace - most) / float64(n)
		}
	}
	return lo, hi
}

// majorant returns the vector in the boxes with the given sum that majorizes all others: the
// upper ends first, then one between, then the lower ends. A sum of concave g is least there.
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

// minorant returns the vector in the boxes with the given sum that all others majorize, all
// numbers as near to one level as the boxes let them: a sum of concave g is largest there.
func minorant(sum float64, lo, hi []float64) []float64 {
	at := func(level float64) (x []float64, total float64) {
		x = make([]float64, len(lo))
		for i := range x {
			x[i] = max(lo[i], min(level, hi[i]))
			total += x[i]
		}
		return x, total
	}
	a, b := 0.0, slices.Max(hi)
	for range 200 {
		if mid := (a + b) / 2; mid == a || mid == b {
			break
		} else if _, total := at(mid); total < sum {
			a = mid
		} else {
			b = mid
		}
	}
	x, _ := at(b)
	return x
}
