package gram_test

import (
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
)

// openBLAS puts OpenBLAS to use until the test or benchmark ends.
func openBLAS(t testing.TB) {
	t.Helper()
	lib, err := accel.OpenBLAS()
	if err != nil {
		t.Skip(err)
	}
	accel.Use(lib)
	t.Cleanup(func() { accel.Use(nil) })
}

// TestOpenBLAS repeats on OpenBLAS what depends on the BLAS.
func TestOpenBLAS(t *testing.T) {
	openBLAS(t)
	for _, x := range draw(20, 150, 30, 0.9) {
		for _, k := range kernels {
			want := full(k, x)
			for _, s := range []gram.Storage{gram.Float64, gram.Float32, gram.Recompute} {
				m := mustNew(t, k, x, 0.3, &gram.Options{Storage: s, TileSize: 64})
				checkMatrix(t, fmt.Sprintf("%v %T %v", k, x, s), m, want, 0.3)
			}
		}
	}
	t.Run("threads", TestThreads)
	t.Run("allocation", TestNoAllocation)
}

// images returns the first n MNIST training images, pixels in [0, 1], from
// $KRRLAB_DATA/mnist; or, without it, n points that are as sparse and as large.
func images(b testing.TB, n int) *points.Dense32 {
	b.Helper()
	x := points.NewDense32(n, 784, nil)
	dir := filepath.Join(os.Getenv("KRRLAB_DATA"), "mnist")
	files, _ := filepath.Glob(filepath.Join(dir, "train-images*gz"))
	if os.Getenv("KRRLAB_DATA") == "" || len(files) == 0 {
		s := draw(1, n, 784, 0.19)[1].(*points.Dense32)
		for i, v := range s.Data {
			x.Data[i] = v * v / 4
		}
		return x
	}
	f, err := os.Open(files[0])
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	var head [4]uint32
	pixels := make([]byte, n*784)
	if err := binary.Read(z, binary.BigEndian, &head); err != nil {
		b.Fatal(err)
	}
	if _, err := io.ReadFull(z, pixels); err != nil {
		b.Fatal(err)
	}
	for i, p := range pixels {
		x.Data[i] = float32(p) / 255
	}
	return x
}

const benchN = 10000

// BenchmarkNew forms K, n = 10,000, d = 784: n²d flops and n²/2 exponentials.
func BenchmarkNew(b *testing.B) {
	openBLAS(b)
	x := images(b, benchN)
	k := kernel.Gaussian{Sigma: 8.5}
	for _, c := range []struct {
		name string
		o    gram.Options
	}{
		{"float32/float32", gram.Options{Storage: gram.Float32, Accuracy: 1}},
		{"float32/float64", gram.Options{Storage: gram.Float32, Accuracy: 1e-12}},
		{"float64", gram.Options{Storage: gram.Float64}},
		{"auto", gram.Options{}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var m *gram.Matrix
			for b.Loop() {
				m = mustNew(b, k, x, 0.01, &c.o)
			}
			b.ReportMetric(benchN*benchN*784/1e9*float64(b.N)/b.Elapsed().Seconds(), "GFLOP/s")
			b.Log(m.Choice(), m.Choice().Tried)
		})
	}
}

// BenchmarkMulTo multiplies by K, n = 10,000. "read" reads the same bytes once.
func BenchmarkMulTo(b *testing.B) {
	openBLAS(b)
	x := images(b, benchN)
	k := kernel.Gaussian{Sigma: 8.5}
	for _, s := range []gram.Storage{gram.Float32, gram.Float64} {
		for _, tile := range []int{256, 512, 1024} {
			m := mustNew(b, k, x, 0.01, &gram.Options{Storage: s, TileSize: tile, Accuracy: 1})
			for _, t := range []int{1, 2, 4, 10, 20} {
				src, dst := normal(1, benchN, t), mat.NewDense(benchN, t, nil)
				b.Run(fmt.Sprintf("%v/tile=%d/t=%d", s, tile, t), func(b *testing.B) {
					b.SetBytes(m.Bytes())
					for b.Loop() {
						if err := m.MulTo(ctx, dst, src); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
	b.Run("read", func(b *testing.B) {
		data := make([]uint64, benchN*benchN/4) // half of K in float32
		for i := range data {
			data[i] = 1
		}
		part := len(data) / 64
		sums := make([]uint64, 64)
		b.SetBytes(int64(8 * len(data)))
		for b.Loop() {
			_ = accel.ForEach(ctx, 64, func(_, i int) {
				var s0, s1, s2, s3 uint64
				d := data[i*part : (i+1)*part]
				for ; len(d) >= 16; d = d[16:] {
					s0 += d[0] + d[4] + d[8] + d[12]
					s1 += d[1] + d[5] + d[9] + d[13]
					s2 += d[2] + d[6] + d[10] + d[14]
					s3 += d[3] + d[7] + d[11] + d[15]
				}
				sums[i] = s0 + s1 + s2 + s3
			})
		}
	})
}
