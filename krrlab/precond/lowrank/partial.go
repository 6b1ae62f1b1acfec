package lowrank

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/ranks/comm"
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
	left  []float64 // K_ii − ‖F_i‖² of rows, with F to 2⁻⁴⁸
	marks []int
	dead  []bool // landmarks, and points found to depend on them

	sums   []float64 // running sums of what is left of the points that may be drawn, to each of rows
	totals []float64 // and to each block of precond.RankRows rows

	columns []float64 // columns of K, len(rows)×block
	at      []float64 // rows of F at proposals, in float64
	came    []float64 // these as they came from ranks, then those of the landmarks among them
	h, l    []float64 // residual matrix of the proposals, and L of those accepted
	work    []panel   // of the workers
}

// panel is the scratch memory of a worker.
type panel struct{ wide, row []float64 }

func newPartial(b *build) *partial {
	block := b.block
	p := &partial{build: b, left: slices.Clone(b.d), nu: b.shift()}
	p.lo = make([]float32, len(p.f.Data))
	p.dead = make([]bool, p.n)
	p.sums = make([]float64, len(p.rows))
	p.totals = make([]float64, (p.n+precond.RankRows-1)/precond.RankRows)
	p.columns = make([]float64, len(p.rows)*block)
	p.h, p.l = make([]float64, block*block), make([]float64, block*block)
	p.at, p.came = make([]float64, block*(p.f.D+1)), make([]float64, block*(p.f.D+1))
	p.work = make([]panel, accel.Threads())
	for w := range p.work {
		p.work[w].wide = make([]float64, panelRows*min(panelCols, p.f.D))
	}
	return p
}

// weigh sums what is left of the points that may be drawn, and returns the sum, or 0
// if it is at rounding level.
func (p *partial) weigh(ctx context.Context) (sum float64, err error) {
	for a, i := range p.rows {
		if i%precond.RankRows == 0 {
			sum = 0
		}
		if v := p.left[a]; !p.dead[i] && v > pivotFloor*p.diag[i] {
			sum += v
		}
		p.sums[a], p.totals[i/precond.RankRows] = sum, sum
	}
	if err := p.comm.AllGather(ctx, p.totals, comm.Counts(len(p.totals), 1, p.comm.Size(), 1)); err != nil {
		return 0, err
	}
	sum = 0
	for b, v := range p.totals {
		p.totals[b], sum = sum, sum+v
	}
	for a, i := range p.rows {
		p.sums[a] += p.totals[i/precond.RankRows]
	}
	if sum <= traceFloor*p.trace {
		sum = 0
	}
	return sum, nil
}

// draw returns for each v < Σ_l d_l the point i with d_1 + … + d_{i-1} ≤ v < d_1 + … + d_i, of those that may be
// drawn.
func (p *partial) draw(ctx context.Context, vs []float64) ([]int64, error) {
	at := make([]int64, len(vs))
	for k, v := range vs {
		a := sort.Search(len(p.sums), func(a int) bool { return p.sums[a] > v })
		if a < len(p.rows) && v >= p.totals[p.rows[0]/precond.RankRows] { // else another rank's
			at[k] = int64(p.rows[a])
		}
	}
	return at, p.comm.AllReduceInt64(ctx, at)
}

// extend adds to F the columns of those proposals s that have a pivot above pivotFloor
// and that accept then accepts, in their order:
//
//	G = K(:,S) − F·F(S,:)ᵀ,  H = G(S,:) = LLᵀ − νD,  F ← [F, G·L⁻ᵀ],
//
// D being the diagonal of K(S,S), and ν at rounding level: see certify.
//
// A proposal that comes again has its chance again unless it was accepted.
func (p *partial) extend(ctx context.Context, proposals []int64, accept func(left, pivot float64) bool) error {
	var uniq, order []int // as they were drawn
	for _, s := range proposals {
		q := slices.Index(uniq, int(s))
		if q < 0 {
			q, uniq = len(uniq), append(uniq, int(s))
		}
		order = append(order, q)
	}
	m := len(uniq)
	c := blas64.General{Rows: len(p.rows), Cols: m, Stride: m, Data: p.columns}
	err := p.take(ctx, p.rows, uniq, c)
	if err == nil {
		err = p.take(ctx, uniq, uniq, blas64.General{Rows: m, Cols: m, Stride: m, Data: p.h})
	}
	if err = comm.Agree(ctx, p.comm, err); err != nil {
		return err
	}
	p.formed += m
	at, err := p.gather(ctx, uniq)
	if err != nil {
		return err
	}
	if err := p.residual(ctx, at, m); err != nil {
		return err
	}
	taken := p.thin(at, uniq, order, accept)
	if len(taken) == 0 {
		return nil
	}
	return comm.Agree(ctx, p.comm, p.append(ctx, at, uniq, taken, c))
}

// gather returns of points s F and what is left, as rows, each of the rank that has it.
func (p *partial) gather(ctx context.Context, s []int) ([]float64, error) {
	width, counts := len(p.marks)+1, make([]int, p.comm.Size())
	came, at := buffer.Grow(&p.came, len(s)*width), buffer.Grow(&p.at, len(s)*width)
	sorted := slices.Sorted(slices.Values(s)) // by rank
	for rank := range counts {
		lo, hi := comm.Rows(p.n, precond.RankRows, rank, len(counts))
		a, _ := slices.BinarySearch(sorted, lo)
		b, _ := slices.BinarySearch(sorted, hi)
		counts[rank] = (b - a) * width
		for q := a; q < b && rank == p.comm.Rank(); q++ {
			row := came[q*width : (q+1)*width]
			p.wide(row[:width-1], sorted[q]-lo, 0, width-1)
			row[width-1] = p.left[sorted[q]-lo]
		}
	}
	err := p.comm.AllGather(ctx, came, counts)
	for k, i := range s {
		q, _ := slices.BinarySearch(sorted, i)
		copy(at[k*width:(k+1)*width], came[q*width:])
	}
	return at, err
}

// wide sets dst to columns k0, …, k1-1 of row i of F.
func (p *partial) wide(dst []float64, i, k0, k1 int) {
	points.Widen(dst, p.f.Row(i)[k0:k1])
	for k, v := range p.lo[i*p.f.Stride+k0 : i*p.f.Stride+k1] {
		dst[k] += float64(v)
	}
}

// residual takes F(S,:)·F(S,:)ᵀ from H = K(S,S), given rows of F at m proposals.
func (p *partial) residual(ctx context.Context, at []float64, m int) error {
	r := len(p.marks)
	fs := blas64.General{Rows: m, Cols: r, Stride: r + 1, Data: at}
	return accel.ForEach(ctx, (m+smallRows-1)/smallRows, func(_, b int) {
		lo, hi := b*smallRows, min((b+1)*smallRows, m)
		top := blas64.General{Rows: hi - lo, Cols: r, Stride: r + 1, Data: at[lo*(r+1):]}
		blas64.Gemm(blas.NoTrans, blas.Trans, -1, top, fs, 1,
			blas64.General{Rows: hi - lo, Cols: m, Stride: m, Data: p.h[lo*m:]})
	})
}

// thin goes through the proposals in their order, positions in uniq, and returns
// those that are accepted. Rows of p.l, of stride len(uniq), hold their L: for
// proposal q, with those accepted before, A,
//
//	L_qA = (L_AA⁻¹H_Aq)ᵀ,  pivot = H_qq − ‖L_qA‖²,  L_qq = √(pivot + νK_qq).
func (p *partial) thin(at []float64, uniq, order []int, accept func(left, pivot float64) bool) (taken []int) {
	m, width := len(uniq), len(p.marks)+1
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
		if accept(at[q*width+width-1], pivot) {
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
	fs := blas64.General{Rows: a, Cols: r, Stride: max(r, 1), Data: p.came}
	for k, q := range taken {
		copy(p.came[k*r:(k+1)*r], at[q*(r+1):])
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
				p.left[i] -= v * v
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
