package sketch_test

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/precond/sketch"
)

// Example sketches a vector of 10,000 numbers to 500 numbers of nearly the same norm.
func Example() {
	const m, s = 10000, 500
	x := make([]float64, m)
	rng.New(1).Normals(x, 0)
	var sqNorm float64
	for _, v := range x {
		sqNorm += v * v
	}
	for _, d := range []sketch.Dist{
		sketch.CountSketch{},
		sketch.SRHT{},
		sketch.Composition{{Dist: sketch.SRHT{}, Width: 2000}, {Dist: sketch.Gaussian{}}},
	} {
		op, err := d.Sample(m, s, rng.New(1).Sub("sketch"))
		if err != nil {
			panic(err)
		}
		y := make([]float64, s)
		op.Apply64(sketch.Rows64{Dst: y, DstStride: s, Src: x, SrcStride: m, Count: 1}, &sketch.Workspace{})
		var sketchedSqNorm float64
		for _, v := range y {
			sketchedSqNorm += v * v
		}
		fmt.Printf("%-18v ‖Sx‖²/‖x‖² = %.2f\n", d, sketchedSqNorm/sqNorm)
	}
	// Output:
	// countsketch        ‖Sx‖²/‖x‖² = 0.99
	// srht               ‖Sx‖²/‖x‖² = 1.02
	// srht:2000,gaussian ‖Sx‖²/‖x‖² = 1.06
}
