package cost

// Costs of a solve by a Fourier series. The value of seriesFactor was measured on two cores; the others follow from the
// algorithms.
const (
	seriesFactor  = 3  // seconds of a multiply-add in a pass over the points, relative to one in a large matrix product
	seriesVectors = 6  // number of n×t blocks of float64 that the solve allocates
	seriesNumbers = 10 // float64 numbers per point for checking rows of K, in addition to a copy of the points
	seriesRows    = 64 // number of predictions that are checked by sums of kernel values
)

// SeriesBytes returns the memory of a solve by a Fourier series for n points in R^d and t right-hand sides, without the
// points. workBytes is the memory of the series and its moments (fourier.Work.Bytes).
func SeriesBytes(workBytes int64, n, d, t int) int64 {
	return workBytes + 8*int64(n)*int64(seriesVectors*t+seriesNumbers+d)
}

// predictFourier sets the seconds of a solve by a Fourier series: a pass over the points for the moments, three passes
// for the answer and its residual, the factor and the iterations. The ranks share the passes, but each rank computes
// all of the factor and the iterations.
func (m *Model) predictFourier(c *Candidate) {
	n, ranks, sec := float64(m.N), float64(max(1, m.Ranks)), &c.Seconds
	work := &c.Work // counts of multiply-adds
	seconds := func(multiplyAdds float64) float64 { return 2 * multiplyAdds / m.Gemm64 }
	sec.Kernel, sec.Factor = seriesFactor*seconds(work.Moments)/ranks, seconds(work.Factor)
	sec.Solve = 3*seriesFactor*seconds(work.Pass)/ranks + seconds(float64(c.Iterations*m.T)*work.Iteration)
	sec.Residual = m.residualSeconds()
	if testRows := float64(m.TestRows); testRows > 0 {
		sec.Predict = min(sec.Predict, seriesFactor*seconds(work.Pass*(n+testRows)/n)+seriesRows*n*m.ExactEntrySeconds)
	}
	if m.Ranks > 1 {
		sec.Network = m.collectiveSeconds(m.Traffic(c).Factor)
		sec.Factor += sec.Network
	}
	sec.Total = sec.Sum()
}
