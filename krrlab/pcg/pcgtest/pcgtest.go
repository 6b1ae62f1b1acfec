// Package pcgtest is the conformance suite of pcg.Operator: every type that implements it
// should pass.
//
//	if err := pcgtest.Operator(ctx, a, nil); err != nil {
//		t.Error(err)
//	}
//
// It checks by probes that A is linear, symmetric and positive definite, that the columns of
// a block do not influence each other, that a block of one column and one of many give the
// same, that sources are not changed, that old contents of the destination do not matter,
// that a call repeated gives the same bits, and that the end of the context is an error.
// Preconditioners have a suite of their own, precondtest.
package pcgtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/pcg"
)

// Options of the checks. Zero values, and nil, mean the defaults.
type Options struct {
	// Tol is the error allowed, relative to the norms of the vectors involved.
	// Default 1e-10.
	Tol float64
	// Probes is the number of random vectors. Default 8.
	Probes int
	// Seed of the random vectors.
	Seed uint64
}

// Operator returns what is wrong with A, one line for each property that fails; nil if nothing
// is wrong. It returns the first error of a product.
func Operator(ctx context.Context, a pcg.Operator, o *Options) error {
	opt := Options{Tol: 1e-10, Probes: 8}
	if o != nil {
		opt.Seed = o.Seed
		if o.Tol > 0 {
			opt.Tol = o.Tol
		}
		if o.Probes > 0 {
			opt.Probes = o.Probes
		}
	}
	if n := a.Dim(); n < 1 {
		return fmt.Errorf("the order is %d, want at least 1", n)
	}
	x := Probes(a.Dim(), opt.Probes, opt.Seed)
	before := mat.DenseCopyOf(x)
	y, err := Product(ctx, a, x)
	if err != nil {
		return err
	}
	s := &suite{ctx: ctx, a: a, o: opt, x: x, y: y}
	for _, check := range []func() error{s.linear, s.columns, s.effects} {
		if err := check(); err != nil {
			return errors.Join(append(s.wrong, err)...)
		}
	}
	if !mat.Equal(x, before) {
		s.add("the source was changed")
	}
	s.symmetric()
	return errors.Join(s.wrong...)
}

// suite is an operator under test, with Y = AX for probes X.
type suite struct {
	ctx   context.Context
	a     pcg.Operator
	o     Options
	x, y  *mat.Dense
	wrong []error
}

func (s *suite) add(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Errorf(format, args...))
}

// Probes returns as many random vectors of length n as asked, the vector of ones, an
// alternating one, and the first and last unit vectors.
func Probes(n, random int, seed uint64) *mat.Dense {
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

// Product returns AX, or an error if an entry is not overwritten or not finite.
func Product(ctx context.Context, a pcg.Operator, x *mat.Dense) (*mat.Dense, error) {
	n, k := x.Dims()
	y := mat.NewDense(n, k, nil)
	y.Apply(func(_, _ int, _ float64) float64 { return math.NaN() }, y) // must be overwritten
	if err := a.MulTo(ctx, y, x); err != nil {
		return nil, fmt.Errorf("unexpected error: %w", err)
	}
	for i := range n {
		for j := range k {
			if v := y.At(i, j); math.IsNaN(v) || math.IsInf(v, 0) {
				return nil, fmt.Errorf("entry (%d, %d) of the result is %v", i, j, v)
			}
		}
	}
	return y, nil
}

func col(x *mat.Dense, j int) *mat.VecDense { return mat.VecDenseCopyOf(x.ColView(j)) }

// linear checks A(ax+by) = aAx + bAy.
func (s *suite) linear() error {
	const a, b = 1.75, -0.3
	n, k := s.x.Dims()
	comb := mat.NewDense(n, 1, nil)
	for j := 1; j < k; j++ {
		for i := range n {
			comb.Set(i, 0, a*s.x.At(i, j-1)+b*s.x.At(i, j))
		}
		y, err := Product(s.ctx, s.a, comb)
		if err != nil {
			return err
		}
		var want mat.VecDense
		want.ScaleVec(a, col(s.y, j-1))
		want.AddScaledVec(&want, b, col(s.y, j))
		got := col(y, 0)
		size := a*mat.Norm(col(s.y, j-1), 2) - b*mat.Norm(col(s.y, j), 2)
		got.SubVec(got, &want)
		if e := mat.Norm(got, 2); e > s.o.Tol*size {
			s.add("not linear: ‖A(ax+by)−aAx−bAy‖ = %.3g for ‖aAx‖+‖bAy‖ = %.3g (probes %d, %d)", e, size, j-1, j)
			return nil
		}
	}
	return nil
}

// symmetric checks xᵀAz = zᵀAx and xᵀAx > 0.
func (s *suite) symmetric() {
	_, k := s.x.Dims()
	definite, symmetric := true, true
	for i := range k {
		if v := mat.Dot(col(s.x, i), col(s.y, i)); definite && v <= 0 {
			s.add("not positive definite: xᵀAx = %.3g (probe %d)", v, i)
			definite = false
		}
		for j := range i {
			u, v := mat.Dot(col(s.x, i), col(s.y, j)), mat.Dot(col(s.x, j), col(s.y, i))
			size := max(mat.Norm(col(s.x, i), 2)*mat.Norm(col(s.y, j), 2),
				mat.Norm(col(s.x, j), 2)*mat.Norm(col(s.y, i), 2))
			if symmetric && math.Abs(u-v) > s.o.Tol*size {
				s.add("not symmetric: xᵀAz = %.17g, zᵀAx = %.17g (probes %d, %d)", u, v, i, j)
				symmetric = false
			}
		}
	}
}

// columns checks that blocks of 1, 2, … columns give the columns of the large one.
func (s *suite) columns() error {
	n, k := s.x.Dims()
	for j, w := 0, 1; j+w <= k; j, w = j+w, w+1 {
		part, err := Product(s.ctx, s.a, mat.DenseCopyOf(s.x.Slice(0, n, j, j+w)))
		if err != nil {
			return err
		}
		for c := range w {
			want, got := col(s.y, j+c), col(part, c)
			size := mat.Norm(want, 2)
			got.SubVec(got, want)
			if e := mat.Norm(got, 2); e > s.o.Tol*size {
				s.add("column %d differs by %.3g of %.3g when it is one of %d", j+c, e, size, w)
				return nil
			}
		}
	}
	return nil
}

// effects checks that a repeated call gives the same bits, and that the end of a context is
// its error.
func (s *suite) effects() error {
	again, err := Product(s.ctx, s.a, s.x)
	if err != nil {
		return err
	}
	if !mat.Equal(s.y, again) {
		s.add("the same call gave another result")
	}
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	if err := s.a.MulTo(ctx, again, s.x); !errors.Is(err, context.Canceled) {
		s.add("after the context was canceled: %v, want its error", err)
	}
	return nil
}
