package leaveout

import (
	"context"
	"math"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"gonum.org/v1/gonum/mat"
)

// TestDense: residuals and errors are those of fits without one point each, GCV and s_λ those of eigenvalues.
func TestDense(t *testing.T) {
	lambdas := []float64{1, 1e-4, 0.03}
	for _, c := range []struct {
		t       int
		classes bool
	}{{1, false}, {3, false}, {1, true}, {3, true}} {
		const n = 40
		k, y := problem(n, 3, c.t, 2, c.classes, uint64(c.t))
		before := mat.DenseCopyOf(k)
		scores := testkit.Must(Dense(context.Background(), k, y, lambdas,
			&Problem{Classes: c.classes, Residuals: true}))
		if !mat.Equal(k, before) {
			t.Error("K was changed")
		}
		for q, s := range scores {
			e := refit(t, k, y, lambdas[q], &Problem{})
			// cond(A) ≤ tr A/λ ≤ 4e5: 1e-16·4e5 of each, and room for sums
			if !mat.EqualApprox(e, s.Residuals, 1e-8) {
				t.Errorf("t = %d, λ = %g: residuals differ", c.t, lambdas[q])
			}
			if want := score(y, e, &Problem{Classes: c.classes}); s.Lambda != lambdas[q] || math.Abs(s.Error.Value-want) > 1e-8 ||
				!s.Error.Covers(want) || s.Error.Hi-s.Error.Lo > 1e-3 {
				t.Errorf("t = %d, λ = %g: %v, want %g", c.t, lambdas[q], s.Error, want)
			}
			gcv, dim := reference(t, k, y, lambdas[q])
			if math.Abs(s.GCV/gcv-1) > 1e-8 || math.Abs(s.S-dim) > 1e-6 {
				t.Errorf("t = %d, λ = %g: GCV %g, s_λ %g, want %g, %g", c.t, lambdas[q], s.GCV, s.S, gcv, dim)
			}
		}
	}
}

// reference returns GCV and s_λ from eigenvalues of K.
func reference(t *testing.T, k, y *mat.Dense, lambda float64) (gcv, dim float64) {
	n, cols := y.Dims()
	var e mat.EigenSym
	if !e.Factorize(testkit.Symmetric(k), true) {
		t.Fatal("no reference")
	}
	var v, vy mat.Dense
	e.VectorsTo(&v)
	vy.Mul(v.T(), y)
	var trace, cc float64
	for i, mu := range e.Values(nil) {
		trace += 1 / (mu + lambda)
		dim += mu / (mu + lambda)
		for j := range cols {
			cc += vy.At(i, j) / (mu + lambda) * vy.At(i, j) / (mu + lambda)
		}
	}
	return float64(n) * cc / float64(cols) / (trace * trace), dim
}

// TestDenseAllows: the interval covers the error of each K within KError, and says when nothing is known.
func TestDenseAllows(t *testing.T) {
	const n, lambda, e = 60, 0.1, 0.002
	for _, classes := range []bool{false, true} {
		k, y := problem(n, 2, 1, 1, classes, 3)
		o := &Problem{Classes: classes, KError: e}
		s, err := Dense(context.Background(), k, y, []float64{lambda}, o)
		testkit.OK(t, err)
		for trial := range 20 {
			other := mat.DenseCopyOf(k)
			for i := range n { // a sign pattern of rank 1 and norm e
				for j := range n {
					sign := float64(1 - 2*((i>>(trial%5)+j>>(trial%5))&1))
					other.Set(i, j, other.At(i, j)+sign*e/n)
				}
			}
			if want := score(y, refit(t, other, y, lambda, o), o); !s[0].Error.Covers(want) {
				t.Errorf("classes %v: %v misses %g of K+E", classes, s[0].Error, want)
			}
		}
		s, err = Dense(context.Background(), k, y, []float64{lambda}, &Problem{Classes: classes, KError: 2 * lambda})
		testkit.OK(t, err)
		if hi := s[0].Error.Hi; !(hi == 1 || math.IsInf(hi, 1)) || s[0].Error.Lo != 0 {
			t.Errorf("‖E‖₂ above λ: %v", s[0].Error)
		}
	}
}

func TestBadInput(t *testing.T) {
	k, y := problem(5, 2, 1, 1, false, 1)
	for want, f := range map[string]func() error{
		"λ = -1: want a positive": func() error { _, err := Dense(context.Background(), k, y, []float64{-1}, nil); return err },
		"no λ":                    func() error { _, err := Dense(context.Background(), k, y, nil, nil); return err },
		"not positive definite": func() error {
			bad := mat.DenseCopyOf(k)
			bad.Set(2, 2, -3)
			_, err := Dense(context.Background(), bad, y, []float64{1}, nil)
			return err
		},
		"finite": func() error {
			bad := mat.DenseCopyOf(y)
			bad.Set(2, 0, math.NaN())
			_, err := Dense(context.Background(), k, bad, []float64{1}, nil)
			return err
		},
		"at least 2": func() error {
			_, err := Dense(context.Background(), mat.NewDense(1, 1, nil), mat.NewDense(1, 1, nil), []float64{1}, nil)
			return err
		},
	} {
		testkit.Fails(t, f(), want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Dense(ctx, k, y, []float64{1}, nil); err == nil {
		t.Error("a context that has ended")
	}
}
