package feature_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond/feature"
)

// Example shows that the inner products of random features approach the kernel like 1/√s.
func Example() {
	k := kernel.Gaussian{Sigma: 1.5}
	x := points.NewDense(2, 3, []float64{0, 0, 1, 1, 0, 0})
	dist, err := feature.For(k)
	if err != nil {
		panic(err)
	}
	fmt.Printf("k(x, z) = %.3f\n", k.Eval(x.Row(0), x.Row(1)))
	for _, s := range []int{100, 10000, 1000000} {
		m, err := dist.Sample(3, s, rng.New(1))
		if err != nil {
			panic(err)
		}
		z, err := feature.Matrix(context.Background(), m, x, nil)
		if err != nil {
			panic(err)
		}
		var sum float64
		for j, v := range z.Row(0) {
			sum += float64(v) * float64(z.Row(1)[j])
		}
		fmt.Printf("s = %7d: φ(x)ᵀφ(z) = %.3f\n", s, sum)
	}
	// Output:
	// k(x, z) = 0.641
	// s =     100: φ(x)ᵀφ(z) = 0.561
	// s =   10000: φ(x)ᵀφ(z) = 0.649
	// s = 1000000: φ(x)ᵀφ(z) = 0.642
}
