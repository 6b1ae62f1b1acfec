package pcg_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// columnPreconditioner has a diagonal preconditioner for each column.
type columnPreconditioner []diagonal

func (m columnPreconditioner) Dim() int { return len(m[0]) }

func (m columnPreconditioner) SolveTo(context.Context, *mat.Dense, *mat.Dense) error {
	panic("SolveTo where columns have their own preconditioners")
}

func (m columnPreconditioner) SolveColumnsTo(ctx context.Context, dst, r *mat.Dense, cols []int) error {
	for j, c := range cols {
		for i, v := range m[c] {
			dst.Set(i, j, r.At(i, j)/v)
		}
	}
	return ctx.Err()
}

// TestColumnPreconditioner checks that a column with the preconditioner M_c takes the same steps as in a separate
// solve with M_c, although the other columns end earlier or later.
func TestColumnPreconditioner(t *testing.T) {
	const n = 200
	a, m, b := make(diagonal, n), columnPreconditioner{}, mat.NewDense(n, 4, nil)
	for i := range n {
		a[i] = 1 + float64(i*i)
	}
	for c := range 4 { // from a useless preconditioner to nearly the inverse
		diag := make(diagonal, n)
		for i := range n {
			diag[i] = math.Pow(a[i], float64(c)/3) * (1.5 + math.Sin(float64(i)))
			b.Set(i, c, math.Cos(float64(i)))
		}
		m = append(m, diag)
	}
	opts := &pcg.Options{Tol: 1e-8}
	res, err := pcg.Solve(t.Context(), a, m, b, opts)
	if err != nil || res.Status != pcg.Converged {
		t.Fatalf("%v, %v", res, err)
	}
	var iterations []int
	for c := range 4 {
		alone := testkit.Must(pcg.Solve(t.Context(), a, m[c], mat.DenseCopyOf(b.Slice(0, n, c, c+1)), opts))
		if alone.Iterations != res.Columns[c].Iterations || !mat.EqualApprox(alone.X, res.X.Slice(0, n, c, c+1),
			1e-12) {
			t.Errorf("column %d: %d iterations, alone %d", c, res.Columns[c].Iterations, alone.Iterations)
		}
		iterations = append(iterations, alone.Iterations)
	}
	if iterations[3] >= iterations[0] || slices.Equal(iterations[:1], iterations[1:2]) {
		t.Errorf("%v iterations: the preconditioners make no difference", iterations)
	}
	testkit.Panics(t, map[string]func(){"SolveBlock": func() { _, _ = pcg.SolveBlock(t.Context(), a, m, b, opts) }})
}
