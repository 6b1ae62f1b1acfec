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
// its eigenvectors, so that v₁ᵀf(M^(-1/2)AM^(-1/2))v₁ ≈ Σ_i w_i·f(θ_i). It returns nil if the eigenvalues do not
// converge. The last number of beta in a Result is not used.
func Quadrature(alpha, beta []float64) (nodes, weights []float64) {
	nodes, vectors := eigenT(alpha, beta)
	for i := range nodes {
		weights = append(weights, vectors.At(0, i)*vectors.At(0, i))
	}
	return nodes, weights
}

// eigenT returns the eigenvalues of T, ascending, and its eigenvectors, or nil if the eigenvalues do not converge.
func eigenT(alpha, beta []float64) ([]float64, *mat.Dense) {
	k := len(alpha)
	tridiagonal := mat.NewSymDense(k, nil)
	for i := range k {
		tridiagonal.SetSym(i, i, alpha[i])
		if i+1 < k {
			tridiagonal.SetSym(i, i+1, beta[i])
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(tridiagonal, true) {
		return nil, nil
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	return eigen.Values(nil), &vectors
}

// LogDet returns two intervals of ln det(M⁻¹A) = tr L, L = ln(M^(-1/2)AM^(-1/2)), from m processes with independent
// starts. Both have the confidence of the first process. The argument lowerBound satisfies 0 < lowerBound ≤
// λ_min(M⁻¹A), or is 0 to use the lower bound from the first process, which takes half of the failure probability. If
// no positive lower bound is known, the intervals are not usable: their ends may be infinite or NaN. The extreme
// eigenvalues of L are bounded by lowerBound and by Max of the first process. If Quadrature cannot compute the Gauss
// rule of a process, the intervals are NaN; without its Gauss–Radau rule, they have no lower end.
//
// One part is certain up to rounding: v₁ᵀLv₁ is at most the Gauss rule of T and at least the Gauss–Radau rule with a
// node at lowerBound (Golub and Meurant, Matrices, Moments and Quadrature with Applications, Princeton 2010, theorems
// 6.3 and 6.4). Both intervals are centered at the means of these rules.
//
// The first interval, bound, follows from a concentration inequality. With v₁ uniform on the sphere, the exponential
// moments of n·v₁ᵀLv₁ − tr L are at most those of gᵀL₀g, with L₀ = L−(tr L/n)I and g standard normal (Jensen). The mean
// of m independent values of n·v₁ᵀLv₁ − tr L therefore exceeds
//
//	2‖L₀‖_F·√(x/m) + 2λ_max(L₀)·x/m
//
// with probability at most e^−x, and has the analogous lower bound (Laurent and Massart, Ann. Statist. 28 (2000), lemma
// 1). This interval is not proved, because ‖L₀‖_F is itself estimated by the Gauss rule. An eigenvalue at the end of
// the spectrum of L₀ that is farther from 0 is added to ‖L₀‖_F², because the start vectors may have almost no component
// along its eigenvector. Result.Slack estimates the effect of inaccurate products on the eigenvalues; its effect on tr
// L, Slack·tr(A⁻¹M), widens the interval at both ends.
//
// The second interval, student, is Student's interval for the mean of m numbers n·v₁ᵀLv₁, as if these were normal. For
// one process it is (−∞, ∞). Its standard deviation is the larger of that of the sample and √2·‖L₀‖_F from all Gauss
// rules, which is the true one up to a factor √(n/(n+2)). Slack·tr(A⁻¹M)/√n widens it at both ends, as if the errors of
// products had random directions.
func LogDet(results []*Result, lowerBound float64) (bound, student estimate.Interval) {
	n, m, firstResult := float64(results[0].N), float64(len(results)), results[0]
	delta, upperBound := 1-firstResult.confidence, firstResult.Max.Hi
	if lowerBound == 0 {
		lowerBound, delta = firstResult.Min.Lo, delta/2 // the other half is for this lower bound
	}
	lowerBound = max(0, lowerBound) * (1 - 0x1p-20) // strictly below a Ritz value that may have converged to it
	var mean, squareMean, lowerMean, slack float64
	var values []float64
	for _, r := range results {
		rules := r.logRules(lowerBound)
		values = append(values, n*rules.mean)
		mean, squareMean = mean+rules.mean/m, squareMean+rules.square/m
		lowerMean, slack = lowerMean+rules.radau/m, slack+rules.inverse/m*r.Slack
	}
	xOverM, meanAboveMin, maxAboveMean := math.Log(2/delta)/m, mean-math.Log(lowerBound), math.Log(upperBound)-mean
	frobeniusSq := n * max(0, squareMean-mean*mean) // ‖L₀‖_F²
	spread := 2*math.Sqrt(xOverM*(frobeniusSq+math.Pow(max(meanAboveMin, maxAboveMean), 2))) + n*slack
	bound = estimate.Interval{Value: n * mean, Lo: n*lowerMean - spread - 2*xOverM*maxAboveMean,
		Hi: n*mean + spread + 2*xOverM*meanAboveMin, Confidence: firstResult.confidence,
		Method: "stochastic Lanczos quadrature"}
	student = bound
	if spread = math.Inf(1); m > 1 {
		quantile := distuv.StudentsT{Sigma: 1, Nu: m - 1}.Quantile(1 - delta/2)
		spread = quantile*math.Sqrt(max(stat.Variance(values, nil), 2*frobeniusSq)/m) + math.Sqrt(n)*slack
	}
	student.Lo, student.Hi = n*lowerMean-spread, n*mean+spread
	student.Method = fmt.Sprintf("Student's t, %d Lanczos processes", len(results))
	return bound, student
}

// LogDetSpread returns the difference of the two quadrature rules that LogDet uses, and the standard deviation of
// n·v₁ᵀLv₁ over starts v₁, both estimated from this process. lowerBound has the same meaning as in LogDet, and must be
// positive. Both are +Inf if Quadrature cannot compute the rule.
func (r *Result) LogDetSpread(lowerBound float64) (gap, deviation float64) {
	rules, n := r.logRules(lowerBound), float64(r.N)
	if math.IsNaN(rules.mean) {
		return math.Inf(1), math.Inf(1)
	}
	return n * (rules.mean - rules.radau), math.Sqrt(2 * n * max(0, rules.square-rules.mean*rules.mean))
}

// logRules has the quadrature rules of one process for integrals over the spectral measure of v₁.
type logRules struct {
	mean, square float64 // Gauss rules of ln θ and ln²θ
	inverse      float64 // Gauss rule of 1/θ
	radau        float64 // Gauss–Radau rule of ln θ with a node at the lower bound, or −∞ if there is none
}

// logRules returns the rules for a spectrum above lowerBound. mean is NaN if Quadrature cannot compute the Gauss rule.
func (r *Result) logRules(lowerBound float64) (rules logRules) {
	nodes, weights := Quadrature(r.Alpha, r.Beta)
	if nodes == nil {
		rules.mean = math.NaN()
	}
	for i, weight := range weights {
		logNode := math.Log(max(nodes[i], lowerBound)) // in exact arithmetic no node is below lowerBound
		rules.mean, rules.square, rules.inverse = rules.mean+weight*logNode, rules.square+weight*logNode*logNode,
			rules.inverse+weight/nodes[i]
	}
	alpha := r.RadauDiagonal(lowerBound)
	if alpha == nil {
		rules.radau = math.Inf(-1)
		return rules
	}
	if nodes, weights = Quadrature(alpha, r.Beta); nodes == nil {
		rules.radau = math.Inf(-1)
	}
	for i, weight := range weights {
		rules.radau += weight * math.Log(max(nodes[i], lowerBound))
	}
	return rules
}

// RadauDiagonal returns the diagonal of T extended by β_k and by a last element that makes node an eigenvalue. If β_k
// is 0, it returns the diagonal of T itself. It returns nil if node is not below the eigenvalues of T.
func (r *Result) RadauDiagonal(node float64) []float64 {
	k, pivot := len(r.Alpha), 1.0
	if r.Beta[k-1] == 0 {
		return r.Alpha
	}
	for j, alphaJ := range r.Alpha {
		if pivot = alphaJ - node - pivotCorrection(r.Beta, j, pivot); !(pivot > 0) {
			return nil
		}
	}
	return append(r.Alpha[:k:k], node+pivotCorrection(r.Beta, k, pivot))
}
