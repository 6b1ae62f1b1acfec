package interval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/fourier"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/stage"
)

// Posterior holds the standard deviations of predictions by a Gaussian process: f has the covariance τ²k, and each
// answer has independent noise of variance λτ²/w_i, with weights w_i of the rows of the fit (1 if there are none) and w
// = 1 for new ones. With A = K + λ·diag(1/w_i), f(z) has the mean of the model and the variance
//
//	v(z) = τ²(k(z, z) − k_zᵀA⁻¹k_z).
//
// For each target, τ² = (1/n) Σ_i c_i²/(A⁻¹)_ii, so that the leave-one-out residuals, each divided by the standard
// deviation that the process predicts for it, have the mean square 1 (F. Bachoc, Comput. Stat. Data Anal. 66 (2013),
// doi:10.1016/j.csda.2013.03.016). The uncertainty of the mean of the answers, τ², λ and the kernel is not included.
type Posterior struct {
	Std   *mat.Dense // √v(z) for each point and target, m×t
	Noise []float64  // standard deviation √λτ of the noise, for each target
	Modes int        // modes of the Fourier series of K by which v is computed; 0 for a dense factor of K
	// TruncationError bounds the error of Std that is due to the truncation of the Fourier series; 0 without a series.
	TruncationError float64

	prediction *model.Prediction
	factor     *fourier.Factor // nil without a series
	series     *fourier.Series
	z          points.Points // points of the prediction, scaled
	inliers    []int         // rows of z that the series is for; the others are outliers; nil for all rows
}

// NewPosterior returns the standard deviations for the predictions p of the points of d. If the kernel has a Fourier
// series (package fourier) with fewer modes than the model has points, and at most 8,000, they are computed by the
// series; otherwise by a Cholesky factor (NewFactoredSystem), whose errors apply. If points of d are so far from those
// of the model that the data say nothing about them, and there is such a series without them only, v(z) = τ²k(z, z)
// there, with an error of at most 10⁻¹³τ². Work with a series of M modes: a pass over both sets of points and 2M³
// multiply-adds; memory: 32M² bytes, which must fit into memory.
//
// With a series of entry error ε, v has an error of at most τ²ε(1+√(nv/λτ²))², because v is the minimum over u of the
// variance of f(z) − uᵀy, and Σu_i²/w_i ≤ v/λτ² at the minimum. With weights, n is their sum. The bound does not cover
// rounding.
//
// It is an error if the model is for classes, has weights but not in its file, has a precomputed kernel, or is too far
// from the solution.
func NewPosterior(ctx context.Context, m *model.Model, p *model.Prediction, d *datasets.Dataset,
	memory accel.Budget) (*Posterior, error) {
	switch {
	case m.Labels != nil:
		return nil, errors.New("interval: the posterior of a Gaussian process is for regression, and the model is " +
			"for classification")
	case m.Weighted && m.Weights == nil:
		return nil, errUnknownWeights
	case kernel.AsPrecomputed(m.Kernel) != nil:
		return nil, errors.New("interval: a precomputed kernel does not say k(z, z) of new points, which the " +
			"posterior needs")
	}
	scaled, err := m.Scaled(d)
	if err != nil {
		return nil, err
	}
	n, dim, t := m.Dims()
	o := &Posterior{prediction: p, z: scaled.X}
	var seriesErr error
	o.series, seriesErr = stage.NewSeries(m.Kernel, m.X, o.z)
	isUsable := seriesErr == nil && o.series.Modes() < n
	if !isUsable && dim <= fourier.MaxDim {
		o.series, o.inliers = seriesWithoutOutliers(m, o.z)
		isUsable = o.series != nil
	}
	if isUsable {
		if err := stage.CheckSeriesMemory(o.series, n, t, m.Lambda, memory); err != nil {
			return nil, fmt.Errorf("interval: %w", err)
		}
		return o, o.computeBySeries(ctx, m)
	}
	if err = o.computeByFactor(ctx, m, scaled, memory); err != nil && dim <= fourier.MaxDim && seriesErr != nil {
		err = fmt.Errorf("%w; %w", err, seriesErr)
	}
	return o, err
}

// computeByFactor computes the posterior by a Cholesky factor of A.
func (o *Posterior) computeByFactor(ctx context.Context, m *model.Model, d *datasets.Dataset,
	memory accel.Budget) error {
	s, err := newFactoredSystem(ctx, m, memory)
	if err != nil {
		return err
	}
	o.setNoise(m, func(add func(i int, inverse float64)) {
		for i, v := range s.factor.Diag {
			add(i, v)
		}
	})
	variances := kernel.Diag(m.Kernel, d.X)
	err = s.forEachBlock(ctx, points.NewPanel(d.X), func(lo int, b *mat.Dense) {
		for q := range b.RawMatrix().Cols {
			column := b.ColView(q)
			variances[lo+q] = max(0, variances[lo+q]-mat.Dot(column, column))
		}
	})
	o.setStd(m.Lambda, variances)
	return err
}

// setNoise sets Noise from diag(A⁻¹), which visit passes on.
func (o *Posterior) setNoise(m *model.Model, visit func(add func(i int, inverse float64))) {
	n, _, t := m.Dims()
	o.Noise = make([]float64, t)
	visit(func(i int, inverse float64) {
		for j, c := range m.C.RawRowView(i) {
			o.Noise[j] += c * c / inverse
		}
	})
	for j, sum := range o.Noise {
		o.Noise[j] = math.Sqrt(m.Lambda * sum / float64(n))
	}
}

// setStd sets Std from v/τ² of the points.
func (o *Posterior) setStd(lambda float64, variances []float64) {
	o.Std = mat.NewDense(len(variances), len(o.Noise), nil)
	o.Std.Apply(func(i, j int, _ float64) float64 { return o.Noise[j] * math.Sqrt(variances[i]/lambda) }, o.Std)
}

// computeBySeries computes the posterior by the series, where v = λτ²φ(z)ᵀ(ΦᵀWΦ+λI)⁻¹φ(z).
func (o *Posterior) computeBySeries(ctx context.Context, m *model.Model) error {
	n, _, t := m.Dims()
	o.Modes = o.series.Modes()
	normal, projected, err := o.series.NormalEquations(ctx, m.X, m.Weights, m.C)
	if err != nil {
		return err
	}
	if o.factor, err = normal.Factor(ctx, m.Lambda); err != nil {
		return err
	}
	targets := make([]float64, t) // ‖W^½Ac_j‖₂²
	o.setNoise(m, func(add func(i int, inverse float64)) {
		err = o.factor.Leverages(ctx, m.X, projected, func(i int, values []float64, h float64) {
			w := weight(m, i)
			for j, c := range m.C.RawRowView(i) {
				y := values[j] + m.Lambda*c/w
				targets[j] += w * y * y
			}
			add(i, w*(1-w*h)/m.Lambda)
		})
	})
	if err != nil {
		return err
	}
	residual := worstResidual(m)
	_, largest := weightRange(m)
	for j, sum := range targets { // ‖W^−½(c−c*)‖₂ ≤ ‖W^½(y−Ac)‖₂/λ
		norm := mat.Norm(m.C.ColView(j), 2)
		if limit := residual / (1 - residual) * math.Sqrt(largest*sum) / m.Lambda; !(residual >= 0 && residual < 1 &&
			limit <= maxSolveError*norm) {
			return fmt.Errorf("%w (residual %.2g, ‖c−c*‖₂ may be %.2g, ‖c‖₂ = %.2g)", ErrUnsolved, residual, limit,
				norm)
		}
	}
	variances := kernel.Diag(m.Kernel, o.z)
	if o.inliers == nil {
		err = o.factor.Leverages(ctx, o.z, nil, func(i int, _ []float64, h float64) { variances[i] = m.Lambda * h })
	} else if len(o.inliers) > 0 {
		err = o.factor.Leverages(ctx, points.Gather(o.z, o.inliers), nil,
			func(k int, _ []float64, h float64) { variances[o.inliers[k]] = m.Lambda * h })
	}
	o.setStd(m.Lambda, variances)
	total := float64(n)
	if m.Weights != nil {
		total = floats.Sum(m.Weights)
	}
	for i, v := range variances {
		e := outlierError
		if o.isInlier(i) {
			e = truncationError(v, m.Lambda, total, o.series.EntryError())
		}
		for j, noise := range o.Noise {
			scale := noise / math.Sqrt(m.Lambda)
			bound := scale * math.Sqrt(e)
			if std := o.Std.At(i, j); std > 0 {
				bound = min(bound, scale*scale*e/std)
			}
			o.TruncationError = max(o.TruncationError, bound)
		}
	}
	return err
}

// isInlier reports whether the series is for row i of z.
func (o *Posterior) isInlier(i int) bool {
	_, isMember := slices.BinarySearch(o.inliers, i)
	return o.inliers == nil || isMember
}

// truncationError bounds the error of v/τ² for points with weights of the sum n, where entries of K̃ have errors of at
// most epsilon.
func truncationError(v, lambda, n, epsilon float64) float64 {
	bound := func(v float64) float64 {
		root := 1 + math.Sqrt(n*v/lambda)
		return epsilon * root * root
	}
	return bound(v + bound(v)) // the first is an upper bound of v, the second also covers the other side
}

// Intervals returns f(z) ± q·√(v+λτ²), q the quantile of the normal distribution: intervals that contain a new answer
// at the level if the process describes the answers. It is an error if the level is not in (0, 1).
func (o *Posterior) Intervals(level float64) (*Intervals, error) {
	if !(level > 0 && level < 1) {
		return nil, levelError(level)
	}
	quantile := distuv.UnitNormal.Quantile((1 + level) / 2)
	v := &Intervals{Method: GaussianProcess, Level: level, Std: o.Std, Lo: mat.DenseCopyOf(o.Std),
		Hi: mat.DenseCopyOf(o.Std)}
	bound := func(sign float64, m *mat.Dense) {
		m.Apply(func(i, j int, std float64) float64 {
			return o.prediction.Decision.At(i, j) + sign*quantile*math.Hypot(std, o.Noise[j])
		}, m)
	}
	bound(-1, v.Lo)
	bound(1, v.Hi)
	return v, nil
}

// Samples returns count functions drawn from the posterior at the points of the prediction, m×count, for the given
// target. All points of one sample belong to one function. It is an error unless the posterior is by a Fourier series
// for all points.
func (o *Posterior) Samples(ctx context.Context, target, count int, seed uint64) (*mat.Dense, error) {
	if o.factor == nil {
		return nil, errors.New("interval: samples of the posterior take a Fourier series with fewer modes than " +
			"points, and there is none")
	}
	if o.inliers != nil {
		return nil, fmt.Errorf("interval: samples of the posterior take a Fourier series for all points, and %d are too "+
			"far from those of the fit: leave them out", o.Std.RawMatrix().Rows-len(o.inliers))
	}
	samples, err := o.series.Eval(ctx, o.z, o.factor.Draw(count, rng.New(seed).Sub("posterior samples")))
	if err != nil {
		return nil, err
	}
	samples.Apply(func(i, _ int, v float64) float64 {
		return o.prediction.Decision.At(i, target) + o.Noise[target]*v
	}, samples)
	return samples, nil
}
