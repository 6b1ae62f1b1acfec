package pcg

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

const (
	passes     = 6     // of one orthonormalisation, at most
	acceptable = 1e-8  // pivot of a direction that is orthonormalised at once
	rounding   = 1e-13 // norm that rounding leaves of a direction of norm 1
	settled    = 1e-4  // pivot from which one pass leaves errors of some 1e-11
)

// orthonormalise replaces Q, n×k, by Q' with Q = Q'S up to what is dropped and
// Q'ᵀM⁻¹Q' = I, and sets Z = M⁻¹Q'. It sets s.width to the k it was given and s.k to
// the columns of Q'; S is s.k×s.width.
//
// It is Cholesky QR in the M⁻¹ inner product, with pivots, repeated. A pass takes
// G = QᵀM⁻¹Q scaled to a unit diagonal and splits off its leading factor,
//
//	D⁻¹GD⁻¹ = TᵀT + [0 0; 0 E],  T = [T_1 T_2], in the order of the pivots,
//
// up to the pivot acceptable. QD⁻¹·[T_1 T_2; 0 I]⁻¹ has first the accepted directions,
// orthonormal up to ε by the last pivot, and then what is left of the others, of the
// squared size E_jj. If that is too small it is dropped, otherwise the next pass,
// with M⁻¹ applied again, sees it at full size, where the first saw rounding errors.
// Cholesky QR twice is as good as Householder's (Yamamoto and others 2015) as long as
// the first pass is not beyond 1/√ε, which the pivots make sure of.
//
// Directions of a norm of at most negligible are dropped at once: after a step from
// directions of norm 1 they are rounding errors. If none is left, every residual is
// zero as far as the recurrence can say, and the true residual decides.
func (s *block) orthonormalise(ctx context.Context, negligible float64) error {
	s.width = s.k
	identity(s.s, s.k)
	fresh := true
	for pass := range passes {
		if fresh {
			if err := s.precondition(ctx); err != nil { // Z = M⁻¹Q
				return err
			}
		}
		s.cross(s.h, s.r, s.z) // G = QᵀM⁻¹Q
		if pass == 0 && s.flat() {
			s.endAll(IndefinitePreconditioner, 0)
			return nil
		}
		s.forget(pass, negligible)
		g := &s.gram
		if st := g.factorise(s.h, s.k, acceptable, 100); st != Active {
			if st == Indefinite {
				st = IndefinitePreconditioner
			}
			s.endAll(st, g.bad)
			return nil
		}
		pending := s.choose(pass)
		s.transform()
		if pending == 0 && (g.low >= settled || !fresh) {
			break
		}
		fresh = pending > 0
	}
	if s.k == 0 {
		for _, c := range s.cols {
			s.res.Columns[c].Status, s.res.RelRes[c] = Converged, 0
		}
	}
	return nil
}

// forget zeroes the rows and columns of G whose directions are too small.
func (s *block) forget(pass int, negligible float64) {
	for i := range s.k {
		v := s.h[i*s.k+i] // ‖q_i‖² in the M⁻¹ norm
		small := pass == 0 && math.Abs(v) <= negligible*negligible
		if pass > 0 && s.size[i] < 1 {
			small = s.size[i]*s.size[i]*v <= s.drop*s.drop
		}
		if small {
			for j := range s.k {
				s.h[i*s.k+j], s.h[j*s.k+i] = 0, 0
			}
		}
	}
}

// flat reports whether a column of Q that is not zero has a zero on G's diagonal.
func (s *block) flat() bool {
	for i := range s.k {
		if s.h[i*s.k+i] != 0 {
			continue
		}
		for row := range s.n {
			if s.r.At(row, i) != 0 {
				return true
			}
		}
	}
	return false
}

// choose sets s.sel to the directions that stay, those accepted first, and s.size to
// their sizes beside what they were when the orthonormalisation began, for directions
// scaled to norm 1; those accepted have size 1. It returns how many are pending.
func (s *block) choose(pass int) int {
	g := &s.gram
	for i, d := range g.d[:s.k] {
		if pass == 0 {
			s.size[i] = 1
		} else {
			s.size[i] *= d
		}
	}
	s.sel = append(s.sel[:0], g.piv[:g.rank]...)
	for at := g.rank; at < s.k && pass+1 < passes; at++ {
		i := g.piv[at]
		if g.d[i] > 0 && s.size[i]*math.Sqrt(max(g.left[at], g.noise)) > s.drop {
			s.sel = append(s.sel, i)
		}
	}
	sizes := s.row[:len(s.sel)]
	for j, i := range s.sel {
		sizes[j] = 1
		if j >= g.rank {
			sizes[j] = min(s.size[i], 1-unit) // less than 1 says that it is pending
		}
	}
	copy(s.size, sizes)
	return len(s.sel) - g.rank
}

// transform applies a pass to Q, Z and S.
func (s *block) transform() {
	g, old, k := &s.gram, s.k, len(s.sel)
	g.inverse(s.f, s.sel) // Q' = QF, F = D⁻¹·[T_1 T_2; 0 I]⁻¹ on the directions s.sel
	for i := range 2 {
		if buf := s.buf[2*i]; i == 0 || s.z != s.r {
			s.times(buf, old, k, s.f, nil)
		}
	}
	// S ← [T_1 T_2; 0 I 0]·D·S, with the directions that are dropped, but for what is
	// left of them beside the others
	for i := range old {
		if !slices.Contains(s.sel, i) {
			s.sel = append(s.sel, i)
		}
	}
	for j, i := range s.sel {
		for l, v := range s.s[i*s.width : (i+1)*s.width] {
			s.next[j*s.width+l] = g.d[i] * v
		}
	}
	g.upper(s.ft, s.sel, k)
	product(s.s, s.ft, s.next, k, old, s.width)
	s.k = k
	s.reshape(s.r, 0, k)
	s.reshape(s.w, 2, k)
}

// factor is the leading part of a Cholesky factorization, with pivots, of a symmetric
// k×k matrix G scaled to a unit diagonal, D = diag(√G_ii):
//
//	(D⁻¹GD⁻¹)[piv, piv] = TᵀT + [0 0; 0 E],  T rank×k, upper trapezoidal.
type factor struct {
	k, rank int
	piv     []int
	d       []float64 // √G_ii
	t       []float64 // T in its first rows, k×k
	left    []float64 // E_jj, at position j
	low     float64   // smallest pivot accepted
	noise   float64   // up to which a number of the scaled matrix is zero
	zero    bool      // some G_ii is 0
	bad     float64   // the curvature that is not positive
	scaled  []float64
	work    []float64
}

func newFactor(t int) factor {
	return factor{
		piv: make([]int, t), d: make([]float64, t), left: make([]float64, t),
		t: make([]float64, t*t), scaled: make([]float64, t*t), work: make([]float64, 2*t),
	}
}

// factorise factors G, k×k, as far as pivots are above accept. It returns Active,
// Indefinite if G has a curvature that is negative beyond rounding, or Breakdown if G
// is not finite. Rounding is told from the asymmetry of G, which is taken as computed:
//
//	noise = max(16kε, 4·max_ij |G_ij−G_ji| / √(G_ii·G_jj)),
//
// and pivots are accepted above max(least, margin·noise).
func (f *factor) factorise(g []float64, k int, least, margin float64) Status {
	f.k, f.rank, f.low, f.bad, f.zero = k, 0, 1, 0, false
	for i := range k {
		v := g[i*k+i]
		if !finite(v) {
			f.bad = v
			return Breakdown
		}
		if v < 0 {
			f.bad = v
			return Indefinite
		}
		f.d[i] = math.Sqrt(v)
		f.zero = f.zero || v == 0
	}
	f.noise = 16 * float64(k) * unit
	for i := range k {
		for j := range k {
			u, v, dd := g[i*k+j], g[j*k+i], f.d[i]*f.d[j]
			if !finite(u) {
				f.bad = u
				return Breakdown
			}
			if dd == 0 {
				f.scaled[i*k+j] = 0
				continue
			}
			f.scaled[i*k+j] = (u + v) / 2 / dd
			f.noise = max(f.noise, 4*math.Abs(u-v)/dd)
		}
	}
	accept := max(least, margin*f.noise)
	copy(f.t, f.scaled[:k*k])
	_, f.rank, _ = lapack64.Pstrf(blas64.Symmetric{N: k, Stride: k, Data: f.t[:k*k], Uplo: blas.Upper}, f.piv[:k],
		accept, f.work[:2*k])
	for i := range f.rank {
		f.low = min(f.low, f.t[i*k+i]*f.t[i*k+i])
	}
	return f.remainder()
}

// remainder forms E and judges it: of a semidefinite matrix E_ij² ≤ E_ii·E_jj.
func (f *factor) remainder() Status {
	k := f.k
	entry := func(i, j int) float64 {
		v := f.scaled[f.piv[i]*k+f.piv[j]]
		for a := range f.rank {
			v -= f.t[a*k+i] * f.t[a*k+j]
		}
		return v
	}
	limit := 8 * f.noise
	for i := f.rank; i < k; i++ {
		f.left[i] = entry(i, i)
		for j := f.rank; j <= i; j++ {
			dd := f.d[f.piv[i]] * f.d[f.piv[j]]
			switch v := entry(i, j); {
			case i == j && v < -limit:
				f.bad = v * dd
				return Indefinite
			case i != j && math.Abs(v) > limit+math.Sqrt(max(f.left[i], 0)*max(f.left[j], 0)):
				f.bad = -math.Abs(v) * dd
				return Indefinite
			}
		}
	}
	return Active
}

// upper sets dst, kept×len(order), to [T_1 T_2; 0 I 0] with its columns in the given
// order of directions, the first rank of which are those of the pivots.
func (f *factor) upper(dst []float64, order []int, kept int) {
	q := len(order)
	clear(dst[:kept*q])
	for j, i := range order {
		pos := j
		if j >= f.rank {
			pos = slices.Index(f.piv[:f.k], i)
		}
		for a := range min(j+1, f.rank) {
			dst[a*q+j] = f.t[a*f.k+pos]
		}
		if j >= f.rank && j < kept {
			dst[j*q+j] = 1
		}
	}
}

// inverse sets F, k×len(sel), to D⁻¹ times the inverse of upper on the directions sel.
func (f *factor) inverse(dst []float64, sel []int) {
	q := len(sel)
	inv := f.scaled[:q*q]
	f.upper(inv, sel, q)
	lapack64.Trtri(blas64.Triangular{N: q, Stride: q, Data: inv, Uplo: blas.Upper, Diag: blas.NonUnit})
	clear(dst[:f.k*q])
	for a, i := range sel {
		for j := a; j < q; j++ {
			dst[i*q+j] = inv[a*q+j] / f.d[i]
		}
	}
}
