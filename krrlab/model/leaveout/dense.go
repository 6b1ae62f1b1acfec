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
// Work: 2n³/3 multiply-adds for each λ, memory: 8n² bytes. Dense returns an error if K+λI is not positive definite in
// float64, a group cannot be left out, problem is not valid, or ctx ends, and panics if the shapes differ.
func Dense(ctx context.Context, k, y *mat.Dense, lambdas []float64, problem *Problem) ([]Score, error) {
	n, cols := k.Dims()
	if cols != n {
		panic(fmt.Sprintf("leaveout: K is %d×%d", n, cols))
	}
	if err := check(n, y, lambdas); err != nil {
		return nil, err
	}
	options := problem.withDefaults()
	m, err := options.merge(y)
	if err != nil {
		return nil, err
	}
	a, scores := make([]float64, len(m.firstRows)*len(m.firstRows)), make([]Score, len(lambdas)) // a is scratch
	for j, lambda := range lambdas {
		err := ctx.Err()
		if err == nil {
			scores[j], err = m.denseScore(a, k, lambda, &options)
		}
		if err != nil {
			return nil, fmt.Errorf("leaveout: λ = %g: %w", lambda, err)
		}
		options.Progress(j+1, len(lambdas))
	}
	return scores, nil
}

// denseScore returns the score of one λ from a Cholesky factor of Ã. a is scratch memory for Ã.
func (m *merged) denseScore(a []float64, k *mat.Dense, lambda float64, options *Problem) (Score, error) {
	start, u := time.Now(), len(m.firstRows)
	trace := m.setMatrix(a, k, lambda)
	factor, err := NewInverseFactor(u, a)
	if err != nil {
		return Score{}, err
	}
	solution := m.rightHandSides()
	factor.Forward(solution)
	factor.Backward(solution)
	if size := mat.Norm(solution, 2) + floats.Sum(factor.Diag); math.IsNaN(size) || math.IsInf(size, 0) {
		return Score{}, errors.New("K or Y has a number that is not finite")
	}
	score, err := m.exactScore(solution, factor, lambda, options.KError+4*float64(u+1)*0x1p-53*trace, options)
	score.Error.Seconds = time.Since(start).Seconds()
	return score, err
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
	for i, first := range firstRows {
		if first == i {
			blockOf[i], blocks = len(blocks), append(blocks, nil)
		}
		blocks[blockOf[first]] = append(blocks[blockOf[first]], i)
	}
	return blocks
}

// indices returns 0, …, n−1.
func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// LeaveOut replaces the rows V_B of V by ((A⁻¹)_BB)⁻¹V_B for each block B of rows. It returns, for each block, bounds
// of ‖((A⁻¹)_BB)⁻¹‖₂ and of the square root of the condition number of (A⁻¹)_BB. Work: n|B|²/2 multiply-adds for each
// block of several rows. It returns an error if a block is not positive definite in float64.
func (f *InverseFactor) LeaveOut(v *mat.Dense, blocks [][]int) (norms, rootConditions []float64, err error) {
	_, t := v.Dims()
	for _, block := range blocks {
		if size := len(block); size > 1 {
			inverse := f.inverseBlock(block)
			trace := mat.Trace(inverse)
			blockFactor, err := NewInverseFactor(size, inverse.RawMatrix().Data)
			if err != nil {
				return nil, nil, errors.New("the rows of a group are too many or too alike to be left out in " +
					"float64: take a larger λ")
			}
			rows := mat.NewDense(size, t, nil)
			for k, i := range block {
				rows.SetRow(k, v.RawRowView(i))
			}
			blockFactor.Forward(rows)
			blockFactor.Backward(rows)
			for k, i := range block {
				v.SetRow(i, rows.RawRowView(k))
			}
			norms = append(norms, floats.Sum(blockFactor.Diag))
			rootConditions = append(rootConditions, math.Sqrt(trace*floats.Sum(blockFactor.Diag)))
			continue
		}
		inverseDiag := f.Diag[block[0]]
		row := v.RawRowView(block[0])
		for j := range row {
			row[j] /= inverseDiag
		}
		norms, rootConditions = append(norms, 1/inverseDiag), append(rootConditions, 1)
	}
	return norms, rootConditions, nil
}

// inverseBlock returns the lower triangle of (A⁻¹)_BB for the rows B, whose indices must ascend. A⁻¹ = L⁻ᵀL⁻¹.
func (f *InverseFactor) inverseBlock(rows []int) *mat.Dense {
	n, size := f.l.N, len(rows)
	columns := mat.NewDense(n-rows[0], size, nil) // columns of L⁻¹, without the rows above rows[0], which are zero
	for i := rows[0]; i < n; i++ {
		for k, j := range rows {
			if j > i {
				break
			}
			columns.Set(i-rows[0], k, f.l.Data[i*n+j])
		}
	}
	inverse := mat.NewDense(size, size, nil)
	blas64.Syrk(blas.Trans, 1, columns.RawMatrix(), 0,
		blas64.Symmetric{Uplo: blas.Lower, N: size, Stride: size, Data: inverse.RawMatrix().Data})
	return inverse
}

// Forward sets b to L⁻¹b.
func (f *InverseFactor) Forward(b *mat.Dense) {
	blas64.Trmm(blas.Left, blas.NoTrans, 1, f.l, b.RawMatrix())
}

// Backward sets b to L⁻ᵀb. Forward followed by Backward multiplies by A⁻¹.
func (f *InverseFactor) Backward(b *mat.Dense) {
	blas64.Trmm(blas.Left, blas.Trans, 1, f.l, b.RawMatrix())
}

// exactScore computes the score from X = Ã⁻¹[Ỹ, b̃] and the factor of Ã (see merged for the symbols), where Ã has an
// error of at most ε = eps in the 2-norm. For a block B of rows and its matrix (Ã⁻¹)_BB, to first order,
//
//	‖δẼ_B‖₂ ≤ ‖((Ã⁻¹)_BB)⁻¹‖₂‖δC_B‖₂ + √κ((Ã⁻¹)_BB)·ε/(λ−ε)·‖Ẽ_B‖₂.
func (m *merged) exactScore(x *mat.Dense, f *InverseFactor, lambda, eps float64, options *Problem) (Score, error) {
	score := Score{Lambda: lambda}
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
		return score, err
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
	score.GCV, score.S = m.gcv(c, trace-traceCorrection), float64(u)-lambda*(trace-traceCorrection)
	// maxError bounds ‖((Ã⁻¹)_BB)⁻¹δC_B‖_F for each block B, and therefore each entry.
	maxError := sensitivity * slices.Max(inverseNorms) * relError
	if options.Classification {
		wrong, undecided := m.wrongLabels(m.expandResiduals(e), func(i int) float64 {
			return m.p[i] * (maxError + relError*norms[m.groupOf[i]]) * (1 + relError)
		})
		score.Error = estimate.Certain(wrong, undecided, "exact")
		score.Error.Lo, score.Error.Hi = max(0, score.Error.Lo), min(1, score.Error.Hi)
	} else {
		norm := math.Sqrt(sumSquares)
		slack := (maxError + relError*slices.Max(rootConditions)*norm) * (1 + relError)
		score.Error = estimate.Certain(m.meanSquare(sumSquares), 0, "exact")
		lo, hi := max(0, norm-slack), norm+slack
		score.Error.Lo, score.Error.Hi = m.meanSquare(lo*lo), m.meanSquare(hi*hi)
	}
	if options.ComputeResiduals {
		score.Residuals = m.residuals(e)
	}
	return score, nil
}

// rowBounds returns a bound of the entries of each row g of Ẽ: the largest absolute one or, if g is in a block B of
// several rows, √κ((Ã⁻¹)_BB)·‖Ẽ_B‖_F. rootConditions has √κ((Ã⁻¹)_BB) for each block.
func (m *merged) rowBounds(e *mat.Dense, rootConditions []float64) []float64 {
	rows, _ := e.Dims()
	bounds := make([]float64, rows)
	for b, block := range m.blocks {
		var squares float64
		for _, g := range block {
			for _, v := range e.RawRowView(g) {
				bounds[g] = max(bounds[g], math.Abs(v))
				squares += v * v
			}
		}
		if len(block) > 1 {
			for _, g := range block {
				bounds[g] = rootConditions[b] * math.Sqrt(squares)
			}
		}
	}
	return bounds
}
