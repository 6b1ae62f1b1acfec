package precondtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/pcg"
)

// Operator returns what is wrong with A, one line for each property that fails; nil if nothing
// is wrong. It returns the first error of a product. Of o it takes Tol and Seed.
func Operator(ctx context.Context, a pcg.Operator, o *Options) error {
	if n := a.Dim(); n < 1 {
		return fmt.Errorf("the order is %d, want at least 1", n)
	}
	s := newSuite(ctx, a, o)
	s.x = probes(a.Dim(), 8, s.o.Seed)
	before := mat.DenseCopyOf(s.x)
	var err error
	if s.y, err = product(ctx, a, s.x); err != nil {
		return err
	}
	for _, check := range []func() error{s.linear, s.blocks, s.effects} {
		if err := check(); err != nil {
			return errors.Join(append(s.wrong, err)...)
		}
	}
	if !mat.Equal(s.x, before) {
		s.add("the source was changed")
	}
	s.symmetric()
	return errors.Join(s.wrong...)
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

// product returns AX, or an error if an entry is not overwritten or not finite.
func product(ctx context.Context, a pcg.Operator, x *mat.Dense) (*mat.Dense, error) {
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
		y, err := product(s.ctx, s.a, comb)
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

// blocks checks that blocks of 1, 2, … columns give the columns of the large one.
func (s *suite) blocks() error {
	n, k := s.x.Dims()
	for j, w := 0, 1; j+w <= k; j, w = j+w, w+1 {
		part, err := product(s.ctx, s.a, mat.DenseCopyOf(s.x.Slice(0, n, j, j+w)))
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
	again, err := product(s.ctx, s.a, s.x)
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
