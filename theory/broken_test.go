package theory

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/sketch"
)

// scaledDist draws maps whose features are multiplied by a number.
type scaledDist struct {
	feature.Dist
	by float64
}

func (d scaledDist) Sample(dim, s int, g rng.Stream) (feature.Map, error) {
	m, err := d.Dist.Sample(dim, s, g)
	return scaledMap{m, d.by}, err
}

type scaledMap struct {
	feature.Map
	by float64
}

func (m scaledMap) MapTo(z []float64, ld int, x points.Points, w *feature.Workspace) {
	m.Map.MapTo(z, ld, x, w)
	_, s := m.Dims()
	n, _ := x.Dims()
	for i := range n {
		for j := range s {
			z[i*ld+j] *= m.by
		}
	}
}

// Hash lets a scaled TensorSketch say what its hashes are.
func (m scaledMap) Hash(t, i int) (int, float64) { return m.Map.(hashed).Hash(t, i) }

// tuples is a TensorSketch by the definition, with its own signs: all tuples of coordinates in
// turn.
type tuples struct {
	k    kernel.Polynomial
	sign func(m hashed, index []int) float64
}

func (d tuples) String() string { return "TensorSketch by tuples" }

func (d tuples) Sample(dim, s int, g rng.Stream) (feature.Map, error) {
	m, err := feature.TensorSketch{Kernel: d.k}.Sample(dim, s, g)
	if err != nil {
		return nil, err
	}
	return tuplesMap{m.(*feature.TensorSketchMap), d}, nil
}

type tuplesMap struct {
	*feature.TensorSketchMap
	tuples
}

func (m tuplesMap) String() string { return m.tuples.String() }

func (m tuplesMap) MapTo(z []float64, ld int, x points.Points, _ *feature.Workspace) {
	n, d := x.Dims()
	_, s := m.Dims()
	q := m.k.Degree
	row, index := make([]float64, d+1), make([]int, q)
	for i := range n {
		x.RowTo(row[:d], i)
		for j := range d {
			row[j] *= math.Sqrt(m.k.Gamma)
		}
		row[d] = math.Sqrt(m.k.Coef0)
		out := z[i*ld : i*ld+s]
		clear(out)
		for c := range power(d+1, q) {
			h, v := 0, 1.0
			for t, rest := 0, c; t < q; t, rest = t+1, rest/(d+1) {
				index[t] = rest % (d + 1)
				a, _ := m.Hash(t, index[t])
				h += a
				v *= row[index[t]]
			}
			out[h%s] += v * m.sign(m.TensorSketchMap, index)
		}
	}
}

// MapTo32 hides the real one.
func (m tuplesMap) MapTo32(z []float32, ld int, x points.Points, w *feature.Workspace) {
	n, _ := x.Dims()
	_, s := m.Dims()
	wide := make([]float64, n*s)
	m.MapTo(wide, s, x, w)
	for i := range n {
		for j := range s {
			z[i*ld+j] = float32(wide[i*s+j])
		}
	}
}

// rightSign is g₁(i₁)g₂(i₂)…, and printedSign has g₂(i₁).
func rightSign(m hashed, index []int) float64 {
	g := 1.0
	for t, i := range index {
		_, v := m.Hash(t, i)
		g *= v
	}
	return g
}

func printedSign(m hashed, index []int) float64 {
	g := 1.0
	for t, i := range index {
		if t == 1 {
			i = index[0]
		}
		_, v := m.Hash(t, i)
		g *= v
	}
	return g
}

// changed is a sketch whose output, and what it reports about itself, is changed.
type changed struct {
	sketch.Dist
	out func(o sketch.Operator, v []float64)
}

func (d changed) Sample(m, s int, g rng.Stream) (sketch.Operator, error) {
	o, err := d.Dist.Sample(m, s, g)
	if err != nil {
		return nil, err
	}
	if r, ok := o.(rowed); ok {
		return changedRows{changedOp{o, d.out}, r}, nil
	}
	return changedOp{o, d.out}, nil
}

type changedOp struct {
	sketch.Operator
	out func(o sketch.Operator, v []float64)
}

type changedRows struct {
	changedOp
	rowed
}

func (o changedOp) Apply64(dst []float64, ldd int, src []float64, lds, rows int, w *sketch.Workspace) {
	o.Operator.Apply64(dst, ldd, src, lds, rows, w)
	_, s := o.Dims()
	for r := range rows {
		o.out(o.Operator, dst[r*ldd:r*ldd+s])
	}
}

func (o changedOp) Apply32(dst []float32, ldd int, src []float32, lds, rows int, w *sketch.Workspace) {
	o.Operator.Apply32(dst, ldd, src, lds, rows, w)
	_, s := o.Dims()
	wide := make([]float64, s)
	for r := range rows {
		for j := range s {
			wide[j] = float64(dst[r*ldd+j])
		}
		o.out(o.Operator, wide)
		for j := range s {
			dst[r*ldd+j] = float32(wide[j])
		}
	}
}

// withReplacement is an SRHT whose row 1 is its row 0 once more.
func withReplacement(_ sketch.Operator, v []float64) {
	if len(v) > 1 {
		v[1] = v[0]
	}
}

// transposed is M⁻¹ by the text's U = L⁻ᵀZᵀ.
type transposed struct {
	inv *mat.Dense
	precond.Identity
}

func (m transposed) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	dst.Mul(m.inv, r)
	return ctx.Err()
}

func (m transposed) StatDim() float64 { return 0 }

func printedU(_ context.Context, z *points.Dense32, _, lambdaP float64, _ precond.Form) (Preconditioner, error) {
	w := whole(z)
	var c mat.Dense
	c.Mul(w.T(), w)
	l := factor(shifted(symmetrized(&c), lambdaP))
	var u, inv mat.Dense
	if err := l.SolveTo(&u, true, w.T()); err != nil { // L⁻ᵀZᵀ
		if _, badly := err.(mat.Condition); !badly {
			return nil, err
		}
	}
	inv.Mul(u.T(), &u)
	inv.Sub(identity(z.N), &inv)
	inv.Scale(1/lambdaP, &inv)
	return transposed{&inv, precond.Identity{N: z.N}}, nil
}

// halfRidge is M⁻¹ with λ in C and λ_p in front.
type halfRidge struct {
	Preconditioner
	by float64
}

func (m halfRidge) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	if err := m.Preconditioner.SolveTo(ctx, dst, r); err != nil {
		return err
	}
	dst.Scale(m.by, dst)
	return nil
}
