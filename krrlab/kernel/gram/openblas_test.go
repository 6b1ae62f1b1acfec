package gram_test

import (
	"fmt"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestOpenBLAS compares entries and products computed with OpenBLAS with K from Eval, and repeats TestThreads and
// TestNoAllocation.
func TestOpenBLAS(t *testing.T) {
	lib, err := accel.OpenBLAS()
	if err != nil {
		t.Skip(err)
	}
	testkit.UseBLAS(t, lib)
	for _, x := range pointsInFormats(20, 150, 30, 0.9) {
		for _, k := range kernels {
			want := evalMatrix(k, x)
			for _, storage := range []gram.Storage{gram.Float64, gram.Float32, gram.Recompute} {
				m := mustNew(t, k, x, 0.3, &gram.Options{Storage: storage, TileSize: 64})
				checkMatrix(t, fmt.Sprintf("%v %T %v", k, x, storage), m, want, 0.3)
			}
		}
	}
	t.Run("threads", TestThreads)
	t.Run("allocation", TestNoAllocation)
}

// imageLikePoints returns n points like those of MNIST: 784 coordinates, 19 % of which are not zero.
func imageLikePoints(b testing.TB, n int) *points.Dense32 {
	b.Helper()
	x := points.NewDense32(n, 784, nil)
	for i, v := range pointsInFormats(1, n, 784, 0.19)[1].(*points.Dense32).Data {
		x.Data[i] = v * v / 4
	}
	return x
}

const benchN = 10000

// BenchmarkNew forms K for n = 10,000 and d = 784, which takes n²d flops and n²/2 exponentials.
func BenchmarkNew(b *testing.B) {
	testkit.FastBLAS(b)
	x := imageLikePoints(b, benchN)
	for _, c := range []struct {
		name    string
		options gram.Options
	}{
		{"float32/float32", gram.Options{Storage: gram.Float32, Accuracy: 1}},
		{"float32/float64", gram.Options{Storage: gram.Float32, Accuracy: 1e-12}},
		{"float64", gram.Options{Storage: gram.Float64}},
		{"auto", gram.Options{}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var m *gram.Matrix
			testkit.BenchmarkFloor(b, 0, benchN*benchN*784, 0, func() (err error) {
				m, err = gram.New(ctx, kernel.Gaussian{Sigma: 8.5}, x, 0.01, &c.options)
				return err
			})
			b.Log(m.Choice(), m.Choice().Tried)
		})
	}
}

// BenchmarkMulTo multiplies t vectors by K for n = 10,000 in every storage, which reads K once and takes 2n²t flops.
func BenchmarkMulTo(b *testing.B) {
	testkit.FastBLAS(b)
	x := imageLikePoints(b, benchN)
	for _, storage := range []gram.Storage{gram.Float32, gram.Float64, gram.Fixed16} {
		m := testkit.Must(gram.New(ctx, kernel.Gaussian{Sigma: 8.5}, x, 0.01, &gram.Options{Storage: storage}))
		for _, t := range []int{1, 10, 26} {
			src, dst := gaussianMatrix(1, benchN, t), mat.NewDense(benchN, t, nil)
			flops32, flops64 := 2.0*benchN*benchN*float64(t), 0.0
			if storage == gram.Float64 {
				flops32, flops64 = 0, flops32
			}
			b.Run(fmt.Sprintf("%v/t=%d", storage, t), func(b *testing.B) {
				testkit.BenchmarkFloor(b, float64(m.Bytes()), flops32, flops64, func() error {
					return m.MulTo(ctx, dst,
						src)
				})
			})
		}
	}
}
