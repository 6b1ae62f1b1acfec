package lowrank

import (
	"cmp"
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
)

const (
	// pivotFloor is the share of k(x, x) up to which a residual is taken for rounding: 16
	// units of float32, in which F is stored and K often is.
	pivotFloor = 0x1p-20
	// traceFloor is the share of tr K that the residual of the points which may still be
	// drawn must exceed.
	traceFloor = 0x1p-24

	panelRows = 256 // rows of F treated at a time
	panelCols = 512 // columns of F converted at a time
	smallRows = 32  // rows of H treated at a time
)

// partial is a partial Cholesky factor that grows by blocks of columns. Until it is
// finished it holds F to 2⁻⁴⁸, as f + lo.
type partial struct {
	*build
	lo    []float32 // len(rows)×rank
	nu    float64   // ν
	left  []float64 // K_ii − ‖F_i‖² of all points, with F to 2⁻⁴⁸
	marks []int
	dead  []bool // landmarks, and points found to depend on them

	sums []float64 // running sums of what is left of the points that may be drawn
	last int       // the last of them

	columns []float64 // columns of K, len(rows)×block
	fs      []float64 // rows of F at landmarks, in float64
	h, l    []float64 // residual matrix of the proposals, and L of those accepted
	work    []panel   // of the workers
}

// panel is the scratch memory of a worker.
type panel struct{ wide, row []float64 }

func newPartial(b *build) *partial {
	block := b.block
	p := &partial{build: b, left: slices.Clone(b.diag), nu: b.shift()}
	p.lo = make([]float32, len(p.f.Data))
	p.dead = make([]bool, p.n)
	p.sums = make([]float64, p.n)
	p.columns = make([]float64, len(p.rows)*block)
	p.fs = make([]float64, block*p.f.D)
	p.h, p.l = make([]float64, block*block), make([]float64, block*block)
	p.sent, p.came = make([]float64, block*(p.f.D+block)), make([]float64, block*(p.f.D+block))
	p.work = make([]panel, accel.Threads())
	for w := range p.work {
		p.work[w].wide = make([]float64, panelRows*min(panelCols, p.f.D))
	}
	return p
}

// weigh sums what is left of the points that may be drawn, and returns the sum, or 0
// if it is at rounding level.
func (p *partial) weigh() float64 {
	var sum float64
	for i, v := range p.left {
		if !p.dead[i] && v > pivotFloor*p.diag[i] {
			sum += v
			p.last = i
		}
		p.sums[i] = sum
	}
	if sum <= traceFloor*p.trace {
		return 0
	}
	return sum
}

// extend adds to F the columns of those proposals s that have a pivot above pivotFloor
// and that accept then accepts, in their order:
//
//	G = K(:,S) − F·F(S,:)ᵀ,  H = G(S,:) = LLᵀ − νD,  F ← [F, G·L⁻ᵀ],
//
// D being the diagonal of K(S,S), and ν at rounding level: see certify.
//
// A proposal that comes again has its chance again unless it was accepted.
func (p *partial) extend(ctx context.Context, proposals []int, accept func(s int, pivot float64) bool) error {
	seen := make(map[int]int, len(proposals)) // the position in uniq
	var uniq, order []int
	for _, s := range proposals {
		q, ok := seen[s]
		if !ok {
			q = len(uniq)
			seen[s] = q
			uniq = append(uniq, s)
		}
		order = append(order, q)
	}
	m, r := len(uniq), len(p.marks)
	c := blas64.General{Rows: len(p.rows), Cols: m, Stride: m, Data: p.columns}
	if err := comm.Agree(ctx, p.comm, p.take(ctx, p.rows, uniq, c)); err != nil {
		return err
	}
	p.formed += m
	// rows of F and of K at the proposals
	at, err := p.gather(ctx, uniq, r+m, func(dst []float64, i int) {
		p.wide(dst[:r], i, 0, r)
		copy(dst[r:], c.Data[i*m:(i+1)*m])
	})
	if err != nil {
		return err
	}
	if err := p.residual(ctx, at, m); err != nil {
		return err
	}
	taken := p.thin(uniq, order, accept)
	if len(taken) == 0 {
		return nil
	}
	err = p.append(ctx, at, uniq, taken, c)
	if err = comm.Agree(ctx, p.comm, err); err != nil {
		return err
	}
	return p.comm.AllGather(ctx, p.left, comm.Counts(p.n, precond.RankRows, p.comm.Size(), 1))
}

// wide sets dst to columns k0, …, k1-1 of row i of F.
func (p *partial) wide(dst []float64, i, k0, k1 int) {
	points.Widen(dst, p.f.Row(i)[k0:k1])
	for k, v := range p.lo[i*p.f.Stride+k0 : i*p.f.Stride+k1] {
		dst[k] += float64(v)
	}
}

// residual sets H = K(S,S) − F(S,:)·F(S,:)ᵀ, given rows [F(S,:), K(S,S)] of m proposals.
func (p *partial) residual(ctx context.Context, at []float64, m int) error {
	r := len(p.marks)
	fs := blas64.General{Rows: m, Cols: r, Stride: r + m, Data: at}
	return accel.ForEach(ctx, (m+smallRows-1)/smallRows, func(_, b int) {
		lo, hi := b*smallRows, min((b+1)*smallRows, m)
		for q := lo; q < hi; q++ {
			copy(p.h[q*m:(q+1)*m], at[q*(r+m)+r:])
		}
		if r > 0 {
			top := blas64.General{Rows: hi - lo, Cols: r, Stride: r + m, Data: at[lo*(r+m):]}
			blas64.Gemm(blas.NoTrans, blas.Trans, -1, top, fs, 1,
				blas64.General{Rows: hi - lo, Cols: m, Stride: m, Data: p.h[lo*m:]})
		}
	})
}

// thin goes through the proposals in their order, positions in uniq, and returns
// those that are accepted. Rows of p.l, of stride len(uniq), hold their L: for
// proposal q, with those accepted before, A,
//
//	L_qA = (L_AA⁻¹H_Aq)ᵀ,  pivot = H_qq − ‖L_qA‖²,  L_qq = √(pivot + νK_qq).
func (p *partial) thin(uniq, order []int, accept func(s int, pivot float64) bool) (taken []int) {
	m := len(uniq)
	in := make([]bool, m)
	for _, q := range order {
		if in[q] {
			continue
		}
		a := len(taken)
		row := p.l[a*m : a*m+m]
		for k, t := range taken {
			row[k] = (p.h[q*m+t] - floats.Dot(row[:k], p.l[k*m:k*m+k])) / p.l[k*m+k]
		}
		pivot := p.h[q*m+q] - floats.Dot(row[:a], row[:a])
		s := uniq[q]
		if !(pivot > pivotFloor*p.diag[s]) {
			p.dead[s] = p.dead[s] || a == 0 // else it could be proposed for ever
			continue
		}
		if accept(s, pivot) {
			row[a] = math.Sqrt(pivot + p.nu*p.diag[s])
			in[q] = true
			taken = append(taken, q)
		}
	}
	return taken
}

// append sets the next columns of F to (K(:,A) − F·F(A,:)ᵀ)·L⁻ᵀ, A being the
// proposals taken, and takes their squares from what is left. The columns of K are
// overwritten.
func (p *partial) append(ctx context.Context, at []float64, uniq, taken []int, c blas64.General) error {
	r, a := len(p.marks), len(taken)
	fs := blas64.General{Rows: a, Cols: r, Stride: max(r, 1), Data: p.fs}
	for k, q := range taken {
		copy(p.fs[k*r:(k+1)*r], at[q*(r+c.Cols):])
		p.dead[uniq[q]] = true
		p.marks = append(p.marks, uniq[q])
	}
	l := blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: a, Stride: len(uniq), Data: p.l}
	err := p.panels(ctx, 0, len(p.rows), func(who, lo, hi int) (lost float64) {
		w := &p.work[who]
		g := blas64.General{Rows: hi - lo, Cols: a, Stride: c.Stride, Data: c.Data[lo*c.Stride:]}
		pick(g, taken, buffer.Grow(&w.row, a))
		for k0 := 0; k0 < r; k0 += panelCols { // G ← G − F·F(A,:)ᵀ
			k1 := min(k0+panelCols, r)
			wide := blas64.General{Rows: hi - lo, Cols: k1 - k0, Stride: k1 - k0,
				Data: buffer.Grow(&w.wide, (hi-lo)*(k1-k0))}
			for i := lo; i < hi; i++ {
				p.wide(wide.Data[(i-lo)*wide.Stride:(i-lo+1)*wide.Stride], i, k0, k1)
			}
			part := blas64.General{Rows: a, Cols: k1 - k0, Stride: fs.Stride, Data: fs.Data[k0:]}
			blas64.Gemm(blas.NoTrans, blas.Trans, -1, wide, part, 1, g)
		}
		blas64.Trsm(blas.Right, blas.Trans, 1, l, g) // G ← G·L⁻ᵀ
		for i := lo; i < hi; i++ {
			src := g.Data[(i-lo)*g.Stride : (i-lo)*g.Stride+a]
			hi := p.f.Row(i)[r : r+a]
			lost += p.round(i, hi, src)
			for k, v := range src {
				p.left[p.rows[i]] -= v * v
				p.lo[i*p.f.Stride+r+k] = float32(v - float64(hi[k]))
			}
		}
		return lost
	})
	return cmp.Or(err, p.check())
}

// pick moves the columns taken of every row of g to its front.
func pick(g blas64.General, taken []int, tmp []float64) {
	for i := range g.Rows {
		row := g.Data[i*g.Stride:]
		for k, q := range taken {
			tmp[k] = row[q]
		}
		copy(row, tmp)
	}
}
