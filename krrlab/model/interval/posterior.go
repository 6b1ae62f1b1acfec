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
	inliers    []int         // ascending rows of z that the series covers; the others are outliers; nil for all rows
}

// NewPosterior returns the standard deviations for the predictions p of the points of d. If the kernel has a Fourier
// series (package fourier) with fewer modes than the model has points, and at most 8,000, they are computed by the
// series. Otherwise they are computed by a Cholesky factor, with the errors that NewFactoredSystem returns. Some points
// of d may be so far from the points of the model that the data do not reduce their variance, and such a series may
// exist for the other points only. Then v(z) = τ²k(z, z) at the far points, with an error of at most 10⁻¹³τ². A series
// of M modes takes a pass over both sets of points, 2M³ multiply-adds and 32M² bytes of memory.
//
// With a series of entry error ε, v has an error of at most τ²ε(1+√(nv/λτ²))², because v is the minimum over u of the
// variance of f(z) − uᵀy, and Σu_i²/w_i ≤ v/λτ² at the minimum. With weights, n is their sum. The bound does not cover
// rounding.
//
// NewPosterior returns an error if the model is for classes, has weights that are not in its file, has a precomputed
// kernel, or is too far from the solution, or if the memory does not suffice.
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
	posterior := &Posterior{prediction: p, z: scaled.X}
	var seriesErr error
	posterior.series, seriesErr = stage.NewSeries(m.Kernel, m.X, posterior.z)
	isUsable := seriesErr == nil && posterior.series.Modes() < n
	if !isUsable && dim <= fourier.MaxDim {
		posterior.series, posterior.inliers = seriesWithoutOutliers(m, posterior.z)
		isUsable = posterior.series != nil
	}
	if isUsable {
		if err := stage.CheckSeriesMemory(posterior.series, n, t, m.Lambda, memory); err != nil {
			return nil, fmt.Errorf("interval: %w", err)
		}
		return posterior, posterior.computeBySeries(ctx, m)
	}
	if err = posterior.computeByFactor(ctx, m, scaled, memory); err != nil && dim <= fourier.MaxDim &&
		seriesErr != nil {
		err = fmt.Errorf("%w; %w", err, seriesErr)
	}
	return posterior, err
}

// computeByFactor computes the posterior by a Cholesky factor of A.
func (p *Posterior) computeByFactor(ctx context.Context, m *model.Model, d *datasets.Dataset,
	memory accel.Budget) error {
	s, err := newFactoredSystem(ctx, m, memory)
	if err != nil {
		return err
	}
	p.setNoise(m, func(add func(i int, inverse float64)) {
		for i, v := range s.factor.Diag {
			add(i, v)
		}
	})
	variances := kernel.Diag(m.Kernel, d.X)
	err = s.forEachBlock(ctx, points.NewPanel(d.X), func(lo int, block *mat.Dense) {
		for k := range block.RawMatrix().Cols {
			column := block.ColView(k) // L⁻¹k_z
			variances[lo+k] = max(0, variances[lo+k]-mat.Dot(column, column))
		}
	})
	p.setStd(m.Lambda, variances)
	return err
}

// setNoise sets Noise from diag(A⁻¹). visit must call add(i, (A⁻¹)_ii) for each row i of the fit.
func (p *Posterior) setNoise(m *model.Model, visit func(add func(i int, inverse float64))) {
	n, _, t := m.Dims()
	p.Noise = make([]float64, t)
	visit(func(i int, inverse float64) {
		for j, c := range m.C.RawRowView(i) {
			p.Noise[j] += c * c / inverse
		}
	})
	for j, sum := range p.Noise {
		p.Noise[j] = math.Sqrt(m.Lambda * sum / float64(n))
	}
}

// setStd sets Std from the variances v/τ² of the points.
func (p *Posterior) setStd(lambda float64, variances []float64) {
	p.Std = mat.NewDense(len(variances), len(p.Noise), nil)
	p.Std.Apply(func(i, j int, _ float64) float64 { return p.Noise[j] * math.Sqrt(variances[i]/lambda) }, p.Std)
}

// computeBySeries computes the posterior by the series, where v = λτ²φ(z)ᵀ(ΦᵀWΦ+λI)⁻¹φ(z).
func (p *Posterior) computeBySeries(ctx context.Context, m *model.Model) error {
	n, _, t := m.Dims()
	p.Modes = p.series.Modes()
	normalEquations, projected, err := p.series.NormalEquations(ctx, m.X, m.Weights, m.C)
	if err != nil {
		return err
	}
	if p.factor, err = normalEquations.Factor(ctx, m.Lambda); err != nil {
		return err
	}
	targetSquares := make([]float64, t) // ‖W^½Ac_j‖₂²
	p.setNoise(m, func(add func(i int, inverse float64)) {
		err = p.factor.Leverages(ctx, m.X, projected, func(i int, values []float64, leverage float64) {
			w := weight(m, i)
			for j, c := range m.C.RawRowView(i) {
				y := values[j] + m.Lambda*c/w
				targetSquares[j] += w * y * y
			}
			add(i, w*(1-w*leverage)/m.Lambda)
		})
	})
	if err != nil {
		return err
	}
	residual := worstResidual(m)
	_, largest := weightRange(m)
	for j, sum := range targetSquares { // ‖W^−½(c−c*)‖₂ ≤ ‖W^½(y−Ac)‖₂/λ
		norm := mat.Norm(m.C.ColView(j), 2)
		if limit := residual / (1 - residual) * math.Sqrt(largest*sum) / m.Lambda; !(residual >= 0 && residual < 1 &&
			limit <= maxSolveError*norm) {
			return fmt.Errorf("%w (residual %.2g, ‖c−c*‖₂ may be %.2g, ‖c‖₂ = %.2g)", ErrUnsolved, residual, limit,
				norm)
		}
	}
	variances := kernel.Diag(m.Kernel, p.z)
	if p.inliers == nil {
		err = p.factor.Leverages(ctx, p.z, nil,
			func(i int, _ []float64, leverage float64) {
				variances[i] = m.Lambda * leverage
			})
	} else if len(p.inliers) > 0 {
		err = p.factor.Leverages(ctx, points.Gather(p.z, p.inliers), nil,
			func(k int, _ []float64, leverage float64) { variances[p.inliers[k]] = m.Lambda * leverage })
	}
	p.setStd(m.Lambda, variances)
	total := float64(n)
	if m.Weights != nil {
		total = floats.Sum(m.Weights)
	}
	for i, v := range variances {
		varianceError := outlierError
		if p.isInlier(i) {
			varianceError = truncationError(v, m.Lambda, total, p.series.EntryError())
		}
		for j, noise := range p.Noise {
			scale := noise / math.Sqrt(m.Lambda)
			bound := scale * math.Sqrt(varianceError)
			if std := p.Std.At(i, j); std > 0 {
				bound = min(bound, scale*scale*varianceError/std)
			}
			p.TruncationError = max(p.TruncationError, bound)
		}
	}
	return err
}

// isInlier reports whether the series covers row i of z.
func (p *Posterior) isInlier(i int) bool {
	_, isMember := slices.BinarySearch(p.inliers, i)
	return p.inliers == nil || isMember
}

// truncationError bounds the error of the variance v/τ² of a prediction, if entries of K̃ have errors of at most
// epsilon. The weights of the rows of the fit have the sum n. See NewPosterior for the formula.
func truncationError(v, lambda, n, epsilon float64) float64 {
	bound := func(v float64) float64 {
		root := 1 + math.Sqrt(n*v/lambda)
		return epsilon * root * root
	}
	// Here v+bound(v) is an upper bound of the exact variance, so the result covers errors of both signs.
	return bound(v + bound(v))
}

// Intervals returns f(z) ± q·√(v+λτ²), where q is the quantile of the normal distribution at (1+level)/2. They contain
// a new answer with the probability level if the Gaussian process describes the answers. Intervals returns an error if
// the level is not in (0, 1).
func (p *Posterior) Intervals(level float64) (*Intervals, error) {
	if !(level > 0 && level < 1) {
		return nil, levelError(level)
	}
	quantile := distuv.UnitNormal.Quantile((1 + level) / 2)
	iv := &Intervals{Method: GaussianProcess, Level: level, Std: p.Std, Lo: mat.DenseCopyOf(p.Std),
		Hi: mat.DenseCopyOf(p.Std)}
	setEnds := func(sign float64, ends *mat.Dense) {
		ends.Apply(func(i, j int, std float64) float64 {
			return p.prediction.Decision.At(i, j) + sign*quantile*math.Hypot(std, p.Noise[j])
		}, ends)
	}
	setEnds(-1, iv.Lo)
	setEnds(1, iv.Hi)
	return iv, nil
}

// Samples returns count functions drawn from the posterior at the points of the prediction, m×count, for the given
// target. All points of one sample belong to one function. Samples returns an error unless the posterior was computed
// by a Fourier series for all points.
func (p *Posterior) Samples(ctx context.Context, target, count int, seed uint64) (*mat.Dense, error) {
	if p.factor == nil {
		return nil, errors.New("interval: samples of the posterior take a Fourier series with fewer modes than " +
			"points, and there is none")
	}
	if p.inliers != nil {
		return nil, fmt.Errorf("interval: samples of the posterior take a Fourier series for all points, and %d are too "+
			"far from those of the fit: leave them out", p.Std.RawMatrix().Rows-len(p.inliers))
	}
	samples, err := p.series.Eval(ctx, p.z, p.factor.Draw(count, rng.New(seed).Sub("posterior samples")))
	if err != nil {
		return nil, err
	}
	samples.Apply(func(i, _ int, v float64) float64 {
		return p.prediction.Decision.At(i, target) + p.Noise[target]*v
	}, samples)
	return samples, nil
}
