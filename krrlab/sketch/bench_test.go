package sketch_test

import (
	"fmt"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/sketch"
)

// BenchmarkApply sketches rows to a quarter of their length, on one thread; ns/entry is the
// time of one number of Z. "copy" reads and writes as much, which is the floor.
func BenchmarkApply(b *testing.B) {
	if lib, err := accel.OpenBLAS(); err == nil {
		accel.Use(lib)
		b.Cleanup(func() { accel.Use(nil) })
	}
	defer accel.SetThreads(accel.Threads())
	accel.SetThreads(1)
	for _, m := range []int{1024, 4096, 16384, 65536} {
		rows := 1 << 21 / m // 8 MB: out of the second cache
		src, dst := make([]float32, rows*m), make([]float32, rows*m)
		for i := range src {
			src[i] = float32(i%7) - 3
		}
		report := func(b *testing.B) {
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows*m), "ns/entry")
			b.ReportMetric(float64(b.N)*4*float64(rows*m)/float64(b.Elapsed().Nanoseconds()), "GB/s")
		}
		b.Run(fmt.Sprintf("copy/m=%d", m), func(b *testing.B) {
			for range b.N {
				copy(dst, src)
			}
			report(b)
		})
		for _, d := range []sketch.Dist{sketch.CountSketch{}, sketch.SRHT{}, sketch.Gaussian{}} {
			if d == (sketch.Gaussian{}) && m > 4096 {
				continue
			}
			op := draw(b, d, m, m/4, rng.New(1))
			b.Run(fmt.Sprintf("%v/m=%d", d, m), func(b *testing.B) {
				var w sketch.Workspace
				for range b.N {
					op.Apply32(dst, m/4, src, m, rows, &w)
				}
				report(b)
			})
		}
	}
}
