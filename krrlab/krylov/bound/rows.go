package bound

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

const (
	drawnRows      = 256  // number of rows drawn at random; more rows estimate the residual more precisely
	outlierRows    = 32   // minimum number of rows of largest norm
	maxOutlierRows = 1024 // maximum number of rows of largest norm, if the stored K may be inaccurate there
)

// MaxResidualRows is the maximum number of rows in ResidualRows for unweighted points, if the stored K is accurate for
// all points.
const MaxResidualRows = drawnRows + outlierRows

// SamplingFactor returns the factor that turns an estimate from ResidualRows of n points into a bound: 1 if they
// contain all rows, and otherwise 1 plus about three standard errors of a norm estimated from 256 rows of normal
// numbers, 1/√(2·256) each.
func SamplingFactor(n int) float64 {
	if n <= MaxResidualRows {
		return 1
	}
	return 1.15
}

// ResidualRows are rows of the residual of an answer C to (K+λI)C = Y. Their kernel values are computed in float64,
// regardless of the storage of K. They consist of the set F of the rows of largest norm, and the set S of rows drawn at
// random from the others. They estimate the residual by
//
//	‖r_j‖² ≈ Σ_{i∈F} r_ij² + ((n−|F|)/|S|) Σ_{i∈S} r_ij²,  r_ij = y_ij − λc_ij − Σ_l K_il c_lj.
//
// For points.Weighted, row i of the residual is approximately proportional to √w_i for the weight w_i of the point. S
// then has twice as many rows, drawn with the probabilities π_i of kernel.DrawWeighted, and a row of S has the weight
// 1/π_i.
type ResidualRows struct {
	k           kernel.Kernel
	x           points.Points
	lambda, tol float64
	indices     []int     // indices of the rows, those of F first
	weights     []float64 // weights of the squares: 1 in F, (n−|F|)/|S| or 1/π_i in S
}

// NewResidualRows chooses rows, at random from g, to check answers to a tolerance τ that were computed with the given
// storage of K.
func NewResidualRows(k kernel.Kernel, x points.Points, lambda, tol float64, storage gram.Choice,
	g rng.Stream) *ResidualRows {
	r := &ResidualRows{k: k, x: x, lambda: lambda, tol: tol}
	shifted, _ := points.SplitFactors(x)
	if storage.Centered || storage.Arithmetic == kernel.Differences {
		shifted = points.Shift(shifted, points.Mean(shifted))
	}
	norms := points.SqNorms(shifted)
	n := len(norms)
	permutation := g.Perm(n)
	outliers := min(n, max(outlierRows, r.countOutliers(norms, storage)))
	isOutlier := make([]bool, n)
	r.indices, r.weights = largest(permutation, norms, outliers), slices.Repeat([]float64{1}, outliers)
	for _, i := range r.indices {
		isOutlier[i] = true
	}
	if weighted, ok := x.(*points.Weighted); ok {
		weightedDraw, probabilities := kernel.DrawWeighted(weighted, 2*drawnRows, g.Sub("weighted"))
		for position, i := range weightedDraw {
			if !isOutlier[i] {
				r.indices, r.weights = append(r.indices, i), append(r.weights, 1/probabilities[position])
			}
		}
		return r
	}
	for _, i := range permutation {
		if !isOutlier[i] && len(r.indices) < outliers+drawnRows {
			r.indices = append(r.indices, i)
		}
	}
	for range len(r.indices) - outliers {
		r.weights = append(r.weights, float64(n-outliers)/float64(len(r.indices)-outliers))
	}
	return r
}

// largest returns the first k elements of order, sorted stably by decreasing norm, in O(n + k² log n) operations on
// average.
func largest(order []int, norms []float64, k int) []int {
	selected := make([]int, 0, k+1)
	for _, i := range order {
		if len(selected) == k && (k == 0 || norms[i] <= norms[selected[k-1]]) {
			continue
		}
		index, _ := slices.BinarySearchFunc(selected, norms[i], func(j int, norm float64) int {
			if norms[j] >= norm {
				return -1
			}
			return 1
		})
		selected = slices.Insert(selected, index, i)
		selected = selected[:min(len(selected), k)]
	}
	return selected
}

// countOutliers returns the number of points, given their ‖x‖², that are so far from the origin that an entry of the
// stored K between two of them may have an error of a quarter of τ. A few such points may be close to each other, and a
// random draw would rarely contain their rows. The result is at most maxOutlierRows. It is 0 if more than an eighth of
// all points qualify, because a random draw then contains enough of them.
func (r *ResidualRows) countOutliers(norms []float64, storage gram.Choice) int {
	if storage.Arithmetic == kernel.Differences || storage.ExactProducts || !kernel.ShiftInvariant(r.k) {
		return 0
	}
	roundingFactor := 1.0 // unit roundoff of the inner products, in units of that of float64
	if storage.Arithmetic == kernel.Float32 {
		roundingFactor = 0x1p-24 / 0x1p-53
	}
	n, d := r.x.Dims()
	count := 0
	for _, squaredNorm := range norms {
		summary := kernel.PointSummary{Dim: d, MaxSq: squaredNorm, Shifted: true}
		if roundingFactor*kernel.EntryError(r.k, kernel.Float64, summary) > r.tol/4 {
			count++
		}
	}
	if count > n/8 {
		return 0
	}
	return min(count, maxOutlierRows)
}

// Len returns the number of rows.
func (r *ResidualRows) Len() int { return len(r.indices) }

// Estimate returns, for every column of C, n×t, an estimate of ‖r_j‖₂/‖y_j‖₂, and in the same units the error of
// stored, the residual that was computed with the stored K. This error is usually a small part of the residual, so the
// sampling error has little effect. If stored is nil, the error is the residual itself. Both results include an
// estimate of the rounding errors of the rows. If ranks share the work, all of them must call Estimate.
func (r *ResidualRows) Estimate(ctx context.Context, ranks comm.Comm, y, c, stored *mat.Dense) (residual,
	storageError []float64, err error) {
	base, factors := points.SplitFactors(r.x)
	decisions, err := (&model.Model{Kernel: r.k, Lambda: r.lambda, X: base, C: points.ScaleRows(factors, c)}).
		Decision(ctx, points.Gather(base, r.indices), &model.Options{Float64: true, Accuracy: r.tol / 1000,
			Comm: ranks})
	if err != nil {
		return nil, nil, err
	}
	if factors != nil {
		decisions.Apply(func(row, _ int, entry float64) float64 { return factors[r.indices[row]] * entry }, decisions)
	}
	_, t := y.Dims()
	residual, storageError = make([]float64, t), make([]float64, t)
	rounding := r.rounding(y, c)
	for j := range t {
		yNorm := mat.Norm(y.ColView(j), 2)
		if yNorm == 0 {
			continue // y_j = 0 has the solution c_j = 0
		}
		// Estimates of ‖r_j‖² and of the squared norm of its difference from the stored residual. They are relative to
		// ‖y_j‖₂, because squares of small targets underflow.
		var residualSquare, storageSquare float64
		for row, i := range r.indices {
			entry, weight := y.At(i, j)-r.lambda*c.At(i, j)-decisions.At(row, j), r.weights[row]
			storageEntry := entry
			if stored != nil {
				storageEntry -= stored.At(i, j)
			}
			residualSquare += weight * (entry / yNorm) * (entry / yNorm)
			storageSquare += weight * (storageEntry / yNorm) * (storageEntry / yNorm)
		}
		residual[j], storageError[j] = math.Sqrt(residualSquare)+rounding[j], math.Sqrt(storageSquare)+rounding[j]
	}
	return residual, storageError, nil
}

// rounding estimates the contribution of rounding to ‖r_j‖₂/‖y_j‖₂ if r is computed as in Estimate,
//
//	u·√(δ/u+n)·√(Σ_l s_l)·√(Σ_l s_l·c_lj²)/‖y_j‖₂,  u = 2⁻⁵³,
//
// where s_l are the diagonal bounds (kernel.Placement.DiagonalBounds) and δ is the error of an entry of K, by
// kernel.EntryError for differences (Estimate uses inner products only if their additional error is negligible). The
// formula assumes δ/u independent roundings in an entry and n in each sum: N. J. Higham, T. Mary, A new approach to
// probabilistic rounding error analysis, SIAM J. Sci. Comput. 41, 2019, doi:10.1137/18M1226312.
func (r *ResidualRows) rounding(y, c *mat.Dense) []float64 {
	n, t := y.Dims()
	placement := kernel.NewPlacement(r.k, r.x)
	sizes := placement.DiagonalBounds(placement.Diag())
	const u = 0x1p-53
	entryError := kernel.EntryError(r.k, kernel.Differences, kernel.SummaryOf(placement.Original))
	factor := u * math.Sqrt(entryError/u+float64(n)) * math.Sqrt(floats.Sum(sizes))
	rounding := make([]float64, t)
	for j := range rounding {
		var norm float64
		for l, size := range sizes {
			norm = math.Hypot(norm, math.Sqrt(size)*c.At(l, j))
		}
		if yNorm := mat.Norm(y.ColView(j), 2); yNorm > 0 {
			rounding[j] = factor * (norm / yNorm)
		}
	}
	return rounding
}
