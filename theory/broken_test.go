package theory

import (
	"context"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/precond/sketch"
)

// The types and functions of this file are broken variants of features, sketches and preconditioners. TestFaults checks
// that the checks of the claims detect them.

// modifiedFeatures is a distribution of feature maps whose features are changed by modify.
type modifiedFeatures struct {
	feature.Dist
	modify func(m hashFunctions, x *points.Dense, z *mat.Dense) // changes the n×s features z of the points x
}

// Sample implements feature.Dist.
func (d modifiedFeatures) Sample(dim, s int, g rng.Stream) (feature.Map, error) {
	m, err := d.Dist.Sample(dim, s, g)
	return modifiedMap{m, d}, err
}

// modifiedMap is a feature map of modifiedFeatures.
type modifiedMap struct {
	feature.Map
	modifiedFeatures
}

// MapTo implements feature.Map.
func (m modifiedMap) MapTo(z []float64, ld int, x points.Points, w *feature.Workspace) {
	n, d := x.Dims()
	_, s := m.Dims()
	modify, dense := mat.NewDense(n, s, nil), points.NewDense(n, d, nil)
	m.Map.MapTo(modify.RawMatrix().Data, s, x, w)
	for i := range n {
		x.RowTo(dense.Row(i), i)
	}
	m.modify(m, dense, modify)
	for i := range n {
		copy(z[i*ld:], modify.RawRowView(i))
	}
}

// Hash implements hashFunctions. It returns the hashes of the TensorSketch that is changed.
func (m modifiedMap) Hash(t, i int) (int, float64) { return m.Map.(hashFunctions).Hash(t, i) }

// scaledBy returns features that are multiplied by a number.
func scaledBy(d feature.Dist, factor float64) feature.Dist {
	return modifiedFeatures{d, func(_ hashFunctions, _ *points.Dense, z *mat.Dense) { z.Scale(factor, z) }}
}

// tensorSketchByDefinition returns a TensorSketch computed by its definition, as a sum over all tuples of coordinates
// with the signs g₁(i₁)g₂(i₂)…. If misprinted is set, the second sign is g₂(i₁), as in the paper of Avron, Clarkson and
// Woodruff.
func tensorSketchByDefinition(k kernel.Polynomial, misprinted bool) feature.Dist {
	return modifiedFeatures{feature.TensorSketch{Kernel: k}, func(m hashFunctions, x *points.Dense, z *mat.Dense) {
		n, s := z.Dims()
		up := lift(k, x)
		v := tensors(up, k.Degree)
		z.Zero()
		for c := range power(up.D, k.Degree) {
			h, sign := 0, 1.0
			for t, remaining := 0, c; t < k.Degree; t, remaining = t+1, remaining/up.D {
				hash, g := m.Hash(t, remaining%up.D)
				if misprinted && t == 1 {
					_, g = m.Hash(t, c%up.D)
				}
				h, sign = h+hash, sign*g
			}
			for i := range n {
				z.Set(i, h%s, z.At(i, h%s)+sign*v.At(i, c))
			}
		}
	}}
}

// modifiedSketch is a distribution of sketches whose results are changed by modify.
type modifiedSketch struct {
	sketch.Dist
	modify func(o sketch.Operator, v []float64) // changes the product v of the sketch o with a vector
}

// Sample implements sketch.Dist. The sketch gives access to its signs and rows if the original one does.
func (d modifiedSketch) Sample(m, s int, g rng.Stream) (sketch.Operator, error) {
	o, err := d.Dist.Sample(m, s, g)
	if err != nil {
		return nil, err
	}
	if r, ok := o.(srhtEntries); ok {
		return modifiedSRHT{modifiedOperator{o, d.modify}, r}, nil
	}
	return modifiedOperator{o, d.modify}, nil
}

// modifiedOperator is a sketch of modifiedSketch.
type modifiedOperator struct {
	sketch.Operator
	modify func(o sketch.Operator, v []float64)
}

// modifiedSRHT is a modifiedOperator that gives access to the signs and rows of an SRHT.
type modifiedSRHT struct {
	modifiedOperator
	srhtEntries
}

// Apply64 implements sketch.Operator.
func (o modifiedOperator) Apply64(b sketch.Rows64, w *sketch.Workspace) {
	o.Operator.Apply64(b, w)
	_, s := o.Dims()
	for r := range b.Count {
		o.modify(o.Operator, b.Dst[r*b.DstStride:r*b.DstStride+s])
	}
}

// Apply32 implements sketch.Operator.
func (o modifiedOperator) Apply32(b sketch.Rows32, w *sketch.Workspace) {
	o.Operator.Apply32(b, w)
	_, s := o.Dims()
	row := make([]float64, s)
	for r := range b.Count {
		for j := range s {
			row[j] = float64(b.Dst[r*b.DstStride+j])
		}
		o.modify(o.Operator, row)
		for j := range s {
			b.Dst[r*b.DstStride+j] = float32(row[j])
		}
	}
}

// withReplacement makes row 1 of an SRHT equal to its row 0.
func withReplacement(_ sketch.Operator, v []float64) {
	if len(v) > 1 {
		v[1] = v[0]
	}
}

// explicitInverse applies an M⁻¹ that is given as a matrix.
type explicitInverse struct {
	inv *mat.Dense
	precond.Identity
}

// SolveTo implements pcg.Preconditioner.
func (m explicitInverse) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	dst.Mul(m.inv, r)
	return ctx.Err()
}

// StatDim implements Preconditioner with a wrong value.
func (m explicitInverse) StatDim() float64 { return 0 }

// misprintedPreconditioner returns M⁻¹ with U = L⁻ᵀZᵀ, as the paper prints it.
func misprintedPreconditioner(_ context.Context, z *points.Dense32, _, lambdaP float64, _ precond.Form) (Preconditioner,
	error) {
	w := toFloat64(z)
	var c mat.Dense
	c.Mul(w.T(), w)
	l := choleskyFactor(addRidge(symmetricPart(&c), lambdaP))
	var u, inv mat.Dense
	checkSolve(l.SolveTo(&u, true, w.T())) // L⁻ᵀZᵀ
	inv.Mul(u.T(), &u)
	inv.Sub(identity(z.N), &inv)
	inv.Scale(1/lambdaP, &inv)
	return explicitInverse{&inv, precond.Identity{N: z.N}}, nil
}

// rescaledInverse is M⁻¹ multiplied by a factor. It arises if λ is used in the matrix C, and λ_p in front of the
// formula.
type rescaledInverse struct {
	Preconditioner
	factor float64
}

// SolveTo implements pcg.Preconditioner.
func (m rescaledInverse) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	if err := m.Preconditioner.SolveTo(ctx, dst, r); err != nil {
		return err
	}
	dst.Scale(m.factor, dst)
	return nil
}
