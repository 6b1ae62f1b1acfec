package model

import (
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestBestThreshold compares the loss of the best threshold with a direct count of errors at all thresholds, for random
// values with ties and weights. No other threshold may have a smaller loss.
func TestBestThreshold(t *testing.T) {
	for seed := range uint64(60) {
		random := rng.New(seed)
		n := 1 + random.Sub("n").IntN(0, 12)
		values, positive, weights := make([]float64, n), make([]bool, n), make([]float64, n)
		for i := range values {
			values[i] = float64(random.Sub("v").IntN(uint64(i), 6)) - 2.5
			positive[i] = random.Sub("in").IntN(uint64(i), 3) == 0
			weights[i] = 0.5 + float64(random.Sub("w").IntN(uint64(i), 3))
		}
		for _, m := range []Metric{ErrorRate, BalancedError, F1} {
			threshold, loss := m.BestThreshold(values, positive, weights)
			lossAt := func(theta float64) float64 {
				var tp, fp, fn, tn float64 // weights of true and false positives and negatives
				for i := range values {
					switch selected := values[i] > theta; {
					case selected && positive[i]:
						tp += weights[i]
					case selected:
						fp += weights[i]
					case positive[i]:
						fn += weights[i]
					default:
						tn += weights[i]
					}
				}
				switch m {
				case ErrorRate:
					return (fp + fn) / (tp + fp + fn + tn)
				case F1:
					return (fp + fn) / math.Max(2*tp+fp+fn, 1e-300)
				}
				return (fn/math.Max(tp+fn, 1e-300) + fp/math.Max(fp+tn, 1e-300)) / 2
			}
			testkit.Near(t, loss, lossAt(threshold), 1e-12, m, seed, threshold)
			for theta := -3.0; theta <= 3; theta += 0.5 {
				if other := lossAt(theta); other < loss-1e-12 {
					t.Errorf("%s, seed %d: the loss at the best threshold %g is %g, at %g only %g", m, seed, threshold,
						loss, theta, other)
				}
			}
		}
	}
}

// TestMetricText checks that the AUC and F1, which are large for a good model, are printed instead of their losses, and
// that the ends of their intervals are rounded outward.
func TestMetricText(t *testing.T) {
	for want, got := range map[string]string{
		"AUC 0.9000, in [0.8765, 0.9124]":               AUC.TextWithInterval(0.1, 0.08765, 0.12345),
		"F1 0.7500, in [0.5000, 0.8000]":                F1.TextWithInterval(0.25, 0.2, 0.5),
		"balanced error 12.50 %, in [10.00 %, 20.01 %]": BalancedError.TextWithInterval(0.125, 0.1, 0.20005),
		"log loss 0.1235":                               LogLoss.Text(0.12346),
		"RMSE 1.5":                                      RMSE.Text(1.5),
	} {
		testkit.Equal(t, got, want)
	}
	testkit.Fails(t, testkit.ErrOf(MetricOf("auc", false)), "numbers")
	testkit.Fails(t, testkit.ErrOf(MetricOf("rmse", true)), "classes")
}
