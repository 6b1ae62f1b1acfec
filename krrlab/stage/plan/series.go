package plan

import (
	"fmt"
	"slices"

	"github.com/krrlab/lab/krrlab/kernel/fourier"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// Limits for choosing a Fourier series, chosen by judgment.
const (
	// seriesGain is the smallest ratio of the seconds of the fastest other candidate to those of a Fourier series at
	// which the plan chooses the series. A larger value chooses it less often.
	seriesGain = 2
	// seriesSeconds is the smallest number of seconds of the fastest other candidate at which the plan chooses a
	// Fourier series. A larger value chooses it less often.
	seriesSeconds = 0.25
	// maxRoundingShare is the largest rounding error of a series solve, 2⁻⁵³‖K‖₂/λ, as a fraction of the tolerance. A
	// larger value allows the series at a smaller λ, where it may miss the tolerance.
	maxRoundingShare = 0.1
	// boxShare is the share of the points, along each axis, inside the box that outlierRemark considers. A smaller
	// value counts more points as outliers.
	boxShare = 0.98
)

// series returns the candidate that solves by a Fourier series of the kernel, or the reason why there is none. If the
// user did not request a series, it returns nil and "" in three cases: for points in more than fourier.MaxDim
// dimensions, if an option of another method is set, and if the fixed rule for few points applies.
func (m *model) series() (c *cost.Candidate, reason string) {
	fixed, isRequested := m.Fixed, m.Fixed.Solver == cost.Fourier
	x, _ := points.SplitFactors(m.X) // without the weights
	isOtherFixed := fixed.Solver != "" || fixed.Precond != nil || fixed.S > 0 || fixed.LambdaP > 0
	if !isRequested && (isOtherFixed || m.DirectStorage != gram.Auto || m.D > fourier.MaxDim) {
		return nil, ""
	}
	if m.NoSeries || fixed.Storage != gram.Auto {
		return nil, "a Fourier series takes no sparse tiles, no storage and no stop by bounds"
	}
	s, err := fourier.New(m.Kernel, fourier.Options{Comm: m.Comm}, x)
	if err != nil {
		return nil, err.Error() + m.outlierRemark(x)
	}
	if !isRequested && m.relativeRounding(unitRoundoff64) > maxRoundingShare*m.Tol {
		return nil, fmt.Sprintf("λ = %g is so small that a Fourier series in float64 may miss the tolerance", m.Lambda)
	}
	c = &cost.Candidate{Solver: cost.Fourier, Precond: cost.None, Series: s, Modes: s.Modes()}
	m.predict(c)
	return c, ""
}

// outlierRemark returns a remark for points x in whose bounding box the kernel has no Fourier series. The remark says
// how many modes a series would have in a box without the outliers. It is "" if there is no series in that box either.
func (m *model) outlierRemark(x points.Points) string {
	n, d := x.Dims()
	if n < 2 {
		return ""
	}
	sample, inner := points.Gather(x, m.sample), points.NewDense(2, d, nil)
	column, row := make([]float64, len(m.sample)), make([]float64, d)
	for axis := range d {
		for i := range column {
			sample.RowTo(row, i)
			column[i] = row[axis]
		}
		slices.Sort(column)
		trimCount := int((1 - boxShare) / 2 * float64(len(column)))
		inner.Row(0)[axis], inner.Row(1)[axis] = column[trimCount], column[len(column)-1-trimCount]
	}
	if s, err := fourier.New(m.Kernel, fourier.Options{}, inner); err == nil {
		return fmt.Sprintf("; without outliers it would take some %d modes", s.Modes())
	}
	return ""
}

// seriesIsFastest reports whether every rival that is not refused is predicted to take at least seriesSeconds, and at
// least seriesGain times the seconds of the series. The seconds are predicted from operation counts at the rates of the
// reference machine, which has two cores, so that the choice is the same on every machine.
func (m *model) seriesIsFastest(series *cost.Candidate, rivals []*cost.Candidate) bool {
	reference := *m
	reference.cost.Rates, reference.cost.Entries, reference.cost.Cores = cost.Reference(), cost.Entries{}, 2
	seconds := func(c *cost.Candidate) float64 {
		copied := *c
		reference.predict(&copied)
		return copied.Seconds.Training()
	}
	limit := seriesGain * seconds(series)
	for _, rival := range rivals {
		if rivalSeconds := seconds(rival); rival.RefusalReason == "" && (rivalSeconds < seriesSeconds ||
			rivalSeconds < limit) {
			return false
		}
	}
	return true
}
