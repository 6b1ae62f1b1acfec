package pcg

import (
	"context"

	"gonum.org/v1/gonum/mat"
)

// SolveBlock solves AX = B with the same options, results and statuses as Solve, but by block conjugate gradients: all
// columns share one search space, which grows by k ≤ t directions per iteration. In exact arithmetic the A-norm of the
// error of each column is, after every iteration, at most that of Solve. The norm of the residual, which is tested, may
// be larger. The package documentation explains when SolveBlock is faster.
//
// The variant is BCGrQ (Dubrulle 2001) with preconditioning and deflation. The residuals are represented as R = QC,
// with Q n×k, QᵀM⁻¹Q = I and C k×t. Starting from P = Z = M⁻¹Q, and with Π = PᵀAP, an iteration is
//
//	X ← X + P·Π⁻¹C
//	Q'S = Q − AP·Π⁻¹,  Q'ᵀM⁻¹Q' = I
//	C ← SC
//	P ← M⁻¹Q' + P·Sᵀ
//
// The iteration cannot break down while A and M are positive definite, because
//
//	λ_min(M⁻¹A)·I ≤ Π ≤ λ_max(M⁻¹A)·I.
//
// Proof: PᵀQ = I holds initially as ZᵀQ = I, and is preserved by PᵀQ' = 0. For a unit vector v therefore
// 1 = (Pv)ᵀ(Qv) ≤ ‖Pv‖_M‖Qv‖_{M⁻¹} = ‖Pv‖_M, which gives the lower bound. In Zv = Pv − P_old·Sᵀv the two terms are
// A-orthogonal, so ‖Pv‖_A ≤ ‖Zv‖_A, which gives the upper bound.
//
// Only Q − AP·Π⁻¹ can become rank-deficient. The factorization drops its dependent directions: a direction whose
// component independent of the other directions is at most max(min(10⁻³τ, 10⁻⁶), 10⁻¹²) times its norm, where τ is
// Options.Tol. Equal, dependent and zero columns and t > n therefore need no special treatment. The error from dropped
// directions appears in the true residual, which is tested as in Solve, and a restart corrects it.
//
// A column that has converged is frozen as in Solve, but its directions stay in the block and speed up the other
// columns. Therefore k decreases only if directions become dependent.
//
// If A or M is not positive definite, all columns end at once as Indefinite or IndefinitePreconditioner, with the value
// of pᵀAp or rᵀM⁻¹r for a combination of the block's directions. The tables Alpha and Beta of the history stay empty,
// so Ritz returns nil and Cond returns NaN.
//
// An iteration takes one product with A and one solve with M of k ≤ t columns, and BlockFlops further operations. It
// takes a second solve if the independent components of some directions are below the rounding errors. The true
// residual takes one product. Memory: 4nt numbers as in Solve, and 512t for each thread.
//
// Sources: D. P. O'Leary (1980), doi:10.1016/0024-3795(80)90247-5; A. A. Dubrulle (2001);
// see the package documentation.
func SolveBlock(ctx context.Context, a Operator, m Preconditioner, b *mat.Dense, o *Options) (*Result, error) {
	if _, ok := m.(ColumnPreconditioner); ok {
		panic("pcg: SolveBlock with a preconditioner for each column: its columns are combined")
	}
	base, err := newSolver(a, m, b, o)
	if err != nil {
		return nil, err
	}
	return newBlock(base).run(ctx)
}

// BlockFlops returns the number of floating-point additions and multiplications in an iteration of SolveBlock with a
// block of t columns, not counting the product with A and the solve with M. It is 16nt² with a preconditioner and 14nt²
// without, up to terms in nt and t³. Each of PᵀAP, P·Π⁻¹C, AP·Π⁻¹, QC (for the norms of the residuals), QᵀZ, Q', P·Sᵀ
// and, with M, M⁻¹Q' takes 2nt². An iteration in which directions become nearly dependent orthonormalizes twice, and
// takes up to twice as many operations. Compared with the 2n²t operations of a product with a dense A, the fraction is
// 8t/n. The operations run on all threads as products of thin blocks, at a quarter of the rate of products of large
// matrices for t = 10, and at half that rate for t ≥ 26.
func BlockFlops(n, t int, preconditioned bool) float64 {
	terms := 7.0
	if preconditioned {
		terms = 8
	}
	return terms * 2 * float64(n) * float64(t) * float64(t)
}

// block is the state of one call of SolveBlock. Q is stored in solver.r. solver.w contains AP, and later Z = M⁻¹Q;
// without M, Z is Q itself.
type block struct {
	*solver
	k          int             // number of columns of Q
	width      int             // number of columns of P
	c, scratch []float64       // C, k×len(cols), and scratch memory of the same size
	d          []float64       // D = Π⁻¹C
	pi, h      []float64       // Π and H = Π⁻¹, k×k
	s          []float64       // S, k×width
	f, ft      []float64       // scratch, k×k: F with Π⁻¹ = FFᵀ, and Fᵀ or Sᵀ
	cholesky   pivotedCholesky // factorization of Π or of QᵀM⁻¹Q
	relSize    []float64       // norms of Q's columns relative to their initial norms, see selectDirections
	selected   []int           // columns of Q that remain, in their new order
	rowScratch []float64       // scratch, t
	dropCutoff float64         // relative size at or below which a direction is dropped
}

// newBlock returns a block solver that extends base, with its additional memory allocated.
func newBlock(base *solver) *block {
	t := base.t
	s := &block{solver: base, dropCutoff: min(max(1e-3*base.opt.Tol, 1e-12), 1e-6)}
	for _, buffer := range []*[]float64{&s.c, &s.scratch, &s.d, &s.pi, &s.h, &s.s, &s.f, &s.ft} {
		*buffer = make([]float64, t*t)
	}
	base.block, base.method = s, s // base calls the methods of s
	s.cholesky = newPivotedCholesky(t)
	s.relSize, s.selected, s.rowScratch = make([]float64, t), make([]int, 0, t), make([]float64, t)
	s.bounds = newBounds(base.opt.LambdaMin, t, t*t, base.initialHistoryRows())
	return s
}

// firstDirections implements method: P = Z, after R = QC.
func (s *block) firstDirections(ctx context.Context) error {
	s.k = len(s.cols)
	if err := s.orthonormalize(ctx, 0); err != nil { // R = QS, QᵀM⁻¹Q = I
		return err
	}
	copy(s.c, s.s[:s.k*s.width]) // C = S
	s.width = s.k
	s.reshape(s.p, 1, s.k)
	s.p.Copy(s.z) // P = Z
	s.startErrorBounds()
	return nil
}

// step implements method. It sets rSquares, xSquares and stepSquares to ‖Qc_j‖₂², ‖x_j‖₂² and ‖Pd_j‖₂² for the
// active columns, where c_j, x_j and d_j are columns of C, X and D.
func (s *block) step() {
	s.crossProduct(s.pi, s.p, s.w) // Π = PᵀAP
	if !s.invertPi() {             // H = Π⁻¹
		return
	}
	product(s.d, s.h, s.c, s.k, s.k, len(s.cols)) // D = HC
	s.runStep((*blockRows)(s), s.t)               // X ← X + PD,  Q ← Q − W·H
	s.updateErrorBounds()
	s.smoothStep()
	s.checkConvergence() // ‖r_j‖₂ ≤ τ‖y_j‖₂: column j has converged
}

// nextDirections implements method.
func (s *block) nextDirections(ctx context.Context) error {
	if err := s.orthonormalize(ctx, roundingNorm); err != nil { // Q ← Q', Z = M⁻¹Q', S
		return err
	}
	s.advanceGamma()
	product(s.scratch, s.s, s.c, s.k, s.width, len(s.cols)) // C ← SC
	s.c, s.scratch = s.scratch, s.c
	s.updateDirections() // P ← Z + P·Sᵀ
	return nil
}

// endAll ends all active columns with the same status, quantity and value.
func (s *block) endAll(status Status, quantity string, value float64) {
	for _, c := range s.cols {
		s.endColumn(c, status, quantity, value)
	}
}

// invertPi sets H = Π⁻¹ and returns true. If Π shows that A is not positive definite, it ends all columns and returns
// false. H omits directions in which Π is zero to working precision, so the step does not move along them.
func (s *block) invertPi() bool {
	chol := &s.cholesky
	const minPivot, margin = 0, 1 // accept every pivot above the rounding errors
	switch status := chol.factorize(s.pi, s.k, minPivot, margin); {
	case status != Active:
		s.endAll(status, curvatureA, chol.badCurvature)
		return false
	case chol.hasZeroDiagonal:
		s.endAll(Indefinite, curvatureA, 0)
		return false
	}
	chol.invertUpper(s.f, chol.piv[:chol.rank]) // Π = F⁻ᵀF⁻¹, F k×rank
	for i := range s.k {
		for j := range chol.rank {
			s.ft[j*s.k+i] = s.f[i*chol.rank+j]
		}
	}
	product(s.h, s.f, s.ft, s.k, chol.rank, s.k) // H = FFᵀ
	return true
}

// blockRows is a block as the rowTask of step. rows updates rows i0 to i1−1 of X and Q, and adds the squares of these
// rows of QC, X and PD to sum, which holds rSquares, xSquares and stepSquares one after the other. work has t numbers
// per row.
type blockRows block

// rows implements rowTask.
func (s *blockRows) rows(i0, i1 int, sum, work []float64) {
	k, t, active := s.k, s.t, len(s.cols)
	rSquares, xSquares, stepSquares := sum[:active], sum[active:2*active], sum[2*active:]
	x, q := s.x.RawMatrix().Data, rowsOf(s.r.RawMatrix().Data, i0, i1, k)

	blockProduct := rowsOf(work, 0, i1-i0, active) // PD
	clear(blockProduct.Data)
	addThinProduct(1, rowsOf(s.p.RawMatrix().Data, i0, i1, k), rowsOf(s.d, 0, k, active), blockProduct)
	for i := range blockProduct.Rows {
		xRow := x[(i0+i)*t : (i0+i+1)*t]
		for j, entry := range blockProduct.Data[i*active : (i+1)*active] {
			c := s.cols[j]
			xRow[c] += entry // X ← X + PD
			xSquares[j] += xRow[c] * xRow[c]
			stepSquares[j] += entry * entry
		}
	}
	addThinProduct(-1, rowsOf(s.w.RawMatrix().Data, i0, i1, k), rowsOf(s.h, 0, k, k), q) // Q ← Q − AP·H

	clear(blockProduct.Data) // R = QC
	addThinProduct(1, q, rowsOf(s.c, 0, k, active), blockProduct)
	for i := range blockProduct.Rows {
		for j, entry := range blockProduct.Data[i*active : (i+1)*active] {
			rSquares[j] += entry * entry
		}
	}
}

// updateDirections sets P ← Z + P·Sᵀ, which has as many columns as Q.
func (s *block) updateDirections() {
	k := s.k
	transpose(s.ft, s.s, k, s.width)
	p := s.buf[1] // the result has the same memory
	s.multiplyBlock(p, s.width, k, s.ft, s.z.RawMatrix().Data)
	s.width = k
	s.reshape(s.p, 1, k)
}
