package statdim

import (
	"fmt"
	"math"
	"slices"

	"github.com/krrlab/lab/krrlab/estimate"
)

// Distance says how far the eigenvalues of K can lie from those of its approximation ZZᵀ:
// σ_i²−Below ≤ μ_i ≤ σ_i²+Above, with a probability of Confidence, 1 for certain. Nothing is
// known where both are +Inf.
type Distance struct {
	Below, Above, Confidence float64
}

// Unknown is the distance of random features of which nothing has been measured.
var Unknown = Distance{math.Inf(1), math.Inf(1), 1}

// Free returns s_λ(ZZᵀ) = Σ_i σ_i²/(σ_i²+λ), from the eigenvalues σ_i² of ZᵀZ, as the estimate
// of s_λ(K) for K of order n and the given trace, at each λ; at λ = λ_p it is ‖U‖_F². The interval
// is the least and the largest s_λ of any K with this trace whose eigenvalues have the
// distance d from those of ZZᵀ: for an unknown distance those of the trace, and narrower the closer Z
// is known to be. The value is moved into the interval where it lies outside.
func Free(n int, trace float64, sigma2 []float64, d Distance, lambdas []float64) ([]Point, error) {
	if err := checkLambdas(lambdas); err != nil {
		return nil, err
	}
	if !(d.Below >= 0 && d.Above >= 0 && trace >= 0) || len(sigma2) == 0 {
		return nil, fmt.Errorf("statdim: %d eigenvalues within −%g, +%g and trace %g: want numbers ≥ 0", len(sigma2), d.Below, d.Above, trace)
	}
	lo, hi := boxes(n, trace, sigma2, d)
	most, least := majorant(trace, lo, hi), minorant(trace, lo, hi)
	var out []Point
	for _, l := range lambdas {
		e := estimate.Interval{Confidence: d.Confidence, Method: "free"}
		for _, v := range sigma2 {
			e.Value += degree(max(v, 0), l)
		}
		for i := range most {
			e.Lo += degree(most[i], l)
			e.Hi += degree(least[i], l)
		}
		round := float64(n) * 0x1p-52 * e.Hi // of the sums
		e.Lo, e.Hi = max(0, e.Lo-round), min(float64(n), e.Hi+round)
		e.Value = max(e.Lo, min(e.Value, e.Hi))
		out = append(out, Point{l, e})
	}
	return out, nil
}

// boxes returns bounds of the eigenvalues of K, descending: those of d about the σ_i², then
// about zero, and 0 ≤ μ_i ≤ tr K/i, as i of them are at least as large. Rounding could make
// the boxes miss the trace by a little; they are then opened to admit it.
func boxes(n int, trace float64, sigma2 []float64, d Distance) (lo, hi []float64) {
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

// majorant returns the vector in the boxes with the given sum that majorises all others: the
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

// minorant returns the vector in the boxes with the given sum that all others majorise, all
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
