package precond

import (
	"context"
	"slices"
	"unsafe"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/internal/buffer"
	"github.com/krrlab/lab/krrlab/points"
)

// dealtAbove is the order above which ranks share the factor of FormLInv: of fewer features its 16s² bytes on the way,
// 64 MiB at most, and its seconds are less than what two more collectives of each solve may take.
var dealtAbove = 2048

// dealtTogether is how many blocks of ZᵀZ are added over the ranks together, at least.
const dealtTogether = 16

// Sharers returns how many of the ranks share the factor that New makes for n points, s features and t columns: all of
// them FormLInv of more than 2,048 features, else each has its own.
func Sharers(form Form, n, s, t, ranks int) int {
	if form == AutoForm {
		form = choose(n, s, t)
	}
	if form == FormLInv && s > dealtAbove {
		return ranks
	}
	return 1
}

// FactorBytes returns the memory that each of the ranks that share a factor of s features holds of it, and as long as it
// is formed: 8s² and 16s² bytes by their number, the first by rows and by columns, the second with what others send and
// blocks of ZᵀZ.
func FactorBytes(s, sharers int) (held, forming int64) {
	held = 8 * int64(s) * int64(s) / int64(sharers)
	if forming = 2 * held; sharers > 1 {
		forming += 8*int64(s)*accel.TileOrder + 8*dealtTogether*gramOrder*gramOrder
	}
	return held, forming
}

// dealt is L⁻¹ shared by ranks: of each block of colBlock rows, in turn, the columns up to its diagonal, and of each
// block of columns the rows from its diagonal on, both without gaps; nil at other ranks.
type dealt struct {
	rows, columns [][]float64
	s             int
	has           func(b int) bool
}

// block returns the first index of a block and the one after its last.
func (d *dealt) block(b int) (c0, c1 int) { return b * colBlock, min((b+1)*colBlock, d.s) }

// newDealt forms ZᵀZ+λ_pI, factors it and inverts the factor, each rank its tiles, with the bits of one process.
func (w *Woodbury) newDealt(ctx context.Context, fast bool) (err error) {
	k, c := w.rows, w.rows.comm
	m := accel.NewDealt(w.s, c.Rank(), c.Size(), func(x []float64, root int) error {
		return c.Broadcast(ctx, unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 8*len(x)), root)
	})
	lap := stopwatch()
	var diag []float64
	form := func(fast bool) (err error) {
		diag, err = k.gramDealt(ctx, w.z, m, fast)
		return err
	}
	if fast {
		_, err = k.within(ctx, w.z, w.lambdaP/10, form, func() (float64, error) {
			return measured(ctx, c, w.z, diag, func(n *measurement) error { return n.dealt(ctx, m) })
		})
	} else {
		err = form(false)
	}
	if err != nil {
		return err
	}
	w.seconds.Gram = lap()
	for j, col := range m.Columns {
		for r := 0; r < accel.TileOrder && col != nil && j*accel.TileOrder+r < w.s; r++ {
			col[r*(min(accel.TileOrder, w.s-j*accel.TileOrder)+1)] += w.lambdaP // C = ZᵀZ + λ_pI
		}
	}
	at, pivot, err := m.Potrf() // C = LLᵀ
	if err == nil && at < w.s {
		err = w.notDefinite(at, pivot, floats.Sum(diag)) // at all ranks
	}
	w.seconds.Factor = lap()
	if err == nil {
		err = w.invertDealt(m)
	}
	w.seconds.Form = lap()
	return err
}

// gramDealt sets m to ZᵀZ as gram forms it, and returns its diagonal.
func (k *rows) gramDealt(ctx context.Context, z *points.Dense32, m *accel.Dealt, fast bool) ([]float64, error) {
	s, g := z.D, k.gramSum(z, fast)
	diag := make([]float64, s)
	var buf []int64
	for blocks := gramBlocks(0, s); len(blocks) > 0; {
		count := 1
		for count < len(blocks) && (count < dealtTogether || blocks[count].i == blocks[count-1].i) {
			count++
		}
		i0, i1 := blocks[0].i, blocks[count-1].i+blocks[count-1].rows
		at := func(i int) int { return i*(i+1)/2 - i0*(i0+1)/2 }
		sums := buffer.Grow(&buf, at(i1))
		err := g.each(ctx, blocks[:count], func(b gramBlock, sum []int64) {
			for i := range b.rows {
				copy(sums[at(b.i+i)+b.j:], sum[i*b.cols:i*b.cols+b.width(i)])
			}
		})
		if err = comm.Agree(ctx, k.comm, err); err != nil {
			return nil, err
		}
		if err := k.comm.AllReduceInt64(ctx, sums); err != nil {
			return nil, err
		}
		err = accel.ForEach(ctx, i1-i0, func(_, i int) {
			i += i0
			row := sums[at(i):at(i+1)]
			for b, col := range m.Columns[:i/accel.TileOrder+1] {
				j0 := b * accel.TileOrder
				width := min(accel.TileOrder, s-j0)
				for j := j0; j < min(j0+width, i+1) && col != nil; j++ {
					col[(i-j0)*width+j-j0] = g.value(row[j], i, j)
				}
			}
			diag[i] = g.value(row[i], i, i)
		})
		if err = comm.Agree(ctx, k.comm, err); err != nil {
			return nil, err
		}
		blocks = blocks[count:]
	}
	return diag, nil
}

// dealt sets u = Cv − u, C symmetric. Ranks add what their columns make of v, in any order: the last digits of what is
// measured, and no others, may differ from one process'.
func (m *measurement) dealt(ctx context.Context, c *accel.Dealt) error {
	s, t := m.z.D, measureColumns
	y := make([]float64, t*s)
	part := func(x []float64, j, cols int) blas64.General {
		return blas64.General{Rows: t, Cols: cols, Stride: s, Data: x[j:]}
	}
	err := accel.ForEach(ctx, 1, func(_, _ int) { // on one thread of the BLAS, as all products are
		for b, col := range c.Columns {
			j := b * accel.TileOrder
			k := min(accel.TileOrder, s-j)
			if col == nil {
				continue
			}
			tile := blas64.Symmetric{Uplo: blas.Lower, N: k, Stride: k, Data: col}
			blas64.Symm(blas.Right, 1, tile, part(m.v, j, k), 1, part(y, j, k))
			if below := s - j - k; below > 0 {
				a := blas64.General{Rows: below, Cols: k, Stride: k, Data: col[k*k:]}
				blas64.Gemm(blas.NoTrans, blas.Trans, 1, part(m.v, j, k), a, 1, part(y, j+k, below))
				blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, part(m.v, j+k, below), a, 1, part(y, j, k))
			}
		}
	})
	if err = comm.Agree(ctx, m.c, err); err == nil {
		err = m.c.AllReduce(ctx, y)
	}
	for i, v := range y {
		m.u[i] = v - m.u[i]
	}
	return err
}

// invertDealt takes L⁻¹ out of the rows that the ranks send.
func (w *Woodbury) invertDealt(m *accel.Dealt) error {
	blocks := (w.s + colBlock - 1) / colBlock
	d := &dealt{rows: make([][]float64, blocks), columns: make([][]float64, blocks), s: w.s,
		has: func(b int) bool { return b%m.Size == m.Rank }}
	var q squares
	err := m.Invert(func(i int, row []float64) {
		q.add(row)
		q.skip(w.s - len(row))
		for b := range i/colBlock + 1 {
			c0, c1 := d.block(b)
			if !d.has(b) {
				continue
			}
			if i == c0 {
				d.rows[b], d.columns[b] = make([]float64, (c1-c0)*c1), make([]float64, (w.s-c0)*(c1-c0))
			}
			copy(d.columns[b][(i-c0)*(c1-c0):], row[c0:min(c1, i+1)])
			if i < c1 {
				copy(d.rows[b][(i-c0)*c1:], row)
			}
		}
	})
	w.dealt, w.stat = d, float64(w.s)-w.lambdaP*q.total() // s − λ_p‖L⁻¹‖_F²
	return err
}

// gatherBlocks completes x, t×s, of which each rank has the columns of its blocks.
func (p *solve) gatherBlocks(ctx context.Context, x []float64) error {
	d, c := p.w.dealt, p.w.rows.comm
	if d == nil {
		return nil
	}
	packed := buffer.Grow(&p.packed, len(x))
	each := func(back bool) {
		at := 0
		for r := range c.Size() {
			from := at
			for b := r; b < p.colBlocks; b += c.Size() {
				c0, c1 := d.block(b)
				for row := range p.t {
					mine, sent := x[row*d.s+c0:row*d.s+c1], packed[at:at+c1-c0]
					at += c1 - c0
					if back {
						copy(mine, sent)
					} else if r == c.Rank() {
						copy(sent, mine)
					}
				}
			}
			p.shares[r] = at - from
		}
	}
	each(false)
	if err := c.AllGather(ctx, packed, p.shares); err != nil {
		return err
	}
	each(true)
	return nil
}

func (d *dealt) bytes() (n int64) {
	for _, x := range slices.Concat(d.rows, d.columns) {
		n += 8 * int64(len(x))
	}
	return n
}

// inverseRows returns the rows of L⁻¹ of block b, up to its diagonal, with no data where they are another rank's.
func (w *Woodbury) inverseRows(b int) blas64.General {
	c0, c1 := b*colBlock, min((b+1)*colBlock, w.s)
	x := blas64.General{Rows: c1 - c0, Cols: c1, Stride: w.s}
	if w.dealt != nil {
		x.Stride, x.Data = c1, w.dealt.rows[b]
	} else {
		x.Data = w.factor[c0*w.s:]
	}
	return x
}

// inverseColumns returns the columns of L⁻¹ of block b, from its diagonal on, as inverseRows.
func (w *Woodbury) inverseColumns(b int) blas64.General {
	c0, c1 := b*colBlock, min((b+1)*colBlock, w.s)
	x := blas64.General{Rows: w.s - c0, Cols: c1 - c0, Stride: w.s}
	if w.dealt != nil {
		x.Stride, x.Data = c1-c0, w.dealt.columns[b]
	} else {
		x.Data = w.factor[c0*w.s+c0:]
	}
	return x
}
