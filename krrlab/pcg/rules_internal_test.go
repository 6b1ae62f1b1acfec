package pcg

import (
	"context"

	"gonum.org/v1/gonum/mat"
)

// small is a positive definite matrix as an operator.
type small struct{ *mat.SymDense }

func (a small) Dim() int { return a.SymmetricDim() }

func (a small) MulTo(_ context.Context, dst, x *mat.Dense) error {
	dst.Mul(a.SymDense, x)
	return nil
}

// kept is a solve, Solve or SolveBlock, and one of its states.
type kept struct {
	solve func(context.Context, Operator, Preconditioner, *mat.Dense, *Options) (*Result, error)
	a     small
	b     *mat.Dense
	o     Options
	state []byte
}
