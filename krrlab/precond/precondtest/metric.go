package precondtest

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/krylov/lanczos"
)

const (
	draws  = 500
	sigmas = 6 // beyond it a normal variable is with a probability of 2e-9
)

// metric checks that draws x of NormalTo have mean 0 and covariance M: with y = M⁻¹x,
//
//	E xᵀy = n,  xᵀy being χ²_n,
//	vᵀy/√(vᵀM⁻¹v) is standard normal for every v.
func (s *suite) metric(m lanczos.Metric) {
	x, err := s.draws(m, rng.New(s.o.Seed).Sub("precondtest"))
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return
	case err != nil:
		s.add("NormalTo: %w", err)
		return
	}
	count := float64(m.Dim() * draws)
	y := s.must("SolveTo", s.solve, x)
	share := floats.Dot(x.RawMatrix().Data, y.RawMatrix().Data) / count
	if off := sigmas * math.Sqrt(2/count); !(math.Abs(share-1) <= off) {
		s.add("NormalTo does not have the covariance M: the mean of xᵀM⁻¹x is %.4g·n, want n to %.2g·n", share, off)
	}
	v := s.directions(x)
	u := s.must("SolveTo", s.solve, v)
	var e mat.Dense
	e.Mul(v.T(), y)
	_, k := v.Dims()
	for j := range k {
		mean, variance := stat.MeanVariance(e.RawRowView(j)[1:], nil) // the first is a direction
		size := mat.Dot(v.ColView(j), u.ColView(j))                   // vᵀM⁻¹v
		if mean, off := mean/math.Sqrt(size), sigmas/math.Sqrt(draws-1); !(math.Abs(mean) <= off) {
			s.add("NormalTo does not have mean 0: %.3g standard deviations in direction %d, want 0 to %.2g", mean, j,
				off)
			return
		}
		if off := sigmas * math.Sqrt(2./(draws-1)); !(math.Abs(variance/size-1) <= off) {
			s.add("NormalTo does not have the covariance M: its variance is %.3g of M's in direction %d, want 1 to "+
				"%.2g", variance/size, j, off)
			return
		}
	}
}

// draws returns independent draws, one in a column, and checks that they depend on the stream alone, and
// that they end with the context.
func (s *suite) draws(m lanczos.Metric, g rng.Stream) (*mat.Dense, error) {
	n := m.Dim()
	x, one := mat.NewDense(n, draws, nil), filled(n, 1, math.NaN()) // must be overwritten
	for j := range draws {
		if err := m.NormalTo(s.ctx, one, g.Sub("draw", uint64(j))); err != nil {
			return nil, err
		}
		if v := mat.Sum(one); v-v != 0 {
			return nil, fmt.Errorf("the sum of a draw is %v", v)
		}
		x.SetCol(j, one.RawMatrix().Data)
	}
	err := m.NormalTo(s.ctx, one, g.Sub("draw", 0))
	if first := x.Slice(0, n, 0, 1); err == nil && !mat.Equal(one, first) {
		s.add("NormalTo with the same stream gives another draw, off by %.3g", apart(one, first))
	}
	s.canceled("NormalTo: ", func(ctx context.Context) error { return m.NormalTo(ctx, one, g) })
	return x, err
}

// directions are the probes, the first draw, in which M is large, and what M⁻¹ makes of a probe again and
// again, in which M is small.
func (s *suite) directions(x *mat.Dense) *mat.Dense {
	n, k := s.x.Dims()
	v := mat.NewDense(n, k+2, nil)
	v.Copy(s.x)
	v.SetCol(k, mat.Col(nil, 0, x))
	small := mat.DenseCopyOf(s.x.Slice(0, n, 0, 1))
	for range 5 {
		small = s.must("SolveTo", s.solve, small)
		small.Scale(1/mat.Norm(small, 2), small)
	}
	v.SetCol(k+1, mat.Col(nil, 0, small))
	return v
}
