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
func Nystrom(ctx context.Context, src Source, rank int, g rng.Stream, options *Options) (*Factor, error) {
	n := src.Dim()
	if err := checkRank(rank, n); err != nil {
		return nil, err
	}
	return NystromAt(ctx, src, g.Sub("landmarks").Perm(n)[:rank], options)
}

// NystromAt is Nystrom with landmarks that the caller chooses, as distinct row indices of K. It also returns an error
// if an index is out of range or repeated.
func NystromAt(ctx context.Context, src Source, landmarks []int, options *Options) (*Factor, error) {
	rank := len(landmarks)
	opt := options.withDefaults(rank)
	b, err := newBuilder(src, rank, &opt)
	if err != nil {
		return nil, err
	}
	isLandmark := make([]bool, b.n)
	for k, i := range landmarks {
		if i < 0 || i >= b.n || isLandmark[i] {
			return nil, fmt.Errorf("lowrank: landmark %d of %d is row %d: want rows from 0 to %d, each once", k+1, rank,
				i, b.n-1)
		}
		isLandmark[i] = true
	}
	b.formedColumns = rank
	ny := &nystrom{builder: b, landmarks: slices.Clone(landmarks), exponent: b.scaleExponent()}
	err = ny.factorW(ctx)
	if err == nil {
		err = ny.computeF(ctx, 0, opt.Progress)
	}
	if err = comm.Agree(ctx, ny.comm, err); err != nil {
		return nil, err
	}
	if err := ny.dropDependent(ctx); err != nil {
		return nil, err
	}
	if len(ny.landmarks) == rank {
		floats.Scale(math.Ldexp(1, ny.exponent), ny.l)
		ny.lower = ny.l
	}
	return ny.finish(ctx, "Nyström", ny.landmarks, ny.nu)
}

// normColumns is the number of columns of F whose squared norms are computed in one unit of work.
const normColumns = 128

// nystrom is the state of NystromAt, which computes L and then F in strips of rows. W and C are scaled by 4⁻ʰ, an exact
// power of two for which the largest diagonal entry of K is near 1.
type nystrom struct {
	*builder
	landmarks []int
	exponent  int       // h
	l         []float64 // 2⁻ʰL, rank×rank
	nu        float64   // ν
}

// scaledColumns sets the matrix c, of row stride rank, to the given rows of 4⁻ʰK(:,S), and rounds its entries to sums
// of two float32 numbers, with a relative error of 2⁻⁴⁸.
func (ny *nystrom) scaledColumns(ctx context.Context, rows []int, c []float64) error {
	for k := 0; k < ny.f.D; k += ny.block {
		if err := ny.columnBlock(ctx, rows, k, c[k:]); err != nil {
			return err
		}
	}
	return ny.scaleAndRound(ctx, rows, c)
}

// scaledW sets the lower triangle of c, rank×rank, to 4⁻ʰW, rounded as in scaledColumns.
func (ny *nystrom) scaledW(ctx context.Context, c []float64) error {
	for k := 0; k < ny.f.D; k += ny.block {
		if err := ny.columnBlock(ctx, ny.landmarks[k:], k, c[k*ny.f.D+k:]); err != nil {
			return err
		}
	}
	return ny.scaleAndRound(ctx, ny.landmarks, c)
}

// columnBlock sets dst, of row stride rank, to the given rows of a block of columns of K, those of landmarks k, …,
// k+block-1.
func (ny *nystrom) columnBlock(ctx context.Context, rows []int, k int, dst []float64) error {
	s := ny.landmarks[k:min(k+ny.block, ny.f.D)]
	return ny.formBlock(ctx, rows, s, blas64.General{Rows: len(rows), Cols: len(s), Stride: ny.f.D, Data: dst})
}

// scaleAndRound multiplies c by 4⁻ʰ and rounds each entry to a sum of two float32 numbers.
func (ny *nystrom) scaleAndRound(ctx context.Context, rows []int, c []float64) error {
	r, scale := ny.f.D, math.Ldexp(1, -2*ny.exponent)
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
func (ny *nystrom) factorW(ctx context.Context) error {
	const maxShift = 1e-4 // a K that needs a larger shift is regarded as not positive semi-definite
	r := ny.f.D
	ny.nu = ny.shift()
	ny.l = make([]float64, r*r)
	for {
		if err := ny.scaledW(ctx, ny.l); err != nil {
			return err
		}
		for j := range r {
			diagonal := &ny.l[j*r+j]
			*diagonal += ny.nu * *diagonal
			if *diagonal == 0 {
				*diagonal = 1
			}
		}
		if accel.Dpotrf(r, ny.l, r) {
			return nil
		}
		if ny.nu *= 10; !(ny.nu <= maxShift) {
			return fmt.Errorf("lowrank: K is not positive semi-definite: with %.1g of its diagonal added to it "+
				"K(S,S), of order %d, has no Cholesky factor", ny.nu/10, r)
		}
	}
}

// scaleExponent returns h for which 4ʰ is within a factor of 4 of the largest diagonal entry of K.
func (b *builder) scaleExponent() int {
	_, exponent := math.Frexp(slices.Max(b.diag))
	return exponent / 2
}

// computeF sets the rows of F = fl(C·L⁻ᵀ) from the given one on, in strips of panelRows rows per thread, which take
// 2048r bytes per thread. Smaller strips would be slow, because the BLAS copies L for each of them.
func (ny *nystrom) computeF(ctx context.Context, firstRow int, progress func(completed, total int)) error {
	r, n, unscale := ny.f.D, len(ny.rows), math.Ldexp(1, ny.exponent)
	l := blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: r, Stride: r, Data: ny.l}
	height := min(accel.Threads()*panelRows, n-firstRow)
	strip := make([]float64, height*r)
	for start := firstRow; start < n; start += height {
		end := min(start+height, n)
		if err := ny.scaledColumns(ctx, ny.rows[start:end], strip); err != nil {
			return err
		}
		err := ny.forEachPanel(ctx, start, end, func(_, lo, hi int) (errorSq float64) {
			g := blas64.General{Rows: hi - lo, Cols: r, Stride: r, Data: strip[(lo-start)*r:]}
			blas64.Trsm(blas.Right, blas.Trans, unscale, l, g) // 2ʰ(4⁻ʰC)(2⁻ʰL)⁻ᵀ
			for i := lo; i < hi; i++ {
				errorSq += ny.roundRow(i, ny.f.Row(i), g.Data[(i-lo)*r:(i-lo+1)*r])
			}
			return errorSq
		})
		if err != nil {
			return err
		}
		progress(end, n)
	}
	return ny.checkRows()
}

// dropDependent removes landmarks that depend on others, and their columns of F, as documented at Nystrom.
func (ny *nystrom) dropDependent(ctx context.Context) error {
	r := ny.f.D
	sqNorms := make([]float64, r)
	err := addInRankOrder(ctx, ny.comm, sqNorms, func() {
		// The error may be ignored: if ctx has ended, the communication that follows fails, too.
		_ = accel.ForEachBlock(ctx, r, normColumns, func(_, lo, hi int) {
			for i := range ny.rows {
				for k, v := range ny.f.Row(i)[lo:hi] {
					sqNorms[lo+k] += float64(v) * float64(v)
				}
			}
		})
	})
	if err != nil {
		return err
	}
	var dependentColumns []int // columns of F whose landmarks depend on earlier ones
	for j, landmark := range ny.landmarks {
		diagonal := math.Ldexp(ny.l[j*r+j], ny.exponent) // L_jj
		if sqNorms[j] == 0 || diagonal*diagonal <= 4*ny.nu*ny.diag[landmark] {
			dependentColumns = append(dependentColumns, j)
		}
	}
	slices.SortStableFunc(dependentColumns, func(a, b int) int { return cmp.Compare(sqNorms[a], sqNorms[b]) })
	isDropped := make([]bool, r)
	var sum float64
	for _, j := range dependentColumns {
		if sum += sqNorms[j]; sum > ny.nu*ny.trace {
			break
		}
		isDropped[j] = true
	}
	return ny.dropColumns(isDropped)
}

// dropColumns removes the marked columns of F and their landmarks, moves the remaining columns together, and adds the
// squares of the removed entries to residualDiag. It returns an error if no landmark remains.
func (ny *nystrom) dropColumns(isDropped []bool) error {
	var landmarks []int
	for j, landmark := range ny.landmarks {
		if !isDropped[j] {
			landmarks = append(landmarks, landmark)
		}
	}
	if len(landmarks) == 0 {
		return fmt.Errorf("lowrank: K(S,S) is zero at the %d landmarks drawn; take more", len(ny.landmarks))
	}
	if len(landmarks) == len(ny.landmarks) {
		return nil
	}
	ny.landmarks = landmarks
	for i := range ny.rows {
		row := ny.f.Row(i)
		column := 0
		for j, v := range row {
			if isDropped[j] {
				ny.residualDiag[i] += float64(v) * float64(v)
				continue
			}
			row[column] = v
			column++
		}
	}
	return nil
}
