package datasets

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// endlessDeformation is the deformation of the endless data sets of the registry. It changes a digit about as much as
// the deformations of MNIST8M do: for 1,000 generated rows, the squared distance to the nearest of the 60,000 training
// digits of MNIST, with pixels in [0, 1], has the quartiles 15.6, 22.5 and 29.2; for 1,000 rows of MNIST8M they are
// 16.6, 21.7 and 26.4.
var endlessDeformation = deformation{Shift: 1, Rotation: 7.5, Alpha: 20, Sigma: 4}

// endlessSeed is the seed of the endless data sets of the registry.
const endlessSeed = 1

// checkEndlessMemory returns an error if the given number of rows, each as long as a row of base and in float32, does
// not fit into the memory budget.
func checkEndlessMemory(base *Dataset, rows int, memory accel.Budget) error {
	d := base.Dim()
	return memory.Check(accel.SaturateInt64(4*float64(rows)*float64(d)), fmt.Sprintf("%s: %d rows of %d numbers",
		base.Name, rows, d), "take fewer by --n")
}

// generateEndless returns the first rows of an infinite sequence of labeled pictures that is generated from the n
// pictures of base. Pictures are square, stored row by row, with values from 0 (background) to 255. Rows 0 … n−1 are
// those of base. Row i ≥ n is row i mod n of base under a random deformation that is a function of the seed and i only.
//
// The construction follows the "infinite MNIST" of Loosli, Canu and Bottou (Training invariant support vector machines
// using selective sampling, in Large Scale Kernel Machines, 2007).
func generateEndless(ctx context.Context, base *Dataset, distortion deformation, seed uint64, rows int) (*Dataset,
	error) {
	n, d := base.X.Dims()
	x, out := points.NewDense32(rows, d, nil), *base
	out.X, out.Class = x, make([]int, rows)
	for i := range rows {
		out.Class[i] = base.Class[i%n]
	}
	points.RowsTo32(base.X.Slice(0, min(n, rows)), x.Data, d)
	if rows > n {
		out.Source += fmt.Sprintf("; generated from %s: %v, seed %d", base.Name, distortion, seed)
	}
	return &out, distortion.deformRows(ctx, x, n, rng.New(seed).Sub("endless"), func(i int, picture []float32) {
		points.RowsTo32(base.X.Slice(i%n, i%n+1), picture, d)
	})
}
