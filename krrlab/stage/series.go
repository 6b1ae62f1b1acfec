package stage

import (
	"fmt"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/fourier"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

const (
	// seriesEntryError is the largest error of an entry of K by NewSeries. A larger value takes fewer modes.
	seriesEntryError = 1e-12
	// maxSeriesModes is the largest number of modes of NewSeries. Its matrices take 32 bytes for each pair of modes, 2
	// GB in all; a larger value allows narrower kernels and takes more memory and time.
	maxSeriesModes = 8000
)

// NewSeries returns a Fourier series of the kernel kern for the points of all x, without weights, from which
// predictions and scores are computed to almost all digits. It returns an error if there is no series with at most
// maxSeriesModes modes.
func NewSeries(kern kernel.Kernel, x ...points.Points) (*fourier.Series, error) {
	return fourier.New(kern, fourier.Options{EntryError: seriesEntryError, MaxModes: maxSeriesModes}, x...)
}

// CheckSeriesMemory returns an error if the factor and the leverages of a series for n points, t right-hand sides and
// the ridge λ do not fit into the memory budget.
func CheckSeriesMemory(series *fourier.Series, n, t int, lambda float64, memory accel.Budget) error {
	required := 4*series.Work(n, t, lambda).Bytes + fourier.LeverageBytes(n, t)
	return memory.Check(required, fmt.Sprintf("a Fourier series of %d modes", series.Modes()), "")
}

// SeriesError bounds ‖K̃−K‖₂ ≤ n·max(w)·ε for the series K̃ of K with n points, whose entries are within ε, and the
// weights w, all ones if nil.
func SeriesError(series *fourier.Series, n int, weights []float64) float64 {
	bound := float64(n) * series.EntryError()
	if weights != nil {
		bound *= floats.Max(weights)
	}
	return bound
}
