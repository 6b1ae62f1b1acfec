package multilevel_test

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/multilevel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/sketch"
)

// 4,000 features sketched to 100 numbers beside 100 features, on 500 points.
func Example() {
	const n, lambda = 500, 0.1
	ctx := context.Background()
	x, y := points.NewDense(n, 2, nil), mat.NewDense(n, 1, nil)
	rng.New(1).Normals(x.Data, 0)
	for i := range n {
		y.Set(i, 0, x.Row(i)[0]*x.Row(i)[1])
	}
	k := kernel.Gaussian{Sigma: 1}
	a, err := gram.New(ctx, k, x, lambda, nil)
	if err != nil {
		panic(err)
	}
	p := &multilevel.Problem{A: a, X: x, Y: y, LambdaP: lambda}
	alone := feature.Fourier{Kernel: k}
	chain := feature.Chain{Features: alone, Width: 4000, Sketches: sketch.Composition{{Dist: sketch.SRHT{}}}}
	var levels []*multilevel.Measured
	for _, dist := range []feature.Dist{alone, chain} {
		m, err := dist.Sample(2, 100, rng.New(1))
		if err != nil {
			panic(err)
		}
		l, err := multilevel.Measure(ctx, p, m, rng.New(1), nil)
		if err != nil {
			panic(err)
		}
		_, s := m.Dims()
		fmt.Printf("%v, s = %d: %s\n", dist, s, l.Status)
		levels = append(levels, l)
	}
	fmt.Println("κ(M⁻¹A) is surely less than a tenth with the chain:", levels[1].Kappa.Hi < levels[0].Kappa.Lo/10)
	fmt.Println("and the iterations less than half:", levels[1].Iterations < levels[0].Iterations/2)
	// Output:
	// Fourier features of gaussian(sigma=1), s = 100: converged
	// Fourier features of gaussian(sigma=1) to 4000 → srht, s = 100: converged
	// κ(M⁻¹A) is surely less than a tenth with the chain: true
	// and the iterations less than half: true
}
