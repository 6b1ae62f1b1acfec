package gram_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestExtend extends a matrix of 70 points three times, within a block and over several blocks, the last time with
// new weights. It compares products and columns with K from Eval, for every storage and kind of points. The result
// must have the same bits on one thread and on two.
func TestExtend(t *testing.T) {
	const n, d, lambda = 160, 3, 0.5
	bytePoints := points.NewBytes(n, d, 0.25, nil)
	for i := range bytePoints.Data {
		bytePoints.Data[i] = uint8(i * i % 7)
	}
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = 1 + float64(i%3)
	}
	for kind, x := range map[string]points.Points{"dense": pointsInFormats(1, n, d, 1)[0],
		"float32": pointsInFormats(2, n, d, 1)[1], "sparse": pointsInFormats(3, n, d, 0.3)[2], "bytes": bytePoints,
		"far": points.Shift(pointsInFormats(4, n, d, 1)[0], []float64{100, 100, 100})} {
		if kind == "far" { // a dense copy of the shifted points
			x = points.Gather(points.Transform(x, []float64{1, 0, 0, 0, 1, 0, 0, 0, 1}), sequence(n))
		}
		for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 1.5}, minKernel{}} {
			for _, storage := range []gram.Storage{gram.Float64, gram.Float32, gram.Fixed16, gram.Recompute} {
				if storage == gram.Fixed16 && k != (kernel.Gaussian{Sigma: 1.5}) {
					continue
				}
				name := kind + " " + k.String() + " " + storage.String()
				extended := func(threads int) *gram.Matrix {
					defer accel.SetThreads(accel.Threads())
					accel.SetThreads(threads)
					m := testkit.Must(gram.New(ctx, k, x.Slice(0, 70), lambda, &gram.Options{Storage: storage}))
					for _, rows := range []int{71, 80, n} {
						subset := x.Slice(0, rows)
						if rows == n {
							subset = testkit.Must(points.NewWeighted(subset, weights))
						}
						next, err := m.Extend(ctx, subset, nil)
						if m = next; err != nil {
							t.Fatalf("%s to %d: %v", name, rows, err)
						}
					}
					return m
				}
				m, oneThread := extended(2), extended(1)
				want := evalMatrix(k, x)
				want.Apply(func(i, j int, v float64) float64 { return v * math.Sqrt(weights[i]*weights[j]) }, want)
				c := m.Choice()
				tolerance := 2*c.Error + 1e-6*mat.Norm(want, 2)
				v, got, gotOneThread, truth := gaussianMatrix(5, n, 2), mat.NewDense(n, 2, nil),
					mat.NewDense(n, 2, nil),
					mat.NewDense(n, 2, nil)
				testkit.OK(t, m.KMulTo(ctx, got, v))
				testkit.OK(t, oneThread.KMulTo(ctx, gotOneThread, v))
				truth.Mul(want, v)
				if deviation := testkit.RelativeDifference(got, truth); !(deviation <= tolerance*mat.Norm(v, 2)) ||
					!mat.Equal(got, gotOneThread) {
					t.Errorf("%s: a product has an error of %g, tolerance %g, or differs between threads", name,
						deviation, tolerance)
				}
				columns := mat.NewDense(n, n, nil)
				testkit.OK(t, m.Columns(ctx, sequence(n), columns))
				columns.Sub(columns, want)
				eigenvalues := testkit.Eigenvalues(t, testkit.Symmetric(columns))
				if deviation := max(-eigenvalues[0], eigenvalues[n-1]); !(deviation <= c.Error+1e-13*mat.Norm(want, 2)) || storage != c.Storage {
					t.Errorf("%s: ‖E‖₂ = %g, predicted %g, as %v", name, deviation, c.Error, c.Storage)
				}
			}
		}
	}
}

// sequence returns 0, 1, …, n−1.
func sequence(n int) []int {
	index := make([]int, n)
	for i := range index {
		index[i] = i
	}
	return index
}

// TestExtendErrors checks that Extend names the reason if a matrix cannot be extended, keeps the memory limit, can be
// canceled, and panics if there are fewer points than before.
func TestExtendErrors(t *testing.T) {
	x := pointsInFormats(6, 400, 2, 1)[0]
	k := kernel.Gaussian{Sigma: 0.05}
	sparse := testkit.Must(gram.New(ctx, k, x.Slice(0, 300), 1, &gram.Options{Tiles: gram.SparseTiles}))
	narrow := testkit.Must(gram.New(ctx, k, x.Slice(0, 300), 1, &gram.Options{TileSize: 16, Tiles: gram.DenseTiles}))
	bytes := points.NewBytes(300, 2, 1, nil)
	for i := range bytes.Data {
		bytes.Data[i] = uint8(i % 5)
	}
	byteMatrix := testkit.Must(gram.New(ctx, k, bytes, 1, &gram.Options{Tiles: gram.DenseTiles, Storage: gram.Float32}))
	for want, m := range map[string]*gram.Matrix{"sparse tiles": sparse, "tiles of 16 points": narrow,
		"other distances": byteMatrix} {
		_, err := m.Extend(ctx, x, nil)
		testkit.Fails(t, err, want)
	}
	m := testkit.Must(gram.New(ctx, k, x.Slice(0, 300), 1, &gram.Options{Tiles: gram.DenseTiles, Storage: gram.Float32}))
	_, err := m.Extend(ctx, x, &gram.Options{Memory: accel.Budget{Limit: 1 << 18}})
	if !errors.As(err, new(*accel.MemoryError)) {
		t.Errorf("error %v, want a MemoryError", err)
	}
	testkit.CheckCancellation(t, func(ctx context.Context) error { return testkit.ErrOf(m.Extend(ctx, x, nil)) })
	testkit.Panics(t, map[string]func(){"300 points extended to 10": func() { _, _ = m.Extend(ctx, x.Slice(0, 10), nil) }})
}
