package explain

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
)

// TestConfusionPanel checks the panel of the confusion matrix. Its rows are the answers, the first on top, and its
// columns the predictions. Labels are matched by their text, and a label that the model does not know has a row.
func TestConfusionPanel(t *testing.T) {
	p := &model.Prediction{Labels: []string{"a", "a long name of a class"}, Class: []int{0, 0, 1, 1, 1}}
	d := &datasets.Dataset{X: points.NewDense(5, 1, make([]float64, 5)), Labels: []string{p.Labels[1], "a", "z"},
		Class: []int{1, 1, 1, 0, 2}}
	f := confusionPanel(p.Score(d).Classes)
	// The rows of Z are drawn from the bottom to the top.
	if want := [][]float64{{0, 1, 0}, {0, 1, 0}, {2, 1, 0}}; !reflect.DeepEqual(f.Map.Z, want) ||
		!slices.Equal(f.X.Names, []string{"a", "a long name of a …", "z"}) || f.Y.Names[2] != "a" {
		t.Errorf("counts %v, want %v; predictions %v, answers %v", f.Map.Z, want, f.X.Names, f.Y.Names)
	}
}

// classOf returns class 1 if positive is set, and class 0 otherwise.
func classOf(positive bool) int {
	if positive {
		return 1
	}
	return 0
}

// TestQualityOfClasses checks which panels are drawn for classes, compares a point of the calibration curve with a
// count of rows, and checks that cross-fitted probabilities do not use the answer of their row.
func TestQualityOfClasses(t *testing.T) {
	const n = 200
	random := rng.New(5)
	p := &model.Prediction{Labels: []string{"no", "yes"}, Decision: mat.NewDense(n, 1, nil)}
	d := &datasets.Dataset{Task: datasets.Classification, X: points.NewDense(n, 1, nil), Labels: p.Labels}
	probabilities := mat.NewDense(n, 2, nil)
	var inBin, yes int // rows with probabilities in [0.5, 0.6), and those of them with the answer yes
	for i := range uint64(n) {
		f := random.Normal(i)
		yesProbability := 1 / (1 + math.Exp(-f))
		p.Decision.Set(int(i), 0, f)
		probabilities.SetRow(int(i), []float64{1 - yesProbability, yesProbability})
		p.Class = append(p.Class, classOf(f > 0))
		d.Class = append(d.Class, classOf(random.Sub("class").Float64(i) < 0.8*yesProbability))
		if yesProbability >= 0.5 && yesProbability < 0.6 {
			inBin++
			yes += d.Class[i]
		}
	}
	f := Quality("t", p, d, probabilities, 0)
	last := f.Panels[len(f.Panels)-1]
	curve := last.Series[0]
	bin := slices.Index(curve.Y, float64(yes)/float64(inBin))
	if len(f.Panels) != 4 || last.Y.Label != "share of yes" || bin < 0 || !(curve.X[bin] > 0.5 && curve.X[bin] < 0.6) {
		t.Errorf("%d panels, the calibration curve %v; want a bin with %d yes of %d", len(f.Panels), curve, yes, inBin)
	}
	testkit.Equal(t, len(Quality("t", p, d, nil, 0).Panels), 4, "panels of new rows")
	// Probabilities of rows of the fit would be too good, so their panel is omitted.
	testkit.Equal(t, len(Quality("t", p, d, nil, n).Panels), 3, "panels of rows of the fit")
	testkit.Equal(t, len(Quality("t", p, d, probabilities, n).Panels), 3,
		"panels of rows of the fit with probabilities")
	// The probability of a row must come from a map that is fitted to other rows. Here the labels of one half of the
	// rows are wrong and those of the other half are right.
	for i := range d.Class {
		d.Class[i] = p.Class[i]
		if i%2 == 0 {
			d.Class[i] = 1 - p.Class[i]
		}
	}
	// The map of the right half is wrong for the other, and that of the wrong half is constant, as its slope is at
	// least 0.
	crossFitted := crossFittedProbabilities(p, d)
	for i := range d.Class {
		if share := crossFitted.At(i, d.Class[i]); i%2 == 0 && math.Abs(p.Decision.At(i, 0)) > 1 && share > 0.5 ||
			i%2 == 1 && math.Abs(crossFitted.At(i, 1)-crossFitted.At(1, 1)) > 1e-6 {
			t.Fatalf("row %d has probability %g by a map that knows its answer", i, share)
		}
	}
}

// TestQualityOfRegression checks the residuals of a regression.
func TestQualityOfRegression(t *testing.T) {
	regression := &model.Prediction{Value: []float64{1, 3}, Decision: mat.NewDense(2, 1, []float64{1, 3})}
	d := &datasets.Dataset{X: points.NewDense(2, 1, nil), Target: []float64{2, 2.5}}
	figure := Quality("t", regression, d, nil, 0)
	residuals := figure.Panels[1].Series[0]
	if !slices.Equal(residuals.X, []float64{1, 3}) || !slices.Equal(residuals.Y, []float64{1, -0.5}) ||
		strings.Contains(figure.String(), "ROC") {
		t.Errorf("residuals %v, want 1 and −0.5 at 1 and 3, and no ROC curve", residuals)
	}
}

// TestWilson compares an interval of a share with the value of Wilson's formula (1927).
func TestWilson(t *testing.T) {
	lo, hi := wilson(3, 10)
	testkit.Near(t, lo, 0.1078, 1e-4, "lower end")
	testkit.Near(t, hi, 0.6032, 1e-4, "upper end")
}
