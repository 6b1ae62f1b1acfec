package tune

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
)

// randomScores returns coded targets y of n rows, scores f with ties that are correlated with them, integer weights,
// and the data set of the classes. t is the number of columns, 1 for two classes.
func randomScores(n, t int, seed uint64) (y, f *mat.Dense, weights []float64, d *datasets.Dataset) {
	g := rng.New(seed)
	y, f = mat.NewDense(n, t, nil), mat.NewDense(n, t, nil)
	classes := max(t, 2)
	d = &datasets.Dataset{X: points.NewDense(n, 1, nil), Task: datasets.Classification,
		Labels: []string{"a", "b", "c"}[:classes]}
	for i := range n {
		c := g.Sub("class").IntN(uint64(i), 2*classes) % (2*classes - 1) % classes // class 0 is the most frequent
		d.Class = append(d.Class, c)
		for j := range t {
			v := -1.0
			if c == j && t > 1 || t == 1 && c == 1 {
				v = 1
			}
			y.Set(i, j, v)
			f.Set(i, j, math.Round(4*(0.6*v+g.Sub("f", uint64(j)).Normal(uint64(i))))/4)
		}
		weights = append(weights, float64(1+g.Sub("w").IntN(uint64(i), 3)))
	}
	return y, f, weights, d
}

// TestMetrics checks that the loss of each metric is the one that the report of a model gives for the same scores, for
// two classes and for three. Integer weights must have the effect of repeated rows, and the interval must contain the
// value.
func TestMetrics(t *testing.T) {
	for _, cols := range []int{1, 3} {
		y, f, w, d := randomScores(80, cols, 5)
		var e mat.Dense
		e.Sub(y, f)
		var copies []int
		for i, v := range w {
			for range int(v) {
				copies = append(copies, i)
			}
		}
		repeat := func(m *mat.Dense) *mat.Dense {
			out := mat.NewDense(len(copies), cols, nil)
			for p, i := range copies {
				out.SetRow(p, m.RawRowView(i))
			}
			return out
		}
		for _, m := range []model.Metric{model.ErrorRate, model.BalancedError, model.AUC, model.F1, model.LogLoss} {
			once := (&scoring{metric: m, weights: w, positiveClass: 1}).loss(y, &e)
			v, lo, hi := once.Error()
			repeated, _, _ := (&scoring{metric: m, positiveClass: 1}).loss(repeat(y), repeat(&e)).Error()
			tol := 1e-9
			if m == model.LogLoss { // Platt's targets shrink probabilities by one row of each side, whatever its weight
				tol = 0.02
			}
			testkit.Near(t, v, repeated, tol, m, cols, "weights and repeated rows")
			if !(lo <= v && v <= hi && (hi <= 1 || m == model.LogLoss)) {
				t.Errorf("%s: %g in [%g, %g]", m, v, lo, hi)
			}
			p := &model.Prediction{Labels: d.Labels, Decision: mat.DenseCopyOf(f)}
			if cols == 1 && m.DependsOnThreshold() {
				threshold, _ := m.BestThreshold(mat.Col(nil, 0, f), (&scores{truth: d.Class}).isClass(1), w)
				p.Decision.Apply(func(_, _ int, v float64) float64 { return v - threshold }, p.Decision)
			}
			for i := range d.Class {
				p.Class = append(p.Class, datasets.PredictedClass(p.Decision.RawRowView(i)))
			}
			weighted := *d
			weighted.Weights = w
			c, want := p.Score(&weighted), 0.0
			switch m {
			case model.ErrorRate:
				want = c.ErrorRate
			case model.AUC:
				want = 1 - *c.Classes.AUC
			case model.BalancedError:
				for _, s := range c.Classes.Errors {
					want += s.Wrong / s.Total / float64(len(d.Labels))
				}
			case model.F1:
				want = 1 - c.Classes.Scores[1].F1
				if cols == 3 {
					want = 1 - (c.Classes.Scores[0].F1+c.Classes.Scores[1].F1+c.Classes.Scores[2].F1)/3
				}
			default:
				continue
			}
			testkit.Near(t, v, want, 1e-9, m, cols, "the report")
		}
	}
}

// TestWeightedLoss checks that the leave-one-out loss with integer weights is that of repeated rows that are left out
// together.
func TestWeightedLoss(t *testing.T) {
	for _, set := range []*datasets.Dataset{datasets.SyntheticRegression(40, 3, 0.1, 5),
		datasets.SyntheticClasses(40, 3, 2, 0.1, 5)} {
		weighted := *set
		var copies []int
		for i := range set.Len() {
			weighted.Weights = append(weighted.Weights, float64(1+i%3))
			for range 1 + i%3 {
				copies = append(copies, i)
			}
		}
		loss := func(d *datasets.Dataset) float64 {
			p := newProblem(t, d)
			p.y = testkit.Must(datasets.Coding{Labels: d.Labels}.EncodeForFit(d))
			sampleOfAll := (&search{data: p}).newSample(upTo(d.Len()))
			v, _, _ := testkit.Must(sampleOfAll.loss(t.Context(), kernel.Gaussian{Sigma: 1.2}, 0.3)).Error()
			return v
		}
		testkit.Near(t, loss(&weighted), loss(set.Subset(copies)), 1e-9, set.Task)
	}
}

// TestLogLossOfConstants checks that leave-one-out scores of a nearly constant prediction, which fall with the label
// that is left out, have at least the log loss of the shares of the classes.
func TestLogLossOfConstants(t *testing.T) {
	for classes := 2; classes < 5; classes++ {
		d := datasets.SyntheticClasses(60, 3, classes, 0.1, 5)
		p := newProblem(t, d)
		p.judgment = scoring{metric: model.LogLoss}
		sample := (&search{data: p}).newSample(upTo(d.Len()))
		v, _, _ := testkit.Must(sample.loss(t.Context(), kernel.Gaussian{Sigma: 50}, 1000)).Error()
		count, entropy := make([]float64, len(d.Labels)), 0.0
		for _, c := range d.Class {
			count[c]++
		}
		for _, k := range count {
			if k > 0 {
				entropy -= k / float64(d.Len()) * math.Log(k/float64(d.Len()))
			}
		}
		if v < 0.97*entropy {
			t.Errorf("%d classes: log loss %g of a constant, want at least the entropy %g", len(d.Labels), v, entropy)
		}
	}
}
