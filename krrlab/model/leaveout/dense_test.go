package leaveout

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestDenseAllows checks that the interval of the leave-one-out error covers the error for each kernel matrix within
// KError of K, and that it is unbounded if ‖E‖₂ may exceed λ.
func TestDenseAllows(t *testing.T) {
	const n, lambda, e = 60, 0.1, 0.002
	for _, classes := range []bool{false, true} {
		k, y := problem(n, 2, 1, 1, classes, 3)
		o := &Problem{Classification: classes, KError: e}
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
			if want := score(y, refit(t, other, y, lambda, o), o); !s[0].Error.Contains(want) {
				t.Errorf("classes %v: %v misses %g of K+E", classes, s[0].Error, want)
			}
		}
		s, err = Dense(context.Background(), k, y, []float64{lambda},
			&Problem{Classification: classes, KError: 2 * lambda})
		testkit.OK(t, err)
		if hi := s[0].Error.Hi; !(hi == 1 || math.IsInf(hi, 1)) || s[0].Error.Lo != 0 {
			t.Errorf("‖E‖₂ above λ: %v", s[0].Error)
		}
	}
}

// TestBadInput checks that Dense refuses invalid input and ends with a canceled context.
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
		t.Error("no error with a context that has ended")
	}
}
