package multilevel

import (
	"context"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/rng"
)

// ranks is what a source knows of the ranks that have the rows of Z.
type ranks struct {
	comm  comm.Comm
	first int     // row of Z that is the first of this rank
	peak  float64 // bounds max|Z| of all
	sum   []int64 // Zᵀv in fixed point
}

// join finds max|Z| of all ranks; where Z is not held it is mapped once for that.
func (z *source) join(ctx context.Context, c comm.Comm, first int) error {
	z.ranks = &ranks{comm: c, first: first, sum: make([]int64, z.s)}
	work := make([]space, accel.Threads())
	most := make([]float64, accel.Threads())
	err := accel.ForEach(ctx, z.panels(), func(worker, p int) {
		i, j := z.panel(p)
		data, ld := z.rows(i, j, &work[worker])
		for r := range j - i {
			for _, v := range data[r*ld : r*ld+z.s] {
				if a := math.Abs(float64(v)); !(a <= most[worker]) {
					most[worker] = max(most[worker], a) // NaN from the first one on
				}
			}
		}
	})
	peaks := make([]float64, c.Size())
	peaks[c.Rank()] = slices.Max(most)
	if err = comm.Agree(ctx, c, err); err != nil {
		return err
	}
	if err := c.AllReduce(ctx, peaks); err != nil {
		return err
	}
	for r, v := range peaks {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("multilevel: Z has %v in the rows of rank %d", v, r)
		}
		z.ranks.peak = max(z.ranks.peak, v*(1+1e-3)) // rounding of products
	}
	return nil
}

// gather sets u = Zᵀv: parts that belong to panels of 256 rows are added in fixed point,
// |(Zᵀv)_k| ≤ max|Z|·‖v‖₁, so that the bits depend neither on threads nor on ranks.
func (o *outer) gather(ctx context.Context, v []float64) error {
	z, k := o.z, o.z.ranks
	var norm float64
	for _, x := range v {
		norm += math.Abs(x)
	}
	fixed := comm.FixedFor(k.peak * norm * (1 + 1e-3))
	clear(k.sum)
	for p0 := 0; p0 < z.panels(); p0 += wave {
		count := min(wave, z.panels()-p0)
		err := accel.ForEach(ctx, count, func(worker, q int) { o.multiply(worker, p0, q, v[k.first:]) })
		if err != nil {
			return err
		}
		for q := range count {
			fixed.Add(k.sum, o.part[q*z.s:(q+1)*z.s])
		}
	}
	if err := k.comm.AllReduceInt64(ctx, k.sum); err != nil {
		return err
	}
	for c, s := range k.sum {
		o.u[c] = fixed.Value(s)
	}
	return nil
}

// atFirst is M for s ≥ n: the first rank has it and gives the others what comes of it.
type atFirst struct {
	n    int
	comm comm.Comm
	m    *dense // nil at others
}

// newMetric makes M for s ≥ n. On ranks the first maps all points for it.
func newMetric(ctx context.Context, p *Problem, z *source) (metric, error) {
	a := &atFirst{n: z.n, comm: p.Comm}
	var err error
	if p.Comm.Rank() == 0 {
		held := z.held
		if held.N < z.n {
			held, err = feature.Matrix(ctx, z.m, p.X, nil)
		}
		if err == nil {
			a.m, err = newDense(ctx, held, p.LambdaP)
		}
	}
	if err := comm.Agree(ctx, p.Comm, err); err != nil {
		return nil, err
	}
	return a, nil
}

// Dim returns n.
func (a *atFirst) Dim() int { return a.n }

// SolveTo sets dst = M⁻¹r.
func (a *atFirst) SolveTo(ctx context.Context, dst, r *mat.Dense) error {
	return a.share(ctx, dst, func(m *dense, dst *mat.Dense) error { return m.SolveTo(ctx, dst, r) })
}

// NormalTo sets dst to a draw of N(0, M).
func (a *atFirst) NormalTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	return a.share(ctx, dst, func(m *dense, dst *mat.Dense) error { return m.NormalTo(ctx, dst, g) })
}

// share sets dst on all ranks to what make puts into it at the first.
func (a *atFirst) share(ctx context.Context, dst *mat.Dense, fill func(m *dense, dst *mat.Dense) error) error {
	if a.comm.Size() == 1 {
		return fill(a.m, dst)
	}
	n, t := dst.Dims()
	out := mat.NewDense(n, t, nil)
	var err error
	if a.m != nil {
		err = fill(a.m, out)
	}
	if err := comm.Agree(ctx, a.comm, err); err != nil {
		return err
	}
	if err := comm.ShareNumbers(ctx, a.comm, out.RawMatrix().Data, 0); err != nil {
		return err
	}
	dst.Copy(out)
	return nil
}
