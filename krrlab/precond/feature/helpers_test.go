package feature_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond/feature"
)

// sampleMap draws a map, and panics if that fails.
func sampleMap(t testing.TB, dist feature.Dist, d, s int, seed uint64) feature.Map {
	t.Helper()
	return testkit.Must(dist.Sample(d, s, rng.New(seed)))
}

// featuresOf returns the features φ(x_i)ᵀ of all points in float64, one row after the other.
func featuresOf(m feature.Map, x points.Points) []float64 {
	n, _ := x.Dims()
	_, s := m.Dims()
	z := make([]float64, n*s)
	m.MapTo(z, s, x, &feature.Workspace{})
	return z
}

// normalPoints returns n points of dimension d with independent normal coordinates of standard deviation scale.
func normalPoints(n, d int, scale float64, seed uint64) *points.Dense {
	x := testkit.RandomPoints(seed, n, d)
	for i := range x.Data {
		x.Data[i] *= scale
	}
	return x
}

// sparsify sets two of three coordinates of x to zero, and all of point 1. It returns the same points as dense and as
// sparse points.
func sparsify(x *points.Dense) (*points.Dense, *points.CSR) {
	for i := range x.N {
		row := x.Row(i)
		for c := range row {
			if (i+c)%3 != 0 || i == 1 {
				row[c] = 0
			}
		}
	}
	return x, testkit.ToCSR(x)
}

// meanOf returns the mean of v and its standard error.
func meanOf(v []float64) (mean, stdErr float64) {
	mean, sd := stat.MeanStdDev(v, nil)
	return mean, stat.StdErr(sd, float64(len(v)))
}

// deviates reports whether the mean of v differs from want by more than five standard errors. For a normal mean that
// has probability 6e-7.
func deviates(v []float64, want float64) bool {
	mean, stdErr := meanOf(v)
	return !(math.Abs(mean-want) <= 5*stdErr+1e-12*math.Abs(want))
}

// fourierKernels are the kernels with Fourier features.
var fourierKernels = []kernel.Kernel{
	kernel.Gaussian{Sigma: 1.5}, kernel.Laplacian{Sigma: 2}, kernel.Matern32{Sigma: 1.5}, kernel.Matern52{Sigma: 1.5},
}

// fourierDists returns the distributions of Fourier features of all fourierKernels.
func fourierDists() (dists []feature.Fourier) {
	for _, k := range fourierKernels {
		dists = append(dists, feature.Fourier{Kernel: k})
	}
	return dists
}
