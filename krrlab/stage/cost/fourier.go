package cost

import (
	"math"

	"github.com/krrlab/lab/krrlab/kernel/fourier"
)

// Costs of a solve by a Fourier series, measured on two cores.
const (
	seriesFactor    = 1.6 // matrix products of a pass over the points, relative to the rate of large ones
	cosineValues    = 1.3 // a cosine or sine of a point, in exponentials
	transformFactor = 25  // fast Fourier transforms, whose 5N·log₂N flops are far from the rate of matrix products
	seriesVectors   = 6   // n×t blocks of float64
	seriesNumbers   = 10  // numbers of each point that checking rows of K takes, in addition to a copy of the points
	seriesRows      = 64  // points that are predicted without the series too
)

// SeriesBytes returns the memory of a solve by a Fourier series for n points in R^d and t right-hand sides, without the
// points.
func SeriesBytes(s *fourier.Series, n, d, t int) int64 {
	return s.Bytes() + 8*int64(n)*int64(seriesVectors*t+seriesNumbers+d)
}

// predictFourier sets the seconds of a solve by a Fourier series: a pass for the moments, two for the answer and its
// residual, and M³/3 flops for the factor, or two transforms of the moments' size for each iteration.
func (m *Model) predictFourier(c *Candidate) {
	n, t, sec, size := float64(m.N), float64(m.T), &c.Seconds, float64(c.Series.Modes())
	pass, moments := c.Series.Work()
	columns := float64(m.D) * math.Pow(pass, 1/float64(m.D))
	passSeconds := func(products float64) float64 {
		return 2*seriesFactor*products/m.Gemm64 + cosineValues*columns/m.Exp
	}
	sec.Kernel = n * (passSeconds(moments+t*pass) + cosineValues*columns/m.Exp)
	if c.Series.Direct() {
		sec.Factor = m.CholeskySeconds(size, m.Gemm64, 1) + size*size*math.Pow(2, float64(m.D))*2/m.Exp
	}
	sec.Solve = n*(passSeconds(2*t*pass)+passSeconds(t*pass)) +
		float64(c.Iterations)*t*transformFactor*10*moments*math.Log2(moments)/m.Gemm64
	sec.Residual = m.residualSeconds()
	if tests := float64(m.Tests); tests > 0 {
		sec.Predict = min(sec.Predict, (n+tests)*passSeconds(t*pass)+seriesRows*n*m.ExactEntrySeconds)
	}
	sec.Total = sec.Sum()
}
