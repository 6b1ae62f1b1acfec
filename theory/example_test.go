package theory_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/theory"
)

// A claim of the paper is checked on random problems.
func ExampleCheckClaims() {
	c, err := theory.FindClaim("lambda-p")
	if err != nil {
		panic(err)
	}
	r, err := theory.CheckClaims(context.Background(), []theory.Claim{c}, &theory.Options{Trials: 50}, nil)
	if err != nil {
		panic(err)
	}
	got := r.Claims[0]
	fmt.Println(got.Claim, got.Kind, got.Verdict, got.Failures, "failures")
	fmt.Printf("bound %q comes to %.0f %% of it\n", got.Measures[4].Name[:len("κ over its bound")],
		100*got.Measures[4].Value)
	// Output:
	// lambda-p bound pass 0 failures
	// bound "κ over its bound" comes to 100 % of it
}

func ExampleLeaveOneOut() {
	// Two points with k(x, z) = 0, k(x, x) = 1 and λ = 1: A⁻¹ = ½I, c = y/2. Without itself each
	// point is predicted as 0, and the residual is y.
	fmt.Println(theory.LeaveOneOut([]float64{1.5, -2}, []float64{0.5, 0.5}))
	// Output: [3 -4]
}
