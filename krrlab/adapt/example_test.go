package adapt_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/krrlab/adapt"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// The paper's test and the test of κ on the same features.
func ExampleSearch() {
	ctx := context.Background()
	x := points.NewDense(400, 3, nil)
	rng.New(1).Normals(x.Data, 0)
	k := kernel.Gaussian{Sigma: 2}
	a, err := gram.New(ctx, k, x, 1, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	p := adapt.Problem{K: a, X: x, Map: feature.Fourier{Kernel: k}, Lambda: 1}
	for _, o := range []adapt.Options{
		{Test: adapt.Kappa, Target: 8, First: 32},
		{Test: adapt.Theorem7, Constants: adapt.Kappa5, First: 32},
	} {
		res, err := adapt.Search(ctx, p, &o, rng.New(2))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %s\n", o.Test, res.Status)
		for _, r := range res.Rungs {
			fmt.Printf("  s = %3d: %s\n", r.S, r.Verdict)
		}
	}
	// Output:
	// kappa: found
	//   s =  32: reject
	//   s =  64: reject
	//   s = 128: accept
	// theorem7: none
	//   s =  32: reject
	//   s =  64: reject
	//   s = 128: reject
	//   s = 256: reject
}

func ExampleTest_Bound() {
	for _, c := range []adapt.Test{adapt.PaperTest, adapt.Kappa5, adapt.Kappa10} {
		fmt.Printf("%-8s κ ≤ %5.2f  %2d iterations to 1e-3  %6.0f times the features of Theorem 1\n",
			c.Name, c.Bound(), pcg.IterationBound(c.Bound(), 1e-3), c.FeatureFactor())
	}
	// Output:
	// paper    κ ≤  2.13   6 iterations to 1e-3   11130 times the features of Theorem 1
	// kappa5   κ ≤  4.99   9 iterations to 1e-3      74 times the features of Theorem 1
	// kappa10  κ ≤  9.95  12 iterations to 1e-3      16 times the features of Theorem 1
}
