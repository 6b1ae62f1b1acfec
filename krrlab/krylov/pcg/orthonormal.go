package pcg

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

const (
	maxPasses    = 6     // maximum number of passes of one orthonormalization
	acceptPivot  = 1e-8  // a pass accepts directions with larger pivots, and leaves the others to the next pass
	acceptMargin = 100   // accepted pivots are also larger than this many rounding errors of G; see factorize
	roundingNorm = 1e-13 // norm of the rounding errors that remain of a direction of norm 1
	onePassPivot = 1e-4  // if all pivots are at least this, one pass leaves errors of about 1e-11 and is enough
)

// orthonormalize replaces Q, n×k, by Q' with Q = Q'S, up to dropped directions, and Q'ᵀM⁻¹Q' = I. It sets Z = M⁻¹Q',
// s.width to the old number of columns, and s.k to the number of columns of Q'. S is s.k×s.width.
//
// The method is Cholesky QR in the M⁻¹ inner product, with pivoting, repeated. A pass scales G = QᵀM⁻¹Q to a unit
// diagonal and computes the leading factor,
//
//	D⁻¹GD⁻¹ = TᵀT + [0 0; 0 E],  T = [T_1 T_2], in the order of the pivots,
//
// until the pivots fall below acceptPivot. The first columns of QD⁻¹·[T_1 T_2; 0 I]⁻¹ are the accepted directions,
// which are orthonormal up to ε divided by the last pivot. The other columns are the components of the remaining
// directions that are orthogonal to the accepted ones, with squared norms E_jj. Directions with a small E_jj are
// dropped. The next pass applies M⁻¹ again and scales the others to norm 1, so their entries of G are no longer
// dominated by rounding errors. Cholesky QR applied twice is as accurate as Householder QR (Yamamoto and others 2015)
// if the condition number in the first pass is at most 1/√ε, which the pivoting ensures.
//
// Directions of norm at most negligible are dropped at once: after a step from directions of norm 1 they are rounding
// errors. If no direction remains, all recursive residuals are zero to working precision. orthonormalize then marks all
// columns as Converged, and the true residual decides. If G shows that M is not positive definite, or is not finite, it
// ends all columns and returns nil.
func (s *block) orthonormalize(ctx context.Context, negligible float64) error {
	s.width = s.k
	identity(s.s, s.k)
	needsPrecondition := true
	for pass := range maxPasses {
		if needsPrecondition {
			if err := s.precondition(ctx); err != nil { // Z = M⁻¹Q
				return err
			}
		}
		s.crossProduct(s.h, s.r, s.z) // G = QᵀM⁻¹Q
		if pass == 0 && s.hasZeroNorm() {
			s.endAll(IndefinitePreconditioner, curvatureM, 0)
			return nil
		}
		s.zeroNegligible(pass, negligible)
		chol := &s.cholesky
		if status := chol.factorize(s.h, s.k, acceptPivot, acceptMargin); status != Active {
			if status == Indefinite {
				status = IndefinitePreconditioner
			}
			s.endAll(status, curvatureM, chol.badCurvature)
			return nil
		}
		pending := s.selectDirections(pass)
		s.applyPass()
		if pending == 0 && (chol.smallestPivot >= onePassPivot || !needsPrecondition) {
			break
		}
		needsPrecondition = pending > 0
	}
	if s.k == 0 {
		for _, c := range s.cols {
			s.res.Columns[c].Status, s.res.RelRes[c] = Converged, 0
		}
	}
	return nil
}

// zeroNegligible sets to zero the rows and columns of G that belong to negligible directions: in the first pass those
// of norm at most negligible, and later pending ones that have become smaller than dropCutoff.
func (s *block) zeroNegligible(pass int, negligible float64) {
	for i := range s.k {
		squaredNorm := s.h[i*s.k+i] // ‖q_i‖² in the M⁻¹ norm
		isNegligible := pass == 0 && math.Abs(squaredNorm) <= negligible*negligible
		if pass > 0 && s.relSize[i] < 1 {
			isNegligible = s.relSize[i]*s.relSize[i]*squaredNorm <= s.dropCutoff*s.dropCutoff
		}
		if isNegligible {
			for j := range s.k {
				s.h[i*s.k+j], s.h[j*s.k+i] = 0, 0
			}
		}
	}
}

// hasZeroNorm reports whether a nonzero column of Q has a zero on the diagonal of G.
func (s *block) hasZeroNorm() bool {
	for i := range s.k {
		if s.h[i*s.k+i] == 0 && mat.Norm(s.r.ColView(i), math.Inf(1)) != 0 {
			return true
		}
	}
	return false
}

// selectDirections sets s.selected to the directions to keep, the accepted ones first. It sets s.relSize to their norms
// relative to those at the start of the orthonormalization, with directions scaled to norm 1; accepted directions have
// relative size 1. It returns the number of pending directions, which need another pass.
func (s *block) selectDirections(pass int) int {
	chol := &s.cholesky
	for i, norm := range chol.d[:s.k] {
		if pass == 0 {
			s.relSize[i] = 1
		} else {
			s.relSize[i] *= norm
		}
	}
	s.selected = append(s.selected[:0], chol.piv[:chol.rank]...)
	for pos := chol.rank; pos < s.k && pass+1 < maxPasses; pos++ {
		i := chol.piv[pos]
		if chol.d[i] > 0 && s.relSize[i]*math.Sqrt(max(chol.remainderDiag[pos], chol.noiseLevel)) > s.dropCutoff {
			s.selected = append(s.selected, i)
		}
	}
	sizes := s.rowScratch[:len(s.selected)]
	for j, i := range s.selected {
		sizes[j] = 1
		if j >= chol.rank {
			sizes[j] = min(s.relSize[i], 1-unitRoundoff) // a value below 1 marks a pending direction
		}
	}
	copy(s.relSize, sizes)
	return len(s.selected) - chol.rank
}

// applyPass updates Q, Z and S by the result of a pass.
func (s *block) applyPass() {
	chol, oldK, k := &s.cholesky, s.k, len(s.selected)
	chol.invertUpper(s.f, s.selected) // Q' = QF, F = D⁻¹·[T_1 T_2; 0 I]⁻¹ on the directions s.selected
	for i := range 2 {
		if buf := s.buf[2*i]; i == 0 || s.z != s.r {
			s.multiplyBlock(buf, oldK, k, s.f, nil)
		}
	}
	// S ← [T_1 T_2; 0 I 0]·D·S. The columns of the dropped directions are included, without the components of these
	// directions that are independent of the selected ones.
	for i := range oldK {
		if !slices.Contains(s.selected, i) {
			s.selected = append(s.selected, i)
		}
	}
	for j, i := range s.selected {
		for l, v := range s.s[i*s.width : (i+1)*s.width] {
			s.scratch[j*s.width+l] = chol.d[i] * v
		}
	}
	chol.upperFactor(s.ft, s.selected, k)
	product(s.s, s.ft, s.scratch, k, oldK, s.width)
	s.k = k
	s.reshape(s.r, 0, k)
	s.reshape(s.w, 2, k)
}

// pivotedCholesky is the leading part of a Cholesky factorization with pivoting of a symmetric k×k matrix G, which is
// first scaled to a unit diagonal by D = diag(√G_ii):
//
//	(D⁻¹GD⁻¹)[piv, piv] = TᵀT + [0 0; 0 E],  T rank×k, upper trapezoidal.
type pivotedCholesky struct {
	k, rank int
	piv     []int     // piv[j] is the row of G at position j in the order of the pivots
	d       []float64 // √G_ii
	t       []float64 // T, in the first rows of a k×k matrix

	remainderDiag   []float64 // E_jj, at position j in the order of the pivots
	smallestPivot   float64   // smallest accepted pivot
	noiseLevel      float64   // bound of the rounding errors of entries of the scaled matrix
	hasZeroDiagonal bool      // some G_ii is 0
	badCurvature    float64   // the curvature that is not positive, or the number that is not finite
	scaled          []float64 // D⁻¹GD⁻¹, k×k; later scratch memory of invertUpper
	work            []float64 // scratch memory for LAPACK, 2k
}

// newPivotedCholesky returns a factor with memory for matrices of order up to t.
func newPivotedCholesky(t int) pivotedCholesky {
	return pivotedCholesky{
		piv: make([]int, t), d: make([]float64, t), remainderDiag: make([]float64, t),
		t: make([]float64, t*t), scaled: make([]float64, t*t), work: make([]float64, 2*t),
	}
}

// factorize factors G, k×k, until the pivots are too small. It returns Active on success, Indefinite if G has a
// curvature that is negative beyond rounding errors, and Breakdown if G is not finite. The rounding errors are
// estimated from the asymmetry of the computed G,
//
//	noiseLevel = max(16kε, 4·max_ij |G_ij−G_ji| / √(G_ii·G_jj)),
//
// with unit roundoff ε, and pivots above max(minPivot, margin·noiseLevel) are accepted.
func (p *pivotedCholesky) factorize(g []float64, k int, minPivot, margin float64) Status {
	p.k, p.rank, p.smallestPivot, p.badCurvature, p.hasZeroDiagonal = k, 0, 1, 0, false
	for i := range k {
		gii := g[i*k+i]
		if !finite(gii) {
			p.badCurvature = gii
			return Breakdown
		}
		if gii < 0 {
			p.badCurvature = gii
			return Indefinite
		}
		p.d[i] = math.Sqrt(gii)
		p.hasZeroDiagonal = p.hasZeroDiagonal || gii == 0
	}
	p.noiseLevel = 16 * float64(k) * unitRoundoff
	for i := range k {
		for j := range k {
			gij, gji, dij := g[i*k+j], g[j*k+i], p.d[i]*p.d[j]
			if !finite(gij) {
				p.badCurvature = gij
				return Breakdown
			}
			if dij == 0 {
				p.scaled[i*k+j] = 0
				continue
			}
			p.scaled[i*k+j] = (gij + gji) / 2 / dij
			p.noiseLevel = max(p.noiseLevel, 4*math.Abs(gij-gji)/dij)
		}
	}
	cutoff := max(minPivot, margin*p.noiseLevel)
	copy(p.t, p.scaled[:k*k])
	_, p.rank, _ = lapack64.Pstrf(blas64.Symmetric{N: k, Stride: k, Data: p.t[:k*k], Uplo: blas.Upper}, p.piv[:k],
		cutoff, p.work[:2*k])
	for i := range p.rank {
		p.smallestPivot = min(p.smallestPivot, p.t[i*k+i]*p.t[i*k+i])
	}
	return p.checkRemainder()
}

// checkRemainder sets the diagonal of E and tests whether E can be semidefinite up to rounding errors: a semidefinite E
// has E_ij² ≤ E_ii·E_jj. It returns Active or Indefinite.
func (p *pivotedCholesky) checkRemainder() Status {
	k := p.k
	entry := func(i, j int) float64 { // E_ij
		eij := p.scaled[p.piv[i]*k+p.piv[j]]
		for row := range p.rank {
			eij -= p.t[row*k+i] * p.t[row*k+j]
		}
		return eij
	}
	limit := 8 * p.noiseLevel
	for i := p.rank; i < k; i++ {
		p.remainderDiag[i] = entry(i, i)
		for j := p.rank; j <= i; j++ {
			dij := p.d[p.piv[i]] * p.d[p.piv[j]]
			switch eij := entry(i, j); {
			case i == j && eij < -limit:
				p.badCurvature = eij * dij
				return Indefinite
			case i != j && math.Abs(eij) > limit+math.Sqrt(max(p.remainderDiag[i], 0)*max(p.remainderDiag[j], 0)):
				p.badCurvature = -math.Abs(eij) * dij
				return Indefinite
			}
		}
	}
	return Active
}

// upperFactor sets dst, rows×len(order), to [T_1 T_2; 0 I 0] with its columns in the given order of directions. The
// first rank directions in order must be those of the pivots.
func (p *pivotedCholesky) upperFactor(dst []float64, order []int, rows int) {
	width := len(order)
	clear(dst[:rows*width])
	for j, i := range order {
		position := j
		if j >= p.rank {
			position = slices.Index(p.piv[:p.k], i)
		}
		for row := range min(j+1, p.rank) {
			dst[row*width+j] = p.t[row*p.k+position]
		}
		if j >= p.rank && j < rows {
			dst[j*width+j] = 1
		}
	}
}

// invertUpper sets dst, k×len(directions), to D⁻¹ times the inverse of upperFactor for the given directions.
func (p *pivotedCholesky) invertUpper(dst []float64, directions []int) {
	width := len(directions)
	inverse := p.scaled[:width*width]
	p.upperFactor(inverse, directions, width)
	lapack64.Trtri(blas64.Triangular{N: width, Stride: width, Data: inverse, Uplo: blas.Upper, Diag: blas.NonUnit})
	clear(dst[:p.k*width])
	for position, i := range directions {
		for j := position; j < width; j++ {
			dst[i*width+j] = inverse[position*width+j] / p.d[i]
		}
	}
}
