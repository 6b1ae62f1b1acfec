package pcg_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// checkConverged checks that a result has converged, and compares the reported residuals with those of AX = B.
func checkConverged(t *testing.T, label string, a mat.Matrix, b *mat.Dense, res *pcg.Result) {
	t.Helper()
	if res.Status != pcg.Converged {
		t.Errorf("%s: %v", label, res)
		return
	}
	for j, v := range residuals(a, res.X, b) {
		if v > res.Tol || math.Abs(res.TrueRelRes[j]-v) > 1e-11 {
			t.Errorf("%s: column %d: residual %.3g, reported %.3g, want at most %.3g", label, j, v, res.TrueRelRes[j],
				res.Tol)
		}
	}
}

// TestAgainstDense compares Solve and SolveBlock with a Cholesky solve, and their numbers of iterations with each
// other.
func TestAgainstDense(t *testing.T) {
	const n, tol = 120, 1e-9
	for name, spectrum := range map[string][]float64{
		"identity": geometric(n, 1), "κ = 50": geometric(n, 50), "clustered": clustered(n),
		"κ = 1e5": geometric(n, 1e5),
	} {
		a := spd(2, spectrum)
		var m mat.SymDense // A plus a positive definite perturbation
		m.AddSym(a, spd(3, geometric(n, 30)))
		for _, k := range []int{1, 2, 3, 10, 17} {
			b := gaussianMatrix(uint64(k), n, k)
			want := solveDense(t, a, b)
			for _, preconditioner := range []pcg.Preconditioner{nil, invert(t, &m)} {
				label := fmt.Sprintf("%s, t = %d, preconditioned %v", name, k, preconditioner != nil)
				opts := &pcg.Options{Tol: tol, MaxIter: 20000}
				res := solveBlock(t, dense{a}, preconditioner, b, opts)
				single := solve(t, dense{a}, preconditioner, b, opts)
				for _, res := range []*pcg.Result{res, single} {
					checkConverged(t, label, a, b, res)
					for j := range k {
						var difference mat.VecDense
						difference.SubVec(res.X.ColView(j), want.ColView(j))
						// ‖x−x*‖ ≤ ‖A⁻¹‖·‖r‖, λ_min = 1
						if deviation := mat.Norm(&difference, 2); deviation > 2*tol*mat.Norm(b.ColView(j), 2) {
							t.Errorf("%s: column %d has an error of %.3g", label, j, deviation)
						}
					}
				}
				limit := float64(single.Iterations) + 1
				if k == 1 {
					limit *= 1.1 // other rounding errors
				} else if k >= 10 && single.Iterations > 20 {
					limit *= 0.4
				}
				if float64(res.Iterations) > limit {
					t.Errorf("%s: %d iterations, Solve needs %d", label, res.Iterations, single.Iterations)
				}
				if cond := res.Cond(); !math.IsNaN(cond) || len(res.History.Restarts) > 0 {
					t.Errorf("%s: κ %v, restarts %v", label, cond, res.History.Restarts)
				}
			}
		}
	}
}

// TestBlockReference compares SolveBlock with its definition: after k iterations each column of X is the point of the
// block Krylov space that is nearest to A⁻¹B in the A-norm. In particular it is at least as near as that of Solve.
func TestBlockReference(t *testing.T) {
	const n, k = 90, 4
	a := spd(5, geometric(n, 1e4))
	m := spd(6, geometric(n, 30))
	b := gaussianMatrix(7, n, k)
	x := solveDense(t, a, b)
	for _, mMatrix := range []*mat.SymDense{nil, m} {
		var preconditioner pcg.Preconditioner
		if mMatrix != nil {
			preconditioner = invert(t, mMatrix)
		}
		apply := func(v *mat.Dense) *mat.Dense {
			if mMatrix == nil {
				return v
			}
			return solveDense(t, mMatrix, v)
		}
		var q mat.Dense // orthonormal basis of span{Z, M⁻¹AZ, …} with Z = M⁻¹B
		last := apply(b)
		for iters := 1; iters <= 6; iters++ {
			if iters > 1 {
				var product, extended mat.Dense
				product.Mul(a, last)
				extended.Augment(&q, apply(&product))
				q.CloneFrom(&extended)
			} else {
				q.CloneFrom(last)
			}
			var qr mat.QR
			qr.Factorize(&q)
			var full mat.Dense
			qr.QTo(&full)
			q.CloneFrom(full.Slice(0, n, 0, iters*k))
			last = mat.DenseCopyOf(q.Slice(0, n, (iters-1)*k, iters*k))
			var aq, h, rhs, c, want mat.Dense // QᵀAQ·c = QᵀB
			aq.Mul(a, &q)
			h.Mul(q.T(), &aq)
			rhs.Mul(q.T(), b)
			testkit.OK(t, c.Solve(&h, &rhs))
			want.Mul(&q, &c)
			opts := &pcg.Options{Tol: 1e-14, MaxIter: iters}
			res := solveBlock(t, dense{a}, preconditioner, b, opts)
			single := solve(t, dense{a}, preconditioner, b, opts)
			for j := range k {
				var difference, blockError, singleError mat.VecDense
				difference.SubVec(res.X.ColView(j), want.ColView(j))
				if aNorm(a, &difference) > 1e-9*aNorm(a, x.ColView(j)) {
					t.Errorf("preconditioned %v, %d iterations: column %d: error %.3g of %.3g", mMatrix != nil, iters,
						j,
						aNorm(a, &difference), aNorm(a, x.ColView(j)))
				}
				blockError.SubVec(res.X.ColView(j), x.ColView(j))
				singleError.SubVec(single.X.ColView(j), x.ColView(j))
				if aNorm(a, &blockError) > aNorm(a, &singleError)*(1+1e-9) {
					t.Errorf("%d iterations: column %d has a larger error than Solve's", iters, j)
				}
				checkNear(t, "the recursive residual", res.RelRes[j], res.TrueRelRes[j], 1e-9)
			}
			if res.Status != pcg.MaxIterations || res.Iterations != iters || len(res.History.RelRes) != iters+1 {
				t.Errorf("%v", res)
			}
		}
	}
}

// TestBlockDependentColumns checks solves for columns that are zero, equal to others, multiples of others, or
// combinations of others, exactly or nearly.
func TestBlockDependentColumns(t *testing.T) {
	const n = 100
	a := spd(10, geometric(n, 1e4))
	var perturbed mat.SymDense
	perturbed.AddSym(a, spd(11, geometric(n, 30)))
	m := invert(t, &perturbed)
	coarse := funcOperator{n, func(ctx context.Context, dst, src *mat.Dense) error { // M⁻¹ in single precision
		err := m.SolveTo(ctx, dst, src)
		dst.Apply(func(_, _ int, v float64) float64 { return float64(float32(v)) }, dst)
		return err
	}}
	for _, tol := range []float64{1e-3, 1e-6, 1e-11} {
		for _, distance := range []float64{0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-3} {
			b, perturbation := gaussianMatrix(12, n, 9), gaussianMatrix(13, n, 9)
			for i := range n {
				b.Set(i, 3, b.At(i, 0)+distance*perturbation.At(i, 3))
				b.Set(i, 4, 0)
				b.Set(i, 5, math.Ldexp(b.At(i, 1), 60))
				b.Set(i, 6, 3*b.At(i, 1)-b.At(i, 2)+distance*perturbation.At(i, 6))
				b.Set(i, 7, b.At(i, 0)+b.At(i, 1)+b.At(i, 2)+distance*perturbation.At(i, 7))
				b.Set(i, 8, -7e-30*b.At(i, 6))
			}
			for name, preconditioner := range map[string]pcg.Preconditioner{"none": nil, "good": m, "coarse": coarse} {
				res := solveBlock(t, dense{a}, preconditioner, b, &pcg.Options{Tol: tol, MaxIter: 2000})
				label := fmt.Sprintf("τ = %g, dependent to %g, M %s", tol, distance, name)
				checkConverged(t, label, a, b, res)
				testkit.Equal(t, mat.Norm(res.X.ColView(4), 2), 0, label)
				// Rounding of M⁻¹ may make more of the columns independent, but only in the coarse arithmetic.
				if want := 3*res.Iterations + 9; distance == 0 && name != "coarse" && len(res.History.Restarts) == 0 &&
					res.Stats.MulTo.Columns != want {
					t.Errorf("%s: %d columns multiplied, want %d", label, res.Stats.MulTo.Columns, want)
				}
			}
		}
	}
}

// TestBlockShrinks checks solves with few distinct eigenvalues and with eigenvectors as right-hand sides, so that
// directions of the block become dependent one after the other.
func TestBlockShrinks(t *testing.T) {
	const n, k = 64, 6
	spectrum := make([]float64, n)
	for i := range spectrum {
		spectrum[i] = []float64{1, 3, 10, 40}[i%4]
	}
	a, v := testkit.WithEigenvalues(16, spectrum)
	b := gaussianMatrix(17, n, k)
	for i := range n {
		b.Set(i, 1, v.At(i, 3))              // one eigenvector: ends after one iteration
		b.Set(i, 2, v.At(i, 0)+v.At(i, n-1)) // two
		b.Set(i, 3, v.At(i, 1)-v.At(i, n-2)) // another two
		b.Set(i, 4, v.At(i, 0)-v.At(i, n-1)) // the first two again
	}
	for _, tol := range []float64{1e-4, 1e-12} {
		res := solveBlock(t, dense{a}, nil, b, &pcg.Options{Tol: tol})
		checkConverged(t, "eigenvectors", a, b, res)
		if res.Iterations > 5 || len(res.History.Restarts) > 0 || res.Columns[1].Iterations != 1 ||
			res.Columns[4].Iterations > 2 {
			t.Errorf("%v %+v", res, res.Columns)
		}
		if res.Stats.MulTo.Columns >= (res.Iterations+1)*k {
			t.Errorf("the block did not shrink: %d columns in %d iterations", res.Stats.MulTo.Columns, res.Iterations)
		}
	}
}
