package lowrank

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/internal/plural"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// Source is a symmetric positive semi-definite n×n matrix K from which entries can be read. *gram.Matrix is a Source;
// use the matrix that its method Exact returns, whose entries are the most accurate.
type Source interface {
	// Dim returns n.
	Dim() int
	// Diag returns the n diagonal entries. The caller does not change them.
	Diag() []float64
	// Submatrix sets dst, len(rows)×len(cols), to K(rows, cols). Indices in rows, and in cols, are distinct. In an MPI
	// run, Submatrix must work without communication: ranks call it with different arguments.
	Submatrix(ctx context.Context, rows, cols []int, dst blas64.General) error
	// EntryError returns a certain ε ≥ 0: every entry (i, j) of Diag and Submatrix differs by at most ε√(K_ii·K_jj)
	// from that of an exactly positive semi-definite K. Certified claims of a Factor refer to this K. EntryError
	// returns +Inf if no ε is known, for example because the columns were rounded to float32.
	EntryError() float64
}

// Options configures Nystrom, NystromAt and RPCholesky. Zero values, and a nil *Options, mean the defaults.
type Options struct {
	// Block is the number b of columns of K that are formed together; they take 8nb bytes. A different Block changes
	// the landmarks that RPCholesky draws, but not their distribution. Default: min(rank/10, 200), at least 10.
	Block int
	// StopResidual γ ends RPCholesky before it reaches its rank: after the first block with which tr(K−K̂) is at most γ
	// times the number of columns of F. Points whose residual is at the level of rounding do not count, because they
	// are not drawn: tr(K−K̂) may be larger by up to n·2⁻²⁰·max_i k(x_i, x_i). Default: 0, never.
	StopResidual float64
	// Progress, if not nil, is called after each block; completed increases to total.
	Progress func(completed, total int)
	// Comm is the group of ranks over which the rows of F are distributed (comm.RowRange, in units of
	// precond.RankRows). Each rank computes its own rows, and replicates W or the residual diagonal. All ranks must
	// call the method together. Default: comm.Alone().
	Comm comm.Comm
}

// withDefaults returns a copy of o with the defaults filled in.
func (o *Options) withDefaults(rank int) Options {
	opt := *cmp.Or(o, &Options{})
	if opt.Block < 0 {
		panic(fmt.Sprintf("lowrank: blocks of %d columns", opt.Block))
	}
	opt.Block = min(cmp.Or(opt.Block, max(10, min(rank/10, 200))), rank)
	if opt.Progress == nil {
		opt.Progress = func(_, _ int) {}
	}
	return opt
}

// Factor is a low-rank factor F of K: K̂ = FFᵀ ≈ K, of rank r.
type Factor struct {
	// Method is "Nyström" or "RPCholesky".
	Method string
	// N is the order n of K.
	N int
	// F, n×r, is in float32, and these numbers define K̂. Column j was computed from columns Landmarks[:j+1] of K: F is
	// a partial Cholesky factor. If F is distributed over ranks, this field has the rows of this rank.
	F *points.Dense32
	// Landmarks are the r distinct points whose columns of K form F. In these columns, K̂ equals K up to rounding and
	// the shift.
	Landmarks []int
	// RequestedRank is the rank that the caller requested, at least r.
	RequestedRank int
	// Columns is the number of columns of K that were formed, including those of dropped and rejected landmarks.
	Columns int
	// Trace is tr K. Residual is tr(K−K̂) = Σ_i (K_ii − ‖F_i‖²), computed in float64 from the float32 F; rounding may
	// make it slightly negative.
	Trace, Residual float64
	// Rounding is e, a bound for all rounding errors: those of the columns, of the factorization, of the rounding of F
	// to float32, and of the traces. Nearly all of it is the rounding of F, 2‖F‖_F‖δ‖_F + ‖δ‖_F² with the measured
	// ‖δ‖_F. If EntryError is finite, it is certain that
	//
	//	−eI ≼ K−K̂,  |Residual − tr(K−K̂)| ≤ e,  ‖K−K̂‖₂ ≤ max(0, Residual) + 2e.
	Rounding float64
	// Shift is ν: FFᵀ = C(W+νD)⁻¹Cᵀ, with the landmarks' columns C of K, their rows W of C, and D = diag W.
	Shift float64
	// EntryError is the EntryError of the Source, or after Extend the largest one of all sources; +Inf means that
	// nothing is certain.
	EntryError float64

	// These fields are for Extend.
	relativeError float64   // bound of the relative error of entries of C and W (q in certify.go)
	lower         []float64 // lower triangular T, r×r, with TTᵀ = W+νD; nil if F is not fl(CT⁻ᵀ)
	residualDiag  []float64 // K_ii − ‖F_i‖² of each point i
	roundingSq    float64   // ‖δ‖_F² of the rounding δ of F to float32
}

// Rank returns r, the number of columns of F.
func (f *Factor) Rank() int { return f.F.D }

// Certain reports whether the inequalities documented at Rounding hold: the error of the columns is known, and Residual
// is not so negative that K cannot be positive semi-definite.
func (f *Factor) Certain() bool {
	return !math.IsInf(f.EntryError, 1) && f.Residual >= -f.Rounding
}

// CondBound returns an upper bound of the condition number of M⁻¹A, M = K̂+λ_pI and
// A = K+λI. With ρ = tr(K−K̂) and 0 ≼ K−K̂ ≼ ρI,
//
//	κ ≤ max(1, (λ+ρ)/λ_p) / min(1, λ/λ_p),
//
// which equals 1 + ρ/λ for all λ_p in [λ, λ+ρ]. Rounding, e = f.Rounding, enters in two places: ρ = max(0, f.Residual)
// + 2e, and λ−e replaces λ in the denominator. The bound is +Inf, no bound, if e ≥ λ or f is not Certain. K is the
// exact matrix of the Source, and K̂ = FFᵀ; the storage of K for products does not matter. CondBound panics if λ < 0 or
// λ_p ≤ 0.
//
// Proof: M ≽ λ_pI, so A = K̂+(K−K̂)+λI ≼ K̂+(λ+ρ)I ≼ max(1, (λ+ρ)/λ_p)·M, and
// A ≽ K̂+(λ−e)I ≽ min(1, (λ−e)/λ_p)·M.
func (f *Factor) CondBound(lambda, lambdaP float64) float64 {
	low := f.LambdaMin(lambda, lambdaP)
	rho := max(0, f.Residual) + 2*f.Rounding
	return max(1, (lambda+rho)/lambdaP) / low
}

// LambdaMin returns the denominator of CondBound, θ = min(1, (λ−e)/λ_p), for which A ≽ θM. It returns 0, no bound, if e
// ≥ λ or f is not Certain. If products use a stored matrix with storage error E, pass λ−‖E‖₂ for λ. LambdaMin panics if
// λ < 0 or λ_p ≤ 0.
func (f *Factor) LambdaMin(lambda, lambdaP float64) float64 {
	if !(lambda >= 0) || !(lambdaP > 0) {
		panic(fmt.Sprintf("lowrank: λ = %v, λ_p = %v", lambda, lambdaP))
	}
	if !f.Certain() {
		return 0
	}
	return min(1, max(0, lambda-f.Rounding)/lambdaP)
}

// String returns a line with the method, the rank, tr(K−K̂) and the number of columns that were formed.
func (f *Factor) String() string {
	stopped := ""
	if f.Rank() < f.RequestedRank {
		stopped = fmt.Sprintf(" (%d asked)", f.RequestedRank)
	}
	return fmt.Sprintf("%s, n = %d, rank %d%s; tr(K−K̂) = %.3g, %.2g of tr K; %s of K",
		f.Method, f.N, f.Rank(), stopped, f.Residual, f.Residual/f.Trace, plural.Count(f.Columns, "column"))
}
