package vecchia

import (
	"context"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// made returns M on k neighbors of n points near a surface in 54 dimensions, and K.
func made(b *testing.B, n, k int) (*Inverse, *gram.Matrix) {
	const d = 54
	x := points.NewDense(n, d, make([]float64, n*d))
	u := make([]float64, 3*n)
	rng.New(1).Sub("points").Normals(u, 0)
	for i := range n {
		for c, row := 0, x.Row(i); c < d; c++ {
			row[c] = u[3*i+c%3] / 7
		}
	}
	a, err := gram.New(b.Context(), kernel.Gaussian{Sigma: 0.1}, x, 0.01, &gram.Options{Storage: gram.Float32})
	if err != nil {
		b.Fatal(err)
	}
	m, err := New(b.Context(), a, nil, &Options{Neighbors: k, Damping: 1})
	if err != nil {
		b.Fatal(err)
	}
	return m, a
}

// fastest returns the least seconds of five calls.
func fastest(f func()) float64 {
	best := time.Hour
	for range 5 {
		start := time.Now()
		f()
		best = min(best, time.Since(start))
	}
	return best.Seconds()
}

// BenchmarkNew compares the search for neighbors with a product with K, which reads as much, and making G with its
// floor: its multiply-adds at the rate at which all threads together factorize matrices of order k.
func BenchmarkNew(b *testing.B) {
	const n, k, d, times = 8192, 60, 54, 200
	p, order := accel.Threads(), k+1
	alone := fastest(func() {
		accel.ForEach(context.Background(), p, func(int, int) {
			var w worker
			w.a = make([]float64, order*stride(order))
			for range times {
				clear(w.a)
				for i := range order {
					w.a[i*stride(order)+i] = 1
				}
				w.cholesky(order)
			}
		})
	})
	rate := float64(times*p*order*order*order) / 6 / alone
	least := Seconds{Neighbors: 1e9, Factor: 1e9}
	var a *gram.Matrix
	for range b.N {
		var m *Inverse
		m, a = made(b, n, k)
		least.Neighbors, least.Factor = min(least.Neighbors, m.seconds.Neighbors), min(least.Factor, m.seconds.Factor)
	}
	y := mat.NewDense(n, 1, nil)
	product := fastest(func() { a.MulTo(b.Context(), y, y) })
	b.ReportMetric(rate/1e9, "Gmadds/s")
	b.ReportMetric(least.Neighbors/product, "products")
	b.ReportMetric(least.Factor/(n*(k*k*d/2+k*k*k/6)/rate), "floors")
}

// BenchmarkSolveTo compares an application with the time in which all threads together read as many bytes as G and Gᵀ
// have.
func BenchmarkSolveTo(b *testing.B) {
	const n, k, rows = 1 << 14, 60, 512
	m, _ := made(b, n, k)
	tile := make([]float32, 4*len(m.rows.col)) // 16 bytes for an entry of G
	reading := fastest(func() {
		accel.ForEach(context.Background(), len(tile)/(rows*rows), func(_, q int) {
			x := make([]float32, 4*rows)
			simd.Both(rows, rows, tile[q*rows*rows:], rows, x[:rows], x[rows:2*rows], x[2*rows:3*rows], x[3*rows:], 1,
				new(simd.Workspace))
		})
	})
	in, out := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	least := 1e9
	for b.Loop() {
		least = min(least, fastest(func() { m.SolveTo(b.Context(), out, in) }))
	}
	b.ReportMetric(float64(4*len(tile))/least/1e9, "GB/s")
	b.ReportMetric(least/reading, "floors")
}
