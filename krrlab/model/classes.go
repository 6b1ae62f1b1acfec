package model

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/integrate"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/safe"
)

// Classes describes the errors of a classifier for each class. Rows with weights count by their weights.
type Classes struct {
	Labels []string `json:"labels"` // the model's labels, then other labels of the answers, which are never predicted
	// Counts[i][j] is the number of rows of class i predicted as class j; nil for more than 100 classes.
	Counts [][]float64 `json:"confusion,omitempty"`
	Errors []Share     `json:"errors"` // for each class, its rows that are predicted as another class
	Scores []Retrieval `json:"scores"` // precision and recall of each class
	// BaseRate is the share of the largest class in the rows: if all rows were predicted as this class, the error rate
	// would be 1−BaseRate.
	BaseRate float64 `json:"base_rate"`
	Largest  string  `json:"base_class"` // the largest class, the first one on a tie
	// Confusions lists how often each class is predicted as each other one, the most frequent first.
	Confusions []Confusion `json:"confusions"`
	// AUC is the area under the ROC curve: the probability that a row of a class has a larger decision value than a row
	// of another class, with ties counted by half. For several classes it is the mean over each class against the rest.
	// Rows with labels that the model does not know are ignored. AUC is nil if fewer than two classes remain.
	AUC   *float64 `json:"auc"`
	AUCOf string   `json:"auc_of,omitempty"` // the classes that AUC compares
}

// Share is a number of rows out of a total.
type Share struct {
	Wrong float64 `json:"wrong"` // number of wrong rows
	Of    float64 `json:"of"`    // number of all rows
}

// Retrieval describes how well the rows of a class are found. Precision is the share of the class among the rows
// predicted as it. Recall is the share of its rows that are predicted as it. F1 = 2PR/(P+R). All three are 0 instead of
// 0/0.
type Retrieval struct {
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
}

func (s Share) String() string {
	if s.Of == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f %%", 100*s.Wrong/s.Of)
}

// Confusion is the number of rows of one class that are predicted as another one.
type Confusion struct {
	Class string `json:"class"`
	For   string `json:"for"`
	Share
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
	c.Errors = make([]Share, len(c.Labels))
	truth, counts, total := make([]int, d.Len()), map[[2]int]float64{}, 0.0
	predicted := make([]float64, len(c.Labels))
	for i, class := range d.Class {
		w := d.Weight(i)
		truth[i] = classIndex[class]
		counts[[2]int{truth[i], p.Class[i]}] += w
		c.Errors[truth[i]].Of += w
		predicted[p.Class[i]] += w
		total += w
	}
	for pair, count := range counts {
		if pair[0] != pair[1] {
			c.Errors[pair[0]].Wrong += count
		}
	}
	c.setConfusion(counts)
	largest := 0
	for i, e := range c.Errors {
		if e.Of > c.Errors[largest].Of {
			largest = i
		}
	}
	c.Largest, c.BaseRate = c.Labels[largest], c.Errors[largest].Of/total
	for i, e := range c.Errors {
		correct := counts[[2]int{i, i}]
		c.Scores = append(c.Scores,
			Retrieval{ratio(correct, predicted[i]), ratio(correct, e.Of), ratio(2*correct, predicted[i]+e.Of)})
	}
	if p.Decision != nil {
		c.setAUC(p.Decision, truth, len(p.Labels), d.Weights)
	}
	return c
}

// setConfusion sets Counts and Confusions. The key {i, j} of counts means rows of class i predicted as class j.
func (c *Classes) setConfusion(counts map[[2]int]float64) {
	if k := len(c.Labels); k <= maxConfusionClasses {
		c.Counts = make([][]float64, k)
		for i := range k {
			c.Counts[i] = make([]float64, k)
		}
	}
	pairs := slices.SortedFunc(maps.Keys(counts),
		func(a, b [2]int) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), slices.Compare(a[:], b[:])) })
	for _, v := range pairs {
		if c.Counts != nil {
			c.Counts[v[0]][v[1]] = counts[v]
		}
		if v[0] != v[1] {
			c.Confusions = append(c.Confusions,
				Confusion{c.Labels[v[0]], c.Labels[v[1]], Share{counts[v], c.Errors[v[0]].Of}})
		}
	}
}

// setAUC sets AUC from the decision values of rows. truth contains the classes of the rows, and the model knows the
// first k classes. weights is nil for equal weights.
func (c *Classes) setAUC(f *mat.Dense, truth []int, k int, weights []float64) {
	_, t := f.Dims()
	sum, count := 0.0, 0
	for j := range t {
		var v, w []float64
		var inClass []bool
		for i, class := range truth {
			if class < k {
				// a single column of decision values is that of the second class
				v, inClass = append(v, f.At(i, j)), append(inClass, class == max(j, 2-t))
				if weights != nil {
					w = append(w, weights[i])
				}
			}
		}
		if slices.Contains(inClass, true) && slices.Contains(inClass, false) {
			stat.SortWeightedLabeled(v, inClass, w)
			tpr, fpr, _ := stat.ROC(nil, v, inClass, w)
			sum, count = sum+min(1, integrate.Trapezoidal(fpr, tpr)), count+1
		}
	}
	if count == 0 {
		return
	}
	c.AUC, c.AUCOf = new(sum/float64(count)), "of "+safe.Name(c.Labels[min(1, k-1)])+" against "+safe.Name(c.Labels[0])
	if t > 1 {
		c.AUCOf = fmt.Sprintf("mean of %d classes, each against the rest", count)
	}
}

// Trained returns the prediction for the n rows of the fit without products with K. d contains these rows with their
// FitWeights w, and r is the residual W^½y−(W^½KW^½+λI)W^−½c; nil takes it as 0. From it follows
// f = mean+Kc = mean+y−λW⁻¹c−W^−½r.
func (m *Model) Trained(d *datasets.Dataset, r *mat.Dense) (*Prediction, error) {
	f, err := m.Coding().Encode(d)
	if err != nil {
		return nil, err
	}
	weights := d.FitWeights()
	f.Apply(func(i, j int, y float64) float64 {
		w := 1.0
		if weights != nil {
			w = weights[i]
		}
		if y -= m.Lambda * m.C.At(i, j) / w; r != nil {
			y -= r.At(i, j) / math.Sqrt(w)
		}
		return y
	}, f)
	m.AddMean(f.RawMatrix().Data)
	return m.prediction(f), nil
}
