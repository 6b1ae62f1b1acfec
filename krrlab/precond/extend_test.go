package precond_test

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
)

// TestExtend extends M eleven times. M·M⁻¹x must equal x for a dense M, and the statistical dimension and ln det M
// must be those of New. The bits must be the same on one thread and on two.
func TestExtend(t *testing.T) {
	testkit.EachBLAS(t, func(t *testing.T) {
		const n, lambdaP = 230, 1e-3
		for seed := range uint64(2) {
			z, z64 := decayingFeatures(11+seed, n, 60, 0.9)
			x, m := normalMatrix(12, n, 3), denseM(z64, lambdaP)
			for _, form := range forms {
				var got [2]*mat.Dense
				var w *precond.Woodbury
				for i := range got {
					func() {
						defer accel.SetThreads(accel.Threads())
						accel.SetThreads(i + 1)
						w = buildForm(t, z.Slice(0, 200).(*points.Dense32), lambdaP, form)
						for rows := 201; rows <= n; rows += 3 {
							w = testkit.Must(w.Extend(t.Context(), z.Slice(0, rows).(*points.Dense32)))
						}
						w = testkit.Must(w.Extend(t.Context(), z))
						got[i] = solve(t, w, x)
					}()
				}
				var product mat.Dense
				product.Mul(m, got[1])
				direct := buildForm(t, z, lambdaP, form)
				if deviation := testkit.RelativeDifference(&product, x); !(deviation <= 1e-8*mat.Norm(x, 2)) ||
					!mat.Equal(got[0], got[1]) {
					t.Errorf("form %v: M·M⁻¹x has an error of %g, or differs between threads", form, deviation)
				}
				testkit.Near(t, w.StatDim(), direct.StatDim(), 1e-6*direct.StatDim(), form)
				testkit.Near(t, w.LogDet(), direct.LogDet(), 1e-7*n, form)
			}
		}
		w := buildForm(t, points.NewDense32(3, 2, []float32{1, 2, 3, 4, 5, 6}), 1, precond.FormL)
		testkit.Panics(t, map[string]func(){"3×2 features extended to 2×2": func() {
			_, _ = w.Extend(t.Context(), points.NewDense32(2, 2, nil))
		}})
	})
}
