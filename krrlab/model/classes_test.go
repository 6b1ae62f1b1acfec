package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// aucByPairs returns the share of pairs of a positive and another row that f orders correctly. Pairs with equal values
// count one half. It returns false if there is no such pair.
func aucByPairs(f []float64, positive []bool) (auc float64, hasPairs bool) {
	ordered, pairs := 0.0, 0.0
	for i := range f {
		for j := range f {
			if positive[i] && !positive[j] {
				if pairs++; f[i] > f[j] {
					ordered++
				} else if f[i] == f[j] {
					ordered += 0.5
				}
			}
		}
	}
	return ordered / pairs, pairs > 0
}

// TestScoreOfClasses compares the confusion matrix, the error shares and the AUC with counts of rows and of pairs of
// rows. The cases have decision values with many ties, classes without rows, and answers whose labels are in another
// order or unknown to the model.
func TestScoreOfClasses(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		model, answers []string // labels of the model and of the rows
		rows           int
		values         int // number of different decision values
	}{
		{[]string{"a", "b"}, []string{"a", "b"}, 60, 5}, {[]string{"a", "b"}, []string{"b", "z", "a"}, 40, 1000},
		{[]string{"a", "b"}, []string{"a"}, 9, 4},
		{[]string{"a", "b"}, []string{"z"}, 5, 4}, {[]string{"1", "2", "3"}, []string{"3", "1", "2"}, 70, 3},
		{[]string{"1", "2", "3", "4"}, []string{"4", "2", "x", "y"}, 50, 1},
		{[]string{"a", "b"}, []string{"b", "a"}, 1, 9},
	} {
		cols := len(c.model)
		if cols == 2 {
			cols = 1
		}
		f, d := mat.NewDense(c.rows, cols, nil),
			&datasets.Dataset{X: points.NewDense(c.rows, 1, make([]float64, c.rows)), Task: datasets.Classification,
				Labels: c.answers, Class: make([]int, c.rows)}
		for i := range c.rows {
			d.Class[i] = random.IntN(len(c.answers))
			for j := range cols {
				f.Set(i, j, float64(random.IntN(c.values))-float64(c.values)/2)
			}
		}
		p := (&Model{Labels: c.model}).prediction(f)
		score := p.Score(d)
		got := score.Classes
		wrong, rowsOf := 0, map[string]float64{} // number of wrong labels, and of rows with each answer
		counts := map[[2]string]float64{}
		for i := range c.rows {
			answer, predicted := c.answers[d.Class[i]], p.Text(i)
			rowsOf[answer]++
			if counts[[2]string{answer, predicted}]++; answer != predicted {
				wrong++
			}
		}
		var largestCount float64
		for _, count := range rowsOf {
			largestCount = max(largestCount, count)
		}
		if rowsOf[got.Largest] != largestCount || got.BaseRate != largestCount/float64(c.rows) ||
			score.ErrorRate != float64(wrong)/float64(c.rows) {
			t.Errorf("%v: the largest class is %q with the share %g, the error rate %g; want %g and %d wrong rows", c,
				got.Largest, got.BaseRate, score.ErrorRate, largestCount/float64(c.rows), wrong)
		}
		pairs := 0
		for i, a := range got.Labels {
			if e := got.Errors[i]; e.Total != rowsOf[a] || e.Wrong != e.Total-counts[[2]string{a, a}] {
				t.Errorf("%v: errors of class %s %v, want %g rows", c, a, e, rowsOf[a])
			}
			for j, b := range got.Labels {
				if count := counts[[2]string{a, b}]; got.Counts[i][j] != count {
					t.Errorf("%v: %g rows of %s are predicted as %s, want %g", c, got.Counts[i][j], a, b, count)
				} else if count > 0 && a != b {
					pairs++
				}
			}
		}
		for i, confusion := range got.Confusions {
			if confusion.Wrong != counts[[2]string{confusion.Class, confusion.Predicted}] ||
				confusion.Total != rowsOf[confusion.Class] || i > 0 && confusion.Wrong > got.Confusions[i-1].Wrong {
				t.Errorf("%v: confusion %d is wrong or not in descending order: %v", c, i, got.Confusions)
			}
		}
		testkit.Equal(t, len(got.Confusions), pairs, "confused pairs of", c)
		checkAUC(t, c.model, f, d, got.AUC)
		ignored := 0.0
		for label, rows := range rowsOf {
			if !slices.Contains(c.model, label) {
				ignored += rows
			}
		}
		if want := fmt.Sprintf("without %g row", ignored); got.AUC != nil &&
			strings.Contains(got.AUCDescription, want) != (ignored > 0) {
			t.Errorf("%v: the AUC is that of %q, want %q: %t", c, got.AUCDescription, want, ignored > 0)
		}
	}
}

// checkAUC compares got with the mean of aucByPairs over the classes that have such pairs. It must be nil if no class
// has any.
func checkAUC(t *testing.T, labels []string, f *mat.Dense, d *datasets.Dataset, got *float64) {
	t.Helper()
	_, cols := f.Dims()
	sum, count := 0.0, 0.0
	for j := range cols {
		positiveLabel := labels[j]
		if cols == 1 {
			positiveLabel = labels[1]
		}
		var values []float64
		var positive []bool
		for i, class := range d.Class {
			for _, label := range labels {
				if d.Labels[class] == label {
					values, positive = append(values, f.At(i, j)), append(positive, label == positiveLabel)
				}
			}
		}
		if v, ok := aucByPairs(values, positive); ok {
			sum, count = sum+v, count+1
		}
	}
	if (got == nil) != (count == 0) || got != nil && math.Abs(*got-sum/count) > 1e-12 {
		t.Errorf("%v, %v: AUC %v, want %g", labels, d.Labels, got, sum/count)
	}
}

// TestTrainingPrediction checks that Model.TrainingPrediction, which computes f at the rows of the fit as
// y−λW⁻¹c−W^−½r, gives the values of the dense product Kc. The coefficients c solve the problem except for the residual
// r, with and without weights.
func TestTrainingPrediction(t *testing.T) {
	for _, weights := range [][]float64{nil, {1, 2, 0.5, 3}} {
		k := mat.NewSymDense(4, []float64{2, 1, 0, 0.5, 1, 2, 0.3, 0, 0, 0.3, 2, 1, 0.5, 0, 1, 2})
		y, mean, lambda := []float64{3, -1, 4, 2}, 1.5, 0.7
		a, rhs := mat.DenseCopyOf(k), mat.NewVecDense(4, nil)
		for i, v := range y {
			rhs.SetVec(i, v-mean)
			w := 1.0
			if weights != nil {
				w = weights[i]
			}
			a.Set(i, i, a.At(i, i)+lambda/w)
		}
		var c, want mat.VecDense
		testkit.OK(t, c.SolveVec(a, rhs))
		c.SetVec(1, c.AtVec(1)+0.3) // no longer solves the problem
		want.MulVec(k, &c)
		var product mat.VecDense // (K+λW⁻¹)c − y
		product.MulVec(a, &c)
		r := mat.NewDense(4, 1, nil)
		for i := range y {
			r.Set(i, 0, rhs.AtVec(i)-product.AtVec(i))
			if weights != nil {
				r.Set(i, 0, math.Sqrt(weights[i])*r.At(i, 0))
			}
		}
		m := &Model{Lambda: lambda, C: mat.NewDense(4, 1, c.RawVector().Data), Mean: []float64{mean}}
		p := testkit.Must(m.TrainingPrediction(&datasets.Dataset{X: points.NewDense(4, 1, make([]float64, 4)),
			Task: datasets.Regression, Target: y, Weights: weights}, r))
		for i, v := range p.Value {
			testkit.Near(t, v-mean, want.AtVec(i), 1e-12, weights, i, v, mean+want.AtVec(i))
		}
	}
}

// TestManyClasses checks that a score with more than 100 classes omits the confusion matrix but lists the pairs of
// confused classes.
func TestManyClasses(t *testing.T) {
	var labels []string
	f, d := mat.NewDense(101, 101, nil), &datasets.Dataset{X: points.NewDense(101, 1, make([]float64, 101)),
		Task: datasets.Classification}
	for i := range 101 {
		labels, d.Class = append(labels, string(rune('A'+i))), append(d.Class, i)
		f.Set(i, (i+1)%101, 1)
	}
	d.Labels = labels
	got := (&Model{Labels: labels}).prediction(f).Score(d).Classes
	if want := (Confusion{"A", "B", ErrorCount{1, 1}}); got.Counts != nil || len(got.Confusions) != 101 ||
		!reflect.DeepEqual(got.Confusions[0], want) {
		t.Errorf("confusion matrix %v, %d pairs, the first %v; want no matrix and 101 pairs, the first %v", got.Counts,
			len(got.Confusions), got.Confusions[0], want)
	}
}

// TestCurves compares the area under the ROC curve and the average precision with sums over pairs and over rows, with
// ties and weights.
func TestCurves(t *testing.T) {
	for seed := range uint64(4) { // seeds 1 and 3 have three classes, seeds 2 and 3 weights
		random, n, labels := rng.New(seed), 60, []string{"a", "b", "c"}[:2+seed%2]
		columns := []int{2: 1, 3: 3}[len(labels)]
		p := &Prediction{Labels: labels, Decision: mat.NewDense(n, columns, nil)}
		d := &datasets.Dataset{Task: datasets.Classification, X: points.NewDense(n, 1, nil),
			Labels: append(labels, "unknown")}
		weight := func(int) float64 { return 1 }
		for i := range n {
			for j := range columns {
				p.Decision.Set(i, j, math.Round(3*random.Normal(uint64(i*columns+j)))) // ties
			}
			d.Class = append(d.Class, random.Sub("class").IntN(uint64(i), len(d.Labels)))
			if seed > 1 {
				d.Weights = append(d.Weights, 0.5+random.Sub("w").Float64(uint64(i)))
			}
		}
		if d.Weights != nil {
			weight = func(i int) float64 { return d.Weights[i] }
		}
		for k, c := range p.Curves(d) {
			f := func(i int) float64 { return p.Decision.At(i, min(k, columns-1)) }
			if columns == 1 && k == 0 {
				f = func(i int) float64 { return -p.Decision.At(i, 0) }
			}
			var ordered, pairs, precisions, positives float64 // sums of weights
			for i := range n {
				for j := range n {
					if d.Class[i] != k || d.Class[j] == k || d.Class[j] == len(labels) {
						continue
					}
					w := weight(i) * weight(j)
					pairs += w
					if f(i) > f(j) {
						ordered += w
					} else if f(i) == f(j) {
						ordered += w / 2
					}
				}
				if d.Class[i] != k {
					continue
				}
				truePositives, selected := 0.0, 0.0 // weights of rows with values not below that of row i
				for j := range n {
					if d.Class[j] != len(labels) && f(j) >= f(i) {
						if selected += weight(j); d.Class[j] == k {
							truePositives += weight(j)
						}
					}
				}
				positives, precisions = positives+weight(i), precisions+weight(i)*truePositives/selected
			}
			testkit.Equal(t, c.Class, labels[k], seed)
			testkit.Near(t, c.AUC, ordered/pairs, 1e-12, "AUC", seed, c.Class)
			testkit.Near(t, c.AveragePrecision, precisions/positives, 1e-12, "average precision", seed, c.Class)
		}
	}
}
