package pcgtest_test

import (
	"context"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/pcg/pcgtest"
)

// jacobi is M⁻¹ = diag(A)⁻¹.
type jacobi []float64

func (m jacobi) Dim() int { return len(m) }

func (m jacobi) SolveTo(ctx context.Context, dst, src *mat.Dense) error {
	dst.Apply(func(i, _ int, v float64) float64 { return v / m[i] }, src)
	return ctx.Err()
}

// The test of a user-defined preconditioner.
func ExamplePreconditioner() {
	_ = func(t *testing.T) {
		pcgtest.Preconditioner(t, jacobi{1, 2, 4}, nil)
	}
}
