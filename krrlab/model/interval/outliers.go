package interval

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/fourier"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage"
)

// outlierError bounds k_zᵀA⁻¹k_z, the share of an outlier's variance that the data explain. A larger value makes the
// box of the series smaller.
const outlierError = 1e-13

// seriesWithoutOutliers returns a Fourier series for the points of m and the rows of z that are no outliers, and the
// indices of these rows. An outlier is so far from the box of the points of m that k_zᵀA⁻¹k_z is at most outlierError:
// with the bound κ of the kernel at that distance, k_zᵀA⁻¹k_z is at most κ²·Σw_i/λ, where w_i are the weights of the
// rows of the fit (1 if there are none). seriesWithoutOutliers returns nil if there are no outliers, if the kernel has
// no such bound, or if there is no series with fewer modes than m has points.
func seriesWithoutOutliers(m *model.Model, z points.Points) (*fourier.Series, []int) {
	radius := outlierDistance(m)
	low, high := datasets.FeatureRanges(m.X)
	rows, d := z.Dims()
	point, excess, inliers := make([]float64, d), make([]float64, d), []int{}
	for i := range rows {
		z.RowTo(point, i)
		for a, v := range point { // excess[a] is the distance to the box along axis a
			excess[a] = max(low[a]-v, v-high[a], 0)
		}
		if floats.Norm(excess, 2) < radius {
			inliers = append(inliers, i)
		}
	}
	if len(inliers) == rows {
		return nil, nil
	}
	sets := []points.Points{m.X}
	if len(inliers) > 0 {
		sets = append(sets, points.Gather(z, inliers))
	}
	series, err := stage.NewSeries(m.Kernel, sets...)
	if n, _, _ := m.Dims(); err != nil || series.Modes() >= n {
		return nil, nil
	}
	return series, inliers
}

// outlierDistance returns the distance from the box of the points of m from which on a point is an outlier, or +Inf if
// the kernel has no bound by its distance.
func outlierDistance(m *model.Model) float64 {
	n, _, _ := m.Dims()
	total := float64(n)
	if m.Weights != nil {
		total = floats.Sum(m.Weights)
	}
	bound := math.Sqrt(outlierError * m.Lambda / total) // κ
	switch k := m.Kernel.(type) {
	case kernel.Gaussian:
		return k.Sigma * math.Sqrt(max(0, -2*math.Log(bound)))
	case fourier.Density:
		amplitude, length := k.Envelope()
		return length * max(0, math.Log(amplitude/bound))
	}
	return math.Inf(1)
}
