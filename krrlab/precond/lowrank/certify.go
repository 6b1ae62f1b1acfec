package lowrank

import (
	"context"
	"math"
	"slices"
)

const unit = 0x1p-53 // of rounding

// The certificate −eI ≼ K−FFᵀ, e = Factor.Rounding, holds for the K that is meant, not for the
// columns as they came. Let C and W be the columns and K(S,S) of that K, T the lower triangular
// factor computed, F̄ what is F before it is rounded to float32, X = F̄T⁻¹, and
//
//	N = C − F̄Tᵀ,  V = TTᵀ − W.
//
// With E the columns S of the unit matrix, (I−XEᵀ)K(I−XEᵀ)ᵀ ≽ 0 whatever X is, which is
//
//	K ≽ XCᵀ + CXᵀ − XWXᵀ = F̄F̄ᵀ + XNᵀ + NXᵀ + XVXᵀ ≽ F̄F̄ᵀ − NV⁻¹Nᵀ   if V ≻ 0.   (1)
//
// V is made positive definite by the shift: TTᵀ is the factor of W+νD. In numbers scaled by D^(-½),
// of which every row of T has norm 1 or less and every row of F̄ √K_ii, products of matrices and triangular
// solves in any order of summation (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd
// ed., theorems 8.5 and 10.3), numbers held to 2⁻⁴⁸ and the columns' error ε make every entry of V−νD
// and, but for the factor √K_ii, of N off by at most
//
//	q = ε + 2.2(r + b + 64)u,  u = 2⁻⁵³,
//
// with b columns in a block. So with ν ≥ 4rq, V ≽ (ν−1.1rq)D ≽ 2.9rq·D and
//
//	tr NV⁻¹Nᵀ ≤ 1.1·rq²t/(2.9rq) ≤ qt,  t = max(tr K, ‖F‖_F²).   (2)
//
// The weights X, which may be large, do not appear.
//
// Underflow of what lies beyond 48 bits does not reach q unless K_ss is below 2⁻⁹⁰ of the largest diagonal
// entry for a landmark s, where nothing is certified.
//
// What rounding F̄ to F = F̄+δ does is at most 2‖F‖_F‖δ‖_F + ‖δ‖_F², measured, in norm and in
// trace; the trace of K−FFᵀ is summed to 2qt + nuΣ|K_ii−‖F_i‖²|. Columns of F that are left out only make
// K̂ smaller.

// roundingOf returns q.
func (p *build) roundingOf() float64 {
	q := 2.2 * float64(p.f.D+p.block+64) * unit
	if !math.IsInf(p.entry, 1) {
		q += p.entry
	}
	return q
}

// shift returns ν, relative to the diagonal.
func (p *build) shift() float64 { return 4 * float64(p.f.D) * p.roundingOf() }

// smallest is the share of the largest diagonal entry below which a landmark's is not certified.
const smallest = 0x1p-90

// certify sets Residual, Rounding and EntryError.
func (p *build) certify(ctx context.Context, f *Factor) error {
	f.EntryError = p.entry
	largest := slices.Max(p.diag)
	for _, s := range f.Landmarks {
		if v := p.diag[s]; v > 0 && v < smallest*largest {
			f.EntryError = math.Inf(1)
		}
	}
	var sums [3]float64 // of d, |d| and lost
	err := inTurn(ctx, p.comm, sums[:], func() {
		for _, v := range p.d {
			sums[0] += v
			sums[1] += math.Abs(v)
		}
		for _, v := range p.lost {
			sums[2] += v
		}
	})
	f.Residual = sums[0]
	square := max(0, f.Trace-f.Residual) // ‖F‖_F² = tr K̂
	delta := 1.001 * math.Sqrt(sums[2])
	t := 1.001 * max(f.Trace, square)
	f.Rounding = 1.001*(2*math.Sqrt(square)*delta+delta*delta) + 3*p.roundingOf()*t + float64(p.n)*unit*sums[1]
	return err
}
