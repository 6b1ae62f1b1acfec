package leaveout

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// merged is the problem in which equal rows are one, of weight W_g = Σw_i and target Σw_iy_i/W_g. With P, n×u, whose
// entries are p_i = √(w_i/W_g) for the rows i of group g,
//
//	K̃ = PᵀKP,  Ỹ = PᵀY,  PᵀP = I.
//
// A = K+λI maps the span of P to itself and is λ on its complement. So a fit without row g here is one without all
// rows of the group: r_G = ((A⁻¹)_GG)⁻¹c_G, of its residuals Ẽ
//
//	E = Y − PỸ + PẼ,  ‖E‖² = ‖Y−PỸ‖² + ‖Ẽ‖².
//
// Where Y is less its mean, which a fit without group g has not seen, with b = (√w_i), b̃ = Pᵀb = (√W_g) and S = Σw_i
//
//	ẽ_g = (c̃_g + δ_g(Ã⁻¹b̃)_g)/(Ã⁻¹)_gg,  δ_g = √W_g·ỹ_g/(S−W_g),
//
// and the degrees of freedom of A⁻¹ are tr Ã⁻¹ − b̃ᵀÃ⁻¹b̃/S.
// Rows that need not be equal are left out together in blocks B of rows g: E_B = ((Ã⁻¹)_BB)⁻¹(C̃+δ_BÃ⁻¹b̃)_B with δ_B =
// Σ_B √W_gỹ_g/(S−Σ_B W_g). By default each block is one row.
type merged struct {
	of, first []int // the group of each row, and the first row of each group
	blocks    [][]int
	p, root   []float64 // p_i, √W_g
	w         []float64 // nil: ones
	scored    func(i int) float64
	total     float64 // S
	mean      bool
	full, y   *mat.Dense // Y less its mean, n×t, and Ỹ
	within    float64    // ‖Y−PỸ‖²
}

// groups makes the merged problem of n rows, without targets.
func (o *Problem) groups(n int) *merged {
	m := &merged{of: make([]int, n), p: make([]float64, n), w: o.Weights, mean: o.Mean}
	for i := range n {
		if o.Same == nil || o.Same[i] == i {
			m.of[i], m.first, m.root = len(m.first), append(m.first, i), append(m.root, 0)
		} else {
			m.of[i] = m.of[o.Same[i]]
		}
		m.root[m.of[i]] += m.weight(i)
		m.total += m.weight(i)
	}
	if m.scored = o.Scored; m.scored == nil {
		m.scored = m.weight
	}
	for g, w := range m.root {
		m.root[g] = math.Sqrt(w)
	}
	if o.Groups != nil {
		m.blocks = Blocks(o.Groups)
	} else {
		m.blocks = Blocks(indices(len(m.first)))
	}
	for i, g := range m.of {
		if m.p[i] = 1; len(m.first) < n {
			m.p[i] = math.Sqrt(m.weight(i)) / m.root[g]
		}
	}
	return m
}

func (m *merged) weight(i int) float64 {
	if m.w == nil {
		return 1
	}
	return m.w[i]
}

// merge makes the merged problem of Y, less its weighted mean if that is asked for.
func (o *Problem) merge(y *mat.Dense) (*merged, error) {
	n, t := y.Dims()
	m := o.groups(n)
	if len(m.blocks) < 2 {
		return nil, fmt.Errorf("leaveout: all %d rows are in one group, so that none is left when they are left out "+
			"together: want at least 2 groups", n)
	}
	if m.full = y; m.mean {
		m.full = mat.DenseCopyOf(y)
		for j := range t {
			var mean float64
			for i := range n {
				mean += math.Sqrt(m.weight(i)) * y.At(i, j) / m.total
			}
			for i := range n {
				m.full.Set(i, j, y.At(i, j)-math.Sqrt(m.weight(i))*mean)
			}
		}
	}
	m.y = m.fold(m.full)
	rest := m.spread(mat.NewDense(len(m.first), t, nil))
	m.within = mat.Norm(rest, 2)
	m.within *= m.within
	return m, nil
}

// fold returns PᵀV.
func (m *merged) fold(v *mat.Dense) *mat.Dense {
	_, t := v.Dims()
	out := mat.NewDense(len(m.first), t, nil)
	for i, g := range m.of {
		floats.AddScaled(out.RawRowView(g), m.p[i], v.RawRowView(i))
	}
	return out
}

// unfold returns PV.
func (m *merged) unfold(v *mat.Dense) *mat.Dense {
	_, t := v.Dims()
	out := mat.NewDense(len(m.of), t, nil)
	for i, g := range m.of {
		floats.AddScaled(out.RawRowView(i), m.p[i], v.RawRowView(g))
	}
	return out
}

// spread returns Y − PỸ + PẼ.
func (m *merged) spread(e *mat.Dense) *mat.Dense {
	out := m.unfold(m.y)
	out.Sub(m.full, out)
	out.Add(out, m.unfold(e))
	return out
}

// matrix sets the lower triangle of A to that of PᵀKP+λI, and returns its trace.
func (m *merged) matrix(a []float64, k *mat.Dense, lambda float64) (trace float64) {
	u := len(m.first)
	clear(a)
	for i, g := range m.of {
		for j, v := range k.RawRowView(i)[:i+1] {
			h := m.of[j]
			if v *= m.p[i] * m.p[j]; g == h && i != j {
				v *= 2
			}
			a[max(g, h)*u+min(g, h)] += v
		}
	}
	for g := range u {
		a[g*u+g] += lambda
		trace += a[g*u+g]
	}
	return trace
}

// sides returns [Ỹ, b̃], or Ỹ where the mean is not taken.
func (m *merged) sides() *mat.Dense {
	if !m.mean {
		return mat.DenseCopyOf(m.y)
	}
	var out mat.Dense
	out.Augment(m.y, mat.NewDense(len(m.root), 1, append([]float64{}, m.root...)))
	return &out
}

// shift returns the numerators of Ẽ of [C̃, Ã⁻¹b̃], the largest error of them per unit of error of these, relative
// to their norms, and C̃ and b̃ᵀÃ⁻¹b̃/S.
func (m *merged) shift(x *mat.Dense) (num *mat.Dense, reach float64, c *mat.Dense, used float64) {
	u, t := m.y.Dims()
	c = mat.DenseCopyOf(x.Slice(0, u, 0, t))
	if reach = mat.Norm(c, 2); !m.mean {
		return c, reach, c, 0
	}
	num = mat.DenseCopyOf(c)
	var most float64
	for g, root := range m.root {
		used += root * x.At(g, t) / m.total
	}
	for _, block := range m.blocks {
		rest := m.total
		for _, g := range block {
			rest -= m.root[g] * m.root[g]
		}
		for j := range t {
			var delta float64
			for _, g := range block {
				delta += m.root[g] / rest * m.y.At(g, j)
			}
			most = max(most, math.Abs(delta))
			for _, g := range block {
				num.Set(g, j, num.At(g, j)+delta*x.At(g, t))
			}
		}
	}
	if most > 0 {
		reach += most * math.Sqrt(float64(t)) * mat.Norm(x.ColView(t), 2)
	}
	return num, reach, c, used
}

// square returns the mean square of E of the sum of the squares of Ẽ, and gcv that with all (Ã⁻¹)_gg at the mean of
// their degrees of freedom.
func (m *merged) square(sum float64) float64 {
	_, t := m.y.Dims()
	return (sum + m.within) / (m.total * float64(t))
}

func (m *merged) gcv(c *mat.Dense, free float64) float64 {
	u, t := c.Dims()
	v := mat.Norm(c, 2) / (free / float64(u)) / math.Sqrt(m.total*float64(t))
	return v*v + m.square(0)
}

// residuals returns those of the rows, y_i less what is fitted without its group.
func (m *merged) residuals(e *mat.Dense) *mat.Dense {
	out := m.spread(e)
	out.Apply(func(i, _ int, v float64) float64 { return v / math.Sqrt(m.weight(i)) }, out)
	return out
}

// mergedMatrix is PᵀKP.
type mergedMatrix struct {
	matrix
	m *merged
}

func (k mergedMatrix) Dim() int { return len(k.m.first) }

func (k mergedMatrix) Diag() []float64 {
	diag := k.matrix.Diag()
	out := make([]float64, len(k.m.first))
	for g, i := range k.m.first {
		out[g] = diag[i] / (k.m.p[i] * k.m.p[i])
	}
	return out
}

func (k mergedMatrix) KMulTo(ctx context.Context, dst, src *mat.Dense) error {
	_, t := src.Dims()
	kv := mat.NewDense(len(k.m.of), t, nil)
	if err := k.matrix.KMulTo(ctx, kv, k.m.unfold(src)); err != nil {
		return err
	}
	dst.Copy(k.m.fold(kv))
	return nil
}

// Merged returns PᵀZ, which makes the m of Path where rows repeat: row g is √(W_g/w_i) times that of the rows of its
// group.
func (o *Problem) Merged(z *points.Dense32) *points.Dense32 {
	if n, _ := z.Dims(); len(o.groups(n).first) == n {
		return z
	}
	m := o.groups(z.N)
	out := points.NewDense32(len(m.first), z.D, nil)
	for g, i := range m.first {
		for j, v := range z.Row(i) {
			out.Row(g)[j] = float32(float64(v) / m.p[i])
		}
	}
	return out
}
