package precond

import (
	"context"
	"slices"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// dealtAbove is the order above which ranks share the factor of FormLInv: of fewer features its 16s² bytes on the way,
// 64 MiB at most, and its seconds are less than what two more collectives of each solve may take.
var dealtAbove = 2048

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

// FactorBytes returns the memory that each of the ranks that share a factor of s features holds of it, and as long as
// it is formed: 8s² and 16s² bytes by their number, the first by rows and by columns, the second with what others send
// and blocks of ZᵀZ.
func FactorBytes(s, sharers int) (held, forming int64) {
	held = 8 * int64(s) * int64(s) / int64(sharers)
	if forming = 2 * held; sharers > 1 {
		forming += 8*int64(s)*accel.TileOrder +
			max(8*together*gramOrder*gramOrder, 4*int64(s)*int64(s)/together)
	}
	return held, forming
}

// linv is L⁻¹: of each block of colBlock rows the columns up to its diagonal, and of each block of columns the rows
// from its diagonal on. In one process they are parts of one array, of which stride is that of the rows; ranks have
// some of them, without gaps.
type linv struct {
	rows, columns [][]float64
	s, stride     int
	has           func(b int) bool // nil where this rank has all
}

func newLinv(s int) *linv {
	blocks := (s + colBlock - 1) / colBlock
	return &linv{rows: make([][]float64, blocks), columns: make([][]float64, blocks), s: s}
}

// block returns the first index of a block and the one after its last.
func (d *linv) block(b int) (c0, c1 int) { return b * colBlock, min((b+1)*colBlock, d.s) }

// zeros returns a matrix that the ranks share.
func (k *rows) zeros(ctx context.Context, s int) *accel.Dealt {
	return accel.NewDealt(s, k.comm.Rank(), k.comm.Size(), func(x []float64, root int) error {
		return comm.ShareNumbers(ctx, k.comm, x, root)
	})
}

// invertDealt takes L⁻¹ out of the rows that the ranks send.
func (w *Woodbury) invertDealt(m *accel.Dealt) error {
	d := newLinv(w.s)
	d.has = func(b int) bool { return b%m.Size == m.Rank }
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
	w.linv, w.stat = d, float64(w.s)-w.lambdaP*q.total() // s − λ_p‖L⁻¹‖_F²
	return err
}

// gatherBlocks completes x, t×s, of which each rank has the columns of its blocks: others are 0.
func (p *solve) gatherBlocks(ctx context.Context, x []float64) error {
	d := p.w.linv
	if d == nil || d.has == nil {
		return nil
	}
	for b := range d.rows {
		c0, c1 := d.block(b)
		for row := 0; row < p.t && !d.has(b); row++ {
			clear(x[row*d.s+c0 : row*d.s+c1])
		}
	}
	return comm.Merge(ctx, p.w.rows.comm, x)
}

// bytes returns what a rank holds of it beside other things.
func (d *linv) bytes() (n int64) {
	for _, x := range slices.Concat(d.rows, d.columns) {
		n += 8 * int64(len(x))
	}
	return n
}
