package verify

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Residual is R = W^½(Y−AC), n×t, with the norms of its columns. A is K+λW⁻¹, and W = I without weights.
type Residual struct {
	R           []float64 // n×t
	Norms       []float64 // ‖r_j‖₂
	TargetNorms []float64 // ‖W^½y_j‖₂
	NormErrors  []float64 // bound of the rounding error of Norms
	CrossNorms  []float64 // t×t: ‖r_a−r_b‖₂
	OneNorms    []float64 // ‖c_j‖₁
}

// Apply returns v = AC = (K+λW⁻¹)C, n×t, and for each column a bound of the errors of the entries of KC. The bound does
// not include the rounding errors of λW⁻¹C, of its addition to KC and of Y−v, which Residual adds. Apply panics if C
// does not have N·t entries.
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
		rounding[j] = (m.EntryError + m.sumError()*m.Largest) * norm
	}
	return v, rounding, nil
}

// weight returns w_i.
func (m *Matrix) weight(i int) float64 {
	if m.Weights == nil {
		return 1
	}
	return m.Weights[i]
}

// Residual returns W^½(Y−v) with its norms, where v = AC and rounding are the results of Apply for the coefficients c
// and lambda. v, c and y are n×t.
func (m *Matrix) Residual(v, rounding, c, y []float64, t int, lambda float64) *Residual {
	n := m.N
	r := &Residual{R: make([]float64, n*t), Norms: make([]float64, t), TargetNorms: make([]float64, t),
		NormErrors: make([]float64, t),
		CrossNorms: make([]float64, t*t), OneNorms: oneNorms(c, t)}
	// The number of unit roundoffs for λC, its addition to KC and the difference Y−v; with weights also for W⁻¹ and
	// W^½.
	roundings := 4.0
	if m.Weights != nil {
		roundings = 8
	}
	roots := make([]float64, n) // √w_i
	for i := range roots {
		roots[i] = math.Sqrt(m.weight(i))
	}
	for p := range y {
		r.R[p] = roots[p/t] * (y[p] - v[p])
	}
	rootNorm := norm2(n, func(i int) float64 { return roots[i] })
	for j := range t {
		terms := norm2(n, func(i int) float64 {
			return roots[i] * (math.Abs(y[i*t+j]) + lambda*math.Abs(c[i*t+j])/m.weight(i))
		})
		r.Norms[j] = norm2(n, func(i int) float64 { return r.R[i*t+j] })
		r.TargetNorms[j] = norm2(n, func(i int) float64 { return roots[i] * y[i*t+j] })
		sumError := float64(n) * unitRoundoff // relative error of a sum of n squares, as in rootNorm and Norm
		r.NormErrors[j] = (1+sumError)*rootNorm*rounding[j] + roundings*unitRoundoff*terms + sumError*r.Norms[j]
		for k := range j {
			s := norm2(n, func(i int) float64 { return r.R[i*t+j] - r.R[i*t+k] })
			r.CrossNorms[j*t+k], r.CrossNorms[k*t+j] = s, s
		}
	}
	return r
}

// norm2 returns √Σ_i v(i)² over 0 ≤ i < n.
func norm2(n int, v func(i int) float64) float64 {
	var sum float64
	for i := range n {
		sum += v(i) * v(i)
	}
	return math.Sqrt(sum)
}

// oneNorms returns ‖c_j‖₁ of each column.
func oneNorms(c []float64, t int) []float64 {
	out := make([]float64, t)
	for p, v := range c {
		out[p%t] += math.Abs(v)
	}
	return out
}

// worstRelative returns the largest ratio of norms to ‖y_j‖₂. A ratio of two zeros counts as 0; the result is NaN if a
// norm is NaN.
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

// upperNorms returns the upper bounds of ‖r_j‖₂, including rounding errors.
func (r *Residual) upperNorms() []float64 {
	return floats.AddTo(make([]float64, len(r.Norms)), r.Norms, r.NormErrors)
}

// Prediction has the predictions f̃ at m new points and bounds of their distance from the exact solution f, that is,
// √k(x,x)/(2√λ)·‖r‖₂ and the rounding errors.
type Prediction struct {
	F     []float64 // m×t: f̃_j(x_a)
	Bound []float64 // m×t: bound of |f_j(x_a)−f̃_j(x_a)|
	// Gap is, for each point, the margin f̃_w−f̃_j divided by the bound of its error, the smallest over the classes j
	// other than the predicted class w. For one column it is |f̃|/Bound. The label is proved if Gap exceeds 1. Gap is
	// +Inf if all bounds are zero.
	Gap []float64
}

// Predict evaluates f̃_j(z) = Σ_i C_ij k(x_i, z) at the points z by blocked sums in float64, and bounds the distance
// from the exact solution by the residual r of the coefficients c (n×t). It returns an error if the dimension of z is
// not that of K's points.
func (m *Matrix) Predict(ctx context.Context, z points.Points, c []float64, t int, r *Residual,
	lambda float64) (*Prediction, error) {
	rows, d := z.Dims()
	if d != m.D {
		return nil, fmt.Errorf("verify: test points of dimension %d for a model of dimension %d", d, m.D)
	}
	coordinates := dense(z)
	p := &Prediction{F: make([]float64, rows*t), Bound: make([]float64, rows*t), Gap: make([]float64, rows)}
	err := m.forEachGroup(ctx, rows, func(lo, hi int) {
		k, x := make([][]float64, hi-lo), make([][]float64, hi-lo)
		for a := lo; a < hi; a++ {
			k[a-lo], x[a-lo] = make([]float64, m.N), coordinates[a*d:(a+1)*d]
		}
		m.kernelRows(k, x)
		for a := lo; a < hi; a++ {
			f, b := p.F[a*t:(a+1)*t], p.Bound[a*t:(a+1)*t]
			blockedDot(f, k[a-lo], c, t)
			p.Gap[a] = m.boundAndGap(f, b, x[a-lo], r, lambda)
		}
	})
	return p, m.gatherSums(ctx, err, p.F, p.Bound, p.Gap)
}

// boundAndGap sets the bounds b of the predictions f at the point x, and returns the Gap of its label.
func (m *Matrix) boundAndGap(f, b, x []float64, r *Residual, lambda float64) float64 {
	t, diagonal := len(f), m.function.diagonal(x)
	largest := max(m.Largest, diagonal)
	entryError := m.entryError(largest, max(m.maxSqNorm, newSparseRow(x).sqNorm))
	factor := math.Sqrt(diagonal) / (2 * math.Sqrt(lambda)) // √k(x,x)/(2√λ)
	rounding := make([]float64, t)
	winner := 0
	for j := range f {
		rounding[j] = (entryError + m.sumError()*largest) * r.OneNorms[j]
		b[j] = factor*(r.Norms[j]+r.NormErrors[j]) + rounding[j]
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
		return ratio(math.Abs(f[0]), b[0])
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

// OpenShare returns the share of points whose label is not proved. A label whose bound overflows float64 is not proved.
func (p *Prediction) OpenShare() float64 {
	open := 0
	for _, g := range p.Gap {
		if !(g > 1) {
			open++
		}
	}
	return float64(open) / float64(max(1, len(p.Gap)))
}
