package precondtest

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/krylov/pcg"
)

// Operator returns what is wrong with A, one line for each property that fails; nil if nothing
// is wrong. It returns the first error of a product. Of o it takes Tol and Seed.
func Operator(ctx context.Context, a pcg.Operator, o *Options) error {
	s := newSuite(ctx, o)
	s.operator("", a)
	return errors.Join(s.wrong...)
}

// operator checks A, of that name, and reports whether nothing is wrong; false, too, of a product that A does not
// support.
func (s *suite) operator(name string, a pcg.Operator) bool {
	before := len(s.wrong)
	n := a.Dim()
	if n < 1 {
		s.add("%sthe order is %d, want at least 1", name, n)
		return false
	}
	x := probes(n, 8, s.o.Seed)
	kept := mat.DenseCopyOf(x)
	y, err := s.product(a, x)
	for _, check := range []func(name string, a pcg.Operator, x, y *mat.Dense) error{s.linear, s.blocks, s.effects} {
		if err == nil {
			err = check(name, a, x, y)
		}
	}
	switch {
	case errors.Is(err, errors.ErrUnsupported) && s.y != nil: // a method besides SolveTo
		return false
	case err != nil:
		s.add("%s%w", name, err)
		return false
	}
	if !mat.Equal(x, kept) {
		s.add("%sthe source was changed", name)
	}
	s.symmetric(name, x, y)
	return len(s.wrong) == before
}

// probes returns as many random vectors of length n as asked, the vector of ones, an
// alternating one, and the first and last unit vectors.
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

// linear checks A(XC) = (AX)C for a C that combines each probe with the next.
func (s *suite) linear(name string, a pcg.Operator, x, y *mat.Dense) error {
	_, k := x.Dims()
	c := mat.NewDense(k, k-1, nil)
	for j := range k - 1 {
		c.Set(j, j, 1.75)
		c.Set(j+1, j, -0.3)
	}
	var xc, yc mat.Dense
	xc.Mul(x, c)
	yc.Mul(y, c)
	got, err := s.product(a, &xc)
	if err == nil && !s.near(got, &yc) {
		s.add("%snot linear: A(XC) differs from (AX)C by %.3g", name, apart(got, &yc))
	}
	return err
}

// symmetric checks xᵀAz = zᵀAx and xᵀAx > 0.
func (s *suite) symmetric(name string, x, y *mat.Dense) {
	_, k := x.Dims()
	var g mat.Dense
	g.Mul(x.T(), y)
	for i := range k {
		if v := g.At(i, i); v <= 0 {
			s.add("%snot positive definite: xᵀAx = %.3g (probe %d)", name, v, i)
			return
		}
		for j := range i {
			size := max(mat.Norm(x.ColView(i), 2)*mat.Norm(y.ColView(j), 2),
				mat.Norm(x.ColView(j), 2)*mat.Norm(y.ColView(i), 2))
			if u, v := g.At(i, j), g.At(j, i); math.Abs(u-v) > s.o.Tol*size {
				s.add("%snot symmetric: xᵀAz = %.17g, zᵀAx = %.17g (probes %d, %d)", name, u, v, i, j)
				return
			}
		}
	}
}

// blocks checks that blocks of 1, 2, … columns give the columns of the large one.
func (s *suite) blocks(name string, a pcg.Operator, x, y *mat.Dense) error {
	n, k := x.Dims()
	for j, w := 0, 1; j+w <= k; j, w = j+w, w+1 {
		part, err := s.product(a, mat.DenseCopyOf(x.Slice(0, n, j, j+w)))
		if err != nil {
			return err
		}
		if want := y.Slice(0, n, j, j+w); !s.near(part, want) {
			s.add("%scolumns from %d on differ by %.3g when a block is one of %d", name, j, apart(part, want), w)
			return nil
		}
	}
	return nil
}

// effects checks that a repeated call gives the same bits, and that the end of a context is
// its error.
func (s *suite) effects(name string, a pcg.Operator, x, y *mat.Dense) error {
	again, err := s.product(a, x)
	if err != nil {
		return err
	}
	if !mat.Equal(y, again) {
		s.add("%sthe same call gave another result", name)
	}
	s.canceled(name, func(ctx context.Context) error { return a.MulTo(ctx, again, x) })
	return nil
}

// canceled checks that a call returns the error of a context that has ended.
func (s *suite) canceled(name string, call func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	if err := call(ctx); !errors.Is(err, context.Canceled) {
		s.add("%safter the context was canceled: %v, want its error", name, err)
	}
}
