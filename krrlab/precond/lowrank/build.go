package lowrank

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

const (
	diagError  = 1e-5    // between the diagonals of Diag and Columns, relative
	indefinite = 1e-3    // share of k(x, x) by which ‖F_i‖² may exceed it
	slack      = 0x1p-20 // and share of the largest
)

// build is a factor under construction, of either method. Rows of f and d are those of this rank, rows.
type build struct {
	src   Source
	comm  comm.Comm
	n     int
	rows  []int
	diag  []float64 // K_ii of all points
	d     []float64 // d_i = K_ii − ‖F_i‖²
	trace float64
	f     *points.Dense32 // len(rows)×rank

	block  int
	entry  float64   // ε of the columns
	formed int       // columns of K
	lost   []float64 // ‖δ‖_F² of the rounding to float32, of panels of rows
}

func newBuild(src Source, rank int, o *Options) (*build, error) {
	n := src.Dim()
	if err := checkRank(rank, n); err != nil {
		return nil, err
	}
	p := &build{src: src, comm: comm.OrAlone(o.Comm), n: n, block: o.Block, entry: src.EntryError(), diag: src.Diag()}
	if !(p.entry >= 0) {
		panic(fmt.Sprintf("lowrank: columns with an error of %v", p.entry))
	}
	if len(p.diag) != n {
		panic(fmt.Sprintf("lowrank: a diagonal of %d entries for a matrix of order %d", len(p.diag), n))
	}
	for i, v := range p.diag {
		if !(v >= 0) || math.IsInf(v, 1) {
			return nil, fmt.Errorf("lowrank: diagonal entry %d is %v, want a number ≥ 0", i, v)
		}
		p.trace += v
	}
	if p.trace == 0 {
		return nil, fmt.Errorf("lowrank: the diagonal of K, of order %d, is zero: there is nothing to factor", n)
	}
	if math.IsInf(p.trace, 1) {
		return nil, fmt.Errorf("lowrank: the trace of K, of order %d, is not finite", n)
	}
	lo, hi := comm.Rows(n, precond.RankRows, p.comm.Rank(), p.comm.Size())
	p.d = slices.Clone(p.diag[lo:hi])
	for i := lo; i < hi; i++ {
		p.rows = append(p.rows, i)
	}
	p.lost = make([]float64, (hi-lo+panelRows-1)/panelRows)
	p.f = points.NewDense32(hi-lo, rank, nil)
	return p, nil
}

func checkRank(rank, n int) error {
	if rank < 1 || rank > n {
		return fmt.Errorf("lowrank: rank %d of a matrix of order %d, want 1 to %d", rank, n, n)
	}
	return nil
}

// take sets c to K(rows, s) and looks at the numbers.
func (p *build) take(ctx context.Context, rows, s []int, c blas64.General) error {
	if err := p.src.Part(ctx, rows, s, c); err != nil {
		return err
	}
	bad := make([]error, (len(rows)+panelRows-1)/panelRows)
	err := accel.ForEach(ctx, len(bad), func(_, b int) {
		for a := b * panelRows; a < min((b+1)*panelRows, len(rows)); a++ {
			i := rows[a]
			for k, v := range c.Data[a*c.Stride : a*c.Stride+c.Cols] {
				if v-v != 0 {
					bad[b] = fmt.Errorf("lowrank: K(%d, %d) is %v", i, s[k], v)
				}
				if want := p.diag[i]; i == s[k] && !(math.Abs(v-want) <= diagError*want) {
					bad[b] = fmt.Errorf("lowrank: K(%d, %d) is %v in its column and %v on the diagonal", i, i, v, want)
				}
			}
		}
	})
	return cmp.Or(append(bad, err)...)
}

// inTurn lets one rank after the other add to x, which all have then: sums in the order of the rows.
func inTurn(ctx context.Context, c comm.Comm, x []float64, add func()) error {
	for r := range c.Size() {
		if r == c.Rank() {
			add()
		}
		if err := comm.ShareNumbers(ctx, c, x, r); err != nil {
			return err
		}
	}
	return nil
}

// round sets dst to the float32 nearest to src, takes its square from d_i and returns
// the square of what was lost.
func (p *build) round(i int, dst []float32, src []float64) (lost float64) {
	var sum float64
	for k, v := range src {
		dst[k] = float32(v)
		w := float64(dst[k])
		sum += w * w
		lost += (v - w) * (v - w)
	}
	p.d[i] -= sum
	return lost
}

// panels calls body for panels lo, …, hi-1 of rows lo to hi of F, each on one thread. body returns what its rows lost
// by rounding.
func (p *build) panels(ctx context.Context, lo, hi int, body func(worker, lo, hi int) float64) error {
	return accel.ForEach(ctx, (hi-lo+panelRows-1)/panelRows, func(worker, b int) {
		at := lo + b*panelRows
		p.lost[at/panelRows] += body(worker, at, min(at+panelRows, hi))
	})
}

// check looks for rows of F that float32 does not hold, or that are too large for K to
// be positive semi-definite.
func (p *build) check() error {
	floor := slack * slices.Max(p.diag)
	for k, i := range p.rows {
		v := p.d[k]
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("lowrank: row %d of F does not fit float32; the diagonal entry of K is %.3g", i,
				p.diag[i])
		}
		if v < -indefinite*p.diag[i]-floor {
			return fmt.Errorf("lowrank: K is not positive semi-definite: its diagonal entry %d is %.6g, that of K̂ "+
				"is %.6g", i, p.diag[i], p.diag[i]-v)
		}
	}
	return nil
}

// finish returns the factor, F being the first len(marks) columns of p.f.
func (p *build) finish(ctx context.Context, method string, marks []int, nu float64) (*Factor, error) {
	f := &Factor{Method: method, N: p.n, F: narrow(p.f, len(marks)), Landmarks: marks, Asked: p.f.D,
		Columns: p.formed, Trace: p.trace, Shift: nu}
	return f, p.certify(ctx, f)
}

// narrow returns the first r columns of f, moved together in place, or copied if that
// frees half of the memory.
func narrow(f *points.Dense32, r int) *points.Dense32 {
	if r == f.D {
		return f
	}
	for i := range f.N {
		copy(f.Data[i*r:(i+1)*r], f.Data[i*f.Stride:i*f.Stride+r])
	}
	data := f.Data[: f.N*r : f.N*r]
	if 2*r <= f.D {
		data = slices.Clone(data)
	}
	return points.NewDense32(f.N, r, data)
}
