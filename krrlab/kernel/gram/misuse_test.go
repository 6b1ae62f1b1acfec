package gram_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestProgressAndCancel checks that Progress is called once per tile, that New and MulTo stop when the context is
// canceled, and that a product after a canceled one is correct.
func TestProgressAndCancel(t *testing.T) {
	x := pointsInFormats(9, 100, 4, 1)[0]
	var seen []int
	mustNew(t, kernels[0], x, 0.1, &gram.Options{TileSize: 10, Progress: func(done, total int) {
		testkit.Equal(t, total, 55)
		seen = append(seen, done)
	}})
	if len(seen) != 55 || !slices.IsSorted(seen) || seen[54] != 55 {
		t.Errorf("progress %v", seen)
	}
	for _, storage := range []gram.Storage{gram.Float64, gram.Float32, gram.Recompute} {
		canceledCtx, cancel := context.WithCancel(ctx)
		opts := gram.Options{Storage: storage, TileSize: 10, Progress: func(done, _ int) {
			if done == 20 {
				cancel()
			}
		}}
		m, err := gram.New(canceledCtx, kernels[0], x, 0.1, &opts)
		if storage != gram.Recompute && (!errors.Is(err, context.Canceled) || m != nil) {
			t.Errorf("%v: New after cancel: %v, %v", storage, m, err)
		}
		m = mustNew(t, kernels[0], x, 0.1, &gram.Options{Storage: storage, TileSize: 10})
		src, dst, want := gaussianMatrix(1, 100, 2), mat.NewDense(100, 2, nil), mat.NewDense(100, 2, nil)
		testkit.OK(t, m.MulTo(ctx, want, src))
		cancel()
		if err := m.MulTo(canceledCtx, dst, src); !errors.Is(err, context.Canceled) {
			t.Errorf("%v: MulTo after cancel: %v", storage, err)
		}
		if err := m.MulTo(ctx, dst, src); err != nil || !mat.Equal(dst, want) {
			t.Errorf("%v: MulTo after a canceled one differs: %v", storage, err)
		}
	}
}

// TestPanicInKernel checks that a panic in a user-defined kernel reaches the caller of MulTo, and that no worker
// waits forever for the lost tile.
func TestPanicInKernel(t *testing.T) {
	defer accel.SetThreads(accel.Threads())
	accel.SetThreads(3)
	x := pointsInFormats(11, 60, 2, 1)[0].(*points.Dense)
	armed := false
	k := kernel.Func{Name: "bomb", F: func(a, b []float64) float64 {
		if armed && &a[0] != &b[0] && a[0] == x.Row(59)[0] {
			panic("boom")
		}
		return 1
	}}
	m := mustNew(t, k, x, 0.1, &gram.Options{Storage: gram.Recompute, TileSize: 4})
	armed = true
	defer func() {
		if p, ok := recover().(*accel.WorkerPanic); !ok || p.Value != "boom" {
			t.Errorf("recovered %v", p)
		}
	}()
	_ = m.MulTo(ctx, mat.NewDense(60, 1, nil), gaussianMatrix(1, 60, 1))
	t.Error("no panic")
}

// TestErrorsAndPanics checks the errors for unusable kernels, points and λ, and the panics for matrices of the wrong
// shape and invalid options.
func TestErrorsAndPanics(t *testing.T) {
	x := pointsInFormats(12, 20, 3, 1)[0]
	huge := points.NewDense(2, 1, []float64{1e200, 1})
	large := points.NewDense(2, 1, []float64{1e20, 1})
	nanKernel := kernel.Func{Name: "odd", F: func(x, z []float64) float64 {
		if x[0] != z[0] {
			return math.NaN()
		}
		return 1
	}}
	cube := kernel.Polynomial{Gamma: 1, Coef0: 0, Degree: 3}
	for _, c := range []struct {
		k       kernel.Kernel
		x       points.Points
		lambda  float64
		options gram.Options
		want    string
	}{
		{kernel.Gaussian{}, x, 1, gram.Options{}, "sigma = 0"},
		{nil, x, 1, gram.Options{}, "no kernel"},
		{kernels[0], points.NewDense(0, 3, nil), 1, gram.Options{}, "no points"},
		{kernels[0], x, -1, gram.Options{}, "λ = -1"},
		{kernels[0], x, math.NaN(), gram.Options{}, "λ = NaN"},
		{kernels[0], huge, 1, gram.Options{}, "point 0 has ‖x‖² = +Inf"},
		{kernel.Polynomial{Gamma: 1, Degree: 9}, large, 1, gram.Options{}, "point 0 with itself is +Inf"},
		{cube, large, 1, gram.Options{Storage: gram.Float32}, "too large for float32"},
		{nanKernel, x, 1, gram.Options{Storage: gram.Float64}, "kernel odd of points"},
	} {
		testkit.Fails(t, testkit.ErrOf(gram.New(ctx, c.k, c.x, c.lambda, &c.options)), c.want)
	}
	if m := mustNew(t, cube, large, 1, nil); m.Storage() != gram.Float64 {
		t.Errorf("entries of 1e120 are stored as %v", m.Storage())
	}
	m := mustNew(t, kernels[0], x, 1, nil)
	product := func(resultRows, sourceRows, resultColumns, sourceColumns int) func() {
		return func() {
			_ = m.MulTo(ctx, mat.NewDense(resultRows, resultColumns, nil), mat.NewDense(sourceRows, sourceColumns, nil))
		}
	}
	for wantText, call := range map[string]func(){
		"product of a 20×20": product(20, 20, 1, 2), "with 19×2 into 20×2": product(20, 19, 2, 2),
		"with 20×2 into 19×2": product(19, 20, 2, 2), "with 19×2 into 19×2": product(19, 19, 2, 2),
		"with 20×2 into 20×3":                   product(20, 20, 3, 2),
		"1 columns of a 20×20 matrix into 19×1": func() { _ = m.Columns(ctx, []int{1}, mat.NewDense(19, 1, nil)) },
		"column -1 of 20":                       func() { _ = m.Columns(ctx, []int{-1}, mat.NewDense(20, 1, nil)) },
		"into 20×19":                            func() { _ = m.DenseTo(ctx, mat.NewDense(20, 19, nil)) },
		"columns of a 20×20":                    func() { _ = m.Columns(ctx, []int{1}, mat.NewDense(20, 2, nil)) },
		"column 20 of 20":                       func() { _ = m.Columns(ctx, []int{20}, mat.NewDense(20, 1, nil)) },
		"into 19×20":                            func() { _ = m.DenseTo(ctx, mat.NewDense(19, 20, nil)) },
		"unknown storage":                       func() { _, _ = gram.New(ctx, kernels[0], x, 1, &gram.Options{Storage: 9}) },
		"negative option":                       func() { _, _ = gram.New(ctx, kernels[0], x, 1, &gram.Options{Memory: accel.Budget{Limit: -1}}) },
	} {
		func() {
			defer func() {
				if v, _ := recover().(string); !strings.Contains(v, wantText) {
					t.Errorf("panic %q, want one with %q", v, wantText)
				}
			}()
			call()
		}()
	}
}
