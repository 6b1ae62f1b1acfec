package krrlab

import (
	"fmt"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/suite"
)

var (
	storages = []gram.Storage{gram.Float64, gram.Float32, gram.Recompute}
	forms    = []precond.Form{precond.FormL, precond.FormLInv, precond.FormU, precond.FormEigen}
)

// TestStagesAgainstDense solves (K+λI)C = Y with random Y for every kernel, storage, form
// of the preconditioner, t ∈ {1, 2, 3, 10, 17} and kind of points, and checks the
// residual against a dense float64 K, and C against its Cholesky solution:
// ‖c_j−c*_j‖₂ ≤ ‖A⁻¹‖₂‖r_j‖₂ ≤ τ‖y_j‖₂/λ.
func TestStagesAgainstDense(t *testing.T) {
	const n, d, s, lambda, tol = 70, 6, 40, 0.05, 1e-6
	for _, k := range kernels {
		for kind, x := range kinds(n, d, 1) {
			for _, cols := range [][]int{{1, 3}, {1, 2, 3, 10, 17}}[suite.Scale(0, 1, 1)] {
				y := mat.NewDense(n, cols, nil)
				rng.New(uint64(cols)).Normals(y.RawMatrix().Data, 0)
				ref := newReference(t, k, x, lambda, y)
				dist := testkit.Must(feature.For(k))
				m := testkit.Must(dist.Sample(d, s, rng.New(3)))
				z := testkit.Must(feature.Matrix(t.Context(), m, x, nil))
				for _, form := range forms {
					p := testkit.Must(precond.New(t.Context(), z, 3*lambda, &precond.Options{Form: form}))
					for _, storage := range storages {
						name := fmt.Sprintf("%v, %s points, t=%d, form %v, %v", k, kind, cols, form, storage)
						a := testkit.Must(gram.New(t.Context(), k, x, lambda,
							&gram.Options{Storage: storage, TileSize: 32}))
						res, err := pcg.Solve(t.Context(), a, p, y, &pcg.Options{Tol: tol, Exact: a.Exact(0)})
						if err != nil || res.Status != pcg.Converged {
							t.Fatalf("%s: %v, %v", name, res.Status, err)
						}
						for j, r := range ref.residuals(res.X, y) {
							if r > tol*1.01 {
								t.Errorf("%s: residual %.3g of column %d, asked %g", name, r, j, tol)
							}
							var e mat.VecDense
							e.SubVec(res.X.ColView(j), ref.c.ColView(j))
							if bound := 1.01 * tol * mat.Norm(y.ColView(j), 2) / lambda; mat.Norm(&e, 2) > bound {
								t.Errorf("%s: c_%d: error %.3g, want at most %.3g", name, j, mat.Norm(&e, 2), bound)
							}
						}
					}
				}
			}
		}
	}
}

// TestSolversAgainstDense checks Solve itself, for every solver and storage, regression
// and 2, 3, 10 and 17 classes, by its residual and its predictions.
func TestSolversAgainstDense(t *testing.T) {
	const n, d, tol = 85, 5, 1e-7
	test := kinds(20, d, 9)
	for kind, x := range kinds(n, d, 2) {
		for _, k := range kernels {
			for _, size := range []int{0, 3, 2, 10, 17}[:suite.Scale(3, 5, 5)] {
				train := regression(x)
				if size > 0 {
					train = classes(x, size)
				}
				for _, solver := range []Solver{PCG, BlockPCG, CG, Direct} {
					for _, storage := range storages {
						if solver == Direct && storage == gram.Recompute {
							continue
						}
						name := fmt.Sprintf("%v, %s points, %d classes, %v, %v", k, kind, size, solver, storage)
						sol := mustSolve(t, train,
							Config{Kernel: k, Lambda: 0.1, Solver: solver, Storage: storage,
								Precond: precondFor(solver, Features{S: 40}), Tol: tol})
						y := sol.System.Y
						ref := newReference(t, k, x, 0.1, y)
						if !sol.Converged() {
							t.Errorf("%s: %s", name, sol.Status)
						}
						for j, r := range ref.residuals(sol.Model.C, y) {
							if r > 1.01*tol || sol.TrueResiduals[j] > tol {
								t.Errorf("%s: residual %.3g, reported %.3g, asked %g", name, r, sol.TrueResiduals[j],
									tol)
							}
						}
						f := testkit.Must(sol.Model.Decision(t.Context(), test[kind], &model.Options{Float64: true}))
						if e := apart(f, ref.predict(test[kind])); e > 1e-4 {
							t.Errorf("%s: predictions are off by %.3g", name, e)
						}
					}
				}
			}
		}
	}
}
