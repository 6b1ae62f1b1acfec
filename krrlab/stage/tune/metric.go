package tune

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/model"
)

// scores are decision values of rows of known classes, from which the row losses of a metric are computed: one value
// for each row, whose mean is the loss. The smoothed row losses have a smooth step in place of the jump at the
// threshold.
type scores struct {
	f              *mat.Dense // n×t
	truth          []int      // true class of each row
	weights        []float64  // weights of the rows, with mean 1
	classWeights   []float64  // sum of the weights of each class
	presentClasses int        // number of classes that have rows
}

// smoothStep is a step from 0 to 1 at x = 0, smoothed by a normal distribution with standard deviation width.
func smoothStep(x, width float64) float64 { return 0.5 * math.Erfc(-x/(width*math.Sqrt2)) }

// isClass reports for each row whether it is of the class.
func (s *scores) isClass(class int) []bool {
	in := make([]bool, len(s.truth))
	for i, c := range s.truth {
		in[i] = c == class
	}
	return in
}

// balancedWeights returns weights of the rows with which all classes have the same total weight.
func (s *scores) balancedWeights() []float64 {
	weights := make([]float64, len(s.weights))
	for i, c := range s.truth {
		weights[i] = s.weights[i] * float64(len(weights)) / (float64(s.presentClasses) * s.classWeights[c])
	}
	return weights
}

// errorLosses returns the row losses of the error rate or of the balanced error, exact and smoothed (loss.smoothed).
// The balanced error of two classes is that at the best threshold.
func (s *scores) errorLosses(m model.Metric) (rows, soft []float64) {
	n, t := s.f.Dims()
	rows, soft = make([]float64, n), make([]float64, n)
	weights := s.weights
	if m == model.BalancedError {
		weights = s.balancedWeights()
	}
	if t > 1 {
		degrees := s.degrees()
		for i, c := range s.truth {
			if soft[i] = weights[i] * (1 - degrees.At(i, c)); datasets.PredictedClass(s.f.RawRowView(i)) != c {
				rows[i] = weights[i]
			}
		}
		return rows, soft
	}
	f, threshold, width := mat.Col(nil, 0, s.f), 0.0, 0.0
	if m == model.BalancedError {
		threshold, _ = m.BestThreshold(f, s.isClass(1), s.weights)
		width = stepWidth(f, stat.Mean(f, nil))
	} else {
		width = stepWidth(f, 0)
	}
	for i, c := range s.truth {
		decision := []float64{f[i] - threshold}
		soft[i] = weights[i] * smoothStep(-datasets.Margin(decision, c), 2*width) // a margin is ±2 decision values
		if datasets.PredictedClass(decision) != c {
			rows[i] = weights[i]
		}
	}
	return rows, soft
}

// stepWidth returns the width of the smoothed step for margins or scores: softness times their root mean square
// distance from center, or softness if that is 0.
func stepWidth(v []float64, center float64) float64 {
	if size := math.Sqrt(stat.MomentAbout(2, v, center, nil)); size > 0 {
		return softness * size
	}
	return softness
}

// degrees returns the degree p_ij, n×t, to which row i is assigned to each of t > 1 classes: the softmax of its scores,
// which is 1/t for each class if all scores are equal. A smoothed step of the margin would give the true class ½ then,
// which is better than the truth if more than half of all labels are wrong. A kernel so narrow that most scores vanish
// would look like the best. If two scores are far above the others, p is smoothStep of their difference, up to 0.01.
func (s *scores) degrees() *mat.Dense {
	n, t := s.f.Dims()
	margins := make([]float64, n)
	for i, c := range s.truth {
		margins[i] = datasets.Margin(s.f.RawRowView(i), c)
	}
	p, factor := mat.NewDense(n, t, nil), logisticScale/stepWidth(margins, 0)
	for i := range n {
		f, row := s.f.RawRowView(i), p.RawRowView(i)
		highest := slices.Max(f)
		for j := range row {
			row[j] = math.Exp(factor * (f[j] - highest))
		}
		floats.Scale(1/floats.Sum(row), row)
	}
	return p
}

// logisticScale is the factor of x with which the logistic function is closest to the normal distribution function.
const logisticScale = 1.702

// f1 returns the row losses of 1 − F1, exact and smoothed: for two classes the F1 of the positive class at the best
// threshold, for more classes the mean over all classes.
func (s *scores) f1(positive int) (rows, soft []float64) {
	n, t := s.f.Dims()
	rows, soft = make([]float64, n), make([]float64, n)
	hard, smooth := make([]float64, n), make([]float64, n)
	if t == 1 {
		margins, in := make([]float64, n), s.isClass(positive)
		for i := range n {
			margins[i] = datasets.Margin(s.f.RawRowView(i), positive)
		}
		threshold, _ := model.F1.BestThreshold(margins, in, s.weights)
		width := stepWidth(margins, stat.Mean(margins, nil))
		for i, margin := range margins {
			if smooth[i] = smoothStep(margin-threshold, width); margin > threshold {
				hard[i] = 1
			}
		}
		s.addF1(rows, hard, in, 1)
		s.addF1(soft, smooth, in, 1)
		return rows, soft
	}
	degrees, share := s.degrees(), 1/float64(s.presentClasses)
	for c, w := range s.classWeights {
		if w == 0 {
			continue
		}
		for i := range n {
			if hard[i] = 0; datasets.PredictedClass(s.f.RawRowView(i)) == c {
				hard[i] = 1
			}
		}
		s.addF1(rows, hard, s.isClass(c), share)
		s.addF1(soft, mat.Col(smooth, c, degrees), s.isClass(c), share)
	}
	return rows, soft
}

// addF1 adds to rows factor times the row losses of one class, L = 1 − F1 = N/D with N = FP+FN and D = 2TP+FP+FN.
// predicted[i] in [0, 1] is the degree to which row i is assigned to the class, in[i] whether it belongs to it. A row
// that adds n_i to N and d_i to D contributes L + (n_i−L·d_i)/D̄ to first order, where D̄ is the mean of the d_i.
func (s *scores) addF1(rows, predicted []float64, in []bool, factor float64) {
	var num, den float64
	parts := func(i int) (n, d float64) {
		if in[i] {
			return s.weights[i] * (1 - predicted[i]), s.weights[i] * (1 + predicted[i])
		}
		return s.weights[i] * predicted[i], s.weights[i] * predicted[i]
	}
	for i := range predicted {
		n, d := parts(i)
		num, den = num+n, den+d
	}
	if den == 0 { // no row is of the class, or predicted as it: F1 = 0, as in model.PrecisionRecall
		floats.AddConst(factor, rows)
		return
	}
	l := num / den
	for i := range predicted {
		n, d := parts(i)
		rows[i] += factor * (l + (n-l*d)*float64(len(predicted))/den)
	}
}

// auc returns the row losses of L = 1 − AUC, or for several classes of its mean over one class against all others. To
// first order row i contributes L + (v_i−L)·w_i·n/W, where v_i is the share of opposite rows that are ranked wrongly
// relative to row i, with ties counted half, and W the weight of the rows on the side of row i, in the class or outside
// of it (E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson, Biometrics 44, 1988).
func (s *scores) auc() []float64 {
	n, t := s.f.Dims()
	rows, order, count := make([]float64, n), make([]int, n), 0.0
	for j := range t {
		f, in := mat.Col(nil, j, s.f), s.isClass(max(j, 2-t))
		side := func(i int) int {
			if in[i] {
				return 1
			}
			return 0
		}
		var total [2]float64
		for i, w := range s.weights {
			total[side(i)] += w
		}
		if total[0] == 0 || total[1] == 0 {
			continue
		}
		count++
		loss, v, factor := 0.0, make([]float64, n), make([]float64, n)
		floats.ArgsortStable(f, order)
		var below [2]float64 // weights of the rows with smaller scores, by side
		for lo, hi := 0, 0; lo < n; lo = hi {
			var equal [2]float64
			for ; hi < n && f[hi] == f[lo]; hi++ {
				equal[side(order[hi])] += s.weights[order[hi]]
			}
			for _, i := range order[lo:hi] {
				rowSide, opposite := side(i), 1-side(i)
				wrong := (below[opposite] + equal[opposite]/2) / total[opposite] // for a row outside of the class
				if rowSide == 1 {
					wrong = 1 - wrong
				}
				v[i] = wrong
				if factor[i] = s.weights[i] * float64(n) / total[rowSide]; rowSide == 1 {
					loss += wrong * s.weights[i] / total[1]
				}
			}
			below[0], below[1] = below[0]+equal[0], below[1]+equal[1]
		}
		for i := range rows {
			rows[i] += loss + (v[i]-loss)*factor[i]
		}
	}
	if count == 0 {
		return slices.Repeat([]float64{0.5}, n)
	}
	for i := range rows {
		rows[i] /= count
	}
	return rows
}

// logLoss returns the row losses −log p of the true label. Platt scaling, fitted to these rows, gives p.
func (s *scores) logLoss() []float64 {
	n, t := s.f.Dims()
	p := mat.NewDense(n, t, nil)
	for j := range t {
		f := mat.Col(nil, j, s.f)
		a, b := model.Platt(f, s.isClass(max(j, 2-t)), s.weights)
		for i, v := range f {
			p.Set(i, j, 1/(1+math.Exp(-a*v-b)))
		}
	}
	rows := make([]float64, n)
	for i, c := range s.truth {
		row := p.RawRowView(i)
		right := row[0]
		switch {
		case t > 1:
			right = row[c] / mat.Sum(p.Slice(i, i+1, 0, t))
		case c == 0:
			right = 1 - right
		}
		rows[i] = -s.weights[i] * math.Log(max(right, 1e-15)) // finite
	}
	return rows
}
