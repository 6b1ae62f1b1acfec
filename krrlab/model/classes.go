package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"gonum.org/v1/gonum/integrate"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/safe"
)

// Classes says how the predictions of a classifier err, class by class. Rows with weights count as often as these say.
type Classes struct {
	Labels []string `json:"labels"` // the model's, then others of the answers, which are never predicted
	// Counts[i][j]: rows of class i that are taken for class j; nil of more than 100 classes
	Counts [][]float64 `json:"confusion,omitempty"`
	Errors []Share     `json:"errors"` // of each class: rows that are taken for another
	Scores []Retrieval `json:"scores"` // of each class
	// share of the largest class in the rows: 1−BaseRate is the error if all were taken for it
	BaseRate float64 `json:"base_rate"`
	Largest  string  `json:"base_class"` // the largest class, the first of equals
	// Confusions are how often which class is taken for which other one, the most frequent first.
	Confusions []Confusion `json:"confusions"`
	// AUC is the area under the ROC curve, the probability that a row of a class has a larger decision value than one
	// of another, equal ones counted by half; of several classes the mean over each against the rest. Rows with labels
	// that the model does not know are left out; nil where less than two classes are left.
	AUC   *float64 `json:"auc"`
	AUCOf string   `json:"auc_of,omitempty"` // which AUC: one of two classes, or the mean over several
}

// Share is a count of rows among others.
type Share struct {
	Wrong float64 `json:"wrong"`
	Of    float64 `json:"of"`
}

// Retrieval says how well the rows of a class are found: Precision is the share of the class among the rows taken for
// it, Recall that of its rows that are taken for it, and F1 = 2PR/(P+R). What would be 0/0 is 0.
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

// Confusion is how often one class is taken for another.
type Confusion struct {
	Class string `json:"class"`
	For   string `json:"for"`
	Share
}

// wholeClasses is up to how many classes there is a matrix of confusion.
const wholeClasses = 100

// classes judges the predictions of a classifier by the answers of d.
func (p *Prediction) classes(d *datasets.Dataset) *Classes {
	c := &Classes{Labels: slices.Clone(p.Labels)}
	at := d.ClassIn(p.Labels) // of d's labels among all
	for i, label := range d.Labels {
		if at[i] < 0 {
			at[i], c.Labels = len(c.Labels), append(c.Labels, label)
		}
	}
	c.Errors = make([]Share, len(c.Labels))
	truth, counts, total := make([]int, d.Len()), map[[2]int]float64{}, 0.0
	taken := make([]float64, len(c.Labels))
	for i, class := range d.Class {
		w := d.Weight(i)
		truth[i] = at[class]
		counts[[2]int{truth[i], p.Class[i]}] += w
		c.Errors[truth[i]].Of += w
		taken[p.Class[i]] += w
		total += w
	}
	for pair, count := range counts {
		if pair[0] != pair[1] {
			c.Errors[pair[0]].Wrong += count
		}
	}
	c.count(counts)
	most := 0
	for i, e := range c.Errors {
		if e.Of > c.Errors[most].Of {
			most = i
		}
	}
	c.Largest, c.BaseRate = c.Labels[most], c.Errors[most].Of/total
	for i, e := range c.Errors {
		right := counts[[2]int{i, i}]
		c.Scores = append(c.Scores,
			Retrieval{ratio(right, taken[i]), ratio(right, e.Of), ratio(2*right, taken[i]+e.Of)})
	}
	if p.Decision != nil {
		c.rank(p.Decision, truth, len(p.Labels), d.Weights)
	}
	return c
}

// count takes up how often each class is taken for each.
func (c *Classes) count(counts map[[2]int]float64) {
	if k := len(c.Labels); k <= wholeClasses {
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

// rank sets the AUC of decision values for rows of the classes truth, of which the model knows the first k, with their
// weights, nil for ones.
func (c *Classes) rank(f *mat.Dense, truth []int, k int, weights []float64) {
	_, t := f.Dims()
	sum, count := 0.0, 0
	for j := range t {
		var v, w []float64
		var in []bool
		for i, class := range truth {
			if class < k {
				v, in = append(v, f.At(i, j)), append(in, class == max(j, 2-t)) // one value is the second class's
				if weights != nil {
					w = append(w, weights[i])
				}
			}
		}
		if slices.Contains(in, true) && slices.Contains(in, false) {
			stat.SortWeightedLabeled(v, in, w)
			tpr, fpr, _ := stat.ROC(nil, v, in, w)
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

// Trained returns the prediction of the n rows that the model was fitted on, d with its FitWeights w, without a pass
// over K: as (K+λW⁻¹)c = y−r, it is f = mean+Kc = mean+y−λW⁻¹c but for the residual r.
func (m *Model) Trained(d *datasets.Dataset) (*Prediction, error) {
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
		return y - m.Lambda*m.C.At(i, j)/w
	}, f)
	m.AddMean(f.RawMatrix().Data)
	return m.prediction(f), nil
}
