package statdim

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/estimate"
)

// left holds what leaving one or two columns out takes: the unit vectors s_i = R⁻ᵀe_i/‖·‖,
// columns of S, of which each is orthogonal to all columns of R but the i-th, and their
// products with W = QᵀΩ.
type left struct {
	n, m      int
	s, ss, sw *mat.Dense // S, SᵀS, SᵀW
	ww, oo    []float64  // ‖W_i‖², ‖ω_i‖²
}

// forms are the values of a bilinear form b at the q_j and ω_i, ready to leave columns out.
type forms struct {
	trace             float64    // Σ_j b(q_j, q_j)
	shs, sf, shw      *mat.Dense // SᵀHS, SᵀF, SᵀHW, with H = b(Q, Q), F = b(Q, Ω)
	wf, whw, diagonal []float64  // W_iᵀF_i, W_iᵀHW_i, b(ω_i, ω_i)
}

// forms makes them of H, F and the diagonal.
func (l *left) forms(w, h, f *mat.Dense, diagonal []float64) *forms {
	var hw, shs, sf, shw, hs mat.Dense
	hw.Mul(h, w)
	hs.Mul(h, l.s)
	shs.Mul(l.s.T(), &hs)
	sf.Mul(l.s.T(), f)
	shw.Mul(l.s.T(), &hw)
	return &forms{trace: mat.Trace(h), shs: &shs, sf: &sf, shw: &shw, wf: dots(w, f), whw: dots(w, &hw), diagonal: diagonal}
}

// eval returns tr b(Q', Q') and, with v = ω_i − Q'Q'ᵀω_i, b(v, v) and ‖v‖², Q' being Q without
// columns i and j; j = i leaves out one. The orthonormal directions left out are s_i and
// s' = (s_j − ρs_i)/√(1−ρ²), ρ = s_iᵀs_j; with a = (s_i, s')ᵀW_i and c = W_i − (s_i, s')a,
//
//	b(v, v) = b(ω_i, ω_i) − 2cᵀF_i + cᵀHc.
func (l *left) eval(b *forms, i, j int) (trace, form, vv float64) {
	a := l.sw.At(i, i)
	trace = b.trace - b.shs.At(i, i)
	cf := b.wf[i] - a*b.sf.At(i, i)
	chc := b.whw[i] - 2*a*b.shw.At(i, i) + a*a*b.shs.At(i, i)
	cc := l.ww[i] - a*a
	rho := l.ss.At(i, j)
	if r := 1 - rho*rho; j != i && r > 0 {
		r = math.Sqrt(r)
		second := func(m *mat.Dense, col int) float64 { return (m.At(j, col) - rho*m.At(i, col)) / r } // s'ᵀ(·)
		a2 := second(l.sw, i)
		cross := (b.shs.At(j, i) - rho*b.shs.At(i, i)) / r // s'ᵀHs_i
		own := (b.shs.At(j, j) - 2*rho*b.shs.At(i, j) + rho*rho*b.shs.At(i, i)) / (r * r)
		trace -= own
		cf -= a2 * second(b.sf, i)
		chc += -2*a2*second(b.shw, i) + a2*a2*own + 2*a*a2*cross
		cc -= a2 * a2
	}
	return trace, b.diagonal[i] - 2*cf + chc, l.oo[i] - cc
}

// traces returns T, the half-width of its interval and its truncation. For vectors u, w with
// solves x_u, x_w and residuals r_u, r_w, with B = I−λA⁻¹,
//
//	uᵀBw = uᵀw − λ(uᵀx_w + x_uᵀr_w) − λ·r_uᵀA⁻¹r_w,
//
// so that leaving out the last, of which λ‖r‖²/(λ−e) is a bound, is the form to evaluate.
func (x *xtrace) traces(confidence float64) (t, sampling, truncation float64) {
	m := x.m
	w := x.product(x.q, x.omega)
	l := x.leave(w)
	b := l.forms(w, x.form(x.q, x.qx, x.q, x.qx, x.qr), x.form(x.q, x.qx, x.omega, x.ox, x.or), x.diagonal())
	lost := l.forms(w, x.product(x.qr, x.qr), x.product(x.qr, x.or), x.squares(x.or))
	factor := x.p.Lambda / x.p.room(x.p.Lambda)
	one := func(f *forms, i, j, left int) float64 {
		trace, form, vv := l.eval(f, i, j)
		if vv <= 0 {
			return trace
		}
		return trace + float64(x.n-m+left)/vv*form
	}
	without := make([]float64, m) // T_j
	for i := range m {
		half := factor * math.Max(0, one(lost, i, i, 1)) / 2
		t += (one(b, i, i, 1) - half) / float64(m)
		truncation += half / float64(m)
		for j := range m {
			if j != i {
				without[j] += one(b, i, j, 2) / float64(m-1)
			}
		}
	}
	mean, v := average(without), 0.0
	for _, u := range without {
		v += (u - mean) * (u - mean) * float64(m-1) / float64(m)
	}
	return t, estimate.Student(confidence, float64(m-1)) * math.Sqrt(v), truncation
}

// leave makes the vectors that leave columns out.
func (x *xtrace) leave(w *mat.Dense) *left {
	l := &left{n: x.n, m: x.m, s: mat.NewDense(x.m, x.m, nil), ss: new(mat.Dense), sw: new(mat.Dense), ww: dots(w, w), oo: x.squares(x.omega)}
	for i := range x.m {
		l.s.SetCol(i, x.left(i))
	}
	l.ss.Mul(l.s.T(), l.s)
	l.sw.Mul(l.s.T(), w)
	return l
}

// form returns uᵀw − λ(uᵀx_w + x_uᵀr_w) of all u and w.
func (x *xtrace) form(u, xu, w, xw, rw []float64) *mat.Dense {
	f, a, b := x.product(u, w), x.product(u, xw), x.product(xu, rw)
	a.Add(a, b)
	a.Scale(x.p.Lambda, a)
	f.Sub(f, a)
	return f
}

// diagonal returns the form of ω_i with itself.
func (x *xtrace) diagonal() []float64 {
	d := make([]float64, x.m)
	for i := range d {
		at := func(v []float64) []float64 { return v[i*x.n : (i+1)*x.n] }
		o, ox, or := at(x.omega), at(x.ox), at(x.or)
		d[i] = dot(o, o) - x.p.Lambda*(dot(o, ox)+dot(ox, or))
	}
	return d
}

// squares returns the squared norms of the rows.
func (x *xtrace) squares(v []float64) []float64 {
	d := make([]float64, x.m)
	for i := range d {
		row := v[i*x.n : (i+1)*x.n]
		d[i] = dot(row, row)
	}
	return d
}

// left returns s_i = R⁻ᵀe_i/‖R⁻ᵀe_i‖₂.
func (x *xtrace) left(i int) []float64 {
	s := make([]float64, x.m)
	for j := i; j < x.m; j++ { // Rᵀs = e_i: forward substitution
		var sum float64
		if j == i {
			sum = 1
		}
		col := x.r[j]
		for k := i; k < j; k++ {
			sum -= col[k] * s[k]
		}
		if col[j] != 0 {
			s[j] = sum / col[j]
		}
	}
	norm := math.Sqrt(dot(s, s))
	for k := range s {
		s[k] /= norm
	}
	return s
}
