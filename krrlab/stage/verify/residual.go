package verify

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Residual is R = W^½(Y−AC), n×t, with the norms of its columns r_j. A is K+λW⁻¹, with the diagonal matrix W of the
// weights; W = I without weights.
type Residual struct {
	R           []float64 // entries of R, n×t by rows
	Norms       []float64 // norms ‖r_j‖₂ of the columns
	TargetNorms []float64 // norms ‖W^½y_j‖₂ of the columns of the targets
	NormErrors  []float64 // bounds of the rounding errors of Norms
	CrossNorms  []float64 // norms ‖r_a−r_b‖₂ of the differences of columns a and b, t×t by rows
	OneNorms    []float64 // 1-norms ‖c_j‖₁ of the columns of the coefficients
}

// Apply returns v = AC = (K+λW⁻¹)C, n×t by rows, for C in c, and for each column a bound of the errors of the entries
// of KC. The bound does not include the rounding errors of λW⁻¹C, of adding this to KC, and of Y−v, which Residual
// adds. Apply panics if c does not have N·t entries.
func (m *Matrix) Apply(ctx context.Context, c []float64, t int, lambda float64) (v, rounding []float64, err error) {
	if len(c) != m.N*t {
		panic(fmt.Sprintf("verify: %d coefficients for %d points and %d columns", len(c), m.N, t))
	}
	v = make([]float64, len(c))
	if err := m.Mul(ctx, v, c, t); err != nil {
		return nil, nil, err
	}
	for p := range v {
		v[p] += lambda * c[p] / m.weight(p/t)
	}
	rounding = make([]float64, t)
	for j, norm := range oneNorms(c, t) {
		rounding[j] = (m.EntryError + m.sumError()*m.MaxDiagonal) * norm
	}
	return v, rounding, nil
}

// weight returns the weight w_i of row i, which is 1 without weights.
func (m *Matrix) weight(i int) float64 {
	if m.Weights == nil {
		return 1
	}
	return m.Weights[i]
}

// Residual returns the residual W^½(Y−v) with the norms of its columns. v = AC and rounding must be the results of
// Apply for the coefficients c and lambda. v, c and the targets y are n×t by rows.
func (m *Matrix) Residual(v, rounding, c, y []float64, t int, lambda float64) *Residual {
	n := m.N
	r := &Residual{R: make([]float64, n*t), Norms: make([]float64, t), TargetNorms: make([]float64, t),
		NormErrors: make([]float64, t), CrossNorms: make([]float64, t*t), OneNorms: oneNorms(c, t)}
	// The computation of λC, its addition to KC and the difference Y−v have relative errors of together at most 4u,
	// where u is the unit roundoff; with W⁻¹ and W^½ these are at most 8u.
	roundingCount := 4.0
	if m.Weights != nil {
		roundingCount = 8
	}
	sqrtWeights := make([]float64, n) // √w_i
	for i := range sqrtWeights {
		sqrtWeights[i] = math.Sqrt(m.weight(i))
	}
	for p := range y {
		r.R[p] = sqrtWeights[p/t] * (y[p] - v[p])
	}
	sqrtWeightNorm := euclideanNorm(n, func(i int) float64 { return sqrtWeights[i] })
	for j := range t {
		magnitudeNorm := euclideanNorm(n, func(i int) float64 {
			return sqrtWeights[i] * (math.Abs(y[i*t+j]) + lambda*math.Abs(c[i*t+j])/m.weight(i))
		})
		r.Norms[j] = euclideanNorm(n, func(i int) float64 { return r.R[i*t+j] })
		r.TargetNorms[j] = euclideanNorm(n, func(i int) float64 { return sqrtWeights[i] * y[i*t+j] })
		sumError := float64(n) * unitRoundoff // relative error of a sum of n squares, as in the norms
		r.NormErrors[j] = (1+sumError)*sqrtWeightNorm*rounding[j] + roundingCount*unitRoundoff*magnitudeNorm +
			sumError*r.Norms[j]
		for k := range j {
			norm := euclideanNorm(n, func(i int) float64 { return r.R[i*t+j] - r.R[i*t+k] })
			r.CrossNorms[j*t+k], r.CrossNorms[k*t+j] = norm, norm
		}
	}
	return r
}

// euclideanNorm returns √Σ_i v(i)² over 0 ≤ i < n.
func euclideanNorm(n int, value func(i int) float64) float64 {
	var sum float64
	for i := range n {
		sum += value(i) * value(i)
	}
	return math.Sqrt(sum)
}

// oneNorms returns the 1-norms of the t columns of c.
func oneNorms(c []float64, t int) []float64 {
	norms := make([]float64, t)
	for p, v := range c {
		norms[p%t] += math.Abs(v)
	}
	return norms
}

// worstRelative returns the largest ratio norms[j]/TargetNorms[j]. A ratio of two zeros counts as 0. It returns NaN if
// a norm is NaN.
func (r *Residual) worstRelative(norms []float64) (worst float64) {
	for j, v := range norms {
		if math.IsNaN(v) {
			return v
		}
		if v != 0 {
			worst = max(worst, v/r.TargetNorms[j])
		}
	}
	return worst
}

// upperNorms returns upper bounds of the norms ‖r_j‖₂, which include rounding errors.
func (r *Residual) upperNorms() []float64 {
	return floats.AddTo(make([]float64, len(r.Norms)), r.Norms, r.NormErrors)
}

// Prediction has the predictions f̃_j of t columns at m new points x_a, and bounds of their distance from the exact
// solution f_j: √k(x_a,x_a)/(2√λ)·‖r_j‖₂ plus rounding errors.
type Prediction struct {
	F     []float64 // predictions f̃_j(x_a), m×t by rows
	Bound []float64 // bounds of |f_j(x_a)−f̃_j(x_a)|, m×t by rows
	// Gap tells for each point whether its label is certain. It is the smallest ratio of the margin f̃_w−f̃_j to the
	// bound of the error of this margin, over the classes j other than the predicted class w. For one column it is
	// |f̃|/Bound. The label is proved to be that of f if Gap exceeds 1. Gap is +Inf if all bounds are zero.
	Gap []float64
}

// Predict evaluates f̃_j(z) = Σ_i C_ij k(x_i, z) at the points z by blocked sums in float64, and bounds the distance
// from the exact solution by the residual r of the coefficients c (n×t by rows). It returns an error if the points z do
// not have the dimension of the points of K.
func (m *Matrix) Predict(ctx context.Context, z points.Points, c []float64, t int, r *Residual,
	lambda float64) (*Prediction, error) {
	rows, d := z.Dims()
	if d != m.D {
		return nil, fmt.Errorf("verify: test points of dimension %d for a model of dimension %d", d, m.D)
	}
	newPoints := coordinates(z)
	p := &Prediction{F: make([]float64, rows*t), Bound: make([]float64, rows*t), Gap: make([]float64, rows)}
	err := m.forEachGroup(ctx, rows, func(lo, hi int) {
		kernelRows, x := make([][]float64, hi-lo), make([][]float64, hi-lo)
		for a := lo; a < hi; a++ {
			kernelRows[a-lo], x[a-lo] = make([]float64, m.N), newPoints[a*d:(a+1)*d]
		}
		m.kernelRows(kernelRows, x)
		for a := lo; a < hi; a++ {
			f, bounds := p.F[a*t:(a+1)*t], p.Bound[a*t:(a+1)*t]
			blockedDot(f, kernelRows[a-lo], c, t)
			p.Gap[a] = m.boundAndGap(f, bounds, x[a-lo], r, lambda)
		}
	})
	return p, m.gatherSums(ctx, err, p.F, p.Bound, p.Gap)
}

// boundAndGap sets bounds to the bounds of the predictions f at the point x, and returns the Gap of the point.
func (m *Matrix) boundAndGap(f, bounds, x []float64, r *Residual, lambda float64) float64 {
	t, diagonal := len(f), m.function.diagonal(x)
	largest := max(m.MaxDiagonal, diagonal)
	entryError := m.entryError(largest, max(m.maxSqNorm, newSparseRow(x).sqNorm))
	factor := math.Sqrt(diagonal) / (2 * math.Sqrt(lambda)) // √k(x,x)/(2√λ)
	rounding := make([]float64, t)
	winner := 0
	for j := range f {
		rounding[j] = (entryError + m.sumError()*largest) * r.OneNorms[j]
		bounds[j] = factor*(r.Norms[j]+r.NormErrors[j]) + rounding[j]
		if f[j] > f[winner] {
			winner = j
		}
	}
	ratio := func(margin, bound float64) float64 {
		if bound == 0 {
			return math.Inf(1)
		}
		return margin / bound
	}
	if t == 1 {
		return ratio(math.Abs(f[0]), bounds[0])
	}
	minRatio := math.Inf(1)
	for j := range f {
		if j != winner {
			bound := factor*(r.CrossNorms[winner*t+j]+r.NormErrors[winner]+r.NormErrors[j]) +
				rounding[winner] + rounding[j]
			minRatio = min(minRatio, ratio(f[winner]-f[j], bound))
		}
	}
	return minRatio
}

// OpenShare returns the share of points whose label is not proved (Gap). A label whose bound overflows float64 is not
// proved.
func (p *Prediction) OpenShare() float64 {
	open := 0
	for _, gap := range p.Gap {
		if !(gap > 1) {
			open++
		}
	}
	return float64(open) / float64(max(1, len(p.Gap)))
}
