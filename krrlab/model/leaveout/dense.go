package leaveout

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/krylov/estimate"
)

// Dense computes the score of each λ from K, n×n, of which it reads the lower triangle, by
//
//	A = K+λI = LLᵀ,  (A⁻¹)_ii = Σ_k ((L⁻¹)_ki)²,  C = L⁻ᵀL⁻¹Y,  y_i−f_{−i}(x_i) = c_i/(A⁻¹)_ii,
//
// where Y is n×t. Equal rows are left out together, and the mean is that of the other rows, as described in Problem.
// The scores are in the order of lambdas. Their intervals have confidence 1: they include rounding errors and
// Problem.KError. With ε ≥ ‖E‖₂, where E is the error of A, including 2(n+1)·2⁻⁵³·tr A for the factorization (Higham,
// Accuracy and Stability, theorem 10.3) and the same amount for L⁻¹ (theorem 14.1),
//
//	|δ(A⁻¹)_ii| ≤ ε/(λ−ε)·(A⁻¹)_ii,  ‖δc‖₂ ≤ ε/(λ−ε)·‖c‖₂.
//
// Work: 2n³/3 multiply-adds for each λ, memory: 8n² bytes. It returns an error if K+λI is not positive definite in
// float64, a group cannot be left out, o is not valid, or ctx ends, and panics if the shapes differ.
func Dense(ctx context.Context, k, y *mat.Dense, lambdas []float64, o *Problem) ([]Score, error) {
	n, cols := k.Dims()
	if cols != n {
		panic(fmt.Sprintf("leaveout: K is %d×%d", n, cols))
	}
	if err := check(n, y, lambdas); err != nil {
		return nil, err
	}
	opt := o.withDefaults()
	m, err := opt.merge(y)
	if err != nil {
		return nil, err
	}
	a, scores := make([]float64, len(m.firstRows)*len(m.firstRows)), make([]Score, len(lambdas)) // a is scratch
	for q, lambda := range lambdas {
		err := ctx.Err()
		if err == nil {
			scores[q], err = m.denseScore(a, k, lambda, &opt)
		}
		if err != nil {
			return nil, fmt.Errorf("leaveout: λ = %g: %w", lambda, err)
		}
		opt.Progress(q+1, len(lambdas))
	}
	return scores, nil
}

// denseScore returns the score of one λ from a Cholesky factor of Ã. a is scratch memory for Ã.
func (m *merged) denseScore(a []float64, k *mat.Dense, lambda float64, o *Problem) (Score, error) {
	start, u := time.Now(), len(m.firstRows)
	trace := m.setMatrix(a, k, lambda)
	f, err := NewInverseFactor(u, a)
	if err != nil {
		return Score{}, err
	}
	solution := m.rightHandSides()
	f.Forward(solution)
	f.Backward(solution)
	if size := mat.Norm(solution, 2) + floats.Sum(f.Diag); math.IsNaN(size) || math.IsInf(size, 0) {
		return Score{}, errors.New("K or Y has a number that is not finite")
	}
	s, err := m.exactScore(solution, f, lambda, o.KError+4*float64(u+1)*0x1p-53*trace, o)
	s.Error.Seconds = time.Since(start).Seconds()
	return s, err
}

// InverseFactor is L⁻¹ for A = LLᵀ. It solves systems by two products.
type InverseFactor struct {
	Diag []float64         // diagonal of A⁻¹: Σ_k (L⁻¹)²_ki
	l    blas64.Triangular // L⁻¹
}

// NewInverseFactor returns the factor of the n×n matrix A, and overwrites a. Only the lower triangle of A is read.
// Work: 2n³/3 multiply-adds. It returns an error if A is not positive definite in float64.
func NewInverseFactor(n int, a []float64) (*InverseFactor, error) {
	if !accel.Dpotrf(n, a, n) || !accel.Dtrtri(n, a, n) { // L, then L⁻¹
		return nil, errors.New("K+λI is not positive definite in float64: take a larger λ")
	}
	f := &InverseFactor{Diag: make([]float64, n),
		l: blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: n, Stride: n, Data: a}}
	for i := range n {
		for j, v := range a[i*n : i*n+i+1] {
			f.Diag[j] += v * v
		}
	}
	return f, nil
}

// Blocks returns the rows of each group, in the order of the groups' first rows. firstRows contains, for each row, the
// first row of its group.
func Blocks(firstRows []int) (blocks [][]int) {
	blockOf := make([]int, len(firstRows))
	for i, f := range firstRows {
		if f == i {
			blockOf[i], blocks = len(blocks), append(blocks, nil)
		}
		blocks[blockOf[f]] = append(blocks[blockOf[f]], i)
	}
	return blocks
}

// indices returns 0, …, n−1.
func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// LeaveOut replaces the rows V_B of V by ((A⁻¹)_BB)⁻¹V_B for each block B of rows. It returns, for each block, bounds
// of ‖((A⁻¹)_BB)⁻¹‖₂ and of the square root of the condition number of (A⁻¹)_BB. Work: n|B|²/2 multiply-adds for each
// block of several rows. It returns an error if a block is not positive definite in float64.
func (f *InverseFactor) LeaveOut(v *mat.Dense, blocks [][]int) (norm, rootCondition []float64, err error) {
	_, t := v.Dims()
	for _, block := range blocks {
		if m := len(block); m > 1 {
			b := f.inverseBlock(block)
			trace := mat.Trace(b)
			g, err := NewInverseFactor(m, b.RawMatrix().Data)
			if err != nil {
				return nil, nil, errors.New("the rows of a group are too many or too alike to be left out in " +
					"float64: take a larger λ")
			}
			rows := mat.NewDense(m, t, nil)
			for k, i := range block {
				rows.SetRow(k, v.RawRowView(i))
			}
			g.Forward(rows)
			g.Backward(rows)
			for k, i := range block {
				v.SetRow(i, rows.RawRowView(k))
			}
			norm = append(norm, floats.Sum(g.Diag))
			rootCondition = append(rootCondition, math.Sqrt(trace*floats.Sum(g.Diag)))
			continue
		}
		d := f.Diag[block[0]]
		row := v.RawRowView(block[0])
		for j := range row {
			row[j] /= d
		}
		norm, rootCondition = append(norm, 1/d), append(rootCondition, 1)
	}
	return norm, rootCondition, nil
}

// inverseBlock returns the lower triangle of (A⁻¹)_BB for the rows B, whose indices must ascend. A⁻¹ = L⁻ᵀL⁻¹.
func (f *InverseFactor) inverseBlock(rows []int) *mat.Dense {
	n, m := f.l.N, len(rows)
	columns := mat.NewDense(n-rows[0], m, nil) // columns of L⁻¹, without the rows above rows[0], which are zero
	for i := rows[0]; i < n; i++ {
		for k, j := range rows {
			if j > i {
				break
			}
			columns.Set(i-rows[0], k, f.l.Data[i*n+j])
		}
	}
	out := mat.NewDense(m, m, nil)
	blas64.Syrk(blas.Trans, 1, columns.RawMatrix(), 0,
		blas64.Symmetric{Uplo: blas.Lower, N: m, Stride: m, Data: out.RawMatrix().Data})
	return out
}

// Forward sets B to L⁻¹B.
func (f *InverseFactor) Forward(b *mat.Dense) {
	blas64.Trmm(blas.Left, blas.NoTrans, 1, f.l, b.RawMatrix())
}

// Backward sets B to L⁻ᵀB. Forward followed by Backward multiplies by A⁻¹.
func (f *InverseFactor) Backward(b *mat.Dense) {
	blas64.Trmm(blas.Left, blas.Trans, 1, f.l, b.RawMatrix())
}

// exactScore computes the score from X = Ã⁻¹[Ỹ, b̃] and the factor of Ã (see merged for the symbols), where Ã has an
// error of at most ε = eps in the 2-norm. For a block B of rows and its matrix (Ã⁻¹)_BB, to first order,
//
//	‖δẼ_B‖₂ ≤ ‖((Ã⁻¹)_BB)⁻¹‖₂‖δC_B‖₂ + √κ((Ã⁻¹)_BB)·ε/(λ−ε)·‖Ẽ_B‖₂.
func (m *merged) exactScore(x *mat.Dense, f *InverseFactor, lambda, eps float64, o *Problem) (Score, error) {
	s := Score{Lambda: lambda}
	e, sensitivity, c, traceCorrection := m.numerators(x)
	u, _ := c.Dims()
	relError := eps / (lambda - eps)
	if !(eps < lambda) {
		relError = math.Inf(1)
	}
	if sensitivity == 0 { // Y = 0, so C = 0 whatever A is
		relError = 0
	}
	if e == c { // LeaveOut overwrites e, and c is still needed
		e = mat.DenseCopyOf(c)
	}
	inverseNorms, rootConditions, err := f.LeaveOut(e, m.blocks)
	if err != nil {
		return s, err
	}
	norms := m.rowBounds(e, rootConditions)
	var sumSquares float64
	for g := range u {
		for _, v := range e.RawRowView(g) {
			sumSquares += v * v
		}
	}
	var trace float64
	for _, d := range f.Diag {
		trace += d
	}
	s.GCV, s.S = m.gcv(c, trace-traceCorrection), float64(u)-lambda*(trace-traceCorrection)
	// maxError bounds ‖((Ã⁻¹)_BB)⁻¹δC_B‖_F for each block B, and so each of its entries
	maxError := sensitivity * slices.Max(inverseNorms) * relError
	if o.Classification {
		wrong, undecided := m.wrongLabels(m.expandResiduals(e), func(i int) float64 {
			return m.p[i] * (maxError + relError*norms[m.groupOf[i]]) * (1 + relError)
		})
		s.Error = estimate.Certain(wrong, undecided, "exact")
		s.Error.Lo, s.Error.Hi = max(0, s.Error.Lo), min(1, s.Error.Hi)
	} else {
		norm := math.Sqrt(sumSquares)
		slack := (maxError + relError*slices.Max(rootConditions)*norm) * (1 + relError)
		s.Error = estimate.Certain(m.meanSquare(sumSquares), 0, "exact")
		lo, hi := max(0, norm-slack), norm+slack
		s.Error.Lo, s.Error.Hi = m.meanSquare(lo*lo), m.meanSquare(hi*hi)
	}
	if o.ComputeResiduals {
		s.Residuals = m.residuals(e)
	}
	return s, nil
}

// rowBounds returns a bound of the entries of each row g of Ẽ: the largest absolute one or, if g is in a block B of
// several rows, √κ((Ã⁻¹)_BB)·‖Ẽ_B‖_F. rootConditions has √κ((Ã⁻¹)_BB) for each block.
func (m *merged) rowBounds(e *mat.Dense, rootConditions []float64) []float64 {
	rows, _ := e.Dims()
	bounds := make([]float64, rows)
	for q, block := range m.blocks {
		var squares float64
		for _, g := range block {
			for _, v := range e.RawRowView(g) {
				bounds[g] = max(bounds[g], math.Abs(v))
				squares += v * v
			}
		}
		if len(block) > 1 {
			for _, g := range block {
				bounds[g] = rootConditions[q] * math.Sqrt(squares)
			}
		}
	}
	return bounds
}
