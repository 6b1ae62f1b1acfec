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

// relevance is the leave-one-out error of n rows as a function of θ = (log ℓ_1, …, log ℓ_d, log λ), for a kernel that
// is a function of s = Σ_j (x_j−z_j)²/ℓ_j², or of s = Σ_j |x_j−z_j|/ℓ_j. With A = K+λI, G = A⁻¹ and C = GY, the
// leave-one-out residuals are e_i = c_i/G_ii, and their differential is
//
//	de_i = (−(G dA C)_i + e_i (G dA G)_ii)/G_ii.
//
// The objective is f = ½ log(Σ_i‖e_i‖²/n). With w_i = e_i/(G_ii Σ‖e‖²), U = GW and D = diag(‖e_i‖²/(G_ii Σ‖e‖²)), its
// differential is df = tr(M dA), where
//
//	M = GDG − ½(UCᵀ+CUᵀ)
//
// (S. Sundararajan and S. S. Keerthi, Predictive approaches for choosing hyperparameters in Gaussian processes, Neural
// Computation 13, 2001; Rasmussen and Williams, section 5.4.2). The derivative by log λ is λ·tr M. With P_ab =
// M_ab·k′(s_ab), the derivative by log ℓ_j is
//
//	−2 Σ_ab P_ab (x_aj−x_bj)²/ℓ_j² = −4 Σ_a (x_aj/ℓ_j) ((x_aj/ℓ_j)(P1)_a − (PX)_aj/ℓ_j)
//
// for squared distances, and −Σ_ab P_ab |x_aj−x_bj|/ℓ_j for L1 distances.
//
// Classification uses the squared error too: with few wrong labels hardly any row contributes a gradient, and the
// length scales would be fitted to those rows.
//
// An evaluation takes 4n³/3 multiply-adds, and n²d for the products with P.
type relevance struct {
	x              *points.Dense         // n×d
	y              *mat.Dense            // n×t, row i multiplied by √w_i
	k              kernel.Differentiable // kernel with σ = 1
	freeLambda     bool                  // λ is optimized; otherwise its derivative is zero
	priorPrecision float64               // τ of the prior ½τΣ_j(θ_j−θ⁰_j)² on the length scales
	priorMean      []float64             // θ⁰
	sqrtWeights    []float64             // √w_i, by which rows and columns of K are scaled; nil: all ones
}

// value returns the objective f plus the prior term, and sets grad to the gradient. It returns an error if K+λI is not
// positive definite in float64.
func (r *relevance) value(ctx context.Context, theta, grad []float64) (float64, error) {
	n, d := r.x.Dims()
	lambda := math.Exp(theta[d])
	sample := &sample{x: divideByLengths(r.x, theta[:d]), sqrtWeights: r.sqrtWeights, tables: map[string][]float64{}}
	if err := sample.formKernel(ctx, r.k); err != nil {
		return 0, err
	}
	table, err := sample.table(ctx, r.k)
	if err != nil {
		return 0, err
	}
	v, m, err := r.matrixGradient(sample.k, lambda)
	if err != nil {
		return 0, err
	}
	if grad[d] = 0; r.freeLambda {
		grad[d] = lambda * mat.Trace(m)
	}
	for i := range n { // replace M by P
		for j, s := range table[i*n : i*n+i+1] {
			w := 1.0
			if r.sqrtWeights != nil {
				w = r.sqrtWeights[i] * r.sqrtWeights[j]
			}
			p := m.At(i, j) * w * r.k.Derivative(s, sample.k.At(i, j)/w)
			m.Set(i, j, p)
			m.Set(j, i, p)
		}
	}
	if err := lengthGradient(ctx, grad[:d], r.k, m, sample.x.(*points.Dense)); err != nil {
		return 0, err
	}
	for j := range d {
		deviation := theta[j] - r.priorMean[j]
		v += r.priorPrecision / 2 * deviation * deviation
		grad[j] += r.priorPrecision * deviation
	}
	return v, nil
}

// matrixGradient returns the objective f and M, of which only the lower triangle is set.
func (r *relevance) matrixGradient(k *mat.Dense, lambda float64) (float64, *mat.Dense, error) {
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

// lengthGradient sets grad to the derivatives by log ℓ_j, given P and the points divided by the ℓ_j.
func lengthGradient(ctx context.Context, grad []float64, k kernel.Kernel, p *mat.Dense, x *points.Dense) error {
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
		gradientRow, xa := rows.RawRowView(a), x.Row(a)
		for b, w := range p.RawRowView(a)[:a] {
			for j, v := range x.Row(b) {
				gradientRow[j] -= 2 * w * math.Abs(xa[j]-v)
			}
		}
	})
	for i := range n {
		floats.Add(grad, rows.RawRowView(i))
	}
	return err
}

// divideByLengths returns the points with feature j divided by e^θ_j.
func divideByLengths(x *points.Dense, theta []float64) *points.Dense {
	n, d := x.Dims()
	out := points.NewDense(n, d, nil)
	for j, v := range theta {
		inverseLength := math.Exp(-v)
		for i := range n {
			out.Data[i*d+j] = x.Data[i*x.Stride+j] * inverseLength
		}
	}
	return out
}
