package points_test

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// ExampleShift computes squared distances between two points and one, with the mean of the two at the origin.
func ExampleShift() {
	a := points.NewDense(2, 2, []float64{0, 0, 6, 8})
	c := points.Mean(a)
	dist := make([]float64, 2)
	points.SqDist64(dist, 1, points.Shift(a, c), points.Shift(points.NewDense(1, 2, []float64{3, 4}), c),
		&points.Workspace{})
	fmt.Println(c, dist)
	// Output: [3 4] [25 25]
}
