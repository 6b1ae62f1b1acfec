package pcg_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/precond/precondtest"
)

// TestConformance runs the tests of every operator and preconditioner on the helpers of this package.
func TestConformance(t *testing.T) {
	a := spd(1, geometric(40, 100))
	if err := precondtest.TestOperator(t.Context(), dense{a}, nil); err != nil {
		t.Error(err)
	}
	for _, m := range []pcg.Preconditioner{invert(t, a), diagonal{1, 2, 3}} {
		if err := precondtest.Test(t.Context(), m, &precondtest.Options{Concurrent: true}); err != nil {
			t.Errorf("%T: %v", m, err)
		}
	}
}

// TestSolveReference compares every number of Solve with the recurrences of Saad's algorithm 9.1, written out for one
// vector.
func TestSolveReference(t *testing.T) {
	const n, iters = 60, 12
	a := spd(4, geometric(n, 1e3))
	d := make(diagonal, n)
	for i := range d {
		d[i] = a.At(i, i)
	}
	b := gaussianMatrix(5, n, 3)
	res := solve(t, dense{a}, d, b, &pcg.Options{Tol: 1e-14, MaxIter: iters})
	for c := range 3 {
		x, w, z := mat.NewVecDense(n, nil), mat.NewVecDense(n, nil), mat.NewVecDense(n, nil)
		r := mat.VecDenseCopyOf(b.ColView(c))
		solveM := func() {
			for i := range n {
				z.SetVec(i, r.AtVec(i)/d[i])
			}
		}
		solveM()
		p, rho := mat.VecDenseCopyOf(z), mat.Dot(r, z)
		for k := range iters {
			w.MulVec(a, p)
			alpha := rho / mat.Dot(p, w)
			x.AddScaledVec(x, alpha, p)
			r.AddScaledVec(r, -alpha, w)
			solveM()
			next := mat.Dot(r, z)
			beta := next / rho
			rho = next
			p.AddScaledVec(z, beta, p)
			rel := mat.Norm(r, 2) / mat.Norm(b.ColView(c), 2)
			checkNear(t, fmt.Sprintf("α_%d", k+1), res.History.Alpha[k][c], alpha, 1e-9)
			if k+1 < iters {
				checkNear(t, fmt.Sprintf("β_%d", k+1), res.History.Beta[k][c], beta, 1e-8)
			}
			checkNear(t, fmt.Sprintf("residual %d", k+1), res.History.RelRes[k+1][c], rel, 1e-8)
		}
		for i := range n {
			checkNear(t, "x", res.X.At(i, c), x.AtVec(i), 1e-8)
		}
	}
	if res.Status != pcg.MaxIterations || res.Iterations != iters || len(res.History.RelRes) != iters+1 {
		t.Errorf("status %v, %d iterations, %d rows", res.Status, res.Iterations, len(res.History.RelRes))
	}
}

// checkNear checks that got and want differ by at most tol·(|want| + 10⁻³).
func checkNear(t *testing.T, name string, got, want, tol float64) {
	t.Helper()
	testkit.Near(t, got, want, tol*(math.Abs(want)+1e-3), name)
}

// TestColumnsEndSeparately solves for columns that need very different numbers of iterations, among them zero and
// repeated ones. A column that has converged must not change any more, and products must have the active columns only.
func TestColumnsEndSeparately(t *testing.T) {
	const n = 150
	a, v := testkit.WithEigenvalues(6, geometric(n, 1e4))
	b := gaussianMatrix(7, n, 6)
	for i := range n {
		b.Set(i, 1, v.At(i, 3)) // an eigenvector: one iteration
		b.Set(i, 2, 0)
		b.Set(i, 3, math.Ldexp(b.At(i, 0), -300)) // the same column in another scale
		b.Set(i, 4, 1e90*(v.At(i, 0)+v.At(i, n-1)))
	}
	var frozen [6]float64
	var widths []int
	op := funcOperator{n, func(ctx context.Context, dst, src *mat.Dense) error {
		_, k := src.Dims()
		widths = append(widths, k)
		return dense{a}.MulTo(ctx, dst, src)
	}}
	res := solve(t, op, nil, b, &pcg.Options{Tol: 1e-8, MaxIter: 5000, Monitor: func(it *pcg.Iteration) error {
		for j, r := range it.RelRes {
			if frozen[j] > 0 && r != frozen[j] {
				t.Errorf("iteration %d: column %d moved from %v to %v after it had converged", it.Index, j, frozen[j],
					r)
			}
			if r <= 1e-8 {
				frozen[j] = r
			}
		}
		return nil
	}})
	if res.Status != pcg.Converged {
		t.Fatalf("not converged: %v", res)
	}
	for j, want := range []int{-1, 1, 0, -1, 2, -1} {
		if got := res.Columns[j].Iterations; want >= 0 && (got < want || got > want+1) {
			t.Errorf("column %d took %d iterations, want %d", j, got, want)
		}
	}
	testkit.Equal(t, res.Columns[0].Iterations, res.Columns[3].Iterations, res.Columns)
	if widths[0] != 5 || widths[len(widths)-2] != 1 && widths[len(widths)-2] != 2 || widths[len(widths)-1] != 6 ||
		!slices.IsSortedFunc(widths[:len(widths)-1], func(x, y int) int { return y - x }) {
		t.Errorf("products of %v columns", widths)
	}
	want := solveDense(t, a, b)
	for j := range 6 {
		for i := range n {
			scale := mat.Norm(b.ColView(j), math.Inf(1))
			if deviation := math.Abs(res.X.At(i, j) - want.At(i, j)); deviation > 1e-6*scale {
				t.Fatalf("x(%d, %d) = %v, want %v", i, j, res.X.At(i, j), want.At(i, j))
			}
		}
	}
}

// TestZeroRightHandSides checks that right-hand sides of zeros are solved without a product, also from a nonzero guess.
func TestZeroRightHandSides(t *testing.T) {
	a := spd(8, geometric(10, 4))
	never := funcOperator{10, func(context.Context, *mat.Dense, *mat.Dense) error { return errors.New("called") }}
	for _, opts := range []*pcg.Options{nil, {InitX: gaussianMatrix(1, 10, 2)}} {
		res := solve(t, never, never, mat.NewDense(10, 2, nil), opts)
		if res.Status != pcg.Converged || res.Iterations != 0 || mat.Norm(res.X, 2) != 0 || res.MaxTrueRelRes() != 0 {
			t.Errorf("B = 0: %v", res)
		}
		if !math.IsNaN(res.Cond()) || res.Ritz(0) != nil {
			t.Error("Ritz values without an iteration")
		}
	}
	b := gaussianMatrix(9, 10, 2)
	for i := range 10 {
		b.Set(i, 0, 0)
	}
	res := solve(t, dense{a}, nil, b, &pcg.Options{InitX: gaussianMatrix(1, 10, 2), Tol: 1e-10})
	if res.Status != pcg.Converged || mat.Norm(res.X.ColView(0), 2) != 0 {
		t.Errorf("y = 0 and another column: %v", res)
	}
}

// TestIndefinite checks that an indefinite A and an indefinite M end a column, and that the status names the right
// one.
func TestIndefinite(t *testing.T) {
	const n = 50
	spectrum := geometric(n, 100)
	spectrum[10] = -3
	a, v := testkit.WithEigenvalues(12, spectrum)
	b := gaussianMatrix(13, n, 3)
	for i := range n {
		b.Set(i, 1, v.At(i, n-1)) // an eigenvector of a positive eigenvalue
	}
	res := solve(t, dense{a}, nil, b, &pcg.Options{Tol: 1e-8})
	if res.Status != pcg.Indefinite || res.Columns[0].Status != pcg.Indefinite ||
		res.Columns[1].Status != pcg.Converged {
		t.Errorf("%v", res)
	}
	if c := res.Columns[0].Value; !(c < 0) || !strings.Contains(res.String(), "column 0") ||
		!strings.Contains(res.String(), "A is not positive definite") {
		t.Errorf("curvature %v, %v", c, res)
	}
	good := spd(14, geometric(n, 100))
	neg := funcOperator{n, func(ctx context.Context, dst, src *mat.Dense) error { dst.Scale(-1, src); return nil }}
	res = solve(t, dense{good}, neg, b, nil)
	if res.Status != pcg.IndefinitePreconditioner || !(res.Columns[2].Value < 0) ||
		!strings.Contains(res.String(), "preconditioner is not") {
		t.Errorf("M = −I: %v", res)
	}
	// A mildly indefinite preconditioner is noticed when a residual meets it.
	mild := make(diagonal, n)
	for i := range mild {
		mild[i] = 1
	}
	mild[4] = -1e-3
	res = solve(t, dense{good}, mild, b, &pcg.Options{Tol: 1e-12})
	if res.Columns[0].Status != pcg.IndefinitePreconditioner && res.Columns[0].Status != pcg.Indefinite {
		t.Errorf("indefinite M: %v", res)
	}
}

// TestNotFinite checks that B or InitX with NaN or Inf is an error, and that NaN or Inf from a product or solve is a
// Breakdown with a finite X.
func TestNotFinite(t *testing.T) {
	const n = 30
	a := spd(15, geometric(n, 100))
	b := gaussianMatrix(16, n, 2)
	original := b.At(3, 1)
	for _, v := range []float64{math.NaN(), math.Inf(-1)} {
		b.Set(3, 1, v)
		for name, run := range solvers {
			if res, err := run(t.Context(), dense{a}, nil, b, nil); res != nil || err == nil ||
				!strings.Contains(err.Error(), "row 3, column 1") {
				t.Errorf("%s, B with %v: %v, %v", name, v, res, err)
			}
		}
		b.Set(3, 1, original)
		if _, err := pcg.Solve(context.Background(), dense{a}, nil, b,
			&pcg.Options{InitX: mat.NewDense(n, 2, slices.Repeat([]float64{v}, 2*n))}); err == nil {
			t.Errorf("InitX with %v: no error", v)
		}
		for from := range 4 {
			calls := 0
			op := funcOperator{n, func(ctx context.Context, dst, src *mat.Dense) error {
				err := dense{a}.MulTo(ctx, dst, src)
				if calls++; calls == from+1 {
					dst.Set(7, 0, v)
				}
				return err
			}}
			res := solve(t, op, nil, b, &pcg.Options{Tol: 1e-10})
			if res.Status != pcg.Breakdown || res.Columns[0].Status != pcg.Breakdown {
				t.Errorf("A gives %v from product %d: %v", v, from, res)
			}
			calls = 0
			op.call = func(ctx context.Context, dst, src *mat.Dense) error {
				dst.Copy(src)
				if calls++; calls == from+1 {
					dst.Set(7, 0, v)
				}
				return nil
			}
			res = solve(t, dense{a}, op, b, &pcg.Options{Tol: 1e-10})
			if res.Columns[0].Status != pcg.Breakdown || res.Columns[1].Status != pcg.Converged && from > 0 {
				t.Errorf("M⁻¹ gives %v from solve %d: %v", v, from, res)
			}
			for i := range n {
				if x := res.X.At(i, 0); math.IsNaN(x) || math.IsInf(x, 0) {
					t.Fatalf("X holds %v", x)
				}
			}
		}
	}
}
