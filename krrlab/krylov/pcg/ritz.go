package pcg

import (
	"math"

	"github.com/krrlab/lab/krrlab/accel"
)

// Ritz returns the Ritz values of column col in ascending order: the eigenvalues of the Lanczos tridiagonal matrix T of
// M^(-1/2)·A·M^(-1/2), which follows from the α_k and β_k of the column's iterations 1, …, m (Saad, section 6.7.3),
//
//	T_11 = 1/α_1,  T_kk = 1/α_k + β_{k-1}/α_{k-1},  T_k,k+1 = √β_k/α_k.
//
// The Ritz values lie inside the spectrum of M⁻¹A, and the extreme ones converge to its ends first. In floating point,
// repeated copies of a converged value appear. A restart starts a new Krylov space, so iterations after the first
// restart are ignored. Ritz returns nil if the column took no step, or if the result is from SolveBlock, in which
// columns have no Krylov spaces of their own. It panics if col is not a column of the result. Work: O(m²).
func (r *Result) Ritz(col int) []float64 {
	if col < 0 || col >= len(r.Columns) {
		panic("pcg: Ritz: no such column")
	}
	end := len(r.History.Alpha)
	if len(r.History.Restarts) > 0 {
		end = min(end, r.History.Restarts[0])
	}
	m := 0
	for m < end && r.History.Alpha[m][col] > 0 {
		m++
	}
	if m == 0 {
		return nil
	}
	diag, offDiag := make([]float64, m), make([]float64, m)
	for k := range m {
		alpha, beta := r.History.Alpha[k][col], r.History.Beta[k][col]
		diag[k] += 1 / alpha // T_kk = 1/α_k + β_{k-1}/α_{k-1}
		if k+1 < m {
			diag[k+1] = beta / alpha
			offDiag[k] = math.Sqrt(beta) / alpha // T_k,k+1 = √β_k/α_k
		}
	}
	if !accel.Dsterf(diag, offDiag[:m-1]) {
		return nil
	}
	return diag
}

// Cond returns an estimate of κ = λ_max/λ_min of M⁻¹A: the ratio of the largest to the smallest Ritz value of all
// columns. In exact arithmetic the estimate is at most κ. Cond returns NaN if no column took a step, a Ritz value is
// not positive, or the result is from SolveBlock.
func (r *Result) Cond() float64 {
	smallest, largest := math.Inf(1), 0.0
	for col := range r.Columns {
		if ritz := r.Ritz(col); len(ritz) > 0 {
			smallest, largest = min(smallest, ritz[0]), max(largest, ritz[len(ritz)-1])
		}
	}
	if largest == 0 || smallest <= 0 {
		return math.NaN()
	}
	return largest / smallest
}
