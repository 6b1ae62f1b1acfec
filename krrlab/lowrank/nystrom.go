package lowrank

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/rng"
)

// Nystrom returns the Nyström approximation of K from rank landmarks S, drawn
// uniformly without replacement from the stream g:
//
//	K̂ = C (W+νD)⁻¹ Cᵀ,  C = K(:,S), W = K(S,S), D = diag(W),
//	W+νD = LLᵀ,  F = fl(C L⁻ᵀ),
//
// all in float64 but for the last rounding. The shift, relative to the diagonal,
// is that of rounding, so that W may be singular: ν = 2⁻⁵²·rank, or 2⁻²³·√rank if all
// columns consist of float32 numbers and are thus taken to be rounded to float32. It
// takes the place of the absolute shift of Frangella, Tropp and Udell; as (W+νD)⁻¹ ≼ W⁻¹,
// K̂ ≼ K. If W+νD is still not positive definite ν is raised tenfold, up to 1e-4. A
// landmark with L_jj² ≤ 4νD_jj depends on those before to rounding, as a duplicated
// point does; its column is left out, and F has fewer columns than asked.
//
// Work: n·rank² flops and rank columns of K; memory: see the package doc. F has the
// same bits for any number of threads.
//
// It returns an error if rank is not in [1, n], a diagonal entry is negative or not
// finite, K is zero or seen not to be positive semi-definite, a column has a number
// that is not finite, F does not fit float32, src fails or ctx ends.
func Nystrom(ctx context.Context, src Source, rank int, g rng.Stream, o *Options) (*Factor, error) {
	opt := o.settled(rank)
	b, err := newBuild(ctx, src, rank, opt.Block)
	if err != nil {
		return nil, err
	}
	_, e := math.Frexp(slices.Max(b.diag))
	p := &nystrom{build: b, marks: g.Sub("landmarks").Perm(b.n)[:rank], half: e / 2}
	for k := 0; k < rank; k += opt.Block {
		if err := p.keep(ctx, k, min(k+opt.Block, rank)); err != nil {
			return nil, err
		}
		opt.Progress(min(k+opt.Block, rank), 2*rank)
	}
	kept, err := p.factor()
	if err != nil {
		return nil, err
	}
	if err := p.solve(ctx, kept); err != nil {
		return nil, err
	}
	marks := make([]int, len(kept))
	for k, j := range kept {
		marks[k] = p.marks[j]
	}
	f := p.finish("Nyström", marks)
	opt.Progress(2*rank, 2*rank)
	return f, nil
}

// nystrom holds 4⁻ʰC = hi + lo where F will be, h bringing the diagonal of K near 1:
// hi is it in float32 and lo, if there is any, what that loses, in float32 again.
// Together they are C to 2⁻⁴⁸.
type nystrom struct {
	*build
	marks []int
	half  int       // h
	lo    []float32 // n×rank; nil if C consists of float32 numbers
	l     []float64 // L, rank×rank
}

// keep puts columns k0, …, k1-1 of C in their place.
func (p *nystrom) keep(ctx context.Context, k0, k1 int) error {
	c, err := p.take(ctx, p.marks[k0:k1])
	if err != nil {
		return err
	}
	m, r := k1-k0, p.f.D
	scale := math.Ldexp(1, -2*p.half)
	exact := make([]bool, (p.n+panelRows-1)/panelRows)
	err = accel.ForEach(ctx, len(exact), func(_, b int) {
		exact[b] = true
		for i := b * panelRows; i < min((b+1)*panelRows, p.n); i++ {
			dst := p.f.Data[i*r+k0 : i*r+k1]
			for k, v := range c[i*m : (i+1)*m] {
				v *= scale
				dst[k] = float32(v)
				exact[b] = exact[b] && float64(dst[k]) == v
			}
		}
	})
	if err != nil {
		return err
	}
	for _, ok := range exact {
		if !ok && p.lo == nil {
			p.lo = make([]float32, p.n*r)
		}
	}
	if p.lo == nil {
		return nil
	}
	return accel.ForEach(ctx, len(exact), func(_, b int) {
		for i := b * panelRows; i < min((b+1)*panelRows, p.n); i++ {
			hi, lo := p.f.Data[i*r+k0:i*r+k1], p.lo[i*r+k0:i*r+k1]
			for k, v := range c[i*m : (i+1)*m] {
				lo[k] = float32(v*scale - float64(hi[k]))
			}
		}
	})
}

// row sets dst to row i of 4⁻ʰC.
func (p *nystrom) row(dst []float64, i int) {
	widen(dst, p.f.Row(i))
	if p.lo != nil {
		for k, v := range p.lo[i*p.f.D : (i+1)*p.f.D] {
			dst[k] += float64(v)
		}
	}
}

// factor sets LLᵀ = 4⁻ʰ(W+νD), a zero on D's diagonal taken for 1, and returns the columns
// that are kept.
func (p *nystrom) factor() (kept []int, err error) {
	const largest = 1e-4
	r := p.f.D
	nu := 0x1p-52 * float64(r)
	if p.lo == nil {
		nu = max(nu, 0x1p-23*math.Sqrt(float64(r)))
	}
	p.l = make([]float64, r*r)
	for {
		for j, s := range p.marks {
			row := p.l[j*r : (j+1)*r]
			p.row(row, s)
			row[j] += nu * row[j]
			if row[j] == 0 {
				row[j] = 1
			}
		}
		if accel.Dpotrf(r, p.l, r) {
			break
		}
		if nu *= 10; nu > largest {
			return nil, fmt.Errorf("lowrank: K is not positive semi-definite: with %.1g of its diagonal added to it K(S,S), of order %d, has no Cholesky factor", nu/10, r)
		}
	}
	for j, s := range p.marks {
		l := math.Ldexp(p.l[j*r+j], p.half)
		if l*l > 4*nu*p.diag[s] && p.diag[s] > 0 {
			kept = append(kept, j)
		}
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("lowrank: K(S,S) is zero at the %d landmarks drawn; take more", r)
	}
	return kept, nil
}

// solve overwrites C by the columns kept of fl(C·L⁻ᵀ), in panels of rows.
func (p *nystrom) solve(ctx context.Context, kept []int) error {
	r, back := p.f.D, math.Ldexp(1, p.half)
	rows := min(panelRows, max(16, panelRows*panelCols/r))
	l := blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: r, Stride: r, Data: p.l}
	work := make([][]float64, accel.Threads())
	return p.panels(ctx, rows, func(who, lo, hi int) (lost float64) {
		g := blas64.General{Rows: hi - lo, Cols: r, Stride: r, Data: grow(&work[who], (hi-lo)*r)}
		for i := lo; i < hi; i++ {
			p.row(g.Data[(i-lo)*r:(i-lo+1)*r], i)
		}
		blas64.Trsm(blas.Right, blas.Trans, 1, l, g)
		for i := lo; i < hi; i++ {
			src := g.Data[(i-lo)*r : (i-lo+1)*r]
			for k, j := range kept {
				src[k] = back * src[j] // k ≤ j
			}
			lost += p.round(i, p.f.Data[i*r:i*r+len(kept)], src[:len(kept)])
		}
		return lost
	})
}
