package tree_test

import (
	"context"
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/kernel/tree"
)

// Example forms the pairs of leaves of two groups of points at distance 9. The kernel is negligible between the
// groups.
func Example() {
	x := points.NewDense(4, 1, []float64{0, 10, 1, 11})
	t, err := tree.New(context.Background(), x, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	gaussian := func(sq float64) float64 { return math.Exp(-sq / 2) }
	pairs, rowSums, _, _ := t.Pairs(context.Background(), t, tree.SquaredEuclidean, gaussian, 1e-6)
	fmt.Println(t.Order, t.Start)
	for _, p := range pairs {
		fmt.Printf("leaves %d and %d: at most %.0f\n", p.A, p.B, p.Bound)
	}
	fmt.Printf("a row lacks at most %.1e\n", rowSums[0])
	// Output:
	// [0 2 1 3] [0 2 4]
	// leaves 0 and 0: at most 1
	// leaves 1 and 1: at most 1
	// a row lacks at most 5.2e-18
}
