package lanczos

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/krrlab/lab/krrlab/krylov/estimate"
)

// Quadrature returns the Gauss rule of T: its eigenvalues θ_i, ascending, and the squares w_i of the first entries of
// its eigenvectors, with v₁ᵀf(M^(-1/2)AM^(-1/2))v₁ ≈ Σ_i w_i·f(θ_i); nil if the eigenvalues do not converge. Of beta
// all but the last number of a Result count.
func Quadrature(alpha, beta []float64) (nodes, weights []float64) {
	k := len(alpha)
	t := mat.NewSymDense(k, nil)
	for i := range k {
		t.SetSym(i, i, alpha[i])
		if i+1 < k {
			t.SetSym(i, i+1, beta[i])
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(t, true) {
		return nil, nil
	}
	var v mat.Dense
	eigen.VectorsTo(&v)
	for i := range k {
		weights = append(weights, v.At(0, i)*v.At(0, i))
	}
	return eigen.Values(nil), weights
}

// LogDet returns two intervals of ln det(M⁻¹A) = tr L, L = ln(M^(-1/2)AM^(-1/2)), from m processes with independent
// starts, with the confidence of the first: 0 < least ≤ λ_min(M⁻¹A), or 0 for the bound that the first found, on which
// half of the probability of failure is spent then. Where that is 0 nothing is known, and ends may be NaN. Ends of L are
// by least and Max of the first.
//
// Certain but for rounding: v₁ᵀLv₁ is at most the Gauss rule of T and at least the Gauss–Radau rule with a node at least
// (Golub and Meurant, Matrices, Moments and Quadrature with Applications, Princeton 2010, theorems 6.3 and 6.4). Both
// intervals are about their means.
//
// Proved: with v₁ uniform on the sphere the moments of n·v₁ᵀLv₁ − tr L are at most those of gᵀL₀g, L₀ = L−(tr L/n)I, g
// standard normal (Jensen), so that the mean of m exceeds
//
//	2‖L₀‖_F·√(x/m) + 2λ_max(L₀)·x/m
//
// with probability e^−x at most, and is below in the same way (Laurent and Massart, Ann. Statist. 28 (2000), lemma 1).
// ‖L₀‖_F there is an estimate, by the Gauss rule, with one direction more at the further end of L₀, as starts may hardly
// see one. Slack·tr(A⁻¹M) is added for Slack.
//
// Estimated, of two processes at least: Student's interval of the mean of m numbers n·v₁ᵀLv₁, as if these were normal.
// Its standard deviation is the larger of theirs and of √2·‖L₀‖_F by all Gauss rules, which it is but for a factor
// √(n/(n+2)). 1/√n of that is added for Slack, as if errors of products had random directions.
func LogDet(all []*Result, least float64) (proved, estimated estimate.Interval) {
	n, m, first := float64(all[0].N), float64(len(all)), all[0]
	delta, hi := 1-first.confidence, first.Max.Hi
	if least == 0 {
		least, delta = first.Min.Lo, delta/2 // the other half is that of least
	}
	least = max(0, least) * (1 - 0x1p-20) // a Ritz value may have come to it
	var mean, square, low, slack float64
	var each []float64
	for _, r := range all {
		nodes, weights := Quadrature(r.Alpha, r.Beta)
		var sum float64
		for i, w := range weights {
			l := math.Log(max(nodes[i], least)) // no node is below
			sum, square, slack = sum+w*l, square+w/m*l*l, slack+w/m/nodes[i]*r.Slack
		}
		mean, each = mean+sum/m, append(each, n*sum)
		low += radau(r, least) / m
	}
	x, below, above := math.Log(2/delta)/m, mean-math.Log(least), math.Log(hi)-mean
	variance := n * max(0, square-mean*mean) // ‖L₀‖_F²
	spread := 2*math.Sqrt(x*(variance+math.Pow(max(below, above), 2))) + n*slack
	proved = estimate.Interval{Value: n * mean, Lo: n*low - spread - 2*x*above, Hi: n*mean + spread + 2*x*below,
		Confidence: first.confidence, Method: "stochastic Lanczos quadrature"}
	estimated = proved
	if spread = math.Inf(1); m > 1 {
		t := distuv.StudentsT{Sigma: 1, Nu: m - 1}.Quantile(1 - delta/2)
		spread = t*math.Sqrt(max(stat.Variance(each, nil), 2*variance)/m) + math.Sqrt(n)*slack
	}
	estimated.Lo, estimated.Hi = n*low-spread, n*mean+spread
	estimated.Method = fmt.Sprintf("Student's t, %d Lanczos processes", len(all))
	return proved, estimated
}

// LogDetSpread returns by how much the two rules that LogDet takes differ, and the standard deviation over starts as
// one process estimates it. least is that of LogDet, above 0.
func (r *Result) LogDetSpread(least float64) (gap, deviation float64) {
	nodes, weights := Quadrature(r.Alpha, r.Beta)
	var mean, square float64
	for i, w := range weights {
		l := math.Log(max(nodes[i], least))
		mean, square = mean+w*l, square+w*l*l
	}
	n := float64(r.N)
	return n * (mean - radau(r, least)), math.Sqrt(2 * n * max(0, square-mean*mean))
}

// radau returns the Gauss–Radau rule of ln with a node at least, −∞ where nothing is known.
func radau(r *Result, least float64) (sum float64) {
	alpha := r.Radau(least)
	if alpha == nil {
		return math.Inf(-1)
	}
	nodes, weights := Quadrature(alpha, r.Beta)
	for i, w := range weights {
		sum += w * math.Log(max(nodes[i], least))
	}
	return sum
}

// Radau returns the diagonal of T with β_k, and a last element that makes node an eigenvalue: that of T itself where
// β_k is 0, and nil where node is not below the eigenvalues of T.
func (r *Result) Radau(node float64) []float64 {
	k, pivot := len(r.Alpha), 1.0
	if r.Beta[k-1] == 0 {
		return r.Alpha
	}
	for j, a := range r.Alpha {
		if pivot = a - node - off(r.Beta, j, pivot); !(pivot > 0) {
			return nil
		}
	}
	return append(r.Alpha[:k:k], node+off(r.Beta, k, pivot))
}
