package tune

import (
	"context"
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model/leaveout"
)

// distanceObjective is the leave-one-out error of n rows as a function of θ = (shape of the distance, log λ), for a
// kernel that is a function of s = ‖z_a−z_b‖² or ‖z_a−z_b‖₁ of stretched points z. The shape has log length scales, z_j
// = x_j/e^θ_j, or the entries of a matrix M by rows, z = Mx. With A = K+λI, G = A⁻¹ and C = GY, the leave-one-out
// residuals are e_i = c_i/G_ii, and their differential is
//
//	de_i = (−(G dA C)_i + e_i (G dA G)_ii)/G_ii.
//
// The objective is f = ½ log(Σ_i‖e_i‖²/n). With w_i = e_i/(G_ii Σ‖e‖²), U = GW and D = diag(‖e_i‖²/(G_ii Σ‖e‖²)), its
// differential is df = tr(H dA), where
//
//	H = GDG − ½(UCᵀ+CUᵀ)
//
// (S. Sundararajan and S. S. Keerthi, Predictive approaches for choosing hyperparameters in Gaussian processes, Neural
// Computation 13, 2001; Rasmussen and Williams, section 5.4.2). The derivative by log λ is λ·tr H. With P_ab =
// H_ab·k′(s_ab), the derivative by the stretched points is the n×d matrix
//
//	V = 4(diag(P1)Z − PZ)               for squared distances,
//	V_aj = 2Σ_b P_ab sign(z_aj−z_bj)    for L1 distances.
//
// The chain rule gives −Σ_a z_aj V_aj by log ℓ_j, and VᵀX by M, which for squared distances is 4M(Xᵀdiag(P1)X − XᵀPX).
//
// Classification uses the squared error too: with few wrong labels hardly any row contributes a gradient, and the
// distance would be fitted to those rows.
//
// An evaluation takes 4n³/3 multiply-adds, and n²d for the products with P.
type distanceObjective struct {
	x              *points.Dense         // points, n×d
	y              *mat.Dense            // targets, n×t, row i multiplied by √w_i
	k              kernel.Differentiable // kernel with σ = 1
	isMatrix       bool                  // whether the shape is a matrix instead of log length scales
	freeLambda     bool                  // whether λ is optimized; otherwise the derivative by log λ is set to zero
	priorPrecision float64               // precision τ of the prior, the term ½τΣ_j(θ_j−θ⁰_j)² of the objective
	priorMean      []float64             // mean θ⁰ of the prior of the shape
	sqrtWeights    []float64             // √w_i, by which rows and columns of K are scaled; nil: all ones
}

// value returns the objective f plus the prior term at θ, and sets grad to the gradient. It returns an error if K+λI is
// not positive definite in float64, or if all leave-one-out residuals are zero.
func (o *distanceObjective) value(ctx context.Context, theta, grad []float64) (float64, error) {
	n, d := o.x.Dims()
	shapeSize := len(theta) - 1
	lambda := math.Exp(theta[shapeSize])
	z := stretch(o.x, o.shape(theta))
	sample := &sample{x: z, sqrtWeights: o.sqrtWeights, tables: map[kernel.Argument][]float64{}}
	if err := sample.formKernel(ctx, o.k); err != nil {
		return 0, err
	}
	table, err := sample.table(ctx, o.k)
	if err != nil {
		return 0, err
	}
	objective, p, err := o.matrixGradient(sample.k, lambda) // p is the matrix H, and P below
	if err != nil {
		return 0, err
	}
	if grad[shapeSize] = 0; o.freeLambda {
		grad[shapeSize] = lambda * mat.Trace(p)
	}
	for i := range n { // replace H by P, whose entries are H_ab·k′(s_ab)
		for j, s := range table[i*n : i*n+i+1] {
			weight := 1.0
			if o.sqrtWeights != nil {
				weight = o.sqrtWeights[i] * o.sqrtWeights[j]
			}
			derivative := p.At(i, j) * weight * o.k.Derivative(s, sample.k.At(i, j)/weight)
			p.Set(i, j, derivative)
			p.Set(j, i, derivative)
		}
	}
	v, err := pointGradient(ctx, o.k, p, z)
	if err != nil {
		return 0, err
	}
	if o.isMatrix {
		byMatrix := mat.NewDense(d, d, grad[:shapeSize])
		byMatrix.Mul(v.T(), mat.NewDense(n, d, o.x.Data[:n*d]))
	} else {
		for j := range d {
			grad[j] = -floats.Dot(mat.Col(nil, j, mat.NewDense(n, d, z.Data)), mat.Col(nil, j, v))
		}
	}
	for j := range shapeSize {
		deviation := theta[j] - o.priorMean[j]
		objective += o.priorPrecision / 2 * deviation * deviation
		grad[j] += o.priorPrecision * deviation
	}
	return objective, nil
}

// shape returns the shape of the distance at θ, in the form of datasets.ChangeDistance.
func (o *distanceObjective) shape(theta []float64) []float64 {
	shape := slices.Clone(theta[:len(theta)-1])
	for j, v := range shape {
		if !o.isMatrix {
			shape[j] = math.Exp(v)
		}
	}
	return shape
}

// matrixGradient returns the objective f without the prior, for the lower triangle k of K, and the matrix H of its
// differential, of which only the lower triangle is set. It returns an error if K+λI is not positive definite or all
// leave-one-out residuals are zero.
func (o *distanceObjective) matrixGradient(k *mat.Dense, lambda float64) (float64, *mat.Dense, error) {
	n, t := o.y.Dims()
	a := make([]float64, n*n)
	for i := range n {
		copy(a[i*n:i*n+i+1], k.RawRowView(i))
		a[i*n+i] += lambda
	}
	factor, err := leaveout.NewInverseFactor(n, a)
	if err != nil {
		return 0, nil, err
	}
	g := mat.NewDense(n, n, nil) // G = L⁻ᵀL⁻¹
	for i := range n {
		copy(g.RawRowView(i), a[i*n:i*n+i+1])
	}
	factor.Backward(g)
	var c, u mat.Dense
	c.Mul(g, o.y)
	w, norms := mat.NewDense(n, t, nil), make([]float64, n)
	for i := range n {
		e := w.RawRowView(i)
		floats.ScaleTo(e, 1/factor.Diag[i], c.RawRowView(i))
		norms[i] = floats.Dot(e, e)
	}
	sum := floats.Sum(norms)
	if sum == 0 {
		return 0, nil, errors.New("tune: no error is left that another distance could lower")
	}
	for i := range n {
		floats.Scale(1/(factor.Diag[i]*sum), w.RawRowView(i))
	}
	u.Mul(g, w)
	for i, v := range norms {
		floats.Scale(math.Sqrt(v/(factor.Diag[i]*sum)), g.RawRowView(i)) // D^½G
	}
	h := mat.NewDense(n, n, nil)
	sym := blas64.Symmetric{Uplo: blas.Lower, N: n, Stride: n, Data: h.RawMatrix().Data}
	blas64.Syrk(blas.Trans, 1, g.RawMatrix(), 0, sym)
	blas64.Syr2k(blas.NoTrans, -0.5, u.RawMatrix(), c.RawMatrix(), 1, sym)
	return 0.5 * math.Log(sum/float64(n)), h, nil
}

// pointGradient returns V, n×d, the derivatives of the objective by the stretched points z.
func pointGradient(ctx context.Context, k kernel.Kernel, p *mat.Dense, z *points.Dense) (*mat.Dense, error) {
	n, d := z.Dims()
	v := mat.NewDense(n, d, nil)
	if kernel.ArgumentOf(k) == kernel.SquaredDistance {
		v.Mul(p, mat.NewDense(n, d, z.Data))
		for a := range n {
			row := v.RawRowView(a)
			floats.AddScaled(row, -floats.Sum(p.RawRowView(a)), z.Row(a))
			floats.Scale(-4, row)
		}
		return v, nil
	}
	return v, accel.ForEach(ctx, n, func(_, a int) {
		row, za := v.RawRowView(a), z.Row(a)
		for b, entry := range p.RawRowView(a) {
			for j, zb := range z.Row(b) {
				if difference := za[j] - zb; difference != 0 {
					row[j] += math.Copysign(2, difference) * entry
				}
			}
		}
	})
}

// stretch returns the points x, n×d, transformed so that their plain distance is the distance of the shape: feature j
// is divided by shape_j or, if the shape has d² numbers, the points are multiplied by the matrix with these rows.
func stretch(x *points.Dense, shape []float64) *points.Dense {
	n, d := x.Dims()
	if len(shape) > d {
		return points.Transform(x, shape)
	}
	stretched := points.NewDense(n, d, nil)
	for i := range n {
		floats.DivTo(stretched.Row(i), x.Row(i), shape)
	}
	return stretched
}
