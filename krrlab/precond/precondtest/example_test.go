package precondtest_test

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/precond/precondtest"
)

// skewed adds the first row of r to the last row of dst, so that the operator is not symmetric.
func skewed(dst, r *mat.Dense) { dst.Set(order-1, 0, dst.At(order-1, 0)+r.At(0, 0)) }

func ExampleTest() {
	fmt.Println(precondtest.Test(context.Background(), diagonal{}, nil))
	opts := &precondtest.Options{Tol: 1e-8}
	fmt.Println(precondtest.Test(context.Background(), withFault("SolveTo", skewed), opts) == nil)
	// Output:
	// <nil>
	// false
}

// ExampleOperator tests a user-defined matrix, and one that is not symmetric.
func ExampleOperator() {
	fmt.Println(precondtest.TestOperator(context.Background(), diagonal{}, nil))
	fmt.Println(precondtest.TestOperator(context.Background(), withFault("MulTo", skewed), nil) == nil)
	// Output:
	// <nil>
	// false
}
