package leaveout

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/krrlab/lab/datasets"
)

// leverages estimates the complements p_i = λ(A⁻¹)_ii = 1−h_i of the leverages h_i of all points, where A = K+λI. M =
// ZZᵀ+λI is the preconditioner of A, and g_k, k = 1, …, m, are random probe vectors with E g_kg_kᵀ = I. The probes give
// m unbiased estimates for each point,
//
//	q_ik = λ(M⁻¹)_ii + λ·g_ik·((A⁻¹−M⁻¹)g_k)_i.
//
// A single estimate is too noisy to divide by: the expectation of 1/q² is far above 1/p². The points are therefore
// sorted into bins by v_i = E_ii·(M⁻¹)_ii, where E = K−ZZᵀ, and by u_i, the quantity that determines the leave-one-out
// error of the point together with p_i. (If p and the residual depend on each other, a mean over all residuals would be
// biased.) In each bin, p is modeled by λ(M⁻¹)_ii/(1+κv_i). κ = 1 is correct for a point that E does not link to other
// points, and κ = 0 is correct for E = 0. κ follows from the mean in the bin, and the spread of p about the model
// follows from the spread of q in excess of its noise. These are the mean and the standard deviation of a normal prior
// of p_i. Its posterior given the point's own estimates q_ik has the mean μ_i and the squared coefficient of variation
// cv²_i. With these, p_i is treated as lognormal:
//
//	E[1/p] = (1+cv²)/μ,  E[1/p²] = (1+cv²)³/μ².
type leverages struct {
	problem           *merged    // provides the weights of rows for shares of wrong labels
	precondComplement []float64  // λ(M⁻¹)_ii
	coupling          []float64  // v_i = E_ii(M⁻¹)_ii
	lower             []float64  // λ/(K_ii+λ) ≤ p_i
	upper             []float64  // upper bound of p_i: about λ(M⁻¹)_ii if M ≼ A, and otherwise 1
	estimates         *mat.Dense // q, n×m
	sortKey           []float64  // u_i: ‖r_i‖², or the threshold τ_i of thresholds, scaled by λ(M⁻¹)_ii
	bins              [][]int    // indices of the points in each bin
}

// Limits of the statistical model of leverages, chosen by judgment.
const (
	binPoints = 100 // minimum number of points in a bin if n is larger; larger bins have less noise and a coarser model
	maxSpread = 0.5 // maximum relative spread of p about its model
	maxNoise  = 0.2 // relative noise of the mean over probes above which only rigorous intervals are returned
)

// distribution is the estimated distribution of each p_i given the estimates of the probes.
type distribution struct {
	mean, cv2  []float64 // mean and squared coefficient of variation
	model      []float64 // λ(M⁻¹)_ii/(1+κv_i), the model of the bin alone
	robustMean []float64 // mean, or the mean of the estimates of the point if they contradict it (contradicts)
	noise      float64   // root mean square of the relative noise of the means over the probes
}

// sortPoints sets the bins, at most 200. They have about equal sizes. The points are sorted by the coupling into
// groups, and each group is sorted by sortKey into bins.
func (l *leverages) sortPoints() {
	n := len(l.coupling)
	order := make([]int, n)
	floats.ArgsortStable(slices.Clone(l.coupling), order)
	binCount := max(1, min(n/binPoints, 200))
	groupCount := max(1, int(math.Sqrt(float64(binCount))))
	binsPerGroup := binCount / groupCount
	for group := range groupCount {
		lo, hi := group*n/groupCount, (group+1)*n/groupCount
		slices.SortStableFunc(order[lo:hi], func(a, b int) int { return cmp.Compare(l.sortKey[a], l.sortKey[b]) })
		for k := range binsPerGroup {
			l.bins = append(l.bins, order[lo+k*(hi-lo)/binsPerGroup:lo+(k+1)*(hi-lo)/binsPerGroup])
		}
	}
}

// fitDistribution fits the distribution to all probes except the one with the index omitted, or to all probes for −1.
func (l *leverages) fitDistribution(omitted int) *distribution {
	n, m := l.estimates.Dims()
	fitted := &distribution{mean: make([]float64, n), cv2: make([]float64, n), model: make([]float64, n),
		robustMean: make([]float64, n)}
	used := float64(m)
	if omitted >= 0 {
		used--
	}
	mean, variance := make([]float64, n), make([]float64, n)
	for i := range n {
		row := l.estimates.RawRowView(i)
		var sum, squares float64
		for k, v := range row {
			if k != omitted {
				sum += v
			}
		}
		mean[i] = sum / used
		for k, v := range row {
			if k != omitted {
				squares += (v - mean[i]) * (v - mean[i])
			}
		}
		variance[i] = squares / (used - 1) / used // variance of the mean
	}
	for _, bin := range l.bins {
		l.fitBin(fitted, bin, mean, variance)
	}
	for i, mu := range fitted.mean {
		if fitted.robustMean[i] = mu; contradicts(mu, mean[i], variance[i]) {
			fitted.robustMean[i] = min(max(mean[i], l.lower[i]), l.upper[i])
		}
	}
	fitted.noise = math.Sqrt(fitted.noise / float64(n))
	return fitted
}

// contradicts reports whether a point's own estimates are far from the mean μ of its distribution. The estimates have
// the given mean, which has the given variance. They are far if mean±3σ stays below 0.8μ or above μ/0.8, where σ is the
// root of the variance. Such a point differs from the others in its bin, for instance because it is far from all points
// and landmarks.
func contradicts(mu, mean, variance float64) bool {
	margin := 3 * math.Sqrt(variance)
	return mean+margin < 0.8*mu || mean-margin > mu/0.8
}

// fitBin sets the distribution for the points of one bin. It finds κ from 0 to 1000 by bisection, so that the model has
// the mean of the estimates. The mean and the variance of that mean are given for each point.
func (l *leverages) fitBin(fitted *distribution, bin []int, mean, variance []float64) {
	var sum float64
	for _, i := range bin {
		sum += mean[i]
	}
	lo, hi := 0.0, 1e3
	for range 60 { // bisection to an interval of length 1000/2⁶⁰ < 10⁻¹⁵
		kappa := (lo + hi) / 2
		var model float64
		for _, i := range bin {
			model += l.precondComplement[i] / (1 + kappa*l.coupling[i])
		}
		if model > sum {
			lo = kappa
		} else {
			hi = kappa
		}
	}
	var noise, spread float64
	for _, i := range bin {
		p := min(max(l.precondComplement[i]/(1+lo*l.coupling[i]), l.lower[i]), l.upper[i])
		fitted.model[i] = p
		noise += variance[i] / (p * p)
		spread += (mean[i]/p - 1) * (mean[i]/p - 1)
	}
	fitted.noise += noise
	count := float64(len(bin))
	noise /= count
	spread = min(max(spread/count-noise, 1e-8), maxSpread*maxSpread)
	weight := spread / (spread + noise)
	for _, i := range bin {
		p := fitted.model[i]
		mu := p + weight*(mean[i]-p)
		mu = min(max(mu, l.lower[i], p/4), l.upper[i]) // the bound p/4 limits the effect of noise on 1/μ²
		fitted.mean[i] = mu
		fitted.cv2[i] = min(weight*noise*p*p/(mu*mu), maxSpread*maxSpread)
	}
}

// meanSquare returns the mean of E[(r_ij/p_i)²] over all entries of R = λC.
func (d *distribution) meanSquare(r *mat.Dense) float64 {
	n, t := r.Dims()
	var sum float64
	for i := range n {
		factor := 1 + d.cv2[i]
		factor *= factor * factor / (d.mean[i] * d.mean[i]) // E[1/p²] = (1+cv²)³/μ²
		for _, v := range r.RawRowView(i) {
			sum += factor * v * v
		}
	}
	return sum / float64(n*t)
}

// meanSquareFor returns the mean of (r_ij/p_i)² for known p.
func meanSquareFor(r *mat.Dense, p []float64) float64 {
	return (&distribution{mean: p, cv2: make([]float64, len(p))}).meanSquare(r)
}

// thresholds returns τ_i such that leave-one-out predicts a wrong label for point i if and only if p_i < τ_i. With the
// class a of the row y of Y,
//
//	y_a − r_a/p < y_j − r_j/p for a j ≠ a  ⟺  p < (r_a−r_j)/(y_a−y_j),
//
// and for a single column y − r/p and y have different signs if p < r/y.
func thresholds(y, r *mat.Dense) []float64 {
	n, t := y.Dims()
	tau := make([]float64, n)
	for i := range n {
		row, residual := y.RawRowView(i), r.RawRowView(i)
		if t == 1 {
			tau[i] = residual[0] / row[0]
			continue
		}
		a := datasets.PredictedClass(row)
		tau[i] = math.Inf(-1)
		for j := range row {
			if j != a {
				tau[i] = max(tau[i], (residual[a]-residual[j])/(row[a]-row[j]))
			}
		}
	}
	return tau
}

// wrongShare returns the mean of P(p_i < factor·τ_i), weighted by the rows, and the standard deviation of the share
// given these probabilities.
func (l *leverages) wrongShare(d *distribution, tau []float64, factor float64) (mean, deviation float64) {
	var total float64
	for i, threshold := range tau {
		var p float64
		switch threshold *= factor; {
		case threshold <= l.lower[i]:
		case threshold > l.upper[i]:
			p = 1
		default:
			s := math.Sqrt(math.Log1p(d.cv2[i]))
			p = distuv.UnitNormal.CDF((math.Log(threshold/d.mean[i]) + s*s/2) / max(s, 1e-12))
		}
		weight := l.problem.scoreWeight(i)
		mean += weight * p
		deviation += weight * weight * p * (1 - p)
		total += weight
	}
	return mean / total, math.Sqrt(deviation) / total
}

// shareBelow returns the share of the points with p_i < τ_i, weighted by the rows.
func (l *leverages) shareBelow(p, tau []float64) float64 {
	var below, total float64
	for i, threshold := range tau {
		weight := l.problem.scoreWeight(i)
		if total += weight; p[i] < threshold {
			below += weight
		}
	}
	return below / total
}

// seriesEstimate returns the mean of (r_ij/p_i)² by the series of 1/p² about the model p̄. Let x_k = q_k/p̄−1, and let
// u_s be the mean over all subsets of s probes of the product of their x_k, which has the expectation (p/p̄−1)^s:
//
//	1/p² ≈ (1 − 2u₁ + 3u₂ − 4u₃)/p̄².
//
// Apart from its remainder, the estimate does not depend on the assumptions of the distribution, but it has more noise.
func (l *leverages) seriesEstimate(d *distribution, r *mat.Dense) float64 {
	n, t := r.Dims()
	_, cols := l.estimates.Dims()
	m := float64(cols)
	var sum float64
	for i := range n {
		p := d.model[i]
		var s1, s2, s3 float64
		for _, q := range l.estimates.RawRowView(i) {
			x := q/p - 1
			s1 += x
			s2 += x * x
			s3 += x * x * x
		}
		u2 := (s1*s1 - s2) / (m * (m - 1))
		u3 := (s1*s1*s1 - 3*s1*s2 + 2*s3) / (m * (m - 1) * (m - 2))
		factor := (1 - 2*s1/m + 3*u2 - 4*u3) / (p * p)
		for _, v := range r.RawRowView(i) {
			sum += factor * v * v
		}
	}
	return sum / float64(n*t)
}

// extrapolatedShare returns the share of p_i < τ_i without assuming a distribution of p. The shares from the means of
// all m probes, of halves and of quarters of them have noise of variance 1, 2 and 4 times that of the first. The
// parabola through them is extrapolated to variance 0. (J. R. Cook, L. A. Stefanski, J. Amer. Statist. Assoc. 89
// (1994), doi:10.1080/01621459.1994.10476871.)
func (l *leverages) extrapolatedShare(tau []float64) float64 {
	n, m := l.estimates.Dims()
	var shares [3]float64
	means := make([]float64, n)
	for level := range shares {
		parts := 1 << level
		for shift := range m { // the probes are divided into parts in cyclic order, starting at each probe
			for part := range parts {
				for i := range n {
					row, sum, count := l.estimates.RawRowView(i), 0.0, 0.0
					for k := part * m / parts; k < (part+1)*m/parts; k++ {
						sum += row[(k+shift)%m]
						count++
					}
					means[i] = min(max(sum/count, l.lower[i]), l.upper[i])
				}
				shares[level] += l.shareBelow(means, tau) / float64(m*parts)
			}
		}
	}
	return (8*shares[0] - 6*shares[1] + shares[2]) / 3
}
