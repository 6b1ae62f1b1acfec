package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/internal/outward"
)

// Metric is what the kernel, λ and the threshold of a model are chosen by.
type Metric string

// The metrics. ErrorRate is the share of wrong labels, BalancedError the mean of the shares of the classes. AUC is as
// in Classes, F1 that of one class of two, or the mean over several. LogLoss is the mean of −log p of the right label,
// p by Platt.
const (
	ErrorRate     Metric = "error"
	AUC           Metric = "auc"
	LogLoss       Metric = "logloss"
	BalancedError Metric = "balanced-error"
	F1            Metric = "f1"
	RMSE          Metric = "rmse"
)

// MetricOf returns the metric of a name, "auto" for ErrorRate of classes and RMSE of numbers. It returns an error if
// the metric is not one of the task.
func MetricOf(name string, classes bool) (Metric, error) {
	switch m := Metric(name); {
	case name == "auto" && classes:
		return ErrorRate, nil
	case name == "auto":
		return RMSE, nil
	case classes == (m == RMSE):
		return m, fmt.Errorf("--metric %s: the answers are %s", m,
			map[bool]string{true: "classes", false: "numbers"}[classes])
	default:
		return m, nil
	}
}

// Thresholded reports whether the metric of two classes depends on the threshold that an imbalance of the classes
// moves.
func (m Metric) Thresholded() bool { return m == F1 || m == BalancedError }

// Name is the metric's name in a report.
func (m Metric) Name() string {
	return map[Metric]string{ErrorRate: "error", AUC: "AUC", LogLoss: "log loss", BalancedError: "balanced error",
		F1: "F1", RMSE: "RMSE"}[m]
}

// Value returns the metric of a loss, which is small for a good model: 1 − AUC, 1 − F1, and else the metric itself.
func (m Metric) Value(loss float64) float64 {
	if m == AUC || m == F1 {
		return 1 - loss
	}
	return loss
}

// Text names the metric and its value.
func (m Metric) Text(loss float64) string { return m.Name() + " " + m.number(m.Value(loss), 0) }

// Span is Text with an interval [lo, hi] of the loss, rounded outward.
func (m Metric) Span(loss, lo, hi float64) string {
	lo, hi = m.Value(lo), m.Value(hi)
	lo, hi = min(lo, hi), max(lo, hi)
	if m == RMSE {
		return fmt.Sprintf("%s, in %s", m.Text(loss), outward.PlainSpan(lo, hi, 4))
	}
	return fmt.Sprintf("%s, in [%s, %s]", m.Text(loss), m.number(lo, -1), m.number(hi, 1))
}

// number writes a value of the metric, rounded down or up if toward is −1 or 1.
func (m Metric) number(v float64, toward int) string {
	scale, format := 1e4, "%.4f"
	switch m {
	case RMSE:
		return outward.Plain(v, 4)
	case ErrorRate, BalancedError:
		v, scale, format = 100*v, 100, "%.2f %%"
	}
	switch toward {
	case -1:
		v = math.Floor(v*scale) / scale
	case 1:
		v = math.Ceil(v*scale) / scale
	}
	return fmt.Sprintf(format, v)
}

// BestThreshold returns θ of the least loss where rows with scores above θ are taken for a class, in says which rows
// are of it, and weights, nil for ones, how much they count; and the loss. It is halfway between two neighboring
// scores, or beyond all; of equal losses the one nearest to zero. It panics unless the metric is ErrorRate,
// BalancedError or F1.
func (m Metric) BestThreshold(scores []float64, in []bool, weights []float64) (threshold, loss float64) {
	order := make([]int, len(scores)) // the largest first
	floats.ArgsortStable(floats.ScaleTo(make([]float64, len(scores)), -1, scores), order)
	w, yes, no := weigh(in, weights)
	var right, wrong float64 // of the rows taken for the class
	of := func() float64 {
		missed := yes - right
		switch m {
		case ErrorRate:
			return (missed + wrong) / (yes + no)
		case BalancedError:
			return (ratio(missed, yes) + ratio(wrong, no)) / 2
		case F1:
			return ratio(missed+wrong, 2*right+missed+wrong)
		}
		panic(fmt.Sprintf("model: %s has no threshold", m))
	}
	top, bottom := scores[order[0]], scores[order[len(order)-1]]
	beyond := cmp.Or(max((top-bottom)/float64(len(order)), 1e-9*max(math.Abs(top), math.Abs(bottom))), 1)
	threshold, loss = top+beyond, of()
	for k, i := range order {
		if in[i] {
			right += w[i]
		} else {
			wrong += w[i]
		}
		next := bottom - 2*beyond
		if k+1 < len(order) {
			next = scores[order[k+1]]
		}
		if next == scores[i] && k+1 < len(order) {
			continue // equal scores are taken together
		}
		at, l := scores[i]+(next-scores[i])/2, of()
		if scores[i] > 0 && next <= 0 {
			at = 0 // as without a threshold
		}
		if slack := 1e-12; l < loss-slack || l <= loss+slack && math.Abs(at) < math.Abs(threshold) {
			threshold, loss = at, l
		}
	}
	return threshold, loss
}

// weigh returns the weights of rows, ones for nil, and their sums over the rows that are in a class and over the
// others.
func weigh(in []bool, weights []float64) (w []float64, yes, no float64) {
	if w = weights; w == nil {
		w = slices.Repeat([]float64{1}, len(in))
	}
	for i, v := range in {
		if v {
			yes += w[i]
		} else {
			no += w[i]
		}
	}
	return w, yes, no
}

// Platt returns the a and b that minimize the cross-entropy −Σ t_i log p_i + (1−t_i) log(1−p_i), p = 1/(1+exp(−af−b)),
// by Newton's method with steps that are halved until they help. With t_i = (N₊+1)/(N₊+2) for the N₊ rows that are in
// the class, and 1/(N₋+2) for the others, they are finite. Rows count by their weights, nil for ones. The unit of f
// does not matter, nor does its origin: f less its mean is fitted.
func Platt(f []float64, in []bool, weights []float64) (a, b float64) {
	weights, yes, no := weigh(in, weights)
	target := func(i int) float64 {
		if in[i] {
			return (yes + 1) / (yes + 2)
		}
		return 1 / (no + 2)
	}
	mean := floats.Sum(f) / max(float64(len(f)), 1)
	entropy := func(a, b float64) (sum float64) {
		for i, v := range f {
			q := a*(v-mean) + b
			sum += weights[i] * (math.Max(q, 0) + math.Log1p(math.Exp(-math.Abs(q))) - target(i)*q)
		}
		return sum
	}
	b = math.Log((yes + 1) / (no + 1))
	now := entropy(a, b)
	for gain, k := math.Inf(1), 0; gain > 1e-12*now && k < 100; k++ {
		var ga, gb, aa, ab, bb float64 // gradient and Hessian
		for i, v := range f {
			v -= mean
			p := 1 / (1 + math.Exp(-a*v-b))
			r, w := weights[i]*(target(i)-p), weights[i]*p*(1-p)
			ga, gb = ga+r*v, gb+r
			aa, ab, bb = aa+w*v*v, ab+w*v, bb+w
		}
		bb = bb*(1+1e-12) + 1e-150
		aa = aa*(1+1e-12) + 1e-28*mean*mean*bb + 1e-150 // f may be all the same, but for rounding
		det := aa*bb - ab*ab
		da, db := (bb*ga-ab*gb)/det, (aa*gb-ab*ga)/det
		step := 1.0
		next := entropy(a+da, b+db)
		for ; !(next <= now) && step > 1e-10; next = entropy(a+step*da, b+step*db) {
			step /= 2
		}
		if gain = now - next; gain > 0 {
			a, b, now = a+step*da, b+step*db, next
		}
	}
	return a, b - a*mean
}
