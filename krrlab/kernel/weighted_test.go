package kernel_test

import (
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestDrawWeighted checks that the drawn points, divided by their probabilities, estimate the number of points and
// the sum of their weights without bias. A very heavy point must always be drawn, and no point twice.
func TestDrawWeighted(t *testing.T) {
	const n, count, draws = 300, 40, 400
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = 0.1 + float64(i%7)
	}
	weights[17] = 4000
	x := testkit.Must(points.NewWeighted(points.NewDense(n, 1, nil), weights))
	var estimatedNumber, estimatedWeight, total float64
	for _, v := range weights {
		total += v
	}
	for seed := range uint64(draws) {
		drawn, probabilities := kernel.DrawWeighted(x, count, rng.New(seed))
		if !slices.IsSorted(drawn) || len(slices.Compact(slices.Clone(drawn))) != len(drawn) ||
			!slices.Contains(drawn, 17) || len(drawn) > count {
			t.Fatalf("drawn points %v, want at most %d in order, one of them 17", drawn, count)
		}
		for k, i := range drawn {
			estimatedNumber += 1 / probabilities[k] / draws
			estimatedWeight += weights[i] / probabilities[k] / draws
		}
	}
	testkit.Near(t, estimatedNumber, n, 0.03*n, "number of points") // the draws are seeded; another error is bias
	testkit.Near(t, estimatedWeight, total, 0.03*total, "sum of weights")
}
