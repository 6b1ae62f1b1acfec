package lowrank

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// Nystrom returns the Nyström approximation of K from rank landmarks S, drawn
// uniformly without replacement from the stream g:
//
//	K̂ = C (W+νD)⁻¹ Cᵀ,  C = K(:,S), W = K(S,S), D = diag(W),
//	W+νD = LLᵀ,  F = fl(C L⁻ᵀ),
//
// all in float64 but for the last rounding. The shift, relative to the diagonal,
// is four times what rounding does to W (see certify), so that W may be singular, and K̂ ≼ K
// survives rounding. It takes the place of the absolute shift of Frangella, Tropp and Udell. If
// W+νD is still not positive definite ν is raised tenfold, up to 1e-4. The
// landmark with L_jj² ≤ 4νD_jj depends on those before to rounding, as a duplicated
// point does. Columns of F of such landmarks are left out, the smallest first, as long as
// all that tr K̂ loses by it is at most ν·tr K; F then has fewer columns than asked.
//
// Work: n·rank² flops and rank columns of K; memory: see the package doc. F has the
// same bits for any number of threads and of ranks.
//
// It returns an error if rank is not in [1, n], a diagonal entry is negative or not
// finite, K is zero or seen not to be positive semi-definite, a column has a number
// that is not finite, F does not fit float32, src fails or ctx ends.
func Nystrom(ctx context.Context, src Source, rank int, g rng.Stream, o *Options) (*Factor, error) {
	n := src.Dim()
	if err := checkRank(rank, n); err != nil {
		return nil, err
	}
	return NystromAt(ctx, src, g.Sub("landmarks").Perm(n)[:rank], o)
}

// NystromAt is Nystrom with given landmarks, which are indices of rows of K. It returns an error if
// one is not, or comes twice.
func NystromAt(ctx context.Context, src Source, landmarks []int, o *Options) (*Factor, error) {
	rank := len(landmarks)
	opt := o.settled(rank)
	b, err := newBuild(src, rank, &opt)
	if err != nil {
		return nil, err
	}
	seen := make([]bool, b.n)
	for k, i := range landmarks {
		if i < 0 || i >= b.n || seen[i] {
			return nil, fmt.Errorf("lowrank: landmark %d of %d is row %d: want rows from 0 to %d, each once", k+1, rank,
				i, b.n-1)
		}
		seen[i] = true
	}
	_, e := math.Frexp(slices.Max(b.diag))
	b.formed = rank
	p := &nystrom{build: b, marks: slices.Clone(landmarks), half: e / 2}
	err = p.factor(ctx)
	if err == nil {
		err = p.solve(ctx, opt.Progress)
	}
	if err = comm.Agree(ctx, p.comm, err); err != nil {
		return nil, err
	}
	if err := p.drop(ctx); err != nil {
		return nil, err
	}
	return p.finish(ctx, "Nyström", p.marks, p.nu)
}

// dropCols is the number of columns whose squares a worker sums at a time.
const dropCols = 128

// nystrom makes L, and with it rows of F, a strip at a time. Numbers are scaled by h, which brings the diagonal of K
// near 1.
type nystrom struct {
	*build
	marks []int
	half  int       // h
	l     []float64 // 2⁻ʰL, rank×rank
	nu    float64   // ν
}

// columns sets c, of stride rank, to rows of 4⁻ʰK(:,S), a block of columns after the other, of W from the diagonal on.
// It rounds them to 2⁻⁴⁸, as two float32 numbers.
func (p *nystrom) columns(ctx context.Context, rows []int, c []float64, ofW bool) error {
	r, scale := p.f.D, math.Ldexp(1, -2*p.half)
	for k := 0; k < r; k += p.block {
		first := 0
		if ofW {
			first = k
		}
		s := p.marks[k:min(k+p.block, r)]
		err := p.take(ctx, rows[first:], s,
			blas64.General{Rows: len(rows) - first, Cols: len(s), Stride: r, Data: c[first*r+k:]})
		if err != nil {
			return err
		}
	}
	return accel.ForEach(ctx, len(rows), func(_, i int) {
		for j, v := range c[i*r : (i+1)*r] {
			v *= scale
			hi := float32(v)
			c[i*r+j] = float64(hi) + float64(float32(v-float64(hi)))
		}
	})
}

// factor sets LLᵀ = 4⁻ʰ(W+νD), a zero on W's diagonal taken for 1.
func (p *nystrom) factor(ctx context.Context) error {
	const largest = 1e-4
	r := p.f.D
	p.nu = p.shift()
	p.l = make([]float64, r*r)
	for {
		if err := p.columns(ctx, p.marks, p.l, true); err != nil {
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
		if p.nu *= 10; !(p.nu <= largest) {
			return fmt.Errorf("lowrank: K is not positive semi-definite: with %.1g of its diagonal added to it "+
				"K(S,S), of order %d, has no Cholesky factor", p.nu/10, r)
		}
	}
}

// solve sets F = fl(C·L⁻ᵀ), in strips of a panel of rows for each thread: 2048r bytes a thread. With fewer rows the
// library spends its time on copying L.
func (p *nystrom) solve(ctx context.Context, progress func(done, total int)) error {
	r, own, back := p.f.D, len(p.rows), math.Ldexp(1, p.half)
	l := blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: r, Stride: r, Data: p.l}
	height := min(accel.Threads()*panelRows, own)
	strip := make([]float64, height*r)
	for at := 0; at < own; at += height {
		end := min(at+height, own)
		if err := p.columns(ctx, p.rows[at:end], strip, false); err != nil {
			return err
		}
		err := p.panels(ctx, at, end, func(_, lo, hi int) (lost float64) {
			g := blas64.General{Rows: hi - lo, Cols: r, Stride: r, Data: strip[(lo-at)*r:]}
			blas64.Trsm(blas.Right, blas.Trans, back, l, g) // 2ʰ(4⁻ʰC)(2⁻ʰL)⁻ᵀ
			for i := lo; i < hi; i++ {
				lost += p.round(i, p.f.Row(i), g.Data[(i-lo)*r:(i-lo+1)*r])
			}
			return lost
		})
		if err != nil {
			return err
		}
		progress(end, own)
	}
	return p.check()
}

// drop takes out of F the columns of landmarks that depend on others, and these.
func (p *nystrom) drop(ctx context.Context) error {
	r := p.f.D
	squares := make([]float64, r)
	err := inTurn(ctx, p.comm, squares, func() {
		// a context that has ended ends what follows, too
		_ = accel.ForEach(ctx, (r+dropCols-1)/dropCols, func(_, b int) {
			lo, hi := b*dropCols, min((b+1)*dropCols, r)
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
	var small []int
	for j, s := range p.marks {
		l := math.Ldexp(p.l[j*r+j], p.half)
		if squares[j] == 0 || l*l <= 4*p.nu*p.diag[s] {
			small = append(small, j)
		}
	}
	slices.SortStableFunc(small, func(a, b int) int { return cmp.Compare(squares[a], squares[b]) })
	out := make([]bool, r)
	var sum float64
	for _, j := range small {
		if sum += squares[j]; sum > p.nu*p.trace {
			break
		}
		out[j] = true
	}
	return p.without(out)
}

// without moves the columns of F and their landmarks together, but for those that are
// out, whose squares are left in d.
func (p *nystrom) without(out []bool) error {
	var marks []int
	for j, s := range p.marks {
		if !out[j] {
			marks = append(marks, s)
		}
	}
	if len(marks) == 0 {
		return fmt.Errorf("lowrank: K(S,S) is zero at the %d landmarks drawn; take more", len(p.marks))
	}
	if len(marks) == len(p.marks) {
		return nil
	}
	p.marks = marks
	for i := range p.rows {
		row := p.f.Row(i)
		k := 0
		for j, v := range row {
			if out[j] {
				p.d[i] += float64(v) * float64(v)
				continue
			}
			row[k] = v
			k++
		}
	}
	return nil
}
