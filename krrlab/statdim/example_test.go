package statdim_test

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/statdim"
)

// diagonal is K = diag(μ).
type diagonal []float64

func (k diagonal) Dim() int { return len(k) }

func (k diagonal) Trace() (s float64) {
	for _, m := range k {
		s += m
	}
	return s
}

func (k diagonal) KMulTo(_ context.Context, dst, src *mat.Dense) error {
	dst.Apply(func(i, _ int, v float64) float64 { return k[i] * v }, src)
	return nil
}

// For μ_i = 100/i and λ = 1, s_λ = Σ 100/(100+i).
func Example() {
	k, exact := make(diagonal, 400), 0.0
	for i := range k {
		k[i] = 100 / float64(i+1)
		exact += k[i] / (k[i] + 1)
	}
	r, err := statdim.SLQ(context.Background(), &statdim.Problem{K: k, Lambda: 1}, &statdim.Options{Lambdas: []float64{10}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("s_1 = %.2f, in the interval: %v; width at most 10 %%: %v\n", exact, r.Estimate.Covers(exact), r.Estimate.Width() <= 0.1)
	fmt.Printf("points of the curve: %d\n", len(r.Curve))
	// Output:
	// s_1 = 160.54, in the interval: true; width at most 10 %: true
	// points of the curve: 2
}
