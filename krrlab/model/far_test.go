package model

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestFarRows compares the number of far rows with a count of the rows at which the kernel is small for each point of
// the fit, for kernels of both distances. Rows inside the box of the points are among them, and their decision values
// must be small too. No row is far for a kernel that grows with the distance.
func TestFarRows(t *testing.T) {
	const n, dim = 100, 2
	stream := rng.New(4)
	for _, scaling := range []string{"none", "standard"} {
		for _, origin := range []float64{0, 1e7} { // far from zero, distances are formed from differences
			x, raw := points.NewDense(n, dim, nil), points.NewDense(n, dim, nil)
			d := &datasets.Dataset{Task: datasets.Regression, X: x, Target: make([]float64, n)}
			stream.Normals(x.Data, 0)
			stream.Sub("far").Normals(raw.Data, 0)
			for i := range raw.Data {
				if raw.Data[i] *= 3; i%5 == 0 {
					raw.Data[i] = 0
				}
				x.Data[i], raw.Data[i] = x.Data[i]+origin, raw.Data[i]+origin
			}
			for j := range dim { // the box is wide, and its corners are empty
				x.Row(0)[j], x.Row(1)[j] = origin-6, origin+6
			}
			fit, _, err := datasets.Scale(scaling, d, nil)
			testkit.OK(t, err)
			m := &Model{Lambda: 1, X: fit.X, C: mat.NewDense(n, 1, slices.Repeat([]float64{1.0 / n}, n)),
				Scaling: fit.Scaling}
			low, high := datasets.FeatureRanges(x)
			rows := &datasets.Dataset{X: raw}
			z := testkit.Must(m.Scaled(rows)).X.(*points.Dense)
			scaledX := fit.X.(*points.Dense)
			for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 0.3}, kernel.Laplacian{Sigma: 0.15}} {
				m.Kernel = k
				f, want, inside := testkit.Must(m.Decision(t.Context(), raw, nil)), 0, 0
				for i := range n {
					largest := 0.0
					for j := range n {
						largest = max(largest, k.Eval(scaledX.Row(j), z.Row(i)))
					}
					if largest >= 1e-3 {
						continue
					}
					if want++; f.At(i, 0) > 1e-3 {
						t.Errorf("%v: f of a far row is %g, want at most 1e-3", k, f.At(i, 0))
					}
					if r := raw.Row(i); r[0] > low[0] && r[0] < high[0] && r[1] > low[1] && r[1] < high[1] {
						inside++
					}
				}
				if got, isEstimate := m.countFarRows(rows); got != want || inside == 0 || isEstimate {
					t.Errorf("%v, scaling %s, origin %g: %d far rows, want %d, of which %d in the box", k, scaling,
						origin,
						got, want, inside)
				}
				got, _ := m.countFarRows(&datasets.Dataset{X: testkit.ToCSR(raw)})
				testkit.Equal(t, got, want)
				got, _ = m.countFarRows(d)
				testkit.Equal(t, got, 0)
			}
			m.Kernel = kernel.Polynomial{Gamma: 1, Degree: 2}
			got, _ := m.countFarRows(rows)
			testkit.Equal(t, got, 0)
		}
	}
}

// TestFarRowsOfSample checks that the number of far rows is estimated from a sample if many rows are compared with many
// points, and that rows far from the box of the points are counted all the same.
func TestFarRowsOfSample(t *testing.T) {
	const n, rows = 20_000, 20_000
	x, z := points.NewDense(n, 1, nil), points.NewDense(rows, 1, nil)
	for i := range n { // two clusters
		x.Data[i] = float64(i % 2)
	}
	far, outside := 0, 3
	for i := range rows {
		switch {
		case i < outside:
			z.Data[i] = 2
		case i%5 == 0:
			z.Data[i], far = 0.5, far+1
		}
	}
	m := &Model{Kernel: kernel.Gaussian{Sigma: 0.1}, Lambda: 1, X: x, C: mat.NewDense(n, 1, nil)}
	count, isEstimate := m.countFarRows(&datasets.Dataset{X: z})
	// The sample has more than 6,000 rows, and the standard deviation of the share is 0.5 %.
	share := float64(count-outside) / float64(rows-outside)
	if !isEstimate || math.Abs(share-float64(far)/rows) > 0.02 {
		t.Errorf("%d far rows, estimate %v, want some %d", count, isEstimate, far+outside)
	}
}
