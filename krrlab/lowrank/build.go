package lowrank

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/points"
)

const (
	diagError  = 1e-5    // between the diagonals of Diag and Columns, relative
	indefinite = 1e-3    // share of k(x, x) by which ‖F_i‖² may exceed it
	slack      = 0x1p-20 // and share of the largest
)

// build is a factor under construction, of either method.
type build struct {
	src     Source
	n       int
	diag    []float64 // K_ii
	d       []float64 // d_i = K_ii − ‖F_i‖²
	trace   float64
	f       *points.Dense32 // n×rank
	columns []float64       // columns of K, n×block

	block  int
	entry  float64 // ε of the columns
	formed int     // columns of K
	delta2 float64 // ‖δ‖_F² of the rounding to float32
	sec    Seconds
	start  time.Time
}

func newBuild(ctx context.Context, src Source, rank, block int) (*build, error) {
	n := src.Dim()
	if err := checkRank(rank, n); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := &build{src: src, n: n, block: block, entry: src.EntryError(), diag: src.Diag(), start: time.Now()}
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
	p.d = slices.Clone(p.diag)
	p.f = points.NewDense32(n, rank, nil)
	p.columns = make([]float64, n*block)
	return p, nil
}

func checkRank(rank, n int) error {
	if rank < 1 || rank > n {
		return fmt.Errorf("lowrank: rank %d of a matrix of order %d, want 1 to %d", rank, n, n)
	}
	return nil
}

// take gets the columns s of K, row-major with stride len(s), into p.columns.
func (p *build) take(ctx context.Context, s []int) ([]float64, error) {
	clock := time.Now()
	m := len(s)
	c := p.columns[:p.n*m]
	if err := p.src.Columns(ctx, s, mat.NewDense(p.n, m, c)); err != nil {
		return nil, err
	}
	p.formed += m
	p.sec.Columns += time.Since(clock).Seconds()
	for q, i := range s {
		if got, want := c[i*m+q], p.diag[i]; !(math.Abs(got-want) <= diagError*want) {
			return nil, fmt.Errorf("lowrank: K(%d, %d) is %v in its column and %v on the diagonal", i, i, got, want)
		}
	}
	bad := make([]int, (p.n+panelRows-1)/panelRows)
	err := accel.ForEach(ctx, len(bad), func(_, b int) {
		rows := c[b*panelRows*m : min((b+1)*panelRows, p.n)*m]
		bad[b] = slices.IndexFunc(rows, func(v float64) bool { return v-v != 0 })
	})
	for b, k := range bad {
		if err == nil && k >= 0 {
			k += b * panelRows * m
			return nil, fmt.Errorf("lowrank: K(%d, %d) is %v", k/m, s[k%m], c[k])
		}
	}
	return c, err
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

// panels calls body for panels of rows lo, …, hi-1 of F, each on one thread. body
// returns what its rows lost by rounding, which is added up in the order of the rows.
func (p *build) panels(ctx context.Context, rows int, body func(worker, lo, hi int) float64) error {
	lost := make([]float64, (p.n+rows-1)/rows)
	err := accel.ForEach(ctx, len(lost), func(worker, b int) {
		lost[b] = body(worker, b*rows, min((b+1)*rows, p.n))
	})
	if err != nil {
		return err
	}
	for _, v := range lost {
		p.delta2 += v
	}
	return p.check()
}

// check looks for rows of F that float32 does not hold, or that are too large for K to
// be positive semi-definite.
func (p *build) check() error {
	floor := slack * slices.Max(p.diag)
	for i, v := range p.d {
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
func (p *build) finish(method string, marks []int, nu float64) *Factor {
	f := &Factor{Method: method, F: narrow(p.f, len(marks)), Landmarks: marks, Asked: p.f.D, Columns: p.formed,
		Trace: p.trace, Shift: nu}
	p.certify(f)
	p.sec.Total = time.Since(p.start).Seconds()
	p.sec.Update = p.sec.Total - p.sec.Columns
	f.Seconds = p.sec
	return f
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
