package leaveout

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// merged is the problem AC = Y, A = K+λI, in which each group of equal rows is merged into one row. A tilde denotes the
// matrices of the merged problem: its row g stands for group g, with the weight W_g = Σw_i and the target Σw_iy_i/W_g.
// Row i of Y, and row and column i of K, are already multiplied by √w_i (Problem.Weights). Let P, n×u, have the entries
// p_i = √(w_i/W_g) for the rows i of group g. Then
//
//	K̃ = PᵀKP,  Ỹ = PᵀY,  PᵀP = I.
//
// A maps the span of P to itself and is λ on its complement. A fit of the merged problem without row g is therefore a
// fit without all rows G of the group: e_G = ((A⁻¹)_GG)⁻¹c_G. The residuals Ẽ of the merged problem give those of all
// rows,
//
//	E = Y − PỸ + PẼ,  ‖E‖² = ‖Y−PỸ‖² + ‖Ẽ‖².
//
// If the mean is subtracted from Y, a fit without group g uses another mean. With b = (√w_i), b̃ = Pᵀb = (√W_g), S =
// Σw_i,
//
//	ẽ_g = (c̃_g + δ_g(Ã⁻¹b̃)_g)/(Ã⁻¹)_gg,  δ_g = √W_g·ỹ_g/(S−W_g),
//
// and generalized cross-validation uses tr Ã⁻¹ − b̃ᵀÃ⁻¹b̃/S in place of tr Ã⁻¹.
//
// A block B is a set of groups that are left out together, although their rows differ: E_B =
// ((Ã⁻¹)_BB)⁻¹(C̃+δ_BÃ⁻¹b̃)_B with δ_B = Σ_B √W_gỹ_g/(S−Σ_B W_g). By default each block is one group.
type merged struct {
	groupOf       []int               // group of each row
	firstRows     []int               // first row of each group
	blocks        [][]int             // groups of each block
	p             []float64           // p_i for each row
	rootWeights   []float64           // √W_g
	weights       []float64           // w_i; nil means 1
	scoreWeight   func(i int) float64 // weight of a row in the share of wrong labels
	totalWeight   float64             // S
	subtractsMean bool                // the fit subtracts the mean of the targets
	centered      *mat.Dense          // Y, minus its weighted mean if subtractsMean, n×t
	y             *mat.Dense          // Ỹ, u×t
	withinGroups  float64             // ‖Y−PỸ‖²
}

// mergeRows returns the merged problem of n rows, without targets.
func (p *Problem) mergeRows(n int) *merged {
	m := &merged{groupOf: make([]int, n), p: make([]float64, n), weights: p.Weights, subtractsMean: p.SubtractsMean}
	for i := range n {
		if p.FirstEqual == nil || p.FirstEqual[i] == i {
			m.groupOf[i] = len(m.firstRows)
			m.firstRows, m.rootWeights = append(m.firstRows, i), append(m.rootWeights, 0)
		} else {
			m.groupOf[i] = m.groupOf[p.FirstEqual[i]]
		}
		m.rootWeights[m.groupOf[i]] += m.weight(i)
		m.totalWeight += m.weight(i)
	}
	if m.scoreWeight = p.ScoreWeight; m.scoreWeight == nil {
		m.scoreWeight = m.weight
	}
	for g, w := range m.rootWeights {
		m.rootWeights[g] = math.Sqrt(w)
	}
	if p.Groups != nil {
		m.blocks = Blocks(p.Groups)
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

// merge returns the merged problem with targets Y. If p.SubtractsMean is set, merge subtracts the weighted mean of the
// targets. It returns an error if all rows are in one block.
func (p *Problem) merge(y *mat.Dense) (*merged, error) {
	n, t := y.Dims()
	m := p.mergeRows(n)
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
	m.y = m.restrict(m.centered)
	withinResiduals := m.expandResiduals(mat.NewDense(len(m.firstRows), t, nil))
	m.withinGroups = mat.Norm(withinResiduals, 2)
	m.withinGroups *= m.withinGroups
	return m, nil
}

// restrict returns PᵀV, which has one row for each group.
func (m *merged) restrict(v *mat.Dense) *mat.Dense {
	_, t := v.Dims()
	restricted := mat.NewDense(len(m.firstRows), t, nil)
	for i, g := range m.groupOf {
		floats.AddScaled(restricted.RawRowView(g), m.p[i], v.RawRowView(i))
	}
	return restricted
}

// prolong returns PV, which has one row for each row of the data.
func (m *merged) prolong(v *mat.Dense) *mat.Dense {
	_, t := v.Dims()
	prolonged := mat.NewDense(len(m.groupOf), t, nil)
	for i, g := range m.groupOf {
		floats.AddScaled(prolonged.RawRowView(i), m.p[i], v.RawRowView(g))
	}
	return prolonged
}

// expandResiduals returns Y − PỸ + PẼ.
func (m *merged) expandResiduals(e *mat.Dense) *mat.Dense {
	residuals := m.prolong(m.y)
	residuals.Sub(m.centered, residuals)
	residuals.Add(residuals, m.prolong(e))
	return residuals
}

// setMatrix sets the lower triangle of a, u×u, to that of Ã = PᵀKP+λI, and returns the trace of Ã.
func (m *merged) setMatrix(a []float64, k *mat.Dense, lambda float64) (trace float64) {
	u := len(m.firstRows)
	clear(a)
	for i, g := range m.groupOf {
		for j, v := range k.RawRowView(i)[:i+1] {
			h := m.groupOf[j]
			if v *= m.p[i] * m.p[j]; g == h && i != j { // K_ij and K_ji both count, and only one of them is read
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
	var rhs mat.Dense
	rhs.Augment(m.y, mat.NewDense(len(m.rootWeights), 1, append([]float64{}, m.rootWeights...)))
	return &rhs
}

// numerators returns the numerators c̃_g + δ_g(Ã⁻¹b̃)_g of Ẽ, given x = [C̃, Ã⁻¹b̃]. It also returns the largest error
// of the numerators per unit of relative error of C̃ and Ã⁻¹b̃, and C̃, and b̃ᵀÃ⁻¹b̃/S, which is to be subtracted from
// tr Ã⁻¹. If no mean is subtracted, the numerators are C̃ itself and the correction of the trace is 0.
func (m *merged) numerators(x *mat.Dense) (numerators *mat.Dense, sensitivity float64, c *mat.Dense,
	traceCorrection float64) {
	u, t := m.y.Dims()
	c = mat.DenseCopyOf(x.Slice(0, u, 0, t))
	if sensitivity = mat.Norm(c, 2); !m.subtractsMean {
		return c, sensitivity, c, 0
	}
	numerators = mat.DenseCopyOf(c)
	var maxDelta float64
	for g, root := range m.rootWeights {
		traceCorrection += root * x.At(g, t) / m.totalWeight
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
				numerators.Set(g, j, numerators.At(g, j)+delta*x.At(g, t))
			}
		}
	}
	if maxDelta > 0 {
		sensitivity += maxDelta * math.Sqrt(float64(t)) * mat.Norm(x.ColView(t), 2)
	}
	return numerators, sensitivity, c, traceCorrection
}

// meanSquare returns the mean square of E, given the sum of the squares of Ẽ.
func (m *merged) meanSquare(sum float64) float64 {
	_, t := m.y.Dims()
	return (sum + m.withinGroups) / (m.totalWeight * float64(t))
}

// gcv returns the mean square of E if all (Ã⁻¹)_gg are replaced by their mean inverseTrace/u, where inverseTrace is
// tr Ã⁻¹ minus the correction that numerators returns.
func (m *merged) gcv(c *mat.Dense, inverseTrace float64) float64 {
	u, t := c.Dims()
	root := mat.Norm(c, 2) / (inverseTrace / float64(u)) / math.Sqrt(m.totalWeight*float64(t))
	return root*root + m.meanSquare(0)
}

// residuals returns the residuals of the rows before they were multiplied by √w_i: y_i minus the prediction that is
// fitted without the group of row i.
func (m *merged) residuals(e *mat.Dense) *mat.Dense {
	residuals := m.expandResiduals(e)
	residuals.Apply(func(i, _ int, v float64) float64 { return v / math.Sqrt(m.weight(i)) }, residuals)
	return residuals
}

// mergedMatrix is the matrix K̃ = PᵀKP, given by products with K.
type mergedMatrix struct {
	matrix // K
	m      *merged
}

// Dim returns the number u of groups of equal rows.
func (k mergedMatrix) Dim() int { return len(k.m.firstRows) }

// Diag returns the diagonal of K̃. Since the rows i of group g are equal, K_ij = √(w_iw_j)·k(x_g, x_g) for two of them,
// and K̃_gg = W_g·k(x_g, x_g) = K_ii/p_i².
func (k mergedMatrix) Diag() []float64 {
	diag := k.matrix.Diag()
	merged := make([]float64, len(k.m.firstRows))
	for g, i := range k.m.firstRows {
		merged[g] = diag[i] / (k.m.p[i] * k.m.p[i])
	}
	return merged
}

// KMulTo sets dst = Pᵀ(K(P·src)), u×t.
func (k mergedMatrix) KMulTo(ctx context.Context, dst, src *mat.Dense) error {
	_, t := src.Dims()
	kv := mat.NewDense(len(k.m.groupOf), t, nil)
	if err := k.matrix.KMulTo(ctx, kv, k.m.prolong(src)); err != nil {
		return err
	}
	dst.Copy(k.m.restrict(kv))
	return nil
}

// Merged returns PᵀZ for features Z, n×s, of the rows. If rows repeat, the preconditioner for Path must be made from
// PᵀZ. Row g is 1/p_i times the row i of Z, for any row i of group g. If no rows repeat, Merged returns z itself.
func (p *Problem) Merged(z *points.Dense32) *points.Dense32 {
	if n, _ := z.Dims(); len(p.mergeRows(n).firstRows) == n {
		return z
	}
	m := p.mergeRows(z.N)
	merged := points.NewDense32(len(m.firstRows), z.D, nil)
	for g, i := range m.firstRows {
		for j, v := range z.Row(i) {
			merged.Row(g)[j] = float32(float64(v) / m.p[i])
		}
	}
	return merged
}
