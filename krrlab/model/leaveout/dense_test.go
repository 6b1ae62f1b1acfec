package leaveout

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestDenseWithStorageError checks that the interval of the leave-one-out error covers the error for each kernel matrix
// within KError of K, and that it is unbounded if ‖E‖₂ may exceed λ.
func TestDenseWithStorageError(t *testing.T) {
	const n, lambda, storageError = 60, 0.1, 0.002
	for _, classes := range []bool{false, true} {
		k, y := randomProblem(n, 2, 1, 1, classes, 3)
		o := &Problem{Classification: classes, KError: storageError}
		scores, err := Dense(context.Background(), k, y, []float64{lambda}, o)
		testkit.OK(t, err)
		for trial := range 20 {
			perturbed := mat.DenseCopyOf(k)
			for i := range n { // add E, a sign pattern of rank 1 with ‖E‖₂ = storageError
				for j := range n {
					sign := float64(1 - 2*((i>>(trial%5)+j>>(trial%5))&1))
					perturbed.Set(i, j, perturbed.At(i, j)+sign*storageError/n)
				}
			}
			if want := score(y, residualsByRefitting(t, perturbed, y, lambda, o), o); !scores[0].Error.Contains(want) {
				t.Errorf("classes %v: %v misses %g of K+E", classes, scores[0].Error, want)
			}
		}
		scores, err = Dense(context.Background(), k, y, []float64{lambda},
			&Problem{Classification: classes, KError: 2 * lambda})
		testkit.OK(t, err)
		if hi := scores[0].Error.Hi; !(hi == 1 || math.IsInf(hi, 1)) || scores[0].Error.Lo != 0 {
			t.Errorf("classes %v, ‖E‖₂ above λ: %v, want no bounds", classes, scores[0].Error)
		}
	}
}

// TestDenseRefuses checks that Dense refuses invalid input and ends with a canceled context.
func TestDenseRefuses(t *testing.T) {
	k, y := randomProblem(5, 2, 1, 1, false, 1)
	indefinite, notFinite := mat.DenseCopyOf(k), mat.DenseCopyOf(y)
	indefinite.Set(2, 2, -3)
	notFinite.Set(2, 0, math.NaN())
	one := mat.NewDense(1, 1, nil)
	for want, c := range map[string]struct {
		k, y    *mat.Dense
		lambdas []float64
	}{
		"λ = -1: want a positive": {k, y, []float64{-1}},
		"no λ":                    {k, y, nil},
		"not positive definite":   {indefinite, y, []float64{1}},
		"finite":                  {k, notFinite, []float64{1}},
		"at least 2":              {one, one, []float64{1}},
	} {
		testkit.Fails(t, testkit.ErrOf(Dense(t.Context(), c.k, c.y, c.lambdas, nil)), want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	testkit.Fails(t, testkit.ErrOf(Dense(ctx, k, y, []float64{1}, nil)), "canceled")
}
