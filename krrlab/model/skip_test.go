package model

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// TestFarLeaves checks predictions that skip tiles between distant leaves of the point trees. They must agree with
// the complete sum to the accuracy, and have the same bits on three ranks. In float64, where bounds have to hold,
// nothing may be skipped.
func TestFarLeaves(t *testing.T) {
	const n, rows, d = 4200, 4100, 3
	x, z := points.NewDense(n, d, nil), points.NewDense(rows, d, nil)
	for k, p := range []*points.Dense{x, z} {
		rng.New(uint64(k)).Normals(p.Data, 0)
		for i := range p.N { // groups at distances of 10
			p.Row(i)[i%d] += 10 * float64(i%7)
		}
	}
	c := mat.NewDense(n, 2, nil)
	rng.New(5).Normals(c.RawMatrix().Data, 0)
	for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 0.5}, kernel.Laplacian{Sigma: 0.2},
		kernel.Matern52{Sigma: 0.2}, kernel.Gaussian{Sigma: 100}} {
		m := &Model{Kernel: k, Lambda: 1, X: x, C: c}
		o := &Options{Accuracy: 1e-4}
		got := testkit.Must(m.Decision(context.Background(), z, o))
		a, b := make([]float64, d), make([]float64, d)
		largest := 0.0
		for _, v := range got.RawMatrix().Data {
			largest = max(largest, math.Abs(v))
		}
		for i := 0; i < rows; i += 97 {
			z.RowTo(a, i)
			var want [2]float64
			for j := range n {
				x.RowTo(b, j)
				v := k.Eval(b, a)
				want[0] += v * c.At(j, 0)
				want[1] += v * c.At(j, 1)
			}
			for q, v := range want {
				if difference := math.Abs(got.At(i, q) - v); difference > o.Accuracy*largest {
					t.Fatalf("%v: point %d has %v, want %v", k, i, got.At(i, q), v)
				}
			}
		}
		exact := testkit.Must(m.Decision(context.Background(), z.Slice(0, 4097), &Options{Accuracy: 1e6, Float64: true}))
		for i := 0; i < 4097; i += 997 { // float64 predictions have to be complete, as bounds rely on them
			z.RowTo(a, i)
			var want, size float64
			for j := range n {
				x.RowTo(b, j)
				v := k.Eval(b, a) * c.At(j, 0)
				want, size = want+v, size+math.Abs(v)
			}
			if difference := math.Abs(exact.At(i, 0) - want); difference > 1e-11*size+1e-15 {
				t.Fatalf("%v in float64: point %d has %v, want %v", k, i, exact.At(i, 0), want)
			}
		}
		done := make(chan bool, 3)
		for _, r := range comm.Local(3, 0) {
			go func() {
				f, err := m.Decision(context.Background(), z, &Options{Accuracy: 1e-4, Comm: r})
				done <- err == nil && mat.Equal(f, got)
			}()
		}
		for range 3 {
			if !<-done {
				t.Errorf("%v: other bits on ranks", k)
			}
		}
	}
}
