package plan

import (
	"fmt"
	"slices"

	"github.com/krrlab/lab/krrlab/kernel/fourier"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

const (
	// seriesGain is how many times the seconds of a Fourier series the fastest other candidate must take, and
	// seriesSeconds the number of seconds, for the plan to choose the series. Larger values choose it less often.
	seriesGain, seriesSeconds = 2, 0.25
	// seriesDigits is the share of the tolerance that rounding may take: an answer in modes divides it by λ.
	seriesDigits = 0.1
	// boxShare is the share of the points, along each axis, whose box shows whether outliers enlarge the box.
	boxShare = 0.98
)

// series returns the candidate that solves by a Fourier series, or the reason why there is none. Both are zero for
// points in more dimensions, and where the user or a fixed rule has chosen another method.
func (m *model) series() (c *cost.Candidate, reason string) {
	fixed, byName := m.Fixed, m.Fixed.Solver == cost.Fourier
	x, _ := points.Split(m.X)
	if !byName && (fixed.Solver != "" || fixed.Precond != nil || fixed.S > 0 || fixed.LambdaP > 0 || m.DirectStorage != gram.Auto ||
		m.D > fourier.MaxDim) {
		return nil, ""
	}
	if m.IterativeOnly || fixed.Storage != gram.Auto {
		return nil, "a Fourier series takes one process, no checkpoints, no sparse tiles, no storage and no stop by bounds"
	}
	s, err := fourier.New(m.Kernel, fourier.Options{}, x)
	if err != nil {
		return nil, err.Error() + m.outliers(x)
	}
	if rounding := 0x1p-53 * (m.MeanRowSum + m.maxDiagonal) / m.Lambda; !byName && rounding > seriesDigits*m.Tol {
		return nil, fmt.Sprintf("λ = %g is so small that a Fourier series in float64 may miss the tolerance", m.Lambda)
	}
	c = &cost.Candidate{Solver: cost.Fourier, Precond: cost.None, Series: s, Modes: s.Modes()}
	m.predict(c)
	return c, ""
}

// outliers returns a remark if a few outlying points enlarge the box of x, so that the series takes too many modes.
func (m *model) outliers(x points.Points) string {
	n, d := x.Dims()
	sample, inner := points.Gather(x, m.sample), points.NewDense(2, d, nil)
	column, row := make([]float64, len(m.sample)), make([]float64, d)
	for a := range d {
		for i := range column {
			sample.RowTo(row, i)
			column[i] = row[a]
		}
		slices.Sort(column)
		cut := int((1 - boxShare) / 2 * float64(len(column)))
		inner.Row(0)[a], inner.Row(1)[a] = column[cut], column[len(column)-1-cut]
	}
	if s, err := fourier.New(m.Kernel, fourier.Options{}, inner); err == nil && n > 1 {
		return fmt.Sprintf("; without outliers it would take some %d modes", s.Modes())
	}
	return ""
}

// seriesPays reports whether the series takes at most half of the seconds of every other candidate, by counts at the
// rates of the reference machine, so that the choice is the same on every machine.
func (m *model) seriesPays(series *cost.Candidate, rivals []*cost.Candidate) bool {
	reference := *m
	reference.cost.Rates, reference.cost.Entries, reference.cost.Cores = cost.Reference(), cost.Entries{}, 2
	seconds := func(c *cost.Candidate) float64 {
		copied := *c
		reference.predict(&copied)
		return copied.Seconds.Training()
	}
	limit := seriesGain * seconds(series)
	for _, c := range rivals {
		if s := seconds(c); c.RefusalReason == "" && (s < seriesSeconds || s < limit) {
			return false
		}
	}
	return true
}
