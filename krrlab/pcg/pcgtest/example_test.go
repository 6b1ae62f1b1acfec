package pcgtest_test

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/pcg/pcgtest"
)

// diagonal is A = diag(a).
type diagonal []float64

func (a diagonal) Dim() int { return len(a) }

func (a diagonal) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	dst.Apply(func(i, _ int, v float64) float64 { return a[i] * v }, src)
	return ctx.Err()
}

// A user-defined matrix, and one that is not positive definite.
func ExampleOperator() {
	fmt.Println(pcgtest.Operator(context.Background(), diagonal{1, 2, 4}, nil))
	fmt.Println(pcgtest.Operator(context.Background(), diagonal{1, 2, -4}, nil) == nil)
	// Output:
	// <nil>
	// false
}
