package accel_test

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
)

// ExampleForEach computes tiles of a Gram matrix in parallel. Each worker has scratch memory of its own, and each
// tile is a product on one thread followed by Go code. The sum is taken in the order of the tiles, so it does not
// depend on the number of threads.
func ExampleForEach() {
	x := blas32.General{Rows: 4, Cols: 2, Stride: 2, Data: []float32{0, 0, 1, 0, 0, 1, 1, 1}}
	scratch := make([][]float32, accel.Threads())
	sums := make([]float32, x.Rows)
	err := accel.ForEach(context.Background(), x.Rows, func(worker, i int) {
		if scratch[worker] == nil {
			scratch[worker] = make([]float32, x.Rows)
		}
		row := blas32.General{Rows: 1, Cols: x.Cols, Stride: x.Stride, Data: x.Data[i*x.Stride:]}
		tile := blas32.General{Rows: 1, Cols: x.Rows, Stride: x.Rows, Data: scratch[worker]}
		blas32.Gemm(blas.NoTrans, blas.Trans, 1, row, x, 0, tile)
		simd.Exp32(tile.Data, tile.Data)
		for _, v := range tile.Data {
			sums[i] += v
		}
	})
	total := float32(0)
	for _, s := range sums {
		total += s
	}
	fmt.Printf("%.3f %v\n", total, err)
	// Output: 32.699 <nil>
}

func ExampleSpotrf() {
	a := []float32{
		4, 0,
		2, 5,
	}
	fmt.Println(accel.Spotrf(2, a, 2), a)
	// Output: true [2 0 1 2]
}
