package verify

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// Residual is R = Y−(K+λI)C, n×t, with the norms of its columns.
type Residual struct {
	R        []float64 // n×t
	Norm     []float64 // ‖r_j‖₂
	Target   []float64 // ‖y_j‖₂
	Rounding []float64 // bound of the error of Norm
	Cross    []float64 // t×t: ‖r_a−r_b‖₂
	OneNorm  []float64 // ‖c_j‖₁
}

// Apply returns (K+λI)C, n×t, and the rounding bound of each column's entries without those
// of y.
func (m *Matrix) Apply(ctx context.Context, c []float64, t int, lambda float64) (v, rounding []float64, err error) {
	if len(c) != m.N*t {
		panic(fmt.Sprintf("verify: %d coefficients for %d points and %d columns", len(c), m.N, t))
	}
	v = make([]float64, len(c))
	if err := m.Mul(ctx, v, c, t, false); err != nil {
		return nil, nil, err
	}
	floats.AddScaled(v, lambda, c)
	rounding = make([]float64, t)
	for j, one := range oneNorms(c, t) {
		rounding[j] = (m.Entry + m.sumError()*m.Largest) * one
	}
	return v, rounding, nil
}

// Residual takes Y less v = (K+λI)C as Apply has it.
func (m *Matrix) Residual(v, rounding, c, y []float64, t int, lambda float64) *Residual {
	n := m.N
	r := &Residual{R: make([]float64, n*t), Norm: make([]float64, t), Target: make([]float64, t),
		Rounding: make([]float64, t),
		Cross:    make([]float64, t*t), OneNorm: oneNorms(c, t)}
	floats.SubTo(r.R, y, v)
	for j := range t {
		last := norm2(n, func(i int) float64 { return math.Abs(y[i*t+j]) + lambda*math.Abs(c[i*t+j]) })
		r.Norm[j] = norm2(n, func(i int) float64 { return r.R[i*t+j] })
		r.Target[j] = norm2(n, func(i int) float64 { return y[i*t+j] })
		r.Rounding[j] = math.Sqrt(float64(n))*rounding[j] + 4*unit*last + float64(n)*unit*r.Norm[j]
		for k := range j {
			s := norm2(n, func(i int) float64 { return r.R[i*t+j] - r.R[i*t+k] })
			r.Cross[j*t+k], r.Cross[k*t+j] = s, s
		}
	}
	return r
}

// norm2 returns √Σ_i v(i)², i < n.
func norm2(n int, v func(i int) float64) float64 {
	var sum float64
	for i := range n {
		sum += v(i) * v(i)
	}
	return math.Sqrt(sum)
}

// oneNorms returns ‖c_j‖₁ of the columns.
func oneNorms(c []float64, t int) []float64 {
	out := make([]float64, t)
	for p, v := range c {
		out[p%t] += math.Abs(v)
	}
	return out
}

// relative returns the worst ‖r_j‖₂/‖y_j‖₂, of the upper ends where upper is set, and 0 where
// both norms are zero; NaN if one is.
func (r *Residual) relative(upper bool) (worst float64) {
	for j, v := range r.Norm {
		if upper {
			v += r.Rounding[j]
		}
		if v != 0 { // NaN stays
			worst = math.Max(worst, v/r.Target[j])
		}
	}
	return worst
}

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
func (m *Matrix) Predict(ctx context.Context, z points.Points, c []float64, t int, r *Residual,
	lambda float64) (*Prediction, error) {
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

// Open returns the share of points whose label is not proved; one whose bound overflows float64 is not.
func (p *Prediction) Open() float64 {
	open := 0
	for _, g := range p.Gap {
		if !(g > 1) {
			open++
		}
	}
	return float64(open) / float64(max(1, len(p.Gap)))
}
