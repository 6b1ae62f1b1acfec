package leaveout_test

import (
	"context"
	"fmt"
	"log"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/model/leaveout"
)

// Two points have a kernel value of zero with each other, so each is predicted by 0 if it is left out.
func Example() {
	k, y := mat.NewDense(2, 2, []float64{1, 0, 0, 1}), mat.NewDense(2, 1, []float64{3, 4})
	scores, err := leaveout.Dense(context.Background(), k, y, []float64{0.5}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("mean square %.4g, s_λ = %.4g\n", scores[0].Error.Value, scores[0].S)
	// Output:
	// mean square 12.5, s_λ = 1.333
}
