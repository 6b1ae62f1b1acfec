package lowrank

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// Nystrom returns the Nyström approximation of K from rank landmarks S, drawn uniformly without replacement from the
// stream g:
//
//	K̂ = C (W+νD)⁻¹ Cᵀ,  C = K(:,S), W = K(S,S), D = diag(W),
//	W+νD = LLᵀ,  F = fl(C L⁻ᵀ).
//
// Everything except the final rounding is in float64. The shift ν is relative to the diagonal, and four times the
// rounding error of W (certify.go): W may be singular, and K̂ ≼ K holds in spite of rounding. It replaces the absolute
// shift of Frangella, Tropp and Udell. If W+νD is still not positive definite, ν is multiplied by ten, up to 1e-4.
//
// A landmark with L_jj² ≤ 4νD_jj depends on earlier landmarks up to rounding, for example because it is a duplicated
// point. The columns of F of such landmarks are dropped, the smallest first, as long as that reduces tr K̂ by at most
// ν·tr K in total. F then has fewer columns than requested.
//
// The cost is n·rank² flops and the formation of rank columns of K; for memory see the package documentation. F has the
// same bits for any number of threads and of ranks.
//
// Nystrom returns an error if rank is not in [1, n], a diagonal entry is negative or not finite, K is zero or turns out
// not to be positive semi-definite, a column has a number that is not finite, F overflows float32, src fails or ctx
// ends.
func Nystrom(ctx context.Context, src Source, rank int, g rng.Stream, o *Options) (*Factor, error) {
	n := src.Dim()
	if err := checkRank(rank, n); err != nil {
		return nil, err
	}
	return NystromAt(ctx, src, g.Sub("landmarks").Perm(n)[:rank], o)
}

// NystromAt is Nystrom with landmarks that the caller chooses, as distinct row indices of K. It also returns an error
// if an index is out of range or repeated.
func NystromAt(ctx context.Context, src Source, landmarks []int, o *Options) (*Factor, error) {
	rank := len(landmarks)
	opt := o.withDefaults(rank)
	b, err := newBuilder(src, rank, &opt)
	if err != nil {
		return nil, err
	}
	chosen := make([]bool, b.n)
	for k, i := range landmarks {
		if i < 0 || i >= b.n || chosen[i] {
			return nil, fmt.Errorf("lowrank: landmark %d of %d is row %d: want rows from 0 to %d, each once", k+1, rank,
				i, b.n-1)
		}
		chosen[i] = true
	}
	b.formedColumns = rank
	p := &nystrom{builder: b, landmarks: slices.Clone(landmarks), exponent: b.scaleExponent()}
	err = p.factorW(ctx)
	if err == nil {
		err = p.computeF(ctx, 0, opt.Progress)
	}
	if err = comm.Agree(ctx, p.comm, err); err != nil {
		return nil, err
	}
	if err := p.dropDependent(ctx); err != nil {
		return nil, err
	}
	if len(p.landmarks) == rank {
		floats.Scale(math.Ldexp(1, p.exponent), p.l)
		p.lower = p.l
	}
	return p.finish(ctx, "Nyström", p.landmarks, p.nu)
}

// normColumns is the number of columns of F whose squared norms are computed in one unit of work.
const normColumns = 128

// nystrom is the state of NystromAt: it computes L, and with it F in strips of rows. W and C are scaled by 4⁻ʰ, an
// exact power of two for which the largest diagonal entry of K is near 1.
type nystrom struct {
	*builder
	landmarks []int
	exponent  int       // h
	l         []float64 // 2⁻ʰL, rank×rank
	nu        float64   // ν
}

// scaledColumns sets the matrix c, of row stride rank, to rows of 4⁻ʰK(:,S), and rounds its entries to 2⁻⁴⁸, the sum of
// two float32 numbers.
func (p *nystrom) scaledColumns(ctx context.Context, rows []int, c []float64) error {
	for k := 0; k < p.f.D; k += p.block {
		if err := p.columnBlock(ctx, rows, k, c[k:]); err != nil {
			return err
		}
	}
	return p.scaleAndRound(ctx, rows, c)
}

// scaledW sets the lower triangle of c, rank×rank, to 4⁻ʰW, rounded like scaledColumns.
func (p *nystrom) scaledW(ctx context.Context, c []float64) error {
	for k := 0; k < p.f.D; k += p.block {
		if err := p.columnBlock(ctx, p.landmarks[k:], k, c[k*p.f.D+k:]); err != nil {
			return err
		}
	}
	return p.scaleAndRound(ctx, p.landmarks, c)
}

// columnBlock sets dst, of row stride rank, to rows of the block of columns of K that begins at landmark k.
func (p *nystrom) columnBlock(ctx context.Context, rows []int, k int, dst []float64) error {
	s := p.landmarks[k:min(k+p.block, p.f.D)]
	return p.formBlock(ctx, rows, s, blas64.General{Rows: len(rows), Cols: len(s), Stride: p.f.D, Data: dst})
}

// scaleAndRound multiplies c by 4⁻ʰ and rounds it to 2⁻⁴⁸.
func (p *nystrom) scaleAndRound(ctx context.Context, rows []int, c []float64) error {
	r, scale := p.f.D, math.Ldexp(1, -2*p.exponent)
	return accel.ForEach(ctx, len(rows), func(_, i int) {
		for j, v := range c[i*r : (i+1)*r] {
			v *= scale
			hi := float32(v)
			c[i*r+j] = float64(hi) + float64(float32(v-float64(hi)))
		}
	})
}

// factorW sets ν and 2⁻ʰL, with LLᵀ = W+νD, where zeros on the diagonal of 4⁻ʰW are replaced by 1. It multiplies ν by
// ten until W+νD is positive definite, and returns an error if ν then exceeds maxShift.
func (p *nystrom) factorW(ctx context.Context) error {
	const maxShift = 1e-4 // a judgment: a K that needs more is not positive semi-definite
	r := p.f.D
	p.nu = p.shift()
	p.l = make([]float64, r*r)
	for {
		if err := p.scaledW(ctx, p.l); err != nil {
			return err
		}
		for j := range r {
			v := &p.l[j*r+j]
			*v += p.nu * *v
			if *v == 0 {
				*v = 1
			}
		}
		if accel.Dpotrf(r, p.l, r) {
			return nil
		}
		if p.nu *= 10; !(p.nu <= maxShift) {
			return fmt.Errorf("lowrank: K is not positive semi-definite: with %.1g of its diagonal added to it "+
				"K(S,S), of order %d, has no Cholesky factor", p.nu/10, r)
		}
	}
}

// scaleExponent returns h for which 4ʰ is within a factor of 4 of the largest diagonal entry of K.
func (p *builder) scaleExponent() int {
	_, e := math.Frexp(slices.Max(p.diag))
	return e / 2
}

// computeF sets the rows of F = fl(C·L⁻ᵀ) from the given one on, in strips of panelRows rows per thread, which take
// 2048r bytes per thread. Smaller strips would be slow, because the BLAS copies L for each of them.
func (p *nystrom) computeF(ctx context.Context, firstRow int, progress func(completed, total int)) error {
	r, n, unscale := p.f.D, len(p.rows), math.Ldexp(1, p.exponent)
	l := blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: r, Stride: r, Data: p.l}
	height := min(accel.Threads()*panelRows, n-firstRow)
	strip := make([]float64, height*r)
	for start := firstRow; start < n; start += height {
		end := min(start+height, n)
		if err := p.scaledColumns(ctx, p.rows[start:end], strip); err != nil {
			return err
		}
		err := p.forEachPanel(ctx, start, end, func(_, lo, hi int) (errorSq float64) {
			g := blas64.General{Rows: hi - lo, Cols: r, Stride: r, Data: strip[(lo-start)*r:]}
			blas64.Trsm(blas.Right, blas.Trans, unscale, l, g) // 2ʰ(4⁻ʰC)(2⁻ʰL)⁻ᵀ
			for i := lo; i < hi; i++ {
				errorSq += p.roundRow(i, p.f.Row(i), g.Data[(i-lo)*r:(i-lo+1)*r])
			}
			return errorSq
		})
		if err != nil {
			return err
		}
		progress(end, n)
	}
	return p.checkRows()
}

// dropDependent removes landmarks that depend on others, and their columns of F, as documented at Nystrom.
func (p *nystrom) dropDependent(ctx context.Context) error {
	r := p.f.D
	squares := make([]float64, r)
	err := addInRankOrder(ctx, p.comm, squares, func() {
		// the error of ForEach may be ignored: if ctx has ended, the communication that follows fails, too
		_ = accel.ForEachBlock(ctx, r, normColumns, func(_, lo, hi int) {
			for i := range p.rows {
				for k, v := range p.f.Row(i)[lo:hi] {
					squares[lo+k] += float64(v) * float64(v)
				}
			}
		})
	})
	if err != nil {
		return err
	}
	var dependent []int // columns of F
	for j, s := range p.landmarks {
		diagonal := math.Ldexp(p.l[j*r+j], p.exponent) // L_jj
		if squares[j] == 0 || diagonal*diagonal <= 4*p.nu*p.diag[s] {
			dependent = append(dependent, j)
		}
	}
	slices.SortStableFunc(dependent, func(a, b int) int { return cmp.Compare(squares[a], squares[b]) })
	dropped := make([]bool, r)
	var sum float64
	for _, j := range dependent {
		if sum += squares[j]; sum > p.nu*p.trace {
			break
		}
		dropped[j] = true
	}
	return p.dropColumns(dropped)
}

// dropColumns removes the marked columns of F and their landmarks, moves the remaining columns together, and adds the
// squares of the removed entries to residualDiag. It returns an error if no landmark remains.
func (p *nystrom) dropColumns(dropped []bool) error {
	var landmarks []int
	for j, s := range p.landmarks {
		if !dropped[j] {
			landmarks = append(landmarks, s)
		}
	}
	if len(landmarks) == 0 {
		return fmt.Errorf("lowrank: K(S,S) is zero at the %d landmarks drawn; take more", len(p.landmarks))
	}
	if len(landmarks) == len(p.landmarks) {
		return nil
	}
	p.landmarks = landmarks
	for i := range p.rows {
		row := p.f.Row(i)
		k := 0
		for j, v := range row {
			if dropped[j] {
				p.residualDiag[i] += float64(v) * float64(v)
				continue
			}
			row[k] = v
			k++
		}
	}
	return nil
}
