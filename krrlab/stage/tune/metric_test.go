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

// randomScores returns coded targets y of n rows, scores that are correlated with the targets and have ties, integer
// weights, and a data set with the classes. columns is 1 for two classes, and else the number of classes.
func randomScores(n, columns int, seed uint64) (y, scores *mat.Dense, weights []float64, set *datasets.Dataset) {
	stream := rng.New(seed)
	y, scores = mat.NewDense(n, columns, nil), mat.NewDense(n, columns, nil)
	classes := max(columns, 2)
	set = &datasets.Dataset{X: points.NewDense(n, 1, nil), Task: datasets.Classification,
		Labels: []string{"a", "b", "c"}[:classes]}
	for i := range n {
		// Class 0 is the most frequent.
		class := stream.Sub("class").IntN(uint64(i), 2*classes) % (2*classes - 1) % classes
		set.Class = append(set.Class, class)
		for j := range columns {
			code := -1.0
			if class == j && columns > 1 || columns == 1 && class == 1 {
				code = 1
			}
			y.Set(i, j, code)
			scores.Set(i, j, math.Round(4*(0.6*code+stream.Sub("f", uint64(j)).Normal(uint64(i))))/4)
		}
		weights = append(weights, float64(1+stream.Sub("w").IntN(uint64(i), 3)))
	}
	return y, scores, weights, set
}

// TestMetrics checks that the loss of each metric equals the one in the report of a model for the same scores, for two
// classes and for three. Integer weights must have the effect of repeated rows, and the interval must contain the loss.
func TestMetrics(t *testing.T) {
	for _, columns := range []int{1, 3} {
		y, f, weights, set := randomScores(80, columns, 5)
		var residuals mat.Dense
		residuals.Sub(y, f)
		var copies []int
		for i, weight := range weights {
			for range int(weight) {
				copies = append(copies, i)
			}
		}
		repeat := func(rows *mat.Dense) *mat.Dense {
			repeated := mat.NewDense(len(copies), columns, nil)
			for p, i := range copies {
				repeated.SetRow(p, rows.RawRowView(i))
			}
			return repeated
		}
		for _, metric := range []model.Metric{model.ErrorRate, model.BalancedError, model.AUC, model.F1,
			model.LogLoss} {
			weighted := (&scoring{metric: metric, weights: weights, positiveClass: 1}).loss(y, &residuals)
			value, lo, hi := weighted.errorInterval()
			repeated, _, _ := (&scoring{metric: metric, positiveClass: 1}).loss(repeat(y),
				repeat(&residuals)).errorInterval()
			tolerance := 1e-9
			if metric == model.LogLoss { // Platt scaling adds one row of each class, whose weight does not scale
				tolerance = 0.02
			}
			testkit.Near(t, value, repeated, tolerance, metric, columns, "weights and repeated rows")
			if !(lo <= value && value <= hi && (hi <= 1 || metric == model.LogLoss)) {
				t.Errorf("%s: %g in [%g, %g]", metric, value, lo, hi)
			}
			prediction := &model.Prediction{Labels: set.Labels, Decision: mat.DenseCopyOf(f)}
			if columns == 1 && metric.DependsOnThreshold() {
				threshold, _ := metric.BestThreshold(mat.Col(nil, 0, f), (&scores{truth: set.Class}).membersOf(1),
					weights)
				prediction.Decision.Apply(func(_, _ int, v float64) float64 { return v - threshold },
					prediction.Decision)
			}
			for i := range set.Class {
				prediction.Class = append(prediction.Class, datasets.PredictedClass(prediction.Decision.RawRowView(i)))
			}
			weightedSet := *set
			weightedSet.Weights = weights
			score, want := prediction.Score(&weightedSet), 0.0
			switch metric {
			case model.ErrorRate:
				want = score.ErrorRate
			case model.AUC:
				want = 1 - *score.Classes.AUC
			case model.BalancedError:
				for _, classErrors := range score.Classes.Errors {
					want += classErrors.Wrong / classErrors.Total / float64(len(set.Labels))
				}
			case model.F1:
				want = 1 - score.Classes.Scores[1].F1
				if columns == 3 {
					want = 1 - (score.Classes.Scores[0].F1+score.Classes.Scores[1].F1+score.Classes.Scores[2].F1)/3
				}
			default:
				continue
			}
			testkit.Near(t, value, want, 1e-9, metric, columns, "the report")
		}
	}
}

// TestWeightedLoss checks that the leave-one-out loss with integer weights equals the loss of repeated rows if the
// copies of a row are left out together.
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
		loss := func(data *datasets.Dataset) float64 {
			problem := newProblem(t, data)
			problem.y = testkit.Must(datasets.Coding{Labels: data.Labels}.EncodeForFit(data))
			sampleOfAll := (&search{data: problem}).newSample(upTo(data.Len()))
			value, _, _ := testkit.Must(sampleOfAll.loss(t.Context(), kernel.Gaussian{Sigma: 1.2}, 0.3)).errorInterval()
			return value
		}
		testkit.Near(t, loss(&weighted), loss(set.Subset(copies)), 1e-9, set.Task)
	}
}

// TestLogLossOfConstants checks the log loss of a nearly constant prediction. Leaving out a row lowers the score of its
// class a little, which a fit of probabilities to these scores must not exploit: the log loss must be about as large as
// the entropy of the shares of the classes.
func TestLogLossOfConstants(t *testing.T) {
	for classes := 2; classes < 5; classes++ {
		set := datasets.SyntheticClasses(60, 3, classes, 0.1, 5)
		problem := newProblem(t, set)
		problem.judgment = scoring{metric: model.LogLoss}
		sample := (&search{data: problem}).newSample(upTo(set.Len()))
		logLoss, _, _ := testkit.Must(sample.loss(t.Context(), kernel.Gaussian{Sigma: 50}, 1000)).errorInterval()
		classCounts, entropy := make([]float64, len(set.Labels)), 0.0
		for _, class := range set.Class {
			classCounts[class]++
		}
		for _, classCount := range classCounts {
			if classCount > 0 {
				entropy -= classCount / float64(set.Len()) * math.Log(classCount/float64(set.Len()))
			}
		}
		if logLoss < 0.97*entropy {
			t.Errorf("%d classes: log loss %g of a constant, want at least the entropy %g", len(set.Labels), logLoss,
				entropy)
		}
	}
}
