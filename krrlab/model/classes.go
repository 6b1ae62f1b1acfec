package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"gonum.org/v1/gonum/integrate"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/internal/plural"
)

// Classes describes the errors of a classifier for each class. Rows with weights count by their weights.
type Classes struct {
	Labels []string `json:"labels"` // the model's labels, then other labels of the answers, which are never predicted
	// Counts[i][j] is the number of rows of class i predicted as class j; nil for more than 100 classes.
	Counts [][]float64       `json:"confusion,omitempty"`
	Errors []ErrorCount      `json:"errors"` // for each class, its rows that are predicted as another class
	Scores []PrecisionRecall `json:"scores"` // precision and recall of each class
	// BaseRate is the share of the largest class in the rows: if all rows were predicted as this class, the error rate
	// would be 1−BaseRate.
	BaseRate float64 `json:"base_rate"`
	Largest  string  `json:"base_class"` // the largest class, the first one on a tie
	// Confusions lists how often each class is predicted as each other one, the most frequent first.
	Confusions []Confusion `json:"confusions"`
	// AUC is the area under the ROC curve: the probability that a row of a class has a larger decision value than a row
	// of another class, with ties counted by half. For several classes it is the mean over each class against the rest.
	// Rows with labels that the model does not know are ignored. AUC is nil if fewer than two classes remain.
	AUC *float64 `json:"auc"`
	// AUCDescription names the classes that AUC compares, and the number of rows that AUC ignores.
	AUCDescription string `json:"auc_of,omitempty"`
}

// ErrorCount is a number of rows out of a total.
type ErrorCount struct {
	Wrong float64 `json:"wrong"` // number of wrong rows
	Total float64 `json:"of"`    // number of all rows
}

// PrecisionRecall describes how well the rows of a class are found. Precision is the share of the class among the rows
// predicted as this class, P. Recall is the share of the rows of the class that are predicted as this class, R. F1 =
// 2PR/(P+R). All three are 0 instead of 0/0.
type PrecisionRecall struct {
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
}

// String returns the share of wrong rows in percent, or "–" if there are no rows.
func (e ErrorCount) String() string {
	if e.Total == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f %%", 100*e.Wrong/e.Total)
}

// Confusion is the number of rows of one class that are predicted as another one, out of all rows of the class.
type Confusion struct {
	Class     string `json:"class"` // true class
	Predicted string `json:"for"`   // predicted class
	ErrorCount
}

// maxConfusionClasses is the maximum number of classes for which the matrix Counts is stored.
const maxConfusionClasses = 100

// scoreClasses compares the predictions of a classifier with the answers of d.
func (p *Prediction) scoreClasses(d *datasets.Dataset) *Classes {
	c := &Classes{Labels: slices.Clone(p.Labels)}
	classIndex := d.ClassIn(p.Labels) // index of each of d's labels in c.Labels
	for i, label := range d.Labels {
		if classIndex[i] < 0 {
			classIndex[i], c.Labels = len(c.Labels), append(c.Labels, label)
		}
	}
	c.Errors = make([]ErrorCount, len(c.Labels))
	counts := map[[2]int]float64{}              // weights of the rows by true and predicted class
	predicted := make([]float64, len(c.Labels)) // weights of the rows predicted as each class
	total, ignored := 0.0, 0                    // weights of all rows, and number of rows with unknown labels
	for i, class := range d.Class {
		w, truth := d.Weight(i), classIndex[class]
		counts[[2]int{truth, p.Class[i]}] += w
		c.Errors[truth].Total += w
		predicted[p.Class[i]] += w
		if total += w; truth >= len(p.Labels) {
			ignored++
		}
	}
	for pair, count := range counts {
		if pair[0] != pair[1] {
			c.Errors[pair[0]].Wrong += count
		}
	}
	c.setConfusion(counts)
	largest := 0
	for i, e := range c.Errors {
		if e.Total > c.Errors[largest].Total {
			largest = i
		}
	}
	c.Largest, c.BaseRate = c.Labels[largest], c.Errors[largest].Total/total
	for i, e := range c.Errors {
		correct := counts[[2]int{i, i}]
		c.Scores = append(c.Scores, PrecisionRecall{Precision: ratio(correct, predicted[i]),
			Recall: ratio(correct, e.Total), F1: ratio(2*correct, predicted[i]+e.Total)})
	}
	if p.Decision != nil {
		c.setAUC(p.Curves(d), p.Labels)
	}
	if c.AUC != nil && ignored > 0 {
		c.AUCDescription += ", without " + plural.Count(ignored, "row") + " of labels that the model does not know"
	}
	return c
}

// setConfusion sets Counts and Confusions. The key {i, j} of counts means rows of class i predicted as class j.
func (c *Classes) setConfusion(counts map[[2]int]float64) {
	if classCount := len(c.Labels); classCount <= maxConfusionClasses {
		c.Counts = make([][]float64, classCount)
		for i := range classCount {
			c.Counts[i] = make([]float64, classCount)
		}
	}
	pairs := slices.SortedFunc(maps.Keys(counts),
		func(a, b [2]int) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), slices.Compare(a[:], b[:])) })
	for _, pair := range pairs {
		if c.Counts != nil {
			c.Counts[pair[0]][pair[1]] = counts[pair]
		}
		if pair[0] != pair[1] {
			c.Confusions = append(c.Confusions,
				Confusion{c.Labels[pair[0]], c.Labels[pair[1]], ErrorCount{counts[pair], c.Errors[pair[0]].Total}})
		}
	}
}

// Curve is the ROC curve and the precision-recall curve of one class against the others. The points belong to
// thresholds from high to low, one for each different decision value, and above all of them.
type Curve struct {
	Class         string
	FalsePositive []float64 // share of the other rows that are predicted as the class; from 0 to 1
	TruePositive  []float64 // recall: share of the rows of the class that are predicted so; from 0 to 1
	Precision     []float64 // share of the class among the rows predicted as the class; 1 if there are none
	AUC           float64   // area under the ROC curve
	// AveragePrecision is Σ (R_k−R_{k−1})·P_k over the points, with recall R and precision P.
	AveragePrecision float64
}

// Curves returns the curves of each class of a classifier against the others, compared with the answers of d. Rows with
// labels that the model does not know are ignored, and classes without rows, or without others, are left out. Rows with
// weights count by their weights.
func (p *Prediction) Curves(d *datasets.Dataset) (curves []Curve) {
	classIndex := d.ClassIn(p.Labels)
	_, t := p.Decision.Dims()
	for class := range p.Labels {
		column, sign := class, 1.0
		if t == 1 { // with two classes, the only column is the decision value of the second one
			column, sign = 0, float64(2*class-1)
		}
		var scores, weights []float64
		var inClass []bool
		for i, answer := range d.Class {
			if label := classIndex[answer]; label >= 0 {
				scores, inClass = append(scores, sign*p.Decision.At(i, column)), append(inClass, label == class)
				if d.Weights != nil {
					weights = append(weights, d.Weights[i])
				}
			}
		}
		if !slices.Contains(inClass, true) || !slices.Contains(inClass, false) {
			continue
		}
		_, positives, negatives := classWeights(inClass, weights)
		stat.SortWeightedLabeled(scores, inClass, weights)
		curve := Curve{Class: p.Labels[class]}
		curve.TruePositive, curve.FalsePositive, _ = stat.ROC(nil, scores, inClass, weights)
		curve.AUC = min(1, integrate.Trapezoidal(curve.FalsePositive, curve.TruePositive))
		for i, recall := range curve.TruePositive {
			truePositives, falsePositives, precision := recall*positives, curve.FalsePositive[i]*negatives, 1.0
			if truePositives+falsePositives > 0 {
				precision = truePositives / (truePositives + falsePositives)
			}
			if curve.Precision = append(curve.Precision, precision); i > 0 {
				curve.AveragePrecision += (recall - curve.TruePositive[i-1]) * precision
			}
		}
		curves = append(curves, curve)
	}
	return curves
}

// setAUC sets AUC to the mean of the areas under the curves of the classes, and AUCDescription. It sets nothing if
// there are no curves. The two curves of two classes have equal areas, so only the second one counts.
func (c *Classes) setAUC(curves []Curve, labels []string) {
	if len(curves) == 0 {
		return
	}
	if len(labels) == 2 {
		curves = curves[1:]
	}
	sum := 0.0
	for _, curve := range curves {
		sum += curve.AUC
	}
	c.AUC, c.AUCDescription = new(sum/float64(len(curves))), "of "+safe.Name(labels[1])+" against "+safe.Name(labels[0])
	if len(labels) > 2 {
		c.AUCDescription = fmt.Sprintf("mean of %d classes, each against the rest", len(curves))
	}
}
