package remote

import (
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestWeightsAreSent checks that the weights are written and read with the data.
func TestWeightsAreSent(t *testing.T) {
	dir, train := t.TempDir(), problem(9)
	train.Weights = []float64{1, 2, 3, 4, 5, 6, 7, 8, 1e-3}
	description := testkit.Must(writeData(dir, train))
	if got := testkit.Must(description.read(dir)); !slices.Equal(got.Weights, train.Weights) {
		t.Errorf("weights %v, want %v", got.Weights, train.Weights)
	}
}
