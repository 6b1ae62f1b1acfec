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

// scores are the decision values of rows of known classes. Its methods return the row losses of a metric: one value for
// each row, such that the mean of all values is the loss. Smoothed row losses have a smooth step in place of the jump
// at the threshold.
type scores struct {
	f              *mat.Dense // decision values, n×t: one column for two classes, else one column for each class
	truth          []int      // true class of each row
	weights        []float64  // weights of the rows, with mean 1
	classWeights   []float64  // sum of the weights of each class
	presentClasses int        // number of classes that have rows
}

// smoothStep returns the value at x of a step from 0 to 1 at 0, smoothed by a normal distribution with the standard
// deviation width.
func smoothStep(x, width float64) float64 { return 0.5 * math.Erfc(-x/(width*math.Sqrt2)) }

// membersOf returns a list that tells for each row whether its true class is the given one.
func (s *scores) membersOf(class int) []bool {
	isMember := make([]bool, len(s.truth))
	for i, truth := range s.truth {
		isMember[i] = truth == class
	}
	return isMember
}

// balancedWeights returns weights of the rows with which all classes have the same total weight.
func (s *scores) balancedWeights() []float64 {
	weights := make([]float64, len(s.weights))
	for i, class := range s.truth {
		weights[i] = s.weights[i] * float64(len(weights)) / (float64(s.presentClasses) * s.classWeights[class])
	}
	return weights
}

// errorLosses returns the exact and the smoothed row losses of the metric, which is the error rate or the balanced
// error. The balanced error of two classes is the one at the best threshold.
func (s *scores) errorLosses(metric model.Metric) (rowLosses, smoothed []float64) {
	n, t := s.f.Dims()
	rowLosses, smoothed = make([]float64, n), make([]float64, n)
	weights := s.weights
	if metric == model.BalancedError {
		weights = s.balancedWeights()
	}
	if t > 1 {
		degrees := s.classDegrees()
		for i, class := range s.truth {
			smoothed[i] = weights[i] * (1 - degrees.At(i, class))
			if datasets.PredictedClass(s.f.RawRowView(i)) != class {
				rowLosses[i] = weights[i]
			}
		}
		return rowLosses, smoothed
	}
	decisionValues, threshold, width := mat.Col(nil, 0, s.f), 0.0, 0.0
	if metric == model.BalancedError {
		threshold, _ = metric.BestThreshold(decisionValues, s.membersOf(1), s.weights)
		width = stepWidth(decisionValues, stat.Mean(decisionValues, nil))
	} else {
		width = stepWidth(decisionValues, 0)
	}
	for i, class := range s.truth {
		decision := []float64{decisionValues[i] - threshold}
		// The margin is twice the decision value, with the sign of the class.
		smoothed[i] = weights[i] * smoothStep(-datasets.Margin(decision, class), 2*width)
		if datasets.PredictedClass(decision) != class {
			rowLosses[i] = weights[i]
		}
	}
	return rowLosses, smoothed
}

// stepWidth returns the width of the smoothed step for margins or scores: softness times their root mean square
// distance from center, or softness if this distance is 0.
func stepWidth(values []float64, center float64) float64 {
	if size := math.Sqrt(stat.MomentAbout(2, values, center, nil)); size > 0 {
		return softness * size
	}
	return softness
}

// classDegrees returns the degrees p_ij, n×t, to which row i is assigned to each of t > 1 classes: the softmax of the
// scores of the row, with a scale such that for two scores far above the others, p is smoothStep of their difference,
// up to 0.01. If all scores are equal, each degree is 1/t. A smoothed step of the margin would give ½ to the true class
// of such a row, which is too good if more than half of all labels are wrong: a kernel so narrow that most scores
// vanish would seem to be the best.
func (s *scores) classDegrees() *mat.Dense {
	n, t := s.f.Dims()
	margins := make([]float64, n)
	for i, class := range s.truth {
		margins[i] = datasets.Margin(s.f.RawRowView(i), class)
	}
	degrees, scale := mat.NewDense(n, t, nil), logisticScale/stepWidth(margins, 0)
	for i := range n {
		scores, row := s.f.RawRowView(i), degrees.RawRowView(i)
		highest := slices.Max(scores)
		for j := range row {
			row[j] = math.Exp(scale * (scores[j] - highest))
		}
		floats.Scale(1/floats.Sum(row), row)
	}
	return degrees
}

// logisticScale is the factor a for which the logistic function 1/(1+e^(−ax)) is closest to the standard normal
// distribution function of x.
const logisticScale = 1.702

// f1 returns the exact and the smoothed row losses of 1 − F1. For two classes it is the F1 of the positive class at the
// best threshold, for more classes the mean of F1 over all classes that have rows.
func (s *scores) f1(positiveClass int) (rowLosses, smoothed []float64) {
	n, t := s.f.Dims()
	rowLosses, smoothed = make([]float64, n), make([]float64, n)
	predicted, smoothedPredicted := make([]float64, n), make([]float64, n)
	if t == 1 {
		margins, isMember := make([]float64, n), s.membersOf(positiveClass)
		for i := range n {
			margins[i] = datasets.Margin(s.f.RawRowView(i), positiveClass)
		}
		threshold, _ := model.F1.BestThreshold(margins, isMember, s.weights)
		width := stepWidth(margins, stat.Mean(margins, nil))
		for i, margin := range margins {
			if smoothedPredicted[i] = smoothStep(margin-threshold, width); margin > threshold {
				predicted[i] = 1
			}
		}
		s.addF1(rowLosses, predicted, isMember, 1)
		s.addF1(smoothed, smoothedPredicted, isMember, 1)
		return rowLosses, smoothed
	}
	degrees, share := s.classDegrees(), 1/float64(s.presentClasses)
	for class, classWeight := range s.classWeights {
		if classWeight == 0 {
			continue
		}
		for i := range n {
			if predicted[i] = 0; datasets.PredictedClass(s.f.RawRowView(i)) == class {
				predicted[i] = 1
			}
		}
		s.addF1(rowLosses, predicted, s.membersOf(class), share)
		s.addF1(smoothed, mat.Col(smoothedPredicted, class, degrees), s.membersOf(class), share)
	}
	return rowLosses, smoothed
}

// addF1 adds to rowLosses factor times the row losses of L = 1 − F1 of one class. predicted[i] in [0, 1] is the degree
// to which row i is assigned to the class, and isMember[i] tells whether the row belongs to the class. With the weights
// TP of true positives, FP of false positives and FN of false negatives, L = N/D, N = FP+FN and D = 2TP+FP+FN. A row
// that adds n_i to N and d_i to D contributes L + (n_i−L·d_i)/D̄ to first order, where D̄ is the mean of the d_i.
func (s *scores) addF1(rowLosses, predicted []float64, isMember []bool, factor float64) {
	var numerator, denominator float64
	parts := func(i int) (n, d float64) {
		if isMember[i] {
			return s.weights[i] * (1 - predicted[i]), s.weights[i] * (1 + predicted[i])
		}
		return s.weights[i] * predicted[i], s.weights[i] * predicted[i]
	}
	for i := range predicted {
		n, d := parts(i)
		numerator, denominator = numerator+n, denominator+d
	}
	if denominator == 0 { // no row is in the class or is predicted to be: F1 = 0, as in model.PrecisionRecall
		floats.AddConst(factor, rowLosses)
		return
	}
	loss := numerator / denominator
	for i := range predicted {
		n, d := parts(i)
		rowLosses[i] += factor * (loss + (n-loss*d)*float64(len(predicted))/denominator)
	}
}

// auc returns the row losses of L = 1 − AUC for two classes. For several classes it returns the means of the row losses
// of one class against all others, over the classes. Row i, of weight w_i, has two sides: rows in the class and rows
// outside of it. To first order row i contributes L + (v_i−L)·w_i·n/W, where v_i is the share of the rows on the
// opposite side that are ranked wrongly relative to row i, with ties counted half, and W the weight of the rows on the
// side of row i (E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson, Biometrics 44, 1988, doi:10.2307/2531595).
func (s *scores) auc() []float64 {
	n, t := s.f.Dims()
	rowLosses, order, classCount := make([]float64, n), make([]int, n), 0.0
	for j := range t {
		scores, isMember := mat.Col(nil, j, s.f), s.membersOf(max(j, 2-t))
		side := func(i int) int {
			if isMember[i] {
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
		classCount++
		loss, wrongShares, factor := 0.0, make([]float64, n), make([]float64, n)
		floats.ArgsortStable(scores, order)
		var below [2]float64 // weights of the rows with smaller scores, by side
		for lo, hi := 0, 0; lo < n; lo = hi {
			var equal [2]float64
			for ; hi < n && scores[hi] == scores[lo]; hi++ {
				equal[side(order[hi])] += s.weights[order[hi]]
			}
			for _, i := range order[lo:hi] {
				rowSide, opposite := side(i), 1-side(i)
				// A row outside of the class is ranked wrongly relative to the rows of the class below it.
				wrong := (below[opposite] + equal[opposite]/2) / total[opposite]
				if rowSide == 1 {
					wrong = 1 - wrong
				}
				wrongShares[i] = wrong
				if factor[i] = s.weights[i] * float64(n) / total[rowSide]; rowSide == 1 {
					loss += wrong * s.weights[i] / total[1]
				}
			}
			below[0], below[1] = below[0]+equal[0], below[1]+equal[1]
		}
		for i := range rowLosses {
			rowLosses[i] += loss + (wrongShares[i]-loss)*factor[i]
		}
	}
	if classCount == 0 {
		return slices.Repeat([]float64{0.5}, n)
	}
	for i := range rowLosses {
		rowLosses[i] /= classCount
	}
	return rowLosses
}

// logLoss returns the row losses −log p, where p is the probability of the true label. The probabilities are computed
// from the scores by Platt scaling (model.Platt), fitted to these rows.
func (s *scores) logLoss() []float64 {
	n, t := s.f.Dims()
	probabilities := mat.NewDense(n, t, nil)
	for j := range t {
		scores := mat.Col(nil, j, s.f)
		a, b := model.Platt(scores, s.membersOf(max(j, 2-t)), s.weights)
		for i, score := range scores {
			probabilities.Set(i, j, 1/(1+math.Exp(-a*score-b)))
		}
	}
	rowLosses := make([]float64, n)
	for i, class := range s.truth {
		row := probabilities.RawRowView(i)
		probability := row[0]
		switch {
		case t > 1:
			probability = row[class] / mat.Sum(probabilities.Slice(i, i+1, 0, t))
		case class == 0:
			probability = 1 - probability
		}
		rowLosses[i] = -s.weights[i] * math.Log(max(probability, 1e-15)) // 1e-15 keeps the loss finite
	}
	return rowLosses
}
