package tree_test

import (
	"context"
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/kernel/tree"
)

// Example has two groups of points, with a gap of 9 between them, and finds the pairs of leaves between which the
// kernel is not negligible.
func Example() {
	x := points.NewDense(4, 1, []float64{0, 10, 1, 11})
	t, err := tree.New(context.Background(), x, 2) // at most 2 points in a leaf
	if err != nil {
		fmt.Println(err)
		return
	}
	gaussian := func(sq float64) float64 { return math.Exp(-sq / 2) }
	// Pairs of leaves with kernel values below 1e-6 are skipped. Both trees are t, so that one list of sums is enough.
	pairs, skippedSums, _, err := t.Pairs(context.Background(), t, tree.SquaredEuclidean, gaussian, 1e-6)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Order, t.Start)
	for _, p := range pairs {
		fmt.Printf("leaves %d and %d: at most %.0f\n", p.A, p.B, p.Bound)
	}
	fmt.Printf("in a row of leaf 0, the skipped entries sum to at most %.1e\n", skippedSums[0])
	// Output:
	// [0 2 1 3] [0 2 4]
	// leaves 0 and 0: at most 1
	// leaves 1 and 1: at most 1
	// in a row of leaf 0, the skipped entries sum to at most 5.2e-18
}
