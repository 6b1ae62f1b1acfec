package race_test

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/race"
)

// diagonal is the matrix diag(1, 2, …, n), and with M⁻¹ its inverse.
type diagonal int

func (d diagonal) Dim() int { return int(d) }

func (d diagonal) MulTo(_ context.Context, dst, src *mat.Dense) error {
	dst.Apply(func(i, _ int, v float64) float64 { return float64(i+1) * v }, src)
	return nil
}

func (d diagonal) SolveTo(_ context.Context, dst, r *mat.Dense) error {
	dst.Apply(func(i, _ int, v float64) float64 { return v / float64(i+1) }, r)
	return nil
}

// A preconditioner that is the matrix itself against none. The seconds are given, so that the outcome does not
// depend on the clock.
func Example() {
	const n = 500
	y := mat.NewDense(n, 1, nil)
	for i := range n {
		y.Set(i, 0, 1)
	}
	jacobi := race.Runner{Name: "jacobi", Make: func(context.Context) (pcg.Preconditioner, float64, error) { return diagonal(n), 0, nil }}
	res, err := race.Run(context.Background(), diagonal(n), y, []race.Runner{jacobi}, &race.Options{
		Share: func(_ context.Context, s []float64) error {
			copy(s, []float64{1, 0, 0, 0, 2, 0.1, 0}) // a product 1 s, nothing for M = I, building M 2 s, and M⁻¹ 0.1 s
			return nil
		},
	})
	if err != nil {
		panic(err)
	}
	for _, s := range res.Field {
		fmt.Printf("%s: %v after %s\n", s.Name, s.Phase, plural.Count(s.Iterations, "iteration"))
	}
	fmt.Println("winner:", res.Field[res.Winner].Name)
	// Output:
	// none: resting after 8 iterations
	// jacobi: done after 1 iteration
	// winner: jacobi
}
