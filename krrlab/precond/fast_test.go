package precond

import (
	"context"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// cosineFeatures returns n×s cosine features of points that have 7 coordinates. The means of the columns are not zero.
func cosineFeatures(n, s int) *points.Dense32 {
	z := points.NewDense32(n, s, nil)
	g := rng.New(4)
	for i := range n {
		for j := range s {
			phase := 2*math.Pi*g.Sub("phase").Float64(uint64(j)) + g.Sub("point").Normal(uint64(i*7+j%7))
			z.Data[i*s+j] = float32(math.Sqrt(2/float64(s)) * math.Cos(phase))
		}
	}
	return z
}

// gram returns ZᵀZ for a Z on one rank, from products of the given precision.
func gram(ctx context.Context, z *points.Dense32, arithmetic precision) ([]float64, error) {
	distribution, err := newRowDistribution(ctx, nil, z)
	if err != nil {
		return nil, err
	}
	product := make([]float64, z.D*z.D)
	_, err = distribution.gram(ctx, z, 0, arithmetic, accel.WrapMatrix(z.D, product, z.D))
	return product, err
}

// predictedError returns the predicted error of float32 products.
func predictedError(t *testing.T, z *points.Dense32) float64 {
	return testkit.Must(testkit.Must(newRowDistribution(t.Context(), nil, z)).predictedError(t.Context(), z))
}

// TestPredictedFastError checks that the error of ZᵀZ from float32 products is not zero and at most the prediction, and
// that the result has the same bits for any number of threads.
func TestPredictedFastError(t *testing.T) {
	run := func(t *testing.T) {
		for _, size := range [][2]int{{3, 5}, {700, 60}, {2500, 530}} {
			n, s := size[0], size[1]
			z := cosineFeatures(n, s)
			want := testkit.Must(gram(t.Context(), z, exactProducts))
			var first []float64
			for _, threads := range []int{1, 3} {
				defer accel.SetThreads(accel.Threads())
				accel.SetThreads(threads)
				got := testkit.Must(gram(t.Context(), z, fastProducts))
				if first == nil {
					first = got
				} else if !slices.Equal(first, got) {
					t.Errorf("n=%d, s=%d: threads change the result", n, s)
				}
			}
			norm := spectralNorm(t, first, want, s)
			if bound := predictedError(t, z); norm > bound || norm == 0 {
				t.Errorf("n=%d, s=%d: ‖E‖₂ = %.3g, predicted %.3g", n, s, norm, bound)
			}
		}
	}
	testkit.EachBLAS(t, run)
}

// TestFastSolve checks M⁻¹ with Options.Fast. It must be close to the exact M⁻¹ if λ_p is at least ten times the
// predicted error, and have the bits of the exact one otherwise. A NaN in Z is an error.
func TestFastSolve(t *testing.T) {
	const n, s = 400, 50
	z := cosineFeatures(n, s)
	limit := 10 * predictedError(t, z)
	r := testkit.RandomMatrix(1, n, 3)
	for _, lambdaP := range []float64{limit * 1.01, limit * 0.99} {
		var x [2]*mat.Dense
		for i, fast := range []bool{false, true} {
			w := testkit.Must(New(t.Context(), z, lambdaP, &Options{Form: FormLInv, Fast: fast}))
			x[i] = mat.NewDense(n, 3, nil)
			testkit.OK(t, w.SolveTo(t.Context(), x[i], r))
		}
		var difference mat.Dense
		difference.Sub(x[0], x[1])
		relative := mat.Norm(&difference, 2) / mat.Norm(x[0], 2)
		if exact := lambdaP < limit; exact != (relative == 0) || relative > 0.1 {
			t.Errorf("λ_p = %.3g, limit %.3g: relative error %.3g", lambdaP, limit, relative)
		}
	}
	z.Data[17*s+3] = float32(math.NaN())
	if _, err := gram(t.Context(), z, fastProducts); err == nil {
		t.Error("no error for NaN in Z")
	}
	if _, err := New(t.Context(), z, 1, &Options{Fast: true}); err == nil {
		t.Error("no error for NaN in Z")
	}
}
