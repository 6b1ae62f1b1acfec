package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/internal/outward"
)

// Metric is the criterion for choosing the kernel, λ and the threshold of a model.
type Metric string

// The metrics.
const (
	ErrorRate     Metric = "error"          // share of wrong labels
	AUC           Metric = "auc"            // area under the ROC curve, see Classes
	LogLoss       Metric = "logloss"        // mean of −log p of the correct label, with p from the function Platt
	BalancedError Metric = "balanced-error" // mean of the error rates of the classes
	F1            Metric = "f1"             // F1 of one class of two, or the mean over several classes
	RMSE          Metric = "rmse"           // root mean square error of a regression
)

// MetricOf returns the metric with the given name, for answers that are classes or numbers. The name "auto" means
// ErrorRate for classes and RMSE for numbers. MetricOf returns an error if the metric does not apply to the answers.
func MetricOf(name string, isClassifier bool) (Metric, error) {
	switch m := Metric(name); {
	case name == "auto" && isClassifier:
		return ErrorRate, nil
	case name == "auto":
		return RMSE, nil
	case isClassifier == (m == RMSE):
		return m, fmt.Errorf("--metric %s: the answers are %s", m,
			map[bool]string{true: "classes", false: "numbers"}[isClassifier])
	default:
		return m, nil
	}
}

// DependsOnThreshold reports whether the metric of two classes depends on the threshold, which should be adjusted for
// classes of different size.
func (m Metric) DependsOnThreshold() bool { return m == F1 || m == BalancedError }

// Name returns the name of the metric for reports.
func (m Metric) Name() string {
	return map[Metric]string{ErrorRate: "error", AUC: "AUC", LogLoss: "log loss", BalancedError: "balanced error",
		F1: "F1", RMSE: "RMSE"}[m]
}

// Value converts a loss, which is small for a good model, to the metric: 1 − AUC, 1 − F1, and otherwise the loss
// itself.
func (m Metric) Value(loss float64) float64 {
	if m == AUC || m == F1 {
		return 1 - loss
	}
	return loss
}

// Loss returns the loss of a score. The loss of F1 is that of positiveClass if there are two classes, and else the mean
// over all classes; other metrics ignore positiveClass. Loss returns an error if the score does not determine the
// metric: LogLoss needs probabilities, AUC two classes of rows.
func (m Metric) Loss(s *Score, positiveClass int) (float64, error) {
	switch {
	case m == RMSE:
		return s.RMSE, nil
	case m == ErrorRate:
		return s.ErrorRate, nil
	case m == AUC && s.Classes.AUC != nil:
		return 1 - *s.Classes.AUC, nil
	case m == BalancedError || m == F1:
		sum, count := 0.0, 0.0
		for i, e := range s.Classes.Errors {
			if e.Total == 0 || m == F1 && len(s.Classes.Labels) == 2 && i != positiveClass {
				continue
			}
			loss := ratio(e.Wrong, e.Total)
			if m == F1 {
				loss = 1 - s.Classes.Scores[i].F1
			}
			sum, count = sum+loss, count+1
		}
		return sum / count, nil
	}
	return 0, fmt.Errorf("model: the metric %s is not known for these rows", m)
}

// Text names the metric and its value.
func (m Metric) Text(loss float64) string { return m.Name() + " " + m.format(m.Value(loss), 0) }

// TextWithInterval is like Text, followed by the interval [lo, hi] of the loss as an interval of the metric, rounded
// outward.
func (m Metric) TextWithInterval(loss, lo, hi float64) string {
	lo, hi = m.Value(lo), m.Value(hi)
	lo, hi = min(lo, hi), max(lo, hi)
	if m == RMSE {
		return fmt.Sprintf("%s, in %s", m.Text(loss), outward.PlainSpan(lo, hi, 4))
	}
	return fmt.Sprintf("%s, in [%s, %s]", m.Text(loss), m.format(lo, -1), m.format(hi, 1))
}

// format formats a value of the metric, rounded down if direction is −1, up if direction is 1, and otherwise to
// nearest.
func (m Metric) format(v float64, direction int) string {
	scale, layout := 1e4, "%.4f"
	switch m {
	case RMSE:
		return outward.Plain(v, 4)
	case ErrorRate, BalancedError:
		v, scale, layout = 100*v, 100, "%.2f %%"
	}
	switch direction {
	case -1:
		v = math.Floor(v*scale) / scale
	case 1:
		v = math.Ceil(v*scale) / scale
	}
	return fmt.Sprintf(layout, v)
}

// BestThreshold returns the threshold θ with the smallest loss, and the loss, if rows with scores above θ are predicted
// as a class. inClass states which rows belong to the class, and weights, nil for equal weights, how much they count.
// The threshold is halfway between two neighboring scores, or beyond all of them. On a tie, the threshold nearest to
// zero wins. BestThreshold panics unless the metric is ErrorRate, BalancedError or F1.
func (m Metric) BestThreshold(scores []float64, inClass []bool, weights []float64) (threshold, loss float64) {
	order := make([]int, len(scores)) // indices of the scores in descending order
	floats.ArgsortStable(floats.ScaleTo(make([]float64, len(scores)), -1, scores), order)
	rowWeights, positives, negatives := classWeights(inClass, weights)
	var truePositives, falsePositives float64 // weights of the rows predicted as the class
	currentLoss := func() float64 {
		missed := positives - truePositives
		switch m {
		case ErrorRate:
			return (missed + falsePositives) / (positives + negatives)
		case BalancedError:
			return (ratio(missed, positives) + ratio(falsePositives, negatives)) / 2
		case F1:
			return ratio(missed+falsePositives, 2*truePositives+missed+falsePositives)
		}
		panic(fmt.Sprintf("model: %s has no threshold", m))
	}
	highest, lowest := scores[order[0]], scores[order[len(order)-1]]
	// margin is the distance of the first and last threshold from the scores: the mean gap, or a small positive number.
	margin := cmp.Or(max((highest-lowest)/float64(len(order)), 1e-9*max(math.Abs(highest), math.Abs(lowest))), 1)
	threshold, loss = highest+margin, currentLoss()
	for k, i := range order {
		if inClass[i] {
			truePositives += rowWeights[i]
		} else {
			falsePositives += rowWeights[i]
		}
		nextScore := lowest - 2*margin
		if k+1 < len(order) {
			nextScore = scores[order[k+1]]
		}
		if nextScore == scores[i] && k+1 < len(order) {
			continue // equal scores are always predicted alike
		}
		candidate, candidateLoss := scores[i]+(nextScore-scores[i])/2, currentLoss()
		if scores[i] > 0 && nextScore <= 0 {
			candidate = 0 // prefer no threshold
		}
		if roundingSlack := 1e-12; candidateLoss < loss-roundingSlack ||
			candidateLoss <= loss+roundingSlack && math.Abs(candidate) < math.Abs(threshold) {
			threshold, loss = candidate, candidateLoss
		}
	}
	return threshold, loss
}

// classWeights returns the weights of the rows, 1 for nil, and their sums over the rows in the class and over the
// others.
func classWeights(inClass []bool, weights []float64) (w []float64, positives, negatives float64) {
	if w = weights; w == nil {
		w = slices.Repeat([]float64{1}, len(inClass))
	}
	for i, isPositive := range inClass {
		if isPositive {
			positives += w[i]
		} else {
			negatives += w[i]
		}
	}
	return w, positives, negatives
}

// Platt returns the a ≥ 0 and b that minimize the cross-entropy −Σ t_i log p_i + (1−t_i) log(1−p_i), p =
// 1/(1+exp(−af−b)), by Newton's method. A step is halved until it reduces the cross-entropy. The targets are t_i =
// (N₊+1)/(N₊+2) for the N₊ rows in the class, and 1/(N₋+2) for the others, so a and b are finite. Rows count by their
// weights, nil for equal weights. The result does not depend on the unit and origin of f, because f minus its mean is
// fitted. The targets are those of Platt, Probabilistic outputs for support vector machines, 1999, and the iteration is
// that of Lin, Lin and Weng, Machine Learning 68, 2007, doi:10.1007/s10994-007-5018-6.
//
// If the minimum over all a has a < 0, the result is a = 0. A model without information has leave-one-out values that
// fall with the label that is left out: a negative a would reveal the label, but only on these rows.
func Platt(f []float64, inClass []bool, weights []float64) (a, b float64) {
	weights, positives, negatives := classWeights(inClass, weights)
	high, low := (positives+1)/(positives+2), 1/(negatives+2)
	target := func(i int) float64 {
		if inClass[i] {
			return high
		}
		return low
	}
	mean := floats.Sum(f) / max(float64(len(f)), 1)
	entropy := func(a, b float64) (sum float64) {
		for i, v := range f {
			q := a*(v-mean) + b
			sum += weights[i] * (math.Max(q, 0) + math.Log1p(math.Exp(-math.Abs(q))) - target(i)*q)
		}
		return sum
	}
	b = math.Log((positives + 1) / (negatives + 1))
	current := entropy(a, b)
	for gain, k := math.Inf(1), 0; gain > 1e-12*current && k < 100; k++ { // Newton steps
		var ga, gb, aa, ab, bb float64 // gradient in a and b, and entries of the Hessian
		for i, v := range f {
			v -= mean
			p := 1 / (1 + math.Exp(-a*v-b))
			r, w := weights[i]*(target(i)-p), weights[i]*p*(1-p)
			ga, gb = ga+r*v, gb+r
			aa, ab, bb = aa+w*v*v, ab+w*v, bb+w
		}
		bb = bb*(1+1e-12) + 1e-150
		aa = aa*(1+1e-12) + 1e-28*mean*mean*bb + 1e-150 // a small ridge, since all f may be equal up to rounding
		det := aa*bb - ab*ab
		da, db := (bb*ga-ab*gb)/det, (aa*gb-ab*ga)/det
		step := 1.0
		trial := entropy(a+da, b+db)
		for ; !(trial <= current) && step > 1e-10; trial = entropy(a+step*da, b+step*db) {
			step /= 2
		}
		if gain = current - trial; gain > 0 {
			a, b, current = a+step*da, b+step*db, trial
		}
	}
	if a < 0 { // the minimum over a ≥ 0 is at a = 0, where p is the mean target
		share := (positives*high + negatives*low) / (positives + negatives)
		return 0, math.Log(share / (1 - share))
	}
	return a, b - a*mean
}
