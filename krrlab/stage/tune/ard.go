package tune

import (
	"context"
	"errors"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model/leaveout"
)

// relevance is the leave-one-out error of some rows as a function of θ = (log ℓ_1, …, log ℓ_d, log λ), for a kernel of
// s = Σ_j (x_j−z_j)²/ℓ_j², or of Σ_j |x_j−z_j|/ℓ_j. With A = K+λI, G = A⁻¹, C = GY and residuals e_i
// = c_i/G_ii,
//
//	de_i = (−(G dA C)_i + e_i (G dA G)_ii)/G_ii,
//
// so that f = ½ log(Σ_i‖e_i‖²/n) with w_i = e_i/(G_ii Σ‖e‖²), U = GW and D = diag(‖e_i‖²/(G_ii Σ‖e‖²)) has df = tr(M
// dA),
//
//	M = GDG − ½(UCᵀ+CUᵀ)
//
// (S. Sundararajan and S. S. Keerthi, Predictive approaches for choosing hyperparameters in Gaussian processes, Neural
// Computation 13, 2001; Rasmussen and Williams, section 5.4.2). By log λ it is λ·tr M. With P_ab = M_ab·k′(s_ab), by
// log ℓ_j it is
//
//	−2 Σ_ab P_ab (x_aj−x_bj)²/ℓ_j² = −4 Σ_a (x_aj/ℓ_j) ((x_aj/ℓ_j)(P1)_a − (PX)_aj/ℓ_j),
//
// or −Σ_ab P_ab |x_aj−x_bj|/ℓ_j.
//
// Classes are judged by the squares too: of few wrong labels hardly any row has a gradient, and lengths are fitted to
// these. A value takes 4n³/3 multiply-adds, and n²d for the products with P.
type relevance struct {
	x       *points.Dense         // n×d
	y       *mat.Dense            // n×t, with weights Sy
	k       kernel.Differentiable // with σ = 1
	lambda  bool                  // is free
	pull    float64               // τ of the prior ½τΣ_j(θ_j−θ⁰_j)²
	origin  []float64             // θ⁰
	factors []float64             // √w_i, by which K is scaled; nil for ones
}

// value returns f with the prior, and sets grad to its gradient.
func (r *relevance) value(ctx context.Context, theta, grad []float64) (float64, error) {
	n, d := r.x.Dims()
	lambda := math.Exp(theta[d])
	one := &sample{x: stretched(r.x, theta[:d]), factors: r.factors, tables: map[string][]float64{}}
	if err := one.form(ctx, r.k); err != nil {
		return 0, err
	}
	table, err := one.table(ctx, r.k)
	if err != nil {
		return 0, err
	}
	v, m, err := r.slopes(one.k, lambda)
	if err != nil {
		return 0, err
	}
	if grad[d] = 0; r.lambda {
		grad[d] = lambda * mat.Trace(m)
	}
	for i := range n { // P
		for j, s := range table[i*n : i*n+i+1] {
			w := 1.0
			if r.factors != nil {
				w = r.factors[i] * r.factors[j]
			}
			p := m.At(i, j) * w * r.k.Derivative(s, one.k.At(i, j)/w)
			m.Set(i, j, p)
			m.Set(j, i, p)
		}
	}
	if err := byLengths(ctx, grad[:d], r.k, m, one.x.(*points.Dense)); err != nil {
		return 0, err
	}
	for j := range d {
		far := theta[j] - r.origin[j]
		v += r.pull / 2 * far * far
		grad[j] += r.pull * far
	}
	return v, nil
}

// slopes returns f and M, of which the lower triangle is set.
func (r *relevance) slopes(k *mat.Dense, lambda float64) (float64, *mat.Dense, error) {
	n, t := r.y.Dims()
	a := make([]float64, n*n)
	for i := range n {
		copy(a[i*n:i*n+i+1], k.RawRowView(i))
		a[i*n+i] += lambda
	}
	f, err := leaveout.NewFactor(n, a)
	if err != nil {
		return 0, nil, err
	}
	g := mat.NewDense(n, n, nil) // G = L⁻ᵀL⁻¹
	for i := range n {
		copy(g.RawRowView(i), a[i*n:i*n+i+1])
	}
	f.Backward(g)
	var c, u mat.Dense
	c.Mul(g, r.y)
	w, norms := mat.NewDense(n, t, nil), make([]float64, n)
	for i := range n {
		e := w.RawRowView(i)
		floats.ScaleTo(e, 1/f.Diag[i], c.RawRowView(i))
		norms[i] = floats.Dot(e, e)
	}
	sum := floats.Sum(norms)
	if sum == 0 {
		return 0, nil, errors.New("tune: no error is left that length scales could lower")
	}
	for i := range n {
		floats.Scale(1/(f.Diag[i]*sum), w.RawRowView(i))
	}
	u.Mul(g, w)
	for i, v := range norms {
		floats.Scale(math.Sqrt(v/(f.Diag[i]*sum)), g.RawRowView(i)) // D^½G
	}
	m := mat.NewDense(n, n, nil)
	sym := blas64.Symmetric{Uplo: blas.Lower, N: n, Stride: n, Data: m.RawMatrix().Data}
	blas64.Syrk(blas.Trans, 1, g.RawMatrix(), 0, sym)
	blas64.Syr2k(blas.NoTrans, -0.5, u.RawMatrix(), c.RawMatrix(), 1, sym)
	return 0.5 * math.Log(sum/float64(n)), m, nil
}

// byLengths sets grad to the derivatives by log ℓ_j, for points that are divided by the ℓ_j.
func byLengths(ctx context.Context, grad []float64, k kernel.Kernel, p *mat.Dense, x *points.Dense) error {
	n, d := x.Dims()
	clear(grad)
	if kernel.ArgumentOf(k) == kernel.SquaredDistance {
		var px mat.Dense
		px.Mul(p, mat.NewDense(n, d, x.Data))
		for i := range n {
			sum := floats.Sum(p.RawRowView(i))
			for j, v := range x.Row(i) {
				grad[j] -= 4 * v * (v*sum - px.At(i, j))
			}
		}
		return nil
	}
	rows := mat.NewDense(n, d, nil)
	err := accel.ForEach(ctx, n, func(_, a int) {
		to, xa := rows.RawRowView(a), x.Row(a)
		for b, w := range p.RawRowView(a)[:a] {
			for j, v := range x.Row(b) {
				to[j] -= 2 * w * math.Abs(xa[j]-v)
			}
		}
	})
	for i := range n {
		floats.Add(grad, rows.RawRowView(i))
	}
	return err
}

// stretched returns the points divided by e^θ_j.
func stretched(x *points.Dense, theta []float64) *points.Dense {
	n, d := x.Dims()
	out := points.NewDense(n, d, nil)
	for j, v := range theta {
		by := math.Exp(-v)
		for i := range n {
			out.Data[i*d+j] = x.Data[i*x.Stride+j] * by
		}
	}
	return out
}
