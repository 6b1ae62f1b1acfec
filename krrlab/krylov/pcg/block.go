package pcg

import (
	"context"

	"gonum.org/v1/gonum/mat"
)

// SolveBlock solves AX = B like Solve, with the same options, results and statuses,
// but by block conjugate gradients: all columns search one space together, of k ≤ t new
// directions an iteration. It needs at most as many iterations as Solve, in exact
// arithmetic and up to the difference between the A-norm that it makes least and the
// residual that it is stopped by; the package doc says when that pays.
//
// The form is BCGrQ (Dubrulle 2001), preconditioned and deflating. The residuals are
// kept as R = QC, Q n×k with QᵀM⁻¹Q = I, C k×t, and from P = Z = M⁻¹Q on, with
// Π = PᵀAP, an iteration is
//
//	X ← X + P·Π⁻¹C
//	Q'S = Q − AP·Π⁻¹,  Q'ᵀM⁻¹Q' = I
//	C ← SC
//	P ← M⁻¹Q' + P·Sᵀ
//
// It cannot break down while A and M are positive definite, since
//
//	λ_min(M⁻¹A)·I ≤ Π ≤ λ_max(M⁻¹A)·I.
//
// For PᵀQ = I: it is ZᵀQ = I at first, and PᵀQ' = 0 keeps it. So for a unit vector v,
// 1 = (Pv)ᵀ(Qv) ≤ ‖Pv‖_M‖Qv‖_{M⁻¹} = ‖Pv‖_M, which is the lower bound; and
// Zv = Pv − P_old·Sᵀv with the two parts A-orthogonal, so ‖Pv‖_A ≤ ‖Zv‖_A, the upper
// one. What gets rank-deficient is Q − AP·Π⁻¹, and it loses its dependent directions
// when it is factored: those whose part independent of the others is at most
// 10⁻³τ of them (10⁻⁶ at most, 10⁻¹² at least). Equal, dependent and zero columns and
// t > n need no care, therefore. What is dropped shows in the true residual, which is
// judged as in Solve; a restart takes it up.
//
// A column that has converged is frozen as in Solve, but its directions stay in the
// block, where they help the others: k sinks by dependence only.
//
// Curvature of columns that end as Indefinite or IndefinitePreconditioner is pᵀAp or
// rᵀM⁻¹r for a combination of the block's directions, and all columns end at once. The
// tables Alpha and Beta of the history stay empty: Ritz returns nil and Cond NaN.
//
// Work: one product with A and one solve with M of k ≤ t columns an iteration, a second
// solve in an iteration in which directions get dependent to less than rounding tells,
// one product for the true residual, and BlockFlops beside them. Memory: 4nt numbers as
// in Solve, and 512t for each thread.
//
// Sources: D. P. O'Leary (1980), doi:10.1016/0024-3795(80)90247-5; A. A. Dubrulle (2001);
// see the package doc.
func SolveBlock(ctx context.Context, a Operator, m Preconditioner, b *mat.Dense, o *Options) (*Result, error) {
	if _, ok := m.(ColumnPreconditioner); ok {
		panic("pcg: SolveBlock with a preconditioner for each column: its columns are combined")
	}
	base, err := newSolver(a, m, b, o)
	if err != nil {
		return nil, err
	}
	s := newBlock(base)
	return s.run(ctx, s.iterate)
}

// BlockFlops returns how many floating-point operations, additions and
// multiplications, an iteration of SolveBlock takes beside its product with A and its
// solve with M while its block has t columns: 16nt² with a preconditioner and 14nt²
// without, up to terms in nt and t³. They are 2nt² each for PᵀAP, P·Π⁻¹C, AP·Π⁻¹, QC
// (whose norms are the residuals'), QᵀZ, the Q' and, with M, the M⁻¹Q' of the
// orthonormalisation, and P·Sᵀ. An iteration in which directions get nearly dependent
// orthonormalises again and takes up to twice as many. Beside the 2n²t of a product with
// a dense A that is a share of 8t/n. They run on all threads, as products of thin blocks: for t = 10
// at a quarter, for t = 26 and more at half of the rate of products of large matrices.
func BlockFlops(n, t int, preconditioned bool) float64 {
	terms := 7.0
	if preconditioned {
		terms = 8
	}
	return terms * 2 * float64(n) * float64(t) * float64(t)
}

// block is the state of one SolveBlock. Q is R of the solver, and W holds AP and then
// Z = M⁻¹Q, which is Q without M.
type block struct {
	*solver
	k       int       // columns of Q
	width   int       // columns of P
	c, next []float64 // C, k×len(cols), and scratch of its size
	d       []float64 // D = Π⁻¹C
	pi, h   []float64 // Π and H = Π⁻¹, k×k
	s       []float64 // S, k×width
	f, ft   []float64 // scratch, k×k
	gram    factor
	size    []float64 // of Q's columns beside what they were, see choose
	sel     []int     // columns of Q that stay, in their new order
	row     []float64 // scratch, t
	drop    float64   // what relative size of a direction is dropped
}

// newBlock allocates what a block solve needs beside its solver.
func newBlock(base *solver) *block {
	t := base.t
	s := &block{solver: base, drop: min(max(1e-3*base.opt.Tol, 1e-12), 1e-6)}
	for _, v := range []*[]float64{&s.c, &s.next, &s.d, &s.pi, &s.h, &s.s, &s.f, &s.ft} {
		*v = make([]float64, t*t)
	}
	s.gram, base.block = newFactor(t), s
	s.size, s.sel, s.row = make([]float64, t), make([]int, 0, t), make([]float64, t)
	s.bounds = newBounds(base.opt.LambdaMin, t, t*t, base.historyRows())
	return s
}

// iterate runs the columns s.cols, whose residuals are in R, until all have ended or
// the iterations are used up.
func (s *block) iterate(ctx context.Context) error {
	if len(s.cols) == 0 {
		return nil
	}
	if !s.resumed {
		s.k = len(s.cols)
		if err := s.orthonormalise(ctx, 0); err != nil { // R = QS, QᵀM⁻¹Q = I
			return err
		}
		copy(s.c, s.s[:s.k*s.width]) // C = S
		s.width = s.k
		s.reshape(s.p, 1, s.k)
		s.p.Copy(s.z) // P = Z
		s.beginErrors()
	}
	s.resumed = false
	for s.active() {
		if err := s.multiply(ctx); err != nil { // W = AP
			return err
		}
		s.advance()
		for _, c := range s.cols {
			s.res.Columns[c].Iterations++
		}
		s.cross(s.pi, s.p, s.w) // Π = PᵀAP
		if s.invert() {         // H = Π⁻¹
			s.step() // X ← X + P·HC,  Q ← Q − W·H
			s.stepErrors()
			s.judge() // ‖r_j‖₂ ≤ τ‖y_j‖₂: column j has converged
		}
		if err := s.report(); err != nil {
			return err
		}
		s.freeze()
		if !s.active() || s.res.Iterations == s.opt.MaxIter {
			return nil
		}
		if err := s.orthonormalise(ctx, rounding); err != nil { // Q ← Q', Z = M⁻¹Q', S
			return err
		}
		s.turnErrors()
		a := len(s.cols)
		product(s.next, s.s, s.c, s.k, s.width, a) // C ← SC
		s.c, s.next = s.next, s.c
		s.turn() // P ← Z + P·Sᵀ
		if s.active() {
			if err := s.checkpoint(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// active reports whether there are columns to iterate.
func (s *block) active() bool {
	return s.k > 0 && len(s.cols) > 0 && s.res.Columns[s.cols[0]].Status == Active
}

// endAll ends all active columns with one status and curvature.
func (s *block) endAll(status Status, curvature float64) {
	for _, c := range s.cols {
		s.res.Columns[c].Status, s.res.Columns[c].Curvature = status, curvature
	}
}

// freeze takes the columns that have ended out of C.
func (s *block) freeze() {
	s.keep = s.keep[:0]
	for j, c := range s.cols {
		if s.res.Columns[c].Status == Active {
			s.keep = append(s.keep, j)
		}
	}
	s.keepResiduals(false)
	compact(s.c, s.k, len(s.cols), s.keep)
	for i, j := range s.keep {
		s.cols[i] = s.cols[j]
	}
	s.cols = s.cols[:len(s.keep)]
}

// invert sets H = Π⁻¹, or ends all columns and returns false where Π shows that A is
// not positive definite. Directions in which Π is zero to working precision are
// left out of H: the step does not move along them.
func (s *block) invert() bool {
	g := &s.gram
	switch st := g.factorise(s.pi, s.k, 0, 1); {
	case st != Active:
		s.endAll(st, g.bad)
		return false
	case g.zero:
		s.endAll(Indefinite, 0)
		return false
	}
	g.inverse(s.f, g.piv[:g.rank]) // Π = F⁻ᵀF⁻¹, F k×rank
	for i := range s.k {
		for j := range g.rank {
			s.ft[j*s.k+i] = s.f[i*g.rank+j]
		}
	}
	product(s.h, s.f, s.ft, s.k, g.rank, s.k) // H = FFᵀ
	return true
}

// step moves X and Q and sets rr_j = ‖Qc_j‖², xx_j = ‖x_j‖², dx_j = ‖Pd_j‖² for the
// active columns.
func (s *block) step() {
	product(s.d, s.h, s.c, s.k, s.k, len(s.cols)) // D = HC
	s.move((*blockRows)(s), s.t)
	copy(s.pAp, s.rr) // what judge names if it is not finite
}

type blockRows block

func (s *blockRows) rows(i0, i1 int, sum, work []float64) {
	k, t, a := s.k, s.t, len(s.cols)
	rr, xx, dx := sum[:a], sum[a:2*a], sum[2*a:]
	x, q := s.x.RawMatrix().Data, rowsOf(s.r.RawMatrix().Data, i0, i1, k)
	move := rowsOf(work, 0, i1-i0, a)
	clear(move.Data)
	thin(1, rowsOf(s.p.RawMatrix().Data, i0, i1, k), rowsOf(s.d, 0, k, a), move)
	for i := range move.Rows {
		xi := x[(i0+i)*t : (i0+i+1)*t]
		for j, v := range move.Data[i*a : (i+1)*a] {
			c := s.cols[j]
			xi[c] += v // X ← X + PD
			xx[j] += xi[c] * xi[c]
			dx[j] += v * v
		}
	}
	thin(-1, rowsOf(s.w.RawMatrix().Data, i0, i1, k), rowsOf(s.h, 0, k, k), q) // Q ← Q − AP·H
	clear(move.Data)
	thin(1, q, rowsOf(s.c, 0, k, a), move)
	for i := range move.Rows {
		for j, v := range move.Data[i*a : (i+1)*a] {
			rr[j] += v * v // ‖r_j‖², R = QC
		}
	}
}

// turn sets P ← Z + P·Sᵀ, which becomes as wide as Q.
func (s *block) turn() {
	k := s.k
	transpose(s.ft, s.s, k, s.width)
	s.times(s.buf[1], s.width, k, s.ft, s.z.RawMatrix().Data)
	s.width = k
	s.reshape(s.p, 1, k)
}
