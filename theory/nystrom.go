package theory

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
)

var nystrom = Claim{
	Name: "nystrom", Place: "section 1.1 compares with it; the bound is the project's", Kind: Bound,
	Statement: "For K̂ ≼ K from columns of K (Nyström, randomly pivoted Cholesky), κ((K̂+λI)⁻¹(K+λI)) ≤ 1 + tr(K−K̂)/λ, for certain.",
	Measured:  "κ with the project's M⁻¹ over the bound, for Gaussian and polynomial kernels of any rank; with one column less than the rank of K, where K−K̂ has rank one and the bound is met.",
	Fails:     "a factor that is not below K, or a column of it that is scaled.",
	run:       checkNystrom,
}

func checkNystrom(e *experiment) {
	for i, build := range e.parts.LowRank {
		out := e.sample(fmt.Sprintf("method %d", i), e.trials, 2, func(t int, g rng.Stream, out []float64) {
			size := g.Sub("sizes")
			x := cloud(g, 4+size.IntN(0, 12), 3, 0.8)
			k := manyKernels[t%len(manyKernels)]
			gram := evaluated(k, x)
			lambda := spread(g.Sub("lambda"), 0, 1e-2, 1)
			for j, rank := range []int{1 + size.IntN(1, x.N-1), x.N - 1} {
				out[j] = lowRankRatio(e, build, gram, rank, lambda, g.Sub("draw", uint64(j)))
			}
		})
		name := []string{"Nyström", "RPCholesky", "method"}[min(i, 2)]
		e.atMost("κ over 1+tr(K−K̂)/λ, "+name+", any rank", out[0], 1+1e-6)
		e.atMost("κ over 1+tr(K−K̂)/λ, "+name+", rank n−1", out[1], 1+1e-6)
	}
}

// lowRankRatio returns κ over 1 + tr(K−FFᵀ)/λ; the rounding of F is allowed for as
// lowrank.Factor.CondBound does.
func lowRankRatio(e *experiment, build lowRank, gram *mat.SymDense, rank int, lambda float64, g rng.Stream) float64 {
	f := must(build(e.ctx, columns{gram}, rank, g, nil))
	v := (&twin{k: gram, z: f.F}).spectrum(e, lambda, lambda, precond.FormEigen)
	rest := mat.Trace(gram) - frobenius(whole(f.F))
	return cond(v) / (1 + (math.Max(rest, 0)+2*f.Rounding)/(lambda-f.Rounding))
}

// columns is a dense K as a source of columns.
type columns struct{ *mat.SymDense }

func (k columns) Dim() int { return k.SymmetricDim() }

func (k columns) Diag() []float64 { return values(k.Dim(), func(i int) float64 { return k.At(i, i) }) }

// EntryError: an entry is Eval's of three coordinates.
func (k columns) EntryError() float64 { return 0x1p-47 }

func (k columns) Columns(ctx context.Context, idx []int, dst *mat.Dense) error {
	for q, j := range idx {
		for i := range k.Dim() {
			dst.Set(i, q, k.At(i, j))
		}
	}
	return ctx.Err()
}
