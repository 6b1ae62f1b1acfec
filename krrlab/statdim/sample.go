package statdim

import (
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/krrlab/lab/krrlab/rng"
)

// sample holds what each probe i gave: y_i known to ± half_i, and the control w_i, whose
// mean over all probes is known.
type sample struct {
	y, half, w []float64
}

// fewest probes for which a coefficient is fitted.
const fewest = 8

// fit returns the intercept of the line through (w_i, y_i) at w = mean,
//
//	a = Σ_i v_i y_i,  v_i = 1/m + (mean−w̄)(w_i−w̄)/S_ww,
//
// the half-width of its Student interval with m−2 degrees of freedom,
// t·σ̂·√(1/m + (mean−w̄)²/S_ww), and the truncation Σ_i |v_i|·half_i. Without controls it is
// the mean of y with m−1 degrees of freedom. explained is 1 − (residual sum of squares)/S_yy.
func (s *sample) fit(mean, confidence float64) (a, sampling, truncation, explained float64) {
	m := float64(len(s.y))
	ybar, wbar, slope, sww := average(s.y), 0.0, 0.0, 0.0
	dof := m - 1
	if len(s.w) > 0 && len(s.y) >= fewest {
		wbar = average(s.w)
		var swy float64
		for i, w := range s.w {
			sww += (w - wbar) * (w - wbar)
			swy += (w - wbar) * (s.y[i] - ybar)
		}
		if sww > 0 {
			slope = swy / sww
			dof = m - 2
		}
	}
	var rss, syy float64
	at := func(i int) float64 {
		if sww == 0 {
			return 0
		}
		return s.w[i] - wbar
	}
	leverage := 1 / m
	if sww > 0 {
		leverage += (mean - wbar) * (mean - wbar) / sww
	}
	for i, y := range s.y {
		r := y - ybar - slope*at(i)
		rss += r * r
		syy += (y - ybar) * (y - ybar)
		v := 1 / m
		if sww > 0 {
			v += (mean - wbar) * at(i) / sww
		}
		truncation += math.Abs(v) * s.half[i]
	}
	a = ybar
	if sww > 0 {
		a += slope * (mean - wbar)
	}
	if syy > 0 {
		explained = 1 - rss/syy
	}
	sampling = student(confidence, dof) * math.Sqrt(rss/dof*leverage)
	return a, sampling, truncation, explained
}

// student returns the half-width of a two-sided interval of a Student variable.
func student(confidence, dof float64) float64 {
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: dof}.Quantile(0.5 + confidence/2)
}

func average(v []float64) (sum float64) {
	for _, x := range v {
		sum += x / float64(len(v))
	}
	return sum
}

// signs returns probes number first, …, first+m−1: n×m independent signs ±1, a function of
// the stream and the probe's number.
func signs(n, first, m int, g rng.Stream) *mat.Dense {
	z := mat.NewDense(n, m, nil)
	raw := z.RawMatrix()
	for j := range m {
		s := g.Sub("probe", uint64(first+j))
		for i := 0; i < n; i += 64 {
			bits := s.Uint64(uint64(i / 64))
			for k := i; k < min(i+64, n); k++ {
				raw.Data[k*raw.Stride+j] = 1 - 2*float64(bits&1)
				bits >>= 1
			}
		}
	}
	return z
}

// dots returns a_jᵀb_j of the columns, summed in an order fixed by n.
func dots(a, b *mat.Dense) []float64 {
	ra, rb := a.RawMatrix(), b.RawMatrix()
	sum, part := make([]float64, ra.Cols), make([]float64, ra.Cols)
	for i0 := 0; i0 < ra.Rows; i0 += 512 {
		clear(part)
		for i := i0; i < min(i0+512, ra.Rows); i++ {
			x, y := ra.Data[i*ra.Stride:i*ra.Stride+ra.Cols], rb.Data[i*rb.Stride:i*rb.Stride+ra.Cols]
			for j, v := range x {
				part[j] += v * y[j]
			}
		}
		for j, v := range part {
			sum[j] += v
		}
	}
	return sum
}
