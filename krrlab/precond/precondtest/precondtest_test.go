package precondtest_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond/precondtest"
)

const order = 40

// diagonal is the preconditioner M = diag(1, 2, …), which has all the properties that are tested.
type diagonal struct{}

// diagonalEntry returns entry (i, i) of M.
func diagonalEntry(i int) float64 { return 1 + float64(i) }

func (diagonal) Dim() int { return order }

// each sets dst_ij to f(i, src_ij). It returns an error if src does not have order rows, and the error of ctx.
func (diagonal) each(ctx context.Context, dst, src *mat.Dense, f func(i int, v float64) float64) error {
	if n, _ := src.Dims(); n != order {
		return fmt.Errorf("%d rows for order %d", n, order)
	}
	dst.Apply(func(i, _ int, v float64) float64 { return f(i, v) }, src)
	return ctx.Err()
}

func (d diagonal) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	return d.each(ctx, dst, r, func(i int, v float64) float64 { return v / diagonalEntry(i) })
}

func (d diagonal) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	return d.each(ctx, dst, src, func(i int, v float64) float64 { return diagonalEntry(i) * v })
}

func (d diagonal) NormalTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	return d.each(ctx, dst, dst,
		func(i int, _ float64) float64 { return math.Sqrt(diagonalEntry(i)) * g.Normal(uint64(i)) })
}

// faultyDiagonal is the preconditioner diagonal with faults. The keys of the maps are names of methods.
type faultyDiagonal struct {
	diagonal
	dim           int
	after         map[string]func(dst, src *mat.Dense) // called after the method of this name
	err           map[string]error                     // returned by the method of this name
	ignoresCancel string                               // name of the method that ignores a canceled context
	solve         func(v float64, i int) float64       // replaces SolveTo, without a check of shapes
}

func (d faultyDiagonal) Dim() int { return d.dim }

// call calls good, which is the method of this name of diagonal, with the faults of d.
func (d faultyDiagonal) call(ctx context.Context, name string, dst, src *mat.Dense,
	good func(ctx context.Context) error) error {
	if err := d.err[name]; err != nil {
		return err
	}
	if d.ignoresCancel == name {
		ctx = context.WithoutCancel(ctx)
	}
	err := good(ctx)
	if f := d.after[name]; f != nil && err == nil {
		f(dst, src)
	}
	return err
}

func (d faultyDiagonal) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	if d.solve != nil {
		dst.Apply(func(i, _ int, v float64) float64 { return d.solve(v, i) }, r)
		return ctx.Err()
	}
	return d.call(ctx, "SolveTo", dst, r, func(ctx context.Context) error { return d.diagonal.SolveTo(ctx, dst, r) })
}

func (d faultyDiagonal) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	return d.call(ctx, "MulTo", dst, src, func(ctx context.Context) error { return d.diagonal.MulTo(ctx, dst, src) })
}

func (d faultyDiagonal) NormalTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	return d.call(ctx, "NormalTo", dst, dst, func(ctx context.Context) error {
		return d.diagonal.NormalTo(ctx, dst, g)
	})
}

// withFault returns diagonal with a fault: f is called after the named method.
func withFault(method string, f func(dst, src *mat.Dense)) faultyDiagonal {
	return faultyDiagonal{dim: order, after: map[string]func(dst, src *mat.Dense){method: f}}
}

// solveOnly is a pcg.Preconditioner without further methods.
type solveOnly struct{ m pcg.Preconditioner }

func (s solveOnly) Dim() int { return s.m.Dim() }
func (s solveOnly) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	return s.m.SolveTo(ctx, dst, r)
}

var allOptions = &precondtest.Options{InPlace: true, Strided: true, Concurrent: true}

// TestCorrectPreconditioners checks that correct preconditioners pass for 20 seeds, also those without products or
// draws.
func TestCorrectPreconditioners(t *testing.T) {
	errNoZ := fmt.Errorf("no Z: %w", errors.ErrUnsupported)
	unsupported := faultyDiagonal{dim: order, err: map[string]error{"MulTo": errNoZ, "NormalTo": errNoZ}}
	for _, m := range []pcg.Preconditioner{diagonal{}, solveOnly{diagonal{}}, unsupported} {
		for seed := range uint64(20) {
			opts := *allOptions
			opts.Seed = seed
			if err := precondtest.Test(t.Context(), m, &opts); err != nil {
				t.Errorf("%T, seed %d: %v", m, seed, err)
			}
		}
	}
	if err := precondtest.Test(t.Context(), diagonal{}, nil); err != nil {
		t.Error(err)
	}
}

// nudge changes the first entry by one unit in the last place.
func nudge(dst *mat.Dense) { dst.Set(0, 0, math.Nextafter(dst.At(0, 0), 9)) }

// setNaN sets the first entry to NaN.
func setNaN(dst, _ *mat.Dense) { dst.Set(0, 0, math.NaN()) }

// cubic makes a result depend on the source nonlinearly.
func cubic(dst, _ *mat.Dense) {
	dst.Apply(func(_, _ int, v float64) float64 { return v + v*v*v }, dst)
}

// scaleRows multiplies the first rows by a factor.
func scaleRows(factor float64, rows int) func(dst, _ *mat.Dense) {
	return func(dst, _ *mat.Dense) {
		_, k := dst.Dims()
		part := dst.Slice(0, rows, 0, k).(*mat.Dense)
		part.Scale(factor, part)
	}
}

// TestFaultyPreconditioners checks that every tested property can fail, and that the error names it.
func TestFaultyPreconditioners(t *testing.T) {
	calls, callsInProgress, errGone := 0, atomic.Int32{}, errors.New("gone")
	changing := func(dst, _ *mat.Dense) { // returns another result at each call
		calls++
		dst.Set(0, 0, dst.At(0, 0)*(1+float64(calls)*1e-15))
	}
	// withStrideFault returns a preconditioner whose fault occurs only if dst consists of columns of a wider matrix.
	withStrideFault := func(change func(dst *mat.Dense, raw blas64.General)) faultyDiagonal {
		return withFault("SolveTo", func(dst, _ *mat.Dense) {
			if raw := dst.RawMatrix(); raw.Stride != raw.Cols {
				change(dst, raw)
			}
		})
	}
	for want, m := range map[string]faultyDiagonal{
		"M⁻¹: not linear": withFault("SolveTo", cubic),
		"M⁻¹: not symmetric": withFault("SolveTo", func(dst, _ *mat.Dense) { // adds a part of row 30 to row 3
			_, k := dst.Dims()
			for c := range k {
				dst.Set(3, c, dst.At(3, c)+0.1*dst.At(30, c))
			}
		}),
		"M⁻¹: not positive definite": withFault("SolveTo", scaleRows(-1, order)),
		"is one of": withFault("SolveTo", func(dst, _ *mat.Dense) {
			if _, k := dst.Dims(); k == 2 {
				dst.Set(0, 1, 2*dst.At(0, 0))
			}
		}),
		"source was changed": withFault("SolveTo", func(dst, r *mat.Dense) {
			if dst != r {
				r.Zero()
			}
		}),
		"M⁻¹: the same call gave another result": withFault("SolveTo", changing),
		"M⁻¹: after the context was canceled":    {dim: order, ignoresCancel: "SolveTo"},
		"M⁻¹: entry (0, 0) of the result is NaN": withFault("SolveTo", setNaN),
		"M⁻¹: unexpected error: gone":            {dim: order, err: map[string]error{"SolveTo": errGone}},
		"M⁻¹: unexpected error: unsupported operation": {dim: order,
			err: map[string]error{"SolveTo": errors.ErrUnsupported}},
		"M⁻¹: the order is 0": {},
		"SolveTo has other bits on 5 threads": withFault("SolveTo", func(dst, _ *mat.Dense) {
			if accel.Threads() == 5 {
				nudge(dst)
			}
		}),
		"SolveTo of 41×1 into 41×1, at order 40, gives an answer": {dim: order,
			solve: func(v float64, i int) float64 { return v / diagonalEntry(i) }},
		"panics with \"runtime error: index out of range": {dim: order,
			solve: func(v float64, i int) float64 { return v / diagonalEntry(make([]int, order)[i]+i) }},
		"SolveTo in place is wrong": withFault("SolveTo", func(dst, r *mat.Dense) {
			if dst == r {
				dst.Zero()
			}
		}),
		"between columns of wider matrices is wrong": withStrideFault(
			func(dst *mat.Dense, _ blas64.General) { dst.Zero() }),
		"into columns of a wider matrix changes the others": withStrideFault(func(_ *mat.Dense, raw blas64.General) {
			raw.Data[raw.Cols] = 0
		}),
		"during other calls is wrong": withFault("SolveTo", func(dst, _ *mat.Dense) {
			if callsInProgress.Add(1) > 1 {
				dst.Zero()
			}
			for range 1000 {
				runtime.Gosched()
			}
			callsInProgress.Add(-1)
		}),
		"M: not linear":                      withFault("MulTo", cubic),
		"M·M⁻¹x is wrong":                    withFault("MulTo", scaleRows(1.001, order)),
		"NormalTo: gone":                     {dim: order, err: map[string]error{"NormalTo": errGone}},
		"NormalTo: the sum of a draw is NaN": withFault("NormalTo", setNaN),
		"NormalTo with the same stream":      withFault("NormalTo", changing),
		"NormalTo: after the context":        {dim: order, ignoresCancel: "NormalTo"},
		"the mean of xᵀM⁻¹x is":              withFault("NormalTo", scaleRows(1.05, order)),
		"NormalTo does not have mean 0": withFault("NormalTo", func(dst, _ *mat.Dense) {
			dst.Apply(func(_, _ int, v float64) float64 { return math.Abs(v) }, dst)
		}),
		"its variance is": withFault("NormalTo", func(dst, _ *mat.Dense) { // xᵀM⁻¹x keeps its mean n
			dst.Set(0, 0, 0)
			dst.Set(1, 0, math.Sqrt2*dst.At(1, 0))
		}),
	} {
		calls = 0
		err := precondtest.Test(t.Context(), m, allOptions)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
