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

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/precond/precondtest"
	"github.com/krrlab/lab/krrlab/rng"
)

const order = 40

// diagonal is M = diag(1+i), which keeps every promise.
type diagonal struct{}

func at(i int) float64 { return 1 + float64(i) }

func (diagonal) Dim() int { return order }

func (diagonal) each(ctx context.Context, dst, src *mat.Dense, f func(i int, v float64) float64) error {
	if n, _ := src.Dims(); n != order {
		return fmt.Errorf("%d rows for order %d", n, order)
	}
	dst.Apply(func(i, _ int, v float64) float64 { return f(i, v) }, src)
	return ctx.Err()
}

func (d diagonal) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	return d.each(ctx, dst, r, func(i int, v float64) float64 { return v / at(i) })
}

func (d diagonal) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	return d.each(ctx, dst, src, func(i int, v float64) float64 { return at(i) * v })
}

func (d diagonal) NormalTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	return d.each(ctx, dst, dst, func(i int, _ float64) float64 { return math.Sqrt(at(i)) * g.Normal(uint64(i)) })
}

// double is diagonal with methods replaced.
type double struct {
	diagonal
	dim    int
	solve  func(ctx context.Context, dst, r *mat.Dense) error
	mul    func(ctx context.Context, dst, src *mat.Dense) error
	normal func(ctx context.Context, dst *mat.Dense, g rng.Stream) error
}

func (d double) Dim() int { return d.dim }

func (d double) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	if d.solve != nil {
		return d.solve(ctx, dst, r)
	}
	return d.diagonal.SolveTo(ctx, dst, r)
}

func (d double) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	if d.mul != nil {
		return d.mul(ctx, dst, src)
	}
	return d.diagonal.MulTo(ctx, dst, src)
}

func (d double) NormalTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	if d.normal != nil {
		return d.normal(ctx, dst, g)
	}
	return d.diagonal.NormalTo(ctx, dst, g)
}

// bare is no more than a pcg.Preconditioner.
type bare struct{ m pcg.Preconditioner }

func (b bare) Dim() int                                             { return b.m.Dim() }
func (b bare) SolveTo(ctx context.Context, dst, r *mat.Dense) error { return b.m.SolveTo(ctx, dst, r) }

var all = &precondtest.Options{InPlace: true, Strided: true, Columns: true, Concurrent: true}

func TestGood(t *testing.T) {
	unsupported := double{dim: order,
		mul: func(context.Context, *mat.Dense, *mat.Dense) error {
			return fmt.Errorf("no Z: %w", errors.ErrUnsupported)
		},
		normal: func(context.Context, *mat.Dense, rng.Stream) error {
			return fmt.Errorf("no Z: %w", errors.ErrUnsupported)
		},
	}
	for _, m := range []pcg.Preconditioner{diagonal{}, bare{diagonal{}}, unsupported} {
		for seed := range uint64(20) {
			o := *all
			o.Seed = seed
			if err := precondtest.Test(t.Context(), m, &o); err != nil {
				t.Errorf("%T, seed %d: %v", m, seed, err)
			}
		}
	}
	if err := precondtest.Test(t.Context(), diagonal{}, nil); err != nil {
		t.Error(err)
	}
}

// then is SolveTo of diagonal, followed by something.
func then(f func(dst, r *mat.Dense)) func(ctx context.Context, dst, r *mat.Dense) error {
	return func(ctx context.Context, dst, r *mat.Dense) error {
		if err := (diagonal{}).SolveTo(ctx, dst, r); err != nil {
			return err
		}
		f(dst, r)
		return nil
	}
}

// nudge moves the first entry by one unit in the last place.
func nudge(dst *mat.Dense) { dst.Set(0, 0, math.Nextafter(dst.At(0, 0), 9)) }

// TestBroken: every property that is tested can fail, and is then the one that is named.
func TestBroken(t *testing.T) {
	calls, inside := 0, atomic.Int32{}
	noContext := context.WithoutCancel
	row := func(dst *mat.Dense, i, j int) { // row i takes up row j
		_, k := dst.Dims()
		for c := range k {
			dst.Set(i, c, dst.At(i, c)+0.1*dst.At(j, c))
		}
	}
	for want, m := range map[string]double{
		"M⁻¹: not linear": {solve: then(func(dst, _ *mat.Dense) {
			dst.Apply(func(_, _ int,
				v float64) float64 {
				return v + v*v*v
			}, dst)
		})},
		"M⁻¹: not symmetric":         {solve: then(func(dst, _ *mat.Dense) { row(dst, 3, 30) })},
		"M⁻¹: not positive definite": {solve: then(func(dst, _ *mat.Dense) { dst.Scale(-1, dst) })},
		"when it is one of": {solve: then(func(dst, _ *mat.Dense) {
			if _, k := dst.Dims(); k == 2 {
				dst.Set(0, 1, 2*dst.At(0, 0))
			}
		})},
		"source was changed": {solve: then(func(dst, r *mat.Dense) {
			if dst != r {
				r.Zero()
			}
		})},
		"M⁻¹: the same call gave another result": {solve: then(func(dst, _ *mat.Dense) {
			calls++
			dst.Set(0, 0, dst.At(0, 0)*(1+float64(calls)*1e-15))
		})},
		"M⁻¹: after the context was canceled": {solve: func(ctx context.Context, dst,
			r *mat.Dense) error {
			return diagonal{}.SolveTo(noContext(ctx), dst, r)
		}},
		"M⁻¹: entry (0, 0) of the result is NaN": {solve: then(func(dst, _ *mat.Dense) { dst.Set(0, 0, math.NaN()) })},
		"M⁻¹: unexpected error: gone": {solve: func(context.Context, *mat.Dense,
			*mat.Dense) error {
			return errors.New("gone")
		}},
		"M⁻¹: the order is 0": {dim: -order},
		"SolveTo has other bits on 5 threads": {solve: then(func(dst, _ *mat.Dense) {
			if accel.Threads() == 5 {
				nudge(dst)
			}
		})},
		"SolveTo of 41×1 into 41×1, at order 40, gives an answer": {solve: func(ctx context.Context, dst,
			r *mat.Dense) error {
			dst.Apply(func(i, _ int, v float64) float64 { return v / at(i) }, r)
			return ctx.Err()
		}},
		"panics with \"runtime error: index out of range": {solve: func(ctx context.Context, dst, r *mat.Dense) error {
			m := make([]float64, order)
			dst.Apply(func(i, _ int, v float64) float64 { m[i] = at(i); return v / m[i] }, r)
			return ctx.Err()
		}},
		"SolveTo in place is wrong": {solve: then(func(dst, r *mat.Dense) {
			if dst == r {
				dst.Zero()
			}
		})},
		"between columns of wider matrices is wrong": {solve: then(func(dst, r *mat.Dense) {
			if raw := dst.RawMatrix(); raw.Stride != raw.Cols {
				dst.Zero()
			}
		})},
		"into columns of a wider matrix changes the others": {solve: then(func(dst, _ *mat.Dense) {
			if raw := dst.RawMatrix(); raw.Stride != raw.Cols {
				raw.Data[raw.Cols] = 0
			}
		})},
		"alone has other bits": {solve: then(func(dst, _ *mat.Dense) {
			if _, k := dst.Dims(); k == 1 {
				nudge(dst)
			}
		})},
		"beside other calls is wrong": {solve: func(ctx context.Context, dst, r *mat.Dense) error {
			err := diagonal{}.SolveTo(ctx, dst, r)
			if inside.Add(1) > 1 {
				dst.Zero()
			}
			for range 1000 {
				runtime.Gosched()
			}
			inside.Add(-1)
			return err
		}},
		"M: not linear": {mul: func(ctx context.Context, dst, src *mat.Dense) error {
			err := diagonal{}.MulTo(ctx, dst, src)
			dst.Apply(func(_, _ int, v float64) float64 { return v + v*v*v }, dst)
			return err
		}},
		"M·M⁻¹x differs": {mul: func(ctx context.Context, dst, src *mat.Dense) error {
			err := diagonal{}.MulTo(ctx, dst, src)
			dst.Scale(1.001, dst)
			return err
		}},
		"NormalTo: gone": {normal: func(context.Context, *mat.Dense, rng.Stream) error { return errors.New("gone") }},
		"NormalTo: the sum of a draw is NaN": {normal: func(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
			keep := dst.At(0, 0)
			err := diagonal{}.NormalTo(ctx, dst, g)
			dst.Set(0, 0, keep)
			return err
		}},
		"NormalTo with the same stream": {normal: func(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
			calls++
			return diagonal{}.NormalTo(ctx, dst, g.Sub("call", uint64(calls)))
		}},
		"NormalTo after the context": {normal: func(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
			return diagonal{}.NormalTo(noContext(ctx), dst, g)
		}},
		"the mean of xᵀM⁻¹x is": {normal: func(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
			err := diagonal{}.NormalTo(ctx, dst, g)
			dst.Scale(1.05, dst)
			return err
		}},
		"NormalTo does not have mean 0": {normal: func(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
			err := diagonal{}.NormalTo(ctx, dst, g)
			for i := range order {
				dst.Set(i, 0, math.Abs(dst.At(i, 0)))
			}
			return err
		}},
		// with M's trace, M⁻¹-weighted
		"its variance is": {normal: func(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
			err := diagonal{}.NormalTo(ctx, dst, g)
			dst.Set(0, 0, 0)
			dst.Set(1, 0, math.Sqrt2*dst.At(1, 0))
			return err
		}},
	} {
		calls, m.dim = 0, order+m.dim
		err := precondtest.Test(t.Context(), m, all)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
