package leaveout

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// merged is the problem AC = Y, A = K+λI, in which each group g of equal rows is merged into one row with weight W_g =
// Σw_i and target Σw_iy_i/W_g. K and Y are multiplied by the weights already (Problem.Weights). Let P, n×u, have the
// entries p_i = √(w_i/W_g) for the rows i of group g. Then
//
//	K̃ = PᵀKP,  Ỹ = PᵀY,  PᵀP = I.
//
// A = K+λI maps the span of P to itself and is λ on its complement. A fit of the merged problem without row g is
// therefore a fit without all rows of the group: r_G = ((A⁻¹)_GG)⁻¹c_G, with residuals Ẽ such that
//
//	E = Y − PỸ + PẼ,  ‖E‖² = ‖Y−PỸ‖² + ‖Ẽ‖².
//
// If the mean is subtracted from Y, a fit without group g uses another mean. With b = (√w_i), b̃ = Pᵀb = (√W_g), S =
// Σw_i
//
//	ẽ_g = (c̃_g + δ_g(Ã⁻¹b̃)_g)/(Ã⁻¹)_gg,  δ_g = √W_g·ỹ_g/(S−W_g),
//
// and the degrees of freedom of A⁻¹ are tr Ã⁻¹ − b̃ᵀÃ⁻¹b̃/S.
// Blocks B of rows g that need not be equal are also left out together: E_B = ((Ã⁻¹)_BB)⁻¹(C̃+δ_BÃ⁻¹b̃)_B with
// δ_B = Σ_B √W_gỹ_g/(S−Σ_B W_g). By default each block is one row.
type merged struct {
	groupOf       []int               // group of each row
	firstRows     []int               // first row of each group
	blocks        [][]int             // rows g of the merged problem that are left out together
	p             []float64           // p_i
	rootWeights   []float64           // √W_g
	weights       []float64           // weights of the rows; nil means 1
	scoreWeight   func(i int) float64 // weight of a row in the share of wrong labels
	totalWeight   float64             // S
	subtractsMean bool                // the fit subtracts the mean of the targets
	centered, y   *mat.Dense          // Y minus its mean, n×t, and Ỹ
	withinGroups  float64             // ‖Y−PỸ‖²
}

// group returns the merged problem of n rows, without targets.
func (o *Problem) group(n int) *merged {
	m := &merged{groupOf: make([]int, n), p: make([]float64, n), weights: o.Weights, subtractsMean: o.SubtractsMean}
	for i := range n {
		if o.FirstEqual == nil || o.FirstEqual[i] == i {
			m.groupOf[i] = len(m.firstRows)
			m.firstRows, m.rootWeights = append(m.firstRows, i), append(m.rootWeights, 0)
		} else {
			m.groupOf[i] = m.groupOf[o.FirstEqual[i]]
		}
		m.rootWeights[m.groupOf[i]] += m.weight(i)
		m.totalWeight += m.weight(i)
	}
	if m.scoreWeight = o.ScoreWeight; m.scoreWeight == nil {
		m.scoreWeight = m.weight
	}
	for g, w := range m.rootWeights {
		m.rootWeights[g] = math.Sqrt(w)
	}
	if o.Groups != nil {
		m.blocks = Blocks(o.Groups)
	} else {
		m.blocks = Blocks(indices(len(m.firstRows)))
	}
	for i, g := range m.groupOf {
		if m.p[i] = 1; len(m.firstRows) < n {
			m.p[i] = math.Sqrt(m.weight(i)) / m.rootWeights[g]
		}
	}
	return m
}

// weight returns w_i.
func (m *merged) weight(i int) float64 {
	if m.weights == nil {
		return 1
	}
	return m.weights[i]
}

// merge returns the merged problem with targets Y. If o.SubtractsMean is set, it subtracts their weighted mean.
func (o *Problem) merge(y *mat.Dense) (*merged, error) {
	n, t := y.Dims()
	m := o.group(n)
	if len(m.blocks) < 2 {
		return nil, fmt.Errorf("leaveout: all %d rows are in one group, so that none is left when they are left out "+
			"together: want at least 2 groups", n)
	}
	if m.centered = y; m.subtractsMean {
		m.centered = mat.DenseCopyOf(y)
		for j := range t {
			var mean float64
			for i := range n {
				mean += math.Sqrt(m.weight(i)) * y.At(i, j) / m.totalWeight
			}
			for i := range n {
				m.centered.Set(i, j, y.At(i, j)-math.Sqrt(m.weight(i))*mean)
			}
		}
	}
	m.y = m.fold(m.centered)
	withinResiduals := m.expandResiduals(mat.NewDense(len(m.firstRows), t, nil))
	m.withinGroups = mat.Norm(withinResiduals, 2)
	m.withinGroups *= m.withinGroups
	return m, nil
}

// fold returns PᵀV.
func (m *merged) fold(v *mat.Dense) *mat.Dense {
	_, t := v.Dims()
	out := mat.NewDense(len(m.firstRows), t, nil)
	for i, g := range m.groupOf {
		floats.AddScaled(out.RawRowView(g), m.p[i], v.RawRowView(i))
	}
	return out
}

// unfold returns PV.
func (m *merged) unfold(v *mat.Dense) *mat.Dense {
	_, t := v.Dims()
	out := mat.NewDense(len(m.groupOf), t, nil)
	for i, g := range m.groupOf {
		floats.AddScaled(out.RawRowView(i), m.p[i], v.RawRowView(g))
	}
	return out
}

// expandResiduals returns Y − PỸ + PẼ.
func (m *merged) expandResiduals(e *mat.Dense) *mat.Dense {
	out := m.unfold(m.y)
	out.Sub(m.centered, out)
	out.Add(out, m.unfold(e))
	return out
}

// matrix sets the lower triangle of A to that of PᵀKP+λI, and returns its trace.
func (m *merged) matrix(a []float64, k *mat.Dense, lambda float64) (trace float64) {
	u := len(m.firstRows)
	clear(a)
	for i, g := range m.groupOf {
		for j, v := range k.RawRowView(i)[:i+1] {
			h := m.groupOf[j]
			if v *= m.p[i] * m.p[j]; g == h && i != j { // K_ij and K_ji, of which only one is read
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

// rightHandSides returns [Ỹ, b̃], or Ỹ if no mean is subtracted.
func (m *merged) rightHandSides() *mat.Dense {
	if !m.subtractsMean {
		return mat.DenseCopyOf(m.y)
	}
	var out mat.Dense
	out.Augment(m.y, mat.NewDense(len(m.rootWeights), 1, append([]float64{}, m.rootWeights...)))
	return &out
}

// numerators returns the numerators of Ẽ from [C̃, Ã⁻¹b̃]. It also returns the largest error of the numerators per unit
// of relative error of C̃ and Ã⁻¹b̃, and C̃ and b̃ᵀÃ⁻¹b̃/S.
func (m *merged) numerators(x *mat.Dense) (num *mat.Dense, sensitivity float64, c *mat.Dense, usedFreedom float64) {
	u, t := m.y.Dims()
	c = mat.DenseCopyOf(x.Slice(0, u, 0, t))
	if sensitivity = mat.Norm(c, 2); !m.subtractsMean {
		return c, sensitivity, c, 0
	}
	num = mat.DenseCopyOf(c)
	var maxDelta float64
	for g, root := range m.rootWeights {
		usedFreedom += root * x.At(g, t) / m.totalWeight
	}
	for _, block := range m.blocks {
		remainingWeight := m.totalWeight
		for _, g := range block {
			remainingWeight -= m.rootWeights[g] * m.rootWeights[g]
		}
		for j := range t {
			var delta float64
			for _, g := range block {
				delta += m.rootWeights[g] / remainingWeight * m.y.At(g, j)
			}
			maxDelta = max(maxDelta, math.Abs(delta))
			for _, g := range block {
				num.Set(g, j, num.At(g, j)+delta*x.At(g, t))
			}
		}
	}
	if maxDelta > 0 {
		sensitivity += maxDelta * math.Sqrt(float64(t)) * mat.Norm(x.ColView(t), 2)
	}
	return num, sensitivity, c, usedFreedom
}

// meanSquare returns the mean square of E, given the sum of the squares of Ẽ.
func (m *merged) meanSquare(sum float64) float64 {
	_, t := m.y.Dims()
	return (sum + m.withinGroups) / (m.totalWeight * float64(t))
}

// gcv returns the mean square of E if all (Ã⁻¹)_gg are replaced by the mean free/u, where free are the degrees of
// freedom.
func (m *merged) gcv(c *mat.Dense, free float64) float64 {
	u, t := c.Dims()
	v := mat.Norm(c, 2) / (free / float64(u)) / math.Sqrt(m.totalWeight*float64(t))
	return v*v + m.meanSquare(0)
}

// residuals returns the residuals of the rows before they were multiplied by √w_i: y_i minus the prediction that is
// fitted without the group of row i.
func (m *merged) residuals(e *mat.Dense) *mat.Dense {
	out := m.expandResiduals(e)
	out.Apply(func(i, _ int, v float64) float64 { return v / math.Sqrt(m.weight(i)) }, out)
	return out
}

// mergedMatrix is the matrix PᵀKP.
type mergedMatrix struct {
	matrix
	m *merged
}

func (k mergedMatrix) Dim() int { return len(k.m.firstRows) }

func (k mergedMatrix) Diag() []float64 {
	diag := k.matrix.Diag()
	out := make([]float64, len(k.m.firstRows))
	for g, i := range k.m.firstRows {
		out[g] = diag[i] / (k.m.p[i] * k.m.p[i])
	}
	return out
}

func (k mergedMatrix) KMulTo(ctx context.Context, dst, src *mat.Dense) error {
	_, t := src.Dims()
	kv := mat.NewDense(len(k.m.groupOf), t, nil)
	if err := k.matrix.KMulTo(ctx, kv, k.m.unfold(src)); err != nil {
		return err
	}
	dst.Copy(k.m.fold(kv))
	return nil
}

// Merged returns PᵀZ, from which the argument m of Path is made if rows repeat. Row g is √(W_g/w_i) times the row of Z
// of the rows i of its group.
func (o *Problem) Merged(z *points.Dense32) *points.Dense32 {
	if n, _ := z.Dims(); len(o.group(n).firstRows) == n {
		return z
	}
	m := o.group(z.N)
	out := points.NewDense32(len(m.firstRows), z.D, nil)
	for g, i := range m.firstRows {
		for j, v := range z.Row(i) {
			out.Row(g)[j] = float32(float64(v) / m.p[i])
		}
	}
	return out
}
