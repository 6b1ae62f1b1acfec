package multilevel_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/stage/multilevel"
)

// The levels of Algorithm 2 are compared with features alone of the same widths.
func Example() {
	lab, err := krrlab.New(datasets.SyntheticRegression(1000, 4, 0.1, 1), krrlab.Config{
		Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Solver: krrlab.PCG,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	levels, err := feature.ParseLevels("features:2000,srht:400,gaussian:100")
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := lab.MultiLevel(context.Background(), &multilevel.Options{Levels: levels})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, level := range result.Chain {
		fmt.Printf("level %d, %s to %d: %s\n", level.Index, level.Sketch, level.Width, level.Status)
	}
	for k, level := range result.FeaturesAlone {
		fmt.Printf("features alone to %d: κ surely larger than the chain's: %t\n", level.Width,
			level.Kappa.Lo > result.Chain[k+1].Kappa.Hi)
	}
	// Output:
	// level 1, features to 2000: converged
	// level 2, srht to 400: converged
	// level 3, gaussian to 100: converged
	// features alone to 400: κ surely larger than the chain's: true
	// features alone to 100: κ surely larger than the chain's: true
}
