package loo_test

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/loo"
)

// Three ridges for 50 values of a sine with noise: fitting the noise and hardly fitting at all are both worse.
func Example() {
	const n = 50
	k, y := mat.NewDense(n, n, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		for j := range n {
			d := float64(i-j) / 10
			k.Set(i, j, math.Exp(-d*d/2))
		}
		y.Set(i, 0, math.Sin(float64(i)/8)+0.3*float64((i*i*7)%5-2))
	}
	scores, err := loo.Dense(context.Background(), k, y, []float64{1e-6, 0.03, 100}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range scores {
		fmt.Printf("λ = %-5g  leave-one-out %.3f  GCV %.3f  s_λ = %.1f\n", s.Lambda, s.Error.Value, s.GCV, s.S)
	}
	// Output:
	// λ = 1e-06  leave-one-out 0.180  GCV 0.175  s_λ = 12.6
	// λ = 0.03   leave-one-out 0.147  GCV 0.144  s_λ = 7.1
	// λ = 100    leave-one-out 0.509  GCV 0.509  s_λ = 0.4
}
