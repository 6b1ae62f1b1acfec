package model

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// TestFourierDecision checks predictions by a Fourier series for many points in the plane, for a model with a mean.
// They must agree with tiles in float64 and have the same bits on ranks. The series must not be used for few points,
// for a narrow kernel, for another kernel, or if tiles in float64 are requested.
func TestFourierDecision(t *testing.T) {
	const n, rows = 50_000, 40_000 // the fewest pairs for which the series is used
	x, z := points.NewDense(n, 2, nil), points.NewDense(rows, 2, nil)
	rng.New(1).Float64s(x.Data, 0)
	rng.New(2).Float64s(z.Data, 0)
	m := &Model{Kernel: kernel.Gaussian{Sigma: 0.3}, X: x, C: testkit.RandomMatrix(3, n, 1), Mean: []float64{7}}
	f, err := m.fourierDecision(t.Context(), z, &Options{})
	if err != nil || f == nil {
		t.Fatalf("no series: %v", err)
	}
	const checked = 100 // number of rows that are compared with tiles in float64
	want := testkit.Must(m.Decision(t.Context(), z.Slice(17, 17+checked), &Options{Float64: true}))
	largest := mat.Norm(f, math.Inf(1))
	for i := range checked {
		if e := math.Abs(f.At(17+i, 0) - want.At(i, 0)); e > 1e-9*largest {
			t.Fatalf("row %d has an error of %.3g, the largest value is %.3g", 17+i, e, largest)
		}
	}
	defaultDecision := testkit.Must(m.Decision(t.Context(), z, nil))
	testkit.Equal(t, defaultDecision.At(5, 0), f.At(5, 0))
	comm.RunLocal(2, func(c comm.Comm) {
		if got, err := m.fourierDecision(t.Context(), z, &Options{Comm: c}); err != nil || !mat.Equal(got, f) {
			t.Errorf("rank %d: %v, or other decisions than in one process", c.Rank(), err)
		}
	})
	narrow, laplacian := *m, *m
	narrow.Kernel, laplacian.Kernel = kernel.Gaussian{Sigma: 1e-4}, kernel.Laplacian{Sigma: 0.3}
	for name, c := range map[string]struct {
		m *Model
		z points.Points
		o Options
	}{"few points": {m, z.Slice(0, 100), Options{}}, "narrow kernel": {&narrow, z, Options{}},
		"laplacian": {&laplacian, z, Options{}}, "float64 requested": {m, z, Options{Float64: true}}} {
		if f, err := c.m.fourierDecision(t.Context(), c.z, &c.o); f != nil || err != nil {
			t.Errorf("%s: a series is used, or fails: %v", name, err)
		}
	}
}
