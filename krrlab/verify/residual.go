package verify

import (
	"context"
	"fmt"
	"math"
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
	for p := range v {
		v[p] += lambda * c[p]
	}
	rounding = make([]float64, t)
	for j, one := range oneNorms(c, t) {
		rounding[j] = (m.Entry + m.sumError()*m.Largest) * one
	}
	return v, rounding, nil
}

// Residual takes Y less v = (K+λI)C as Apply has it.
func (m *Matrix) Residual(v, rounding, c, y []float64, t int, lambda float64) *Residual {
	n := m.N
	r := &Residual{R: make([]float64, n*t), Norm: make([]float64, t), Target: make([]float64, t), Rounding: make([]float64, t),
		Cross: make([]float64, t*t), OneNorm: oneNorms(c, t)}
	for p, yv := range y {
		r.R[p] = yv - v[p]
	}
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

// norm2 returns √Σ_i v(i)², i < n, where squares may under- or overflow. NaN and ±Inf stay.
func norm2(n int, v func(i int) float64) float64 {
	var largest, sum float64
	for i := range n {
		largest = max(largest, math.Abs(v(i)))
	}
	_, e := math.Frexp(largest) // 0 for 0, ±Inf and NaN
	scale := math.Ldexp(1, max(-1000, min(-e, 1000)))
	for i := range n {
		x := v(i) * scale
		sum += x * x
	}
	return math.Sqrt(sum) / scale
}

// oneNorms returns ‖c_j‖₁ of the columns.
func oneNorms(c []float64, t int) []float64 {
	out := make([]float64, t)
	for p, v := range c {
		out[p%t] += math.Abs(v)
	}
	return out
}

// Relative returns the worst ‖r_j‖₂/‖y_j‖₂, of the upper ends where upper is set, and 0 where
// both norms are zero; NaN if one is.
func (r *Residual) Relative(upper bool) (worst float64) {
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
