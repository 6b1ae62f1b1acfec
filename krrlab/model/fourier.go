package model

import (
	"cmp"
	"context"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel/fourier"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Limits of predictions by a Fourier series, chosen by judgment. A tile is a block of K(Z, X), for some of the points
// to predict and some of the training points.
const (
	// minFourierPairs is the number of pairs of points from which on a Fourier series is considered. For fewer, tiles
	// take a second or less.
	minFourierPairs = 2e9
	// fourierWorkFactor is the number of multiply-adds of a series that are assumed to take as long as one kernel value
	// in a tile. A larger value chooses the series more often.
	fourierWorkFactor = 4
	// fourierTrialPoints is the number of points that are predicted without the series too, as a check.
	fourierTrialPoints = 64
	// fourierErrorShare·Accuracy is the largest allowed difference at these points, relative to the largest prediction.
	// A smaller value uses tiles more often.
	fourierErrorShare = 0.25
)

// fourierDecision returns the decision values F, m×t, at the points z by a Fourier series of the kernel: Φ(Z)Φ(X)ᵀC
// replaces K(Z, X)C, where Φ has the values of the modes. It returns nil if tiles are to be used: for predictions in
// float64, if the kernel has no series for these points, if it would not save time, or if 64 points, evenly spread over
// the rows of z and also predicted in float64, differ by more than a quarter of the requested accuracy.
func (m *Model) fourierDecision(ctx context.Context, z points.Points, o *Options) (*mat.Dense, error) {
	n, d, t := m.Dims()
	rows, _ := z.Dims()
	if o.Float64 || float64(n)*float64(rows) < minFourierPairs || d > fourier.MaxDim {
		return nil, nil
	}
	series, err := fourier.New(m.Kernel, fourier.Options{Comm: o.Comm}, m.X, z)
	if err != nil {
		return nil, nil
	}
	if work := series.Work(n+rows, t, m.Lambda).Pass; work > fourierWorkFactor*float64(n)*float64(rows) {
		return nil, nil
	}
	coefficients, err := series.Project(ctx, m.X, m.C)
	if err != nil {
		return nil, err
	}
	f, err := series.Eval(ctx, z, coefficients)
	if err != nil {
		return nil, err
	}
	accuracy := cmp.Or(o.Accuracy, defaultAccuracy)
	m.AddMean(f.RawMatrix().Data)
	sample := make([]int, min(fourierTrialPoints, rows))
	for k := range sample {
		sample[k] = k * rows / len(sample)
	}
	exact, err := m.decision(ctx, &datasets.Dataset{X: points.Gather(z, sample), Scaling: m.Scaling},
		&Options{Float64: true, Comm: o.Comm})
	if err != nil {
		return nil, err
	}
	for j := range t {
		largest := mat.Norm(f.ColView(j), math.Inf(1))
		for k, i := range sample {
			if !(math.Abs(f.At(i, j)-exact.At(k, j)) <= fourierErrorShare*accuracy*largest) {
				return nil, nil
			}
		}
	}
	return f, nil
}
