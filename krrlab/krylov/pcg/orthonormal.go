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
	acceptPivot  = 1e-8  // a pass accepts directions with larger pivots; others wait for the next pass
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
// errors. If no direction remains, all recursive residuals are zero to working precision. orthonormalise then marks all
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
		g := &s.gram
		if st := g.factorize(s.h, s.k, acceptPivot, acceptMargin); st != Active {
			if st == Indefinite {
				st = IndefinitePreconditioner
			}
			s.endAll(st, curvatureM, g.badCurvature)
			return nil
		}
		pending := s.selectDirections(pass)
		s.applyPass()
		if pending == 0 && (g.smallestPivot >= onePassPivot || !needsPrecondition) {
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
		v := s.h[i*s.k+i] // ‖q_i‖² in the M⁻¹ norm
		small := pass == 0 && math.Abs(v) <= negligible*negligible
		if pass > 0 && s.relSize[i] < 1 {
			small = s.relSize[i]*s.relSize[i]*v <= s.dropCutoff*s.dropCutoff
		}
		if small {
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
// relative to those at the start of the orthonormalisation, with directions scaled to norm 1; accepted directions have
// relative size 1. It returns the number of pending directions, which need another pass.
func (s *block) selectDirections(pass int) int {
	g := &s.gram
	for i, d := range g.d[:s.k] {
		if pass == 0 {
			s.relSize[i] = 1
		} else {
			s.relSize[i] *= d
		}
	}
	s.selected = append(s.selected[:0], g.piv[:g.rank]...)
	for pos := g.rank; pos < s.k && pass+1 < maxPasses; pos++ {
		i := g.piv[pos]
		if g.d[i] > 0 && s.relSize[i]*math.Sqrt(max(g.remainderDiag[pos], g.noiseLevel)) > s.dropCutoff {
			s.selected = append(s.selected, i)
		}
	}
	sizes := s.rowScratch[:len(s.selected)]
	for j, i := range s.selected {
		sizes[j] = 1
		if j >= g.rank {
			sizes[j] = min(s.relSize[i], 1-unitRoundoff) // a value below 1 marks a pending direction
		}
	}
	copy(s.relSize, sizes)
	return len(s.selected) - g.rank
}

// applyPass updates Q, Z and S by the result of a pass.
func (s *block) applyPass() {
	g, old, k := &s.gram, s.k, len(s.selected)
	g.invertUpper(s.f, s.selected) // Q' = QF, F = D⁻¹·[T_1 T_2; 0 I]⁻¹ on the directions s.selected
	for i := range 2 {
		if buf := s.buf[2*i]; i == 0 || s.z != s.r {
			s.multiplyBlock(buf, old, k, s.f, nil)
		}
	}
	// S ← [T_1 T_2; 0 I 0]·D·S. The columns of the dropped directions are included, without the components of these
	// directions that are independent of the selected ones.
	for i := range old {
		if !slices.Contains(s.selected, i) {
			s.selected = append(s.selected, i)
		}
	}
	for j, i := range s.selected {
		for l, v := range s.s[i*s.width : (i+1)*s.width] {
			s.scratch[j*s.width+l] = g.d[i] * v
		}
	}
	g.upperFactor(s.ft, s.selected, k)
	product(s.s, s.ft, s.scratch, k, old, s.width)
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
func (f *pivotedCholesky) factorize(g []float64, k int, minPivot, margin float64) Status {
	f.k, f.rank, f.smallestPivot, f.badCurvature, f.hasZeroDiagonal = k, 0, 1, 0, false
	for i := range k {
		v := g[i*k+i]
		if !finite(v) {
			f.badCurvature = v
			return Breakdown
		}
		if v < 0 {
			f.badCurvature = v
			return Indefinite
		}
		f.d[i] = math.Sqrt(v)
		f.hasZeroDiagonal = f.hasZeroDiagonal || v == 0
	}
	f.noiseLevel = 16 * float64(k) * unitRoundoff
	for i := range k {
		for j := range k {
			u, v, dd := g[i*k+j], g[j*k+i], f.d[i]*f.d[j]
			if !finite(u) {
				f.badCurvature = u
				return Breakdown
			}
			if dd == 0 {
				f.scaled[i*k+j] = 0
				continue
			}
			f.scaled[i*k+j] = (u + v) / 2 / dd
			f.noiseLevel = max(f.noiseLevel, 4*math.Abs(u-v)/dd)
		}
	}
	accept := max(minPivot, margin*f.noiseLevel)
	copy(f.t, f.scaled[:k*k])
	_, f.rank, _ = lapack64.Pstrf(blas64.Symmetric{N: k, Stride: k, Data: f.t[:k*k], Uplo: blas.Upper}, f.piv[:k],
		accept, f.work[:2*k])
	for i := range f.rank {
		f.smallestPivot = min(f.smallestPivot, f.t[i*k+i]*f.t[i*k+i])
	}
	return f.checkRemainder()
}

// checkRemainder sets the diagonal of E and tests whether E can be semidefinite up to rounding errors: a semidefinite E
// has E_ij² ≤ E_ii·E_jj. It returns Active or Indefinite.
func (f *pivotedCholesky) checkRemainder() Status {
	k := f.k
	entry := func(i, j int) float64 {
		v := f.scaled[f.piv[i]*k+f.piv[j]]
		for a := range f.rank {
			v -= f.t[a*k+i] * f.t[a*k+j]
		}
		return v
	}
	limit := 8 * f.noiseLevel
	for i := f.rank; i < k; i++ {
		f.remainderDiag[i] = entry(i, i)
		for j := f.rank; j <= i; j++ {
			dd := f.d[f.piv[i]] * f.d[f.piv[j]]
			switch v := entry(i, j); {
			case i == j && v < -limit:
				f.badCurvature = v * dd
				return Indefinite
			case i != j && math.Abs(v) > limit+math.Sqrt(max(f.remainderDiag[i], 0)*max(f.remainderDiag[j], 0)):
				f.badCurvature = -math.Abs(v) * dd
				return Indefinite
			}
		}
	}
	return Active
}

// upperFactor sets dst, rows×len(order), to [T_1 T_2; 0 I 0] with its columns in the given order of directions. The
// first rank directions in order must be those of the pivots.
func (f *pivotedCholesky) upperFactor(dst []float64, order []int, rows int) {
	q := len(order)
	clear(dst[:rows*q])
	for j, i := range order {
		pos := j
		if j >= f.rank {
			pos = slices.Index(f.piv[:f.k], i)
		}
		for a := range min(j+1, f.rank) {
			dst[a*q+j] = f.t[a*f.k+pos]
		}
		if j >= f.rank && j < rows {
			dst[j*q+j] = 1
		}
	}
}

// invertUpper sets dst, k×len(sel), to D⁻¹ times the inverse of upperFactor for the directions sel.
func (f *pivotedCholesky) invertUpper(dst []float64, sel []int) {
	q := len(sel)
	inv := f.scaled[:q*q]
	f.upperFactor(inv, sel, q)
	lapack64.Trtri(blas64.Triangular{N: q, Stride: q, Data: inv, Uplo: blas.Upper, Diag: blas.NonUnit})
	clear(dst[:f.k*q])
	for a, i := range sel {
		for j := a; j < q; j++ {
			dst[i*q+j] = inv[a*q+j] / f.d[i]
		}
	}
}
