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

// Source is a symmetric positive semi-definite n×n matrix K that gives its entries.
// *gram.Matrix is one; they are best taken from what its method Exact returns.
type Source interface {
	// Dim returns n.
	Dim() int
	// Diag returns the n diagonal entries. The caller does not change them.
	Diag() []float64
	// Part sets dst, len(rows)×len(cols), to K(rows, cols). No index comes twice in rows or in cols. On ranks
	// each calls it alone.
	Part(ctx context.Context, rows, cols []int, dst blas64.General) error
	// EntryError returns a certain ε ≥ 0 such that every entry (i, j) of Diag and Part is that
	// of K to ε√(K_ii·K_jj), K being positive semi-definite exactly; +Inf if none is known, as
	// of columns that were rounded to float32. All that a Factor claims as certain refers to this K.
	EntryError() float64
}

// Options of Nystrom and RPCholesky. Zero values, and a nil *Options, mean the defaults.
type Options struct {
	// Block is the number b of columns of K taken at a time; 8nb bytes are held for
	// them. For RPCholesky it changes the draw, but not its law. Default
	// min(rank/10, 200), at least 10.
	Block int
	// Progress, if not nil, is called after each block, with done rising to total.
	Progress func(done, total int)
	// Comm is the group of ranks that rows of F are dealt to (comm.Rows, in units of precond.RankRows): each
	// forms its own, and has W or what is left of the diagonal whole. All call the method together. Default:
	// comm.Alone().
	Comm comm.Comm
}

// settled returns a copy of o with the defaults filled in.
func (o *Options) settled(rank int) Options {
	s := *cmp.Or(o, &Options{})
	if s.Block < 0 {
		panic(fmt.Sprintf("lowrank: blocks of %d columns", s.Block))
	}
	s.Block = min(cmp.Or(s.Block, max(10, min(rank/10, 200))), rank)
	if s.Progress == nil {
		s.Progress = func(_, _ int) {}
	}
	return s
}

// Factor is a low-rank factor F of K: K̂ = FFᵀ ≈ K, of rank r.
type Factor struct {
	// Method is "Nyström" or "RPCholesky".
	Method string
	// N is the order n of K.
	N int
	// F, n×r, is rounded to float32; K̂ is defined by these numbers. It is a partial
	// Cholesky factor: column j was made from columns Landmarks[:j+1] of K. On ranks these are the rows of this one.
	F *points.Dense32
	// Landmarks are the r points, all different, whose columns of K make F; up to
	// rounding, and Nystrom's shift, K̂ equals K there.
	Landmarks []int
	// Asked is the rank asked for, at least r.
	Asked int
	// Columns of K that were formed, those of dropped and rejected landmarks included.
	Columns int
	// Trace is tr K, Residual tr(K−K̂) = Σ_i (K_ii − ‖F_i‖²) in float64 with F as stored.
	// By rounding Residual may be a little below 0.
	Trace, Residual float64
	// Rounding is the allowance for all rounding, e: of the columns, of the factorization, of F to
	// float32, which is nearly all of it (2‖F‖_F‖δ‖_F + ‖δ‖_F², with ‖δ‖_F measured), and of the traces.
	// Where EntryError is finite it is certain that
	//
	//	−eI ≼ K−K̂,  |Residual − tr(K−K̂)| ≤ e,  ‖K−K̂‖₂ ≤ max(0, Residual) + 2e.
	Rounding float64
	// Shift is ν: F is a factor of C(W+νD)⁻¹Cᵀ, C the landmarks' columns, W their rows of it, D = diag W.
	Shift float64
	// EntryError is that of the Source: +Inf means that nothing is certain.
	EntryError float64
}

// Rank returns r, the number of columns of F.
func (f *Factor) Rank() int { return f.F.D }

// Certain reports whether what Rounding claims holds: the error of the columns is known, and
// Residual is not so far below 0 that K cannot be positive semi-definite.
func (f *Factor) Certain() bool {
	return !math.IsInf(f.EntryError, 1) && f.Residual >= -f.Rounding
}

// CondBound returns an upper bound of the condition number of M⁻¹A, M = K̂+λ_pI and
// A = K+λI. With ρ = tr(K−K̂) and 0 ≼ K−K̂ ≼ ρI,
//
//	κ ≤ max(1, (λ+ρ)/λ_p) / min(1, λ/λ_p),
//
// which is 1 + ρ/λ for all λ_p in [λ, λ+ρ]. For rounding, e = f.Rounding is
// allowed for: ρ = max(0, f.Residual) + 2e, and λ−e stands for the λ of the lower
// end. The bound is +Inf, which means none, if e ≥ λ or f is not Certain. K is that of the
// Source, without rounding, and K̂ = FFᵀ; how K is stored for products does not matter.
// CondBound panics if λ < 0 or λ_p ≤ 0.
//
// Proof: M ≽ λ_pI, so A = K̂+(K−K̂)+λI ≼ K̂+(λ+ρ)I ≼ max(1, (λ+ρ)/λ_p)·M, and
// A ≽ K̂+(λ−e)I ≽ min(1, (λ−e)/λ_p)·M.
func (f *Factor) CondBound(lambda, lambdaP float64) float64 {
	low := f.LambdaMin(lambda, lambdaP)
	rho := max(0, f.Residual) + 2*f.Rounding
	return max(1, (lambda+rho)/lambdaP) / low
}

// LambdaMin returns the lower end in CondBound, θ = min(1, (λ−e)/λ_p) with A ≽ θM; 0, which says nothing, if e ≥ λ
// or f is not Certain. For K off by E in products with it, λ−‖E‖₂ replaces λ. It panics if λ < 0 or λ_p ≤ 0.
func (f *Factor) LambdaMin(lambda, lambdaP float64) float64 {
	if !(lambda >= 0) || !(lambdaP > 0) {
		panic(fmt.Sprintf("lowrank: λ = %v, λ_p = %v", lambda, lambdaP))
	}
	if !f.Certain() {
		return 0
	}
	return min(1, max(0, lambda-f.Rounding)/lambdaP)
}

func (f *Factor) String() string {
	stopped := ""
	if f.Rank() < f.Asked {
		stopped = fmt.Sprintf(" (%d asked)", f.Asked)
	}
	return fmt.Sprintf("%s, n = %d, rank %d%s; tr(K−K̂) = %.3g, %.2g of tr K; %s of K",
		f.Method, f.N, f.Rank(), stopped, f.Residual, f.Residual/f.Trace, plural.Count(f.Columns, "column"))
}
