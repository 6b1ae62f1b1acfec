package lowrank

import (
	"context"
	"math"
	"slices"
)

const unitRoundoff = 0x1p-53 // unit roundoff u of float64

// The certificate −eI ≼ K−FFᵀ, e = Factor.Rounding, refers to the exact K, not to the computed columns. Let C and W be
// the columns and K(S,S) of the exact K, T the computed lower triangular factor, F̄ the factor F before it is rounded
// to float32, X = F̄T⁻¹, and
//
//	N = C − F̄Tᵀ,  V = TTᵀ − W.
//
// Let E consist of the columns S of the identity. For every X, (I−XEᵀ)K(I−XEᵀ)ᵀ ≽ 0, which means
//
//	K ≽ XCᵀ + CXᵀ − XWXᵀ = F̄F̄ᵀ + XNᵀ + NXᵀ + XVXᵀ ≽ F̄F̄ᵀ − NV⁻¹Nᵀ   if V ≻ 0.   (1)
//
// The shift makes V positive definite: TTᵀ is the Cholesky factorization of W+νD. Scale all matrices by D^(-½). Then
// every row of T has norm 1 or less, and row i of F̄ has norm √K_ii or less. The errors are those of products of
// matrices and triangular solves in any order of summation (N. J. Higham, Accuracy and Stability of Numerical
// Algorithms, 2nd ed., theorems 8.5 and 10.3), the rounding of stored numbers to 2⁻⁴⁸ and the error ε of the columns.
// Together they change every entry of V−νD, and every entry of N divided by √K_ii, by at most
//
//	q = ε + 2.2(r + b + 64)u,  u = 2⁻⁵³,
//
// where b is the number of columns in a block. With ν ≥ 4rq therefore V ≽ (ν−1.1rq)D ≽ 2.9rq·D and
//
//	tr NV⁻¹Nᵀ ≤ 1.1·rq²t/(2.9rq) ≤ qt,  t = max(tr K, ‖F‖_F²).   (2)
//
// The weights X, which may be large, do not appear in (2).
//
// Underflow of the digits after the 48th does not affect q, unless K_ss of a landmark s is below 2⁻⁹⁰ of the largest
// diagonal entry. In that case nothing is certified.
//
// The rounding of F̄ to F = F̄+δ changes FFᵀ by at most 2‖F‖_F‖δ‖_F + ‖δ‖_F² in norm and in trace; ‖δ‖_F is measured.
// The computed trace of K−FFᵀ has an error of at most 2qt + nuΣ|K_ii−‖F_i‖²|. Dropping columns of F only makes K̂
// smaller.
//
// Extend computes further rows of F̄ with the same T. Its q is the larger one of the q of the earlier rows and of the q
// of the new rows. As NV⁻¹Nᵀ is at most 1.1rq²t/(ν−1.1rq), (2) holds for ν ≥ 2.2rq, and therefore also for a q of all
// rows that is up to 1.8 times as large as the one from which ν was taken.

// relativeError returns q, the error of an entry relative to the diagonal. It is at least minRelativeError.
func (b *builder) relativeError() float64 {
	q := 2.2 * float64(b.f.D+b.block+64) * unitRoundoff
	if !math.IsInf(b.entryError, 1) {
		q += b.entryError
	}
	return max(q, b.minRelativeError)
}

// shift returns ν = 4rq, relative to the diagonal.
func (b *builder) shift() float64 { return 4 * float64(b.f.D) * b.relativeError() }

// maxErrorGrowth is the largest factor by which q may grow in Extend.
const maxErrorGrowth = 1.8

// minDiagonal is the smallest diagonal entry of a landmark, in units of the largest diagonal entry, for which certify
// claims a bound.
const minDiagonal = 0x1p-90

// certify sets the Residual, Rounding and EntryError of f, the factor that p has computed, and its relativeError and
// roundingSq. It is collective.
func (b *builder) certify(ctx context.Context, f *Factor) error {
	f.EntryError, f.relativeError = b.entryError, b.relativeError()
	largest := slices.Max(b.diag)
	for _, landmark := range f.Landmarks {
		if v := b.diag[landmark]; v > 0 && v < minDiagonal*largest {
			f.EntryError = math.Inf(1)
		}
	}
	var sums [3]float64 // of residualDiag, |residualDiag| and roundingSq
	err := addInRankOrder(ctx, b.comm, sums[:], func() {
		for _, v := range b.residualDiag {
			sums[0] += v
			sums[1] += math.Abs(v)
		}
		for _, v := range b.roundingSq {
			sums[2] += v
		}
	})
	f.Residual, f.roundingSq = sums[0], sums[2]
	normSq := max(0, f.Trace-f.Residual) // ‖F‖_F² = tr K̂
	// The factors 1.001 cover the rounding of the sums.
	delta := 1.001 * math.Sqrt(sums[2]) // ‖δ‖_F
	t := 1.001 * max(f.Trace, normSq)
	f.Rounding = 1.001*(2*math.Sqrt(normSq)*delta+delta*delta) + 3*b.relativeError()*t +
		float64(b.n)*unitRoundoff*sums[1]
	return err
}
