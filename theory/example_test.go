package theory_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/theory"
)

func ExampleTest_Bound() {
	for _, c := range []theory.Test{theory.PaperTest, theory.Kappa5, theory.Kappa10} {
		fmt.Printf("%-8s κ ≤ %5.2f  %2d iterations to 1e-3  %6.0f times the features of Theorem 1\n",
			c.Name, c.Bound(), theory.Iterations(c.Bound(), 1e-3), c.FeatureFactor())
	}
	// Output:
	// paper    κ ≤  2.13   6 iterations to 1e-3   11130 times the features of Theorem 1
	// kappa5   κ ≤  4.99   9 iterations to 1e-3      74 times the features of Theorem 1
	// kappa10  κ ≤  9.95  12 iterations to 1e-3      16 times the features of Theorem 1
}

func ExampleRidgeBound() {
	const lambda, eta = 0.01, 0.09
	for _, lambdaP := range []float64{0.001, 0.01, 0.1, 1} {
		fmt.Printf("λ_p = %-5g κ ≤ %.0f\n", lambdaP, theory.RidgeBound(lambda, lambdaP, eta))
	}
	// Output:
	// λ_p = 0.001 κ ≤ 910
	// λ_p = 0.01  κ ≤ 100
	// λ_p = 0.1   κ ≤ 19
	// λ_p = 1     κ ≤ 109
}

func ExampleCheck() {
	c, err := theory.Find("lambda-p")
	if err != nil {
		panic(err)
	}
	r, err := theory.Check(context.Background(), []theory.Claim{c}, &theory.Options{Trials: 50}, nil)
	if err != nil {
		panic(err)
	}
	got := r.Claims[0]
	fmt.Println(got.Claim, got.Kind, got.Verdict, got.Failures, "failures")
	fmt.Printf("bound %q comes to %.0f %% of it\n", got.Measures[4].Name[:len("κ over its bound")], 100*got.Measures[4].Value)
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
