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
	drawCount = 500 // number of draws; four times as many halve the tolerances
	sigmas    = 6   // tolerance in standard deviations; a normal variable exceeds it with probability 2e-9
)

// checkMetric checks that draws x of NormalTo have mean 0 and covariance M. With y = M⁻¹x,
//
//	xᵀy has the distribution χ²_n, with expectation n,
//	vᵀy/√(vᵀM⁻¹v) is standard normal for every v.
func (s *suite) checkMetric(m lanczos.Metric) {
	x, err := s.drawSamples(m, rng.New(s.options.Seed).Sub("precondtest"))
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return
	case err != nil:
		s.addViolation("NormalTo: %w", err)
		return
	}
	count := float64(m.Dim() * drawCount)
	y := s.productOrZero("SolveTo", s.solve, x)
	meanRatio := floats.Dot(x.RawMatrix().Data, y.RawMatrix().Data) / count
	if tolerance := sigmas * math.Sqrt(2/count); !(math.Abs(meanRatio-1) <= tolerance) {
		s.addViolation("NormalTo does not have the covariance M: the mean of xᵀM⁻¹x is %.4g·n, want n to %.2g·n",
			meanRatio, tolerance)
	}
	v := s.directions(x)
	solutions := s.productOrZero("SolveTo", s.solve, v)
	var projections mat.Dense
	projections.Mul(v.T(), y)
	_, columns := v.Dims()
	for j := range columns {
		// The first draw is one of the directions v, so it is left out.
		mean, variance := stat.MeanVariance(projections.RawRowView(j)[1:], nil)
		wantVariance := mat.Dot(v.ColView(j), solutions.ColView(j)) // vᵀM⁻¹v
		mean /= math.Sqrt(wantVariance)
		if tolerance := sigmas / math.Sqrt(drawCount-1); !(math.Abs(mean) <= tolerance) {
			s.addViolation("NormalTo does not have mean 0: %.3g standard deviations in direction %d, want 0 to %.2g",
				mean, j, tolerance)
			return
		}
		if tolerance := sigmas * math.Sqrt(2./(drawCount-1)); !(math.Abs(variance/wantVariance-1) <= tolerance) {
			s.addViolation("NormalTo does not have the covariance M: its variance is %.3g of M's in direction %d, "+
				"want 1 to %.2g", variance/wantVariance, j, tolerance)
			return
		}
	}
}

// drawSamples returns a matrix of independent draws, one in each column. It also checks that the draws depend on the
// stream only, and that NormalTo returns the error of a canceled context.
func (s *suite) drawSamples(m lanczos.Metric, g rng.Stream) (*mat.Dense, error) {
	n := m.Dim()
	x, draw := mat.NewDense(n, drawCount, nil), filled(n, 1, math.NaN()) // NormalTo must overwrite draw
	for j := range drawCount {
		if err := m.NormalTo(s.ctx, draw, g.Sub("draw", uint64(j))); err != nil {
			return nil, err
		}
		if v := mat.Sum(draw); v-v != 0 {
			return nil, fmt.Errorf("the sum of a draw is %v", v)
		}
		x.SetCol(j, draw.RawMatrix().Data)
	}
	err := m.NormalTo(s.ctx, draw, g.Sub("draw", 0))
	if firstDraw := x.Slice(0, n, 0, 1); err == nil && !mat.Equal(draw, firstDraw) {
		s.addViolation("NormalTo with the same stream gives another draw, off by %.3g", relativeError(draw, firstDraw))
	}
	s.checkCanceled("NormalTo: ", func(ctx context.Context) error { return m.NormalTo(ctx, draw, g) })
	return x, err
}

// directions returns vectors in which the covariance is tested: the probes, the first draw, in whose direction M is
// large, and a probe to which M⁻¹ was applied five times, in whose direction M is small.
func (s *suite) directions(x *mat.Dense) *mat.Dense {
	n, columns := s.x.Dims()
	v := mat.NewDense(n, columns+2, nil)
	v.Copy(s.x)
	v.SetCol(columns, mat.Col(nil, 0, x))
	smallDirection := mat.DenseCopyOf(s.x.Slice(0, n, 0, 1))
	for range 5 {
		smallDirection = s.productOrZero("SolveTo", s.solve, smallDirection)
		smallDirection.Scale(1/mat.Norm(smallDirection, 2), smallDirection)
	}
	v.SetCol(columns+1, mat.Col(nil, 0, smallDirection))
	return v
}
