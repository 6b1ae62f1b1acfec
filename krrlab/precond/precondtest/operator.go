package precondtest

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// TestOperator returns an error with one line for each property that A violates, and nil if there is none. If a product
// fails, its error is one of the lines. TestOperator uses the options Tol and Seed.
func TestOperator(ctx context.Context, a pcg.Operator, options *Options) error {
	s := newSuite(ctx, options)
	s.checkOperator("", a)
	return errors.Join(s.violations...)
}

// checkOperator checks A. The text of each violation begins with name. It returns true if A is supported and violates
// nothing.
func (s *suite) checkOperator(name string, a pcg.Operator) bool {
	oldCount := len(s.violations)
	n := a.Dim()
	if n < 1 {
		s.addViolation("%sthe order is %d, want at least 1", name, n)
		return false
	}
	x := probes(n, 8, s.options.Seed)
	original := mat.DenseCopyOf(x)
	y, err := s.product(a, x)
	for _, check := range []func(name string, a pcg.Operator, x, y *mat.Dense) error{s.checkLinear, s.checkBlocks,
		s.checkRepeatAndCancel} {
		if err == nil {
			err = check(name, a, x, y)
		}
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported) && s.y != nil:
		return false // s.y is set once SolveTo has passed, so this is MulTo, which is optional
	case err != nil:
		s.addViolation("%s%w", name, err)
		return false
	}
	if !mat.Equal(x, original) {
		s.addViolation("%sthe source was changed", name)
	}
	s.checkSymmetric(name, x, y)
	return len(s.violations) == oldCount
}

// probes returns vectors of length n as columns: the given number of random vectors, the vector of ones, the vector of
// alternating signs, and the first and last unit vectors.
func probes(n, random int, seed uint64) *mat.Dense {
	rnd := rand.New(rand.NewPCG(seed, 0x70726f6265))
	x := mat.NewDense(n, random+4, nil)
	for i := range n {
		for j := range random {
			x.Set(i, j, rnd.NormFloat64())
		}
		x.Set(i, random, 1)
		x.Set(i, random+1, float64(1-2*(i%2)))
	}
	x.Set(0, random+2, 1)
	x.Set(n-1, random+3, 1)
	return x
}

// checkLinear checks A(XC) = YC, Y = AX, for a matrix C that combines each probe with the next one.
func (s *suite) checkLinear(name string, a pcg.Operator, x, y *mat.Dense) error {
	_, columns := x.Dims()
	c := mat.NewDense(columns, columns-1, nil)
	for j := range columns - 1 {
		c.Set(j, j, 1.75)
		c.Set(j+1, j, -0.3)
	}
	var xc, yc mat.Dense
	xc.Mul(x, c)
	yc.Mul(y, c)
	got, err := s.product(a, &xc)
	if err == nil && !s.isNear(got, &yc) {
		s.addViolation("%snot linear: A(XC) differs from (AX)C by %.3g", name, relativeError(got, &yc))
	}
	return err
}

// checkSymmetric checks xᵀAz = zᵀAx and xᵀAx > 0 for all pairs of columns of X, where Y = AX.
func (s *suite) checkSymmetric(name string, x, y *mat.Dense) {
	_, columns := x.Dims()
	var products mat.Dense
	products.Mul(x.T(), y)
	for i := range columns {
		if diagonal := products.At(i, i); diagonal <= 0 {
			s.addViolation("%snot positive definite: xᵀAx = %.3g (probe %d)", name, diagonal, i)
			return
		}
		for j := range i {
			size := max(mat.Norm(x.ColView(i), 2)*mat.Norm(y.ColView(j), 2),
				mat.Norm(x.ColView(j), 2)*mat.Norm(y.ColView(i), 2))
			if xAz, zAx := products.At(i, j), products.At(j, i); math.Abs(xAz-zAx) > s.options.Tol*size {
				s.addViolation("%snot symmetric: xᵀAz = %.17g, zᵀAx = %.17g (probes %d, %d)", name, xAz, zAx, i, j)
				return
			}
		}
	}
}

// checkBlocks checks that A times blocks of 1, 2, … columns of X gives the columns of Y = AX.
func (s *suite) checkBlocks(name string, a pcg.Operator, x, y *mat.Dense) error {
	n, columns := x.Dims()
	for j, width := 0, 1; j+width <= columns; j, width = j+width, width+1 {
		block, err := s.product(a, mat.DenseCopyOf(x.Slice(0, n, j, j+width)))
		if err != nil {
			return err
		}
		if want := y.Slice(0, n, j, j+width); !s.isNear(block, want) {
			s.addViolation("%scolumns from %d on differ by %.3g when a block is one of %d", name, j,
				relativeError(block, want), width)
			return nil
		}
	}
	return nil
}

// checkRepeatAndCancel checks that a repeated call gives the same bits, and that MulTo returns the error of a canceled
// context.
func (s *suite) checkRepeatAndCancel(name string, a pcg.Operator, x, y *mat.Dense) error {
	repeated, err := s.product(a, x)
	if err != nil {
		return err
	}
	if !mat.Equal(y, repeated) {
		s.addViolation("%sthe same call gave another result", name)
	}
	s.checkCanceled(name, func(ctx context.Context) error { return a.MulTo(ctx, repeated, x) })
	return nil
}

// checkCanceled checks that a call returns the error of a canceled context.
func (s *suite) checkCanceled(name string, call func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	if err := call(ctx); !errors.Is(err, context.Canceled) {
		s.addViolation("%safter the context was canceled: %v, want its error", name, err)
	}
}
