package precondtest_test

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/precond/precondtest"
)

// last forgets that M must be symmetric: it adds the first row to the last.
type last struct{ diagonal }

func (m last) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	err := m.diagonal.SolveTo(ctx, dst, r)
	_, k := dst.Dims()
	for j := range k {
		dst.Set(order-1, j, dst.At(order-1, j)+r.At(0, j))
	}
	return err
}

func ExampleTest() {
	fmt.Println(precondtest.Test(context.Background(), diagonal{}, nil))
	fmt.Println(precondtest.Test(context.Background(), last{}, &precondtest.Options{Tol: 1e-8}) == nil)
	// Output:
	// <nil>
	// false
}

// A user-defined matrix, and one that is not symmetric.
func ExampleOperator() {
	fmt.Println(precondtest.Operator(context.Background(), diagonal{}, nil))
	skew := double{dim: order, mul: last{}.SolveTo}
	fmt.Println(precondtest.Operator(context.Background(), skew, nil) == nil)
	// Output:
	// <nil>
	// false
}
