package remote

import (
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestWeightsAreSent checks that the weights are written and read with the data.
func TestWeightsAreSent(t *testing.T) {
	dir, d := t.TempDir(), problem(9)
	d.Weights = []float64{1, 2, 3, 4, 5, 6, 7, 8, 1e-3}
	j := testkit.Must(writeData(dir, d))
	if got := testkit.Must(j.read(dir)); !slices.Equal(got.Weights, d.Weights) {
		t.Errorf("weights %v, want %v", got.Weights, d.Weights)
	}
}
