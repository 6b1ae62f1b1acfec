package multilevel

import (
	"context"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
)

const (
	panelRows = 256 // points of a panel of Z
	wave      = 32  // panels whose parts of Zᵀv exist together
)

// source gives Z, n×s, in panels of rows: held, or mapped again each time. On ranks the rows
// are those of this one.
type source struct {
	n, s  int             // n of all ranks
	own   int             // rows here
	held  *points.Dense32 // nil if it is not
	m     feature.Map
	x     points.Points // of the rows
	ranks *ranks
}

// form maps the points, into memory if hold is set.
func form(ctx context.Context, m feature.Map, p *Problem, hold bool, progress func(done, total int)) (*source, error) {
	_, s := m.Dims()
	n, _ := p.X.Dims()
	lo, hi := comm.Rows(n, precond.RankRows, p.Comm.Rank(), p.Comm.Size())
	z := &source{n: n, s: s, own: hi - lo, m: m, x: p.X.Slice(lo, hi)}
	err := ctx.Err()
	if hold {
		z.held, err = feature.Matrix(ctx, m, z.x, progress)
	}
	if err := comm.Agree(ctx, p.Comm, err); err != nil {
		return nil, err
	}
	return z, z.join(ctx, p.Comm, lo)
}

// panels returns the number of panels of the rows.
func (z *source) panels() int { return (z.own + panelRows - 1) / panelRows }

// panel returns the rows of panel p.
func (z *source) panel(p int) (i, j int) { return p * panelRows, min((p+1)*panelRows, z.own) }

// space is the scratch of a worker.
type space struct {
	feature feature.Workspace
	panel   []float32
	wide    []float64
	v       []float64
	simd    simd.Workspace
}

// rows returns points i, …, j-1 of Z, perhaps in scratch.
func (z *source) rows(i, j int, w *space) (data []float32, ld int) {
	if z.held != nil {
		return z.held.Data[i*z.held.Stride:], z.held.Stride
	}
	size := (j - i) * z.s
	w.panel = slices.Grow(w.panel[:0], size)
	data = w.panel[:size]
	x := z.x.Slice(i, j)
	if m, ok := z.m.(feature.Map32); ok {
		m.MapTo32(data, z.s, x, &w.feature)
		return data, z.s
	}
	w.wide = slices.Grow(w.wide[:0], size)
	z.m.MapTo(w.wide[:size], z.s, x, &w.feature)
	for p, v := range w.wide[:size] {
		data[p] = float32(v)
	}
	return data, z.s
}

// outer is the symmetric operator ZZᵀ − K.
type outer struct {
	z    *source
	k    Kernel
	work []space
	part []float64  // Z_pᵀv_p of a wave's panels
	u    []float64  // Zᵀv
	kv   *mat.Dense // Kv
}

func newOuter(z *source, k Kernel) *outer {
	o := &outer{
		z: z, k: k, work: make([]space, accel.Threads()),
		part: make([]float64, wave*z.s), u: make([]float64, z.s), kv: mat.NewDense(z.n, 1, nil),
	}
	for i := range o.work {
		o.work[i].v = make([]float64, panelRows)
	}
	return o
}

// Dim returns n.
func (o *outer) Dim() int { return o.z.n }

// MulTo sets dst = ZZᵀ·src − K·src, both n×1.
func (o *outer) MulTo(ctx context.Context, dst, src *mat.Dense) error {
	z, v, out := o.z, src.RawMatrix().Data, dst.RawMatrix().Data
	first, c := z.ranks.first, z.ranks.comm
	if err := o.gather(ctx, v); err != nil { // u = Zᵀv
		return err
	}
	err := accel.ForEach(ctx, z.panels(), func(worker, p int) { // Z_p·u
		w := &o.work[worker]
		i, j := z.panel(p)
		data, ld := z.rows(i, j, w)
		y := w.v[:j-i]
		clear(y)
		simd.Forward(j-i, z.s, data, ld, o.u, z.s, y, j-i, 1)
		copy(out[first+i:first+j], y)
	})
	if err == nil {
		err = c.AllGather(ctx, out[:z.n], comm.Counts(z.n, precond.RankRows, c.Size(), 1))
	}
	if err != nil {
		return err
	}
	if err := o.k.KMulTo(ctx, o.kv, src); err != nil {
		return err
	}
	for i, k := range o.kv.RawMatrix().Data {
		out[i] -= k
	}
	return nil
}

// multiply sets a part to Z_pᵀv_p of panel p0+q, v being of this rank's rows.
func (o *outer) multiply(worker, p0, q int, v []float64) {
	w, z := &o.work[worker], o.z
	i, j := z.panel(p0 + q)
	data, ld := z.rows(i, j, w)
	part := o.part[q*z.s : (q+1)*z.s]
	clear(part)
	simd.Backward(j-i, z.s, data, ld, part, z.s, v[i:j], j-i, 1, &w.simd)
}
