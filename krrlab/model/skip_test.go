package model

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// TestSkippedTiles checks predictions that skip tiles between distant leaves of the point trees. They must agree with
// the complete sum to the accuracy, and have the same bits on three ranks. In float64, where bounds have to hold,
// nothing may be skipped, so the error is at most the rounding error of the sum.
func TestSkippedTiles(t *testing.T) {
	const n, rows, d = 4200, 4100, 3
	x, z := testkit.RandomPoints(0, n, d), testkit.RandomPoints(1, rows, d)
	for _, cloud := range []*points.Dense{x, z} {
		for i := range cloud.N { // groups at distances of 10
			cloud.Row(i)[i%d] += 10 * float64(i%7)
		}
	}
	var checked, checked64 []int // rows that are compared with the complete sum
	for i := 0; i < rows; i += 97 {
		checked = append(checked, i)
	}
	for i := 0; i < 4097; i += 997 {
		checked64 = append(checked64, i)
	}
	for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 0.5}, kernel.Laplacian{Sigma: 0.2},
		kernel.Matern52{Sigma: 0.2}, kernel.Gaussian{Sigma: 100}} {
		m := &Model{Kernel: k, Lambda: 1, X: x, C: testkit.RandomMatrix(5, n, 2)}
		o := &Options{Accuracy: 1e-4}
		got := testkit.Must(m.Decision(context.Background(), z, o))
		want := decideByDefinition(m, points.Gather(z, checked))
		for pos, i := range checked {
			for j := range 2 {
				testkit.Near(t, got.At(i, j), want.At(pos, j), o.Accuracy*testkit.MaxAbs(got), k, "column", j, "of row",
					i)
			}
		}
		got64 := testkit.Must(m.Decision(context.Background(), z.Slice(0, 4097),
			&Options{Accuracy: 1e6, Float64: true}))
		want = decideByDefinition(m, points.Gather(z, checked64))
		absolute := *m // with |C|, f is the sum of the absolute values of the terms
		absolute.C = new(mat.Dense)
		absolute.C.Apply(func(_, _ int, v float64) float64 { return math.Abs(v) }, m.C)
		termSums := decideByDefinition(&absolute, points.Gather(z, checked64))
		for pos, i := range checked64 {
			testkit.Near(t, got64.At(i, 0), want.At(pos, 0), 1e-11*termSums.At(pos, 0)+1e-15, k, "row", i, "in float64")
		}
		equalBits := make(chan bool, 3)
		for _, group := range comm.Local(3, 0) {
			go func() {
				f, err := m.Decision(context.Background(), z, &Options{Accuracy: 1e-4, Comm: group})
				equalBits <- err == nil && mat.Equal(f, got)
			}()
		}
		for range 3 {
			if !<-equalBits {
				t.Errorf("%v: other bits on ranks", k)
			}
		}
	}
}
