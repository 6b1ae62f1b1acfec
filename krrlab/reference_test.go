package krrlab

import (
	"fmt"
	"testing"

	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/precond"
)

var (
	storages = []gram.Storage{gram.Float64, gram.Float32, gram.Recompute}
	forms    = []precond.Form{precond.FormL, precond.FormLInv, precond.FormU, precond.FormEigen}
)

// TestSolversAgainstDense compares residuals and predictions of Solve with a dense reference, for every solver,
// storage and form of the preconditioner, for regression and for up to 17 classes.
func TestSolversAgainstDense(t *testing.T) {
	const n, d, tol = 85, 5, 1e-7
	test := pointsByFormat(20, d, 9)
	for format, x := range pointsByFormat(n, d, 2) {
		for _, k := range kernels {
			for _, classCount := range []int{0, 3, 2, 10, 17}[:suite.Scale(3, 5, 5)] {
				train := regression(x)
				if classCount > 0 {
					train = classification(x, classCount)
				}
				for _, solver := range []Solver{PCG, BlockPCG, CG, Direct} {
					for i, storage := range storages {
						if solver == Direct && storage == gram.Recompute {
							continue
						}
						name := fmt.Sprintf("%v, %s points, %d classes, %v, %v", k, format, classCount, solver, storage)
						sol := mustSolve(t, train,
							Config{Kernel: k, Lambda: 0.1, Solver: solver, Storage: storage,
								Precond: precondFor(solver, Features{S: 40, Form: forms[(i+classCount)%4]}), Tol: tol})
						y := sol.System.Y
						ref := newReference(t, k, x, 0.1, y)
						if !sol.Converged() {
							t.Errorf("%s: %s", name, sol.Status)
						}
						for j, residual := range ref.residuals(sol.Model.C, y) {
							if residual > 1.01*tol || sol.ColumnTrueResiduals[j] > tol {
								t.Errorf("%s: residual %.3g, reported %.3g, asked %g", name, residual,
									sol.ColumnTrueResiduals[j],
									tol)
							}
						}
						predicted := testkit.Must(sol.Model.Decision(t.Context(), test[format],
							&model.Options{Float64: true}))
						if difference := relativeDifference(predicted, ref.predict(test[format])); difference > 1e-4 {
							t.Errorf("%s: predictions are off by %.3g", name, difference)
						}
					}
				}
			}
		}
	}
}
