package sketchsize_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/stage/sketchsize"
)

// The number of features is doubled until κ(M⁻¹A) is certainly at most 30. A solve with these features then needs few
// iterations.
func Example() {
	ctx := context.Background()
	train := datasets.SyntheticRegression(1000, 4, 0.1, 1)
	cfg := krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.3, Solver: krrlab.PCG}
	lab, err := krrlab.New(train, cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := lab.SketchSize(ctx, sketchsize.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, rung := range result.Rungs {
		fmt.Printf("s = %4d: %s\n", rung.S, rung.Verdict)
	}
	cfg.Precond = krrlab.Features{S: result.S}
	if lab, err = krrlab.New(train, cfg); err != nil {
		fmt.Println(err)
		return
	}
	sol, err := lab.Solve(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: s = %d; %s, iterations at most %d: %v\n", result.Status, result.S, sol.Status, 20,
		sol.Iterations <= 20)
	// Output:
	// s =  125: reject
	// s =  250: accept
	// found: s = 250; converged, iterations at most 20: true
}

// The three sets of constants of Theorem 7 trade a smaller bound of κ for fewer features.
func ExampleConditionConstants_Bound() {
	for _, constants := range []sketchsize.ConditionConstants{sketchsize.PaperConstants, sketchsize.Kappa5Constants,
		sketchsize.Kappa10Constants} {
		fmt.Printf("%-8s κ ≤ %5.2f  %2d iterations to 1e-3  %6.0f times the features of Theorem 1\n",
			constants.Name, constants.Bound(), pcg.IterationBound(constants.Bound(), 1e-3), constants.FeatureFactor())
	}
	// Output:
	// paper    κ ≤  2.13   6 iterations to 1e-3   11130 times the features of Theorem 1
	// kappa5   κ ≤  4.99   9 iterations to 1e-3      74 times the features of Theorem 1
	// kappa10  κ ≤  9.95  12 iterations to 1e-3      16 times the features of Theorem 1
}
