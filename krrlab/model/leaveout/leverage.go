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

// leverages estimates p_i = λ(A⁻¹)_ii = 1−h_i of all points from m unbiased estimates of each,
//
//	q_ik = λ(M⁻¹)_ii + λ·g_ik·((A⁻¹−M⁻¹)g_k)_i.
//
// They are too noisy to divide by one at a time: E[1/q²] is far above 1/p². Points are sorted into bins by
// v_i = E_ii·(M⁻¹)_ii, E = K−ZZᵀ, and by u_i, what the error depends on (where p and the residual depend on one
// another, a mean over all residuals would be biased). In each bin p is modeled by λ(M⁻¹)_ii/(1+κv_i) (κ = 1 is right
// for a point that E links to no other, κ = 0 for E = 0), κ from the bin's mean, and the spread of p about that from
// the spread of q beyond its noise. p_i then has the mean μ_i and the squared coefficient of variation cv²_i of the
// normal law given the bin and the point's own q, taken as lognormal:
//
//	E[1/p] = (1+cv²)/μ,  E[1/p²] = (1+cv²)³/μ².
type leverages struct {
	rows  *merged    // their weights count in shares of wrong rows
	top   []float64  // λ(M⁻¹)_ii
	v     []float64  // E_ii(M⁻¹)_ii
	least []float64  // λ/(K_ii+λ) ≤ p_i
	most  []float64  // ≥ p_i: λ(M⁻¹)_ii where M ≼ A, else 1
	q     *mat.Dense // n×m
	u     []float64  // what the error depends on, by λ(M⁻¹)_ii: ‖r_i‖, or τ_i
	bins  [][]int    // of points
}

const (
	binPoints = 100 // least number of points of a bin
	maxSpread = 0.5 // of p about its model, relative
	maxNoise  = 0.2 // relative, of the mean over probes, above which no interval is claimed
)

// law is the law of each p_i given the estimates, and of the model alone.
type law struct {
	mean, cv2, model []float64
	own              []float64 // mean, but what a point's own estimates say where they deny it: see denied
	noise            float64   // relative, of the means over the probes: its root mean square
}

// sortPoints sets the bins: of equal size, by v, and each by u.
func (l *leverages) sortPoints() {
	n := len(l.v)
	order := make([]int, n)
	floats.ArgsortStable(slices.Clone(l.v), order)
	count := max(1, min(n/binPoints, 200))
	outer := max(1, int(math.Sqrt(float64(count))))
	inner := count / outer
	for b := range outer {
		lo, hi := b*n/outer, (b+1)*n/outer
		slices.SortStableFunc(order[lo:hi], func(a, b int) int { return cmp.Compare(l.u[a], l.u[b]) })
		for c := range inner {
			l.bins = append(l.bins, order[lo+c*(hi-lo)/inner:lo+(c+1)*(hi-lo)/inner])
		}
	}
}

// given returns the law from all probes but number left, from all for −1.
func (l *leverages) given(left int) *law {
	n, m := l.q.Dims()
	out := &law{mean: make([]float64, n), cv2: make([]float64, n), model: make([]float64, n), own: make([]float64, n)}
	used := float64(m)
	if left >= 0 {
		used--
	}
	mean, variance := make([]float64, n), make([]float64, n)
	for i := range n {
		row := l.q.RawRowView(i)
		var s, ss float64
		for k, v := range row {
			if k != left {
				s += v
			}
		}
		mean[i] = s / used
		for k, v := range row {
			if k != left {
				ss += (v - mean[i]) * (v - mean[i])
			}
		}
		variance[i] = ss / (used - 1) / used // of the mean
	}
	for _, at := range l.bins {
		l.bin(out, at, mean, variance)
	}
	for i, mu := range out.mean {
		if out.own[i] = mu; denied(mu, mean[i], variance[i]) {
			out.own[i] = min(max(mean[i], l.least[i]), l.most[i])
		}
	}
	out.noise = math.Sqrt(out.noise / float64(n))
	return out
}

// denied reports whether a point's own estimates, of the given mean and its variance, are far from μ, what the law of
// its bin says: a point that is unlike the others there, such as one far from all points and landmarks.
func denied(mu, mean, variance float64) bool {
	off := 3 * math.Sqrt(variance)
	return mean+off < 0.8*mu || mean-off > mu/0.8
}

// bin is the law in one bin.
func (l *leverages) bin(out *law, at []int, mean, variance []float64) {
	var sum float64
	for _, i := range at {
		sum += mean[i]
	}
	lo, hi := 0.0, 1e3
	for range 60 {
		kappa := (lo + hi) / 2
		var model float64
		for _, i := range at {
			model += l.top[i] / (1 + kappa*l.v[i])
		}
		if model > sum {
			lo = kappa
		} else {
			hi = kappa
		}
	}
	var noise, spread float64
	for _, i := range at {
		p := min(max(l.top[i]/(1+lo*l.v[i]), l.least[i]), l.most[i])
		out.model[i] = p
		noise += variance[i] / (p * p)
		spread += (mean[i]/p - 1) * (mean[i]/p - 1)
	}
	out.noise += noise
	count := float64(len(at))
	noise /= count
	spread = min(max(spread/count-noise, 1e-8), maxSpread*maxSpread)
	trust := spread / (spread + noise)
	for _, i := range at {
		p := out.model[i]
		mu := p + trust*(mean[i]-p)
		mu = min(max(mu, l.least[i], p/4), l.most[i])
		out.mean[i] = mu
		out.cv2[i] = min(trust*noise*p*p/(mu*mu), maxSpread*maxSpread)
	}
}

// square returns the mean of E[(r_ij/p_i)²], R = λC.
func (d *law) square(r *mat.Dense) float64 {
	n, t := r.Dims()
	var sum float64
	for i := range n {
		f := 1 + d.cv2[i]
		f *= f * f / (d.mean[i] * d.mean[i])
		for _, v := range r.RawRowView(i) {
			sum += f * v * v
		}
	}
	return sum / float64(n*t)
}

// over returns the mean of (r_ij/p_i)² for given p.
func over(r *mat.Dense, p []float64) float64 {
	return (&law{mean: p, cv2: make([]float64, len(p))}).square(r)
}

// thresholds returns τ_i: leave-one-out predicts point i wrongly if and only if p_i < τ_i. With the class a
// of the row y of Y,
//
//	y_a − r_a/p < y_j − r_j/p for a j ≠ a  ⟺  p < (r_a−r_j)/(y_a−y_j),
//
// and of a single column y − r/p has another sign than y if p < r/y.
func thresholds(y, r *mat.Dense) []float64 {
	n, t := y.Dims()
	out := make([]float64, n)
	for i := range n {
		row, res := y.RawRowView(i), r.RawRowView(i)
		if t == 1 {
			out[i] = res[0] / row[0]
			continue
		}
		a := datasets.PredictedClass(row)
		out[i] = math.Inf(-1)
		for j := range row {
			if j != a {
				out[i] = max(out[i], (res[a]-res[j])/(row[a]-row[j]))
			}
		}
	}
	return out
}

// share returns the mean of P(p_i < f·τ_i) with the weights of the rows, and the standard deviation of the share given
// these probabilities.
func (l *leverages) share(d *law, tau []float64, f float64) (mean, deviation float64) {
	var total float64
	for i, t := range tau {
		var p float64
		switch t *= f; {
		case t <= l.least[i]:
		case t > l.most[i]:
			p = 1
		default:
			s := math.Sqrt(math.Log1p(d.cv2[i]))
			p = distuv.UnitNormal.CDF((math.Log(t/d.mean[i]) + s*s/2) / max(s, 1e-12))
		}
		w := l.rows.scored(i)
		mean += w * p
		deviation += w * w * p * (1 - p)
		total += w
	}
	return mean / total, math.Sqrt(deviation) / total
}

// unbiased returns the mean of (r_ij/p_i)² by the series of 1/p² about the model p̄, with u_s the mean over all
// subsets of s probes of the product of their x_k = q_k/p̄−1, of which the expectation is (p/p̄−1)^s:
//
//	1/p² ≈ (1 − 2u₁ + 3u₂ − 4u₃)/p̄².
//
// It is free of the assumptions of the law, but for its remainder, and noisier.
func (l *leverages) unbiased(d *law, r *mat.Dense) float64 {
	n, t := r.Dims()
	_, cols := l.q.Dims()
	m := float64(cols)
	var sum float64
	for i := range n {
		p := d.model[i]
		var s1, s2, s3 float64
		for _, q := range l.q.RawRowView(i) {
			x := q/p - 1
			s1 += x
			s2 += x * x
			s3 += x * x * x
		}
		u2 := (s1*s1 - s2) / (m * (m - 1))
		u3 := (s1*s1*s1 - 3*s1*s2 + 2*s3) / (m * (m - 1) * (m - 2))
		f := (1 - 2*s1/m + 3*u2 - 4*u3) / (p * p)
		for _, v := range r.RawRowView(i) {
			sum += f * v * v
		}
	}
	return sum / float64(n*t)
}

// extrapolated returns the share of p_i < τ_i without a law of p: the shares by the means of all m probes, of halves
// and of quarters of them have noise of variance 1, 2 and 4 times that of the first, and the parabola through
// them is taken at 0. (J. R. Cook, L. A. Stefanski, J. Amer. Statist. Assoc. 89 (1994),
// doi:10.1080/01621459.1994.10476871.)
func (l *leverages) extrapolated(tau []float64) float64 {
	n, m := l.q.Dims()
	var shares [3]float64
	for level := range shares {
		parts := 1 << level
		for shift := range m { // the probes in turn, dealt to parts from each beginning
			for part := range parts {
				var wrong, total float64
				for i := range n {
					row, sum, count := l.q.RawRowView(i), 0.0, 0.0
					for k := part * m / parts; k < (part+1)*m/parts; k++ {
						sum += row[(k+shift)%m]
						count++
					}
					if min(max(sum/count, l.least[i]), l.most[i]) < tau[i] {
						wrong += l.rows.scored(i)
					}
					total += l.rows.scored(i)
				}
				shares[level] += wrong / (total * float64(m*parts))
			}
		}
	}
	return (8*shares[0] - 6*shares[1] + shares[2]) / 3
}
