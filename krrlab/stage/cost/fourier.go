package cost

// Costs of a solve by a Fourier series. The first was measured on two cores; the others follow from the algorithms.
const (
	seriesFactor  = 3  // seconds of a multiply-add in a pass over the points, relative to one in a large matrix product
	seriesVectors = 6  // number of n×t blocks of float64 that the solve allocates
	seriesNumbers = 10 // numbers in float64 for each point that checking rows of K takes, without a copy of the points
	seriesRows    = 64 // number of predictions that are checked by sums of kernel values
)

// SeriesBytes returns the memory of a solve by a Fourier series that takes seriesBytes itself, for n points in R^d and
// t right-hand sides, without the points.
func SeriesBytes(seriesBytes int64, n, d, t int) int64 {
	return seriesBytes + 8*int64(n)*int64(seriesVectors*t+seriesNumbers+d)
}

// predictFourier sets the seconds of a solve by a Fourier series: a pass over the points for the moments, three passes
// for the answer and its residual, the factor and the iterations. The ranks share the passes, and each of them computes
// the factor and the iterations.
func (m *Model) predictFourier(c *Candidate) {
	n, ranks, sec := float64(m.N), float64(max(1, m.Ranks)), &c.Seconds
	work := &c.Work
	seconds := func(multiplyAdds float64) float64 { return 2 * multiplyAdds / m.Gemm64 }
	sec.Kernel, sec.Factor = seriesFactor*seconds(work.Moments)/ranks, seconds(work.Factor)
	sec.Solve = 3*seriesFactor*seconds(work.Pass)/ranks + seconds(float64(c.Iterations*m.T)*work.Iteration)
	sec.Residual = m.residualSeconds()
	if tests := float64(m.TestRows); tests > 0 {
		sec.Predict = min(sec.Predict, seriesFactor*seconds(work.Pass*(n+tests)/n)+seriesRows*n*m.ExactEntrySeconds)
	}
	if m.Ranks > 1 {
		sec.Network = m.collectiveSeconds(m.Traffic(c).Factor)
		sec.Factor += sec.Network
	}
	sec.Total = sec.Sum()
}
