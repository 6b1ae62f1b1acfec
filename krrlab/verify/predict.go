package verify

import (
	"context"
	"fmt"
	"math"

	"github.com/krrlab/lab/krrlab/points"
)

// Prediction holds f̃ at new points and what the residual proves of f there.
type Prediction struct {
	F     []float64 // m×t: f̃_j(x_a)
	Bound []float64 // m×t: |f_j(x_a)−f̃_j(x_a)| is at most this
	// Gap is, for each point, the least (f̃_w−f̃_j)/(its bound) over the classes j other than the
	// winner w, or |f̃|/bound for one column: the label is proved where it exceeds 1. +Inf
	// where nothing is uncertain.
	Gap []float64
}

// Predict evaluates f̃(z) = Σ_i C_ij k(x_i, z) at the points z by plain sums.
func (m *Matrix) Predict(ctx context.Context, z points.Points, c []float64, t int, r *Residual, lambda float64) (*Prediction, error) {
	rows, d := z.Dims()
	if d != m.D {
		return nil, fmt.Errorf("verify: test points of dimension %d for a model of dimension %d", d, m.D)
	}
	at := dense(z)
	p := &Prediction{F: make([]float64, rows*t), Bound: make([]float64, rows*t), Gap: make([]float64, rows)}
	err := m.each(ctx, rows, func(lo, hi int) {
		k, x := make([][]float64, hi-lo), make([][]float64, hi-lo)
		for a := lo; a < hi; a++ {
			k[a-lo], x[a-lo] = make([]float64, m.N), at[a*d:(a+1)*d]
		}
		m.values(k, x)
		for a := lo; a < hi; a++ {
			f, b := p.F[a*t:(a+1)*t], p.Bound[a*t:(a+1)*t]
			combine(f, k[a-lo], c, t)
			p.Gap[a] = m.gap(f, b, x[a-lo], r, lambda)
		}
	})
	return p, m.gather(ctx, err, p.F, p.Bound, p.Gap)
}

// gap sets the bounds at the point x, and returns how far its label is from open.
func (m *Matrix) gap(f, b, x []float64, r *Residual, lambda float64) float64 {
	t, own := len(f), m.f.own(x)
	largest := max(m.Largest, own)
	entry := m.f.entry(m.D, largest, m.sq != nil, max(m.norm, newGather(x).sq))
	factor := math.Sqrt(own) / (2 * math.Sqrt(lambda)) // √k(x,x)/(2√λ)
	rounding := make([]float64, t)
	win := 0
	for j := range f {
		rounding[j] = (entry + m.sumError()*largest) * r.OneNorm[j]
		b[j] = factor*(r.Norm[j]+r.Rounding[j]) + rounding[j]
		if f[j] > f[win] {
			win = j
		}
	}
	ratio := func(gap, bound float64) float64 {
		if bound == 0 {
			return math.Inf(1)
		}
		return gap / bound
	}
	if t == 1 {
		return ratio(math.Abs(f[0]), b[0])
	}
	least := math.Inf(1)
	for j := range f {
		if j != win {
			bound := factor*(r.Cross[win*t+j]+r.Rounding[win]+r.Rounding[j]) + rounding[win] + rounding[j]
			least = min(least, ratio(f[win]-f[j], bound))
		}
	}
	return least
}

// Open returns the share of points whose label is not proved if the residual were the given
// multiple of what it is; one whose bound overflows float64 is not.
func (p *Prediction) Open(multiple float64) float64 {
	open := 0
	for _, g := range p.Gap {
		if !(g > multiple) {
			open++
		}
	}
	return float64(open) / float64(max(1, len(p.Gap)))
}
