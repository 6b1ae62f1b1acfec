package lanczos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
)

const (
	rowBlock = 2048    // rows of a task, and of a partial sum
	unit     = 0x1p-53 // of rounding
	tail     = 30      // a draw of N(0, M) is refused with a probability of 2e^−tail
)

// ErrStop is what Options.Monitor returns to end the processes without an error.
var ErrStop = errors.New("lanczos: stopped by Monitor")

// Run takes up to o.Steps steps of the Lanczos process with A from a start uniform on the
// sphere. It returns an error if the context ends (its error), if A or o.Monitor return one,
// or if a number is not finite; the Result then holds the steps before, and is nil if
// there were none. It panics for options that make no sense.
func Run(ctx context.Context, a Operator, o *Options) (*Result, error) {
	w := mat.NewDense(a.Dim(), 1, nil)
	cmp.Or(o, &Options{}).Start.Normals(w.RawMatrix().Data, 0)
	return alone(RunFrom(ctx, a, w, o))
}

// RunPencil is Run for the pencil (A, M), with the spectrum of M⁻¹A. It also returns an error
// if M is not positive definite. It panics if the orders differ.
func RunPencil(ctx context.Context, a Operator, m Metric, o *Options) (*Result, error) {
	return alone(RunMany(ctx, a, one{m}, 1, o))
}

// alone returns what a single process found.
func alone(res []*Result, err error) (*Result, error) {
	r := res[0]
	if err == nil {
		err = r.Err
	}
	if r != nil && r.Steps == 0 {
		r = nil
	}
	return r, err
}

// RunMany is RunPencil for the pencils (A, M_c), c = 0, …, count-1, side by side: one product
// of A with a block of vectors serves all that have not converged, and one call of m. Where M_c
// is not positive definite, or a number is not finite, process c ends alone, and Result.Err says so.
// The results of an interrupted run are those of the steps before, nil where there were none.
// Memory: 16nk·count bytes for k steps.
func RunMany(ctx context.Context, a Operator, m Metrics, count int, o *Options) ([]*Result, error) {
	if a.Dim() != m.Dim() || count < 1 {
		panic(fmt.Sprintf("lanczos: A of order %d with %d M of order %d", a.Dim(), count, m.Dim()))
	}
	w := mat.NewDense(a.Dim(), count, nil)
	if err := m.NormalColumnsTo(ctx, w, cmp.Or(o, &Options{}).Start); err != nil {
		return make([]*Result, count), err
	}
	return runAll(ctx, a, m, w, o)
}

// RunFrom is Run from the columns of w, side by side as RunMany is. The intervals are those of starts uniform on the
// sphere. Memory: 8nk bytes for each column and k steps.
func RunFrom(ctx context.Context, a Operator, w *mat.Dense, o *Options) ([]*Result, error) {
	return runAll(ctx, a, nil, w, o)
}

// one is a single metric.
type one struct{ Metric }

func (m one) SolveColumnsTo(ctx context.Context, dst, r *mat.Dense, _ []int) error {
	return m.SolveTo(ctx, dst, r)
}

func (m one) NormalColumnsTo(ctx context.Context, dst *mat.Dense, g rng.Stream) error {
	return m.NormalTo(ctx, dst, g)
}

// process is the state of one process.
type process struct {
	o     *Options
	n     int
	plain bool // M = I
	res   *Result

	r, z   [][]float64 // r_j and z_j = M⁻¹r_j; the same where M = I
	w, y   []float64   // Az_j less its projection, and M⁻¹ of it
	h      []float64   // z_iᵀw
	part   []float64   // partial sums
	alpha  float64     // of the step under way
	defect float64     // Σ of squares of what should be zero
}

// group is the state of processes side by side.
type group struct {
	a     Operator
	m     Metrics // nil: M = I
	o     Options
	all   []*process
	cols  []int // those that go on
	began time.Time
}

// runAll starts from the columns of w; a nil m is M = I.
func runAll(ctx context.Context, a Operator, m Metrics, w *mat.Dense, o *Options) ([]*Result, error) {
	n, count := w.Dims()
	g := &group{a: a, m: m, o: o.settled(n), began: time.Now()}
	for c := range count {
		g.cols = append(g.cols, c)
		g.all = append(g.all, &process{
			o: &g.o, n: n, plain: m == nil, res: &Result{N: n, confidence: g.o.Confidence},
			w: mat.Col(nil, c, w), y: make([]float64, n),
			h: make([]float64, g.o.Steps), part: make([]float64, (n+rowBlock-1)/rowBlock*g.o.Steps),
		})
	}
	err := g.start(ctx)
	for err == nil && len(g.cols) > 0 {
		err = g.step(ctx)
	}
	if errors.Is(err, ErrStop) {
		err = nil
	}
	out := make([]*Result, count)
	for c, p := range g.all {
		if p.res.Steps > 0 || p.res.Err != nil {
			out[c] = p.res
		}
	}
	return out, err
}

// block returns the vectors of the processes that go on as the columns of a matrix.
func (g *group) block(of func(p *process) []float64) *mat.Dense {
	k := len(g.cols)
	if k == 1 {
		return mat.NewDense(g.a.Dim(), 1, of(g.all[g.cols[0]]))
	}
	x := mat.NewDense(g.a.Dim(), k, nil)
	for j, c := range g.cols {
		x.SetCol(j, of(g.all[c]))
	}
	return x
}

// spread copies the columns of x to the vectors of the processes.
func (g *group) spread(x *mat.Dense, to func(p *process) []float64) {
	for j, c := range g.cols {
		mat.Col(to(g.all[c]), j, x)
	}
}

// start makes r₁ and z₁.
func (g *group) start(ctx context.Context) error {
	norms, err := g.norms(ctx)
	if err != nil {
		return err
	}
	left := g.cols[:0:0]
	for j, c := range g.cols {
		p := g.all[c]
		q, n := norms[j]*norms[j], float64(p.n)
		switch off := 2 * math.Sqrt(tail*n); {
		case p.res.Err != nil:
		case q == 0:
			p.res.Err = errors.New("lanczos: the start vector is zero")
		case g.m != nil && (q > n+off+2*tail || q < n-off): // no χ²_n (Laurent and Massart, Ann. Statist. 28, 2000)
			p.res.Err = fmt.Errorf("lanczos: xᵀM⁻¹x = %.3g for a draw x of N(0, M), n = %d: another covariance, or an inaccurate M⁻¹",
				q, p.n)
		}
		if p.res.Err == nil {
			p.keep(norms[j])
			left = append(left, c)
		}
	}
	g.cols = left
	return nil
}

// norms sets y = M⁻¹w and returns √(wᵀy), for all that go on; Err of those that cannot.
func (g *group) norms(ctx context.Context) ([]float64, error) {
	norms := make([]float64, len(g.cols))
	if g.m != nil {
		t := time.Now()
		y := mat.NewDense(g.a.Dim(), len(g.cols), nil)
		if err := g.m.SolveColumnsTo(ctx, y, g.block(func(p *process) []float64 { return p.w }), g.cols); err != nil {
			return nil, err
		}
		g.spread(y, func(p *process) []float64 { return p.y })
		g.count(t, func(r *Result) *Op { return &r.SolveTo })
	}
	for j, c := range g.cols {
		var err error
		if norms[j], err = g.all[c].norm(ctx); err != nil {
			return nil, err
		}
	}
	return norms, nil
}

// count adds a call, and its share of the time since t, to an operation of all.
func (g *group) count(t time.Time, of func(r *Result) *Op) {
	share := time.Since(t).Seconds() / float64(len(g.cols))
	for _, c := range g.cols {
		op := of(g.all[c].res)
		op.Calls++
		op.Seconds += share
	}
}

// step takes one step of all that go on, and drops those that have ended.
func (g *group) step(ctx context.Context) error {
	t := time.Now()
	w := mat.NewDense(g.a.Dim(), len(g.cols), nil)
	if err := g.a.MulTo(ctx, w, g.block((*process).last)); err != nil { // w = Az_j
		return err
	}
	g.spread(w, func(p *process) []float64 { return p.w })
	g.count(t, func(r *Result) *Op { return &r.MulTo })
	for _, c := range g.cols {
		if err := g.all[c].project(ctx); err != nil {
			return err
		}
	}
	betas, err := g.norms(ctx) // β_j = √(wᵀM⁻¹w)
	if err != nil {
		return err
	}
	left := g.cols[:0:0]
	for j, c := range g.cols {
		p := g.all[c]
		if p.res.Err != nil {
			p.r, p.z = nil, nil
			continue
		}
		p.extend(betas[j])
		p.res.Seconds = time.Since(g.began).Seconds()
		p.res.judge(&g.o)
		if g.o.Monitor != nil {
			if err := g.o.Monitor(p.res); err != nil {
				return err
			}
		}
		if k := p.res.Steps; k < g.o.Steps && !p.res.Converged && p.res.Beta[k-1] > 0 &&
			(g.o.Done == nil || !g.o.Done(c, p.res)) {
			p.keep(p.res.Beta[k-1]) // r_{j+1} = w/β_j, z_{j+1} = M⁻¹w/β_j
			left = append(left, c)
		} else {
			p.r, p.z = nil, nil
		}
	}
	g.cols = left
	return nil
}

// last returns z_j.
func (p *process) last() []float64 { return p.z[p.res.Steps] }

// size returns the largest number of T.
func (p *process) size() float64 {
	var s float64
	for j, a := range p.res.Alpha {
		s = max(s, math.Abs(a), p.res.Beta[j])
	}
	return s
}

// norm returns √(wᵀy), with y = w where M = I.
func (p *process) norm(ctx context.Context) (float64, error) {
	y := p.y
	if p.plain {
		y = p.w
	}
	if err := p.dots(ctx, [][]float64{y}); err != nil {
		return 0, err
	}
	q := p.h[0]
	switch {
	case math.IsNaN(q) || math.IsInf(q, 0):
		p.res.Err = fmt.Errorf("lanczos: a number is not finite at step %d", p.res.Steps+1)
	case q < 0:
		p.res.Err = fmt.Errorf("lanczos: wᵀM⁻¹w = %.3g at step %d: M is not positive definite", q, p.res.Steps+1)
	}
	return math.Sqrt(q), nil
}

// keep appends w/norm to the r_j and y/norm to the z_j.
func (p *process) keep(norm float64) {
	scaled := func(x []float64) []float64 {
		out := make([]float64, p.n)
		for i, v := range x {
			out[i] = v / norm
		}
		return out
	}
	r := scaled(p.w)
	p.r = append(p.r, r)
	if p.plain {
		p.z = append(p.z, r)
		return
	}
	p.z = append(p.z, scaled(p.y))
}

// project takes what w = Az_j has in the space out of it, and sets α_j.
func (p *process) project(ctx context.Context) error {
	j := p.res.Steps // counted from 0
	p.alpha = 0
	for pass := range 2 { // once more, for what rounding left
		if err := p.dots(ctx, p.z); err != nil { // h_i = z_iᵀw
			return err
		}
		if pass == 0 {
			p.defect += p.asymmetry(j)
		}
		p.alpha += p.h[j]                       // α_j = z_jᵀAz_j
		if err := p.subtract(ctx); err != nil { // w ← w − Σ_i h_i r_i
			return err
		}
	}
	return nil
}

// extend adds α_j and β_j to T.
func (p *process) extend(beta float64) {
	r := p.res
	if r.Steps+1 == p.n || beta <= 8*unit*max(p.size(), math.Abs(p.alpha)) {
		beta = 0
	}
	r.Alpha, r.Beta, r.Steps = append(r.Alpha, p.alpha), append(r.Beta, beta), r.Steps+1
	// E, n×k, has columns of norm √(defect/k) in unlike directions, so ‖E‖₂ is about
	// √(defect/k)·(1+√(k/n)); twice that, and more where few numbers told of it.
	k := float64(r.Steps)
	r.Slack = 2*scarce(r.Steps)*math.Sqrt(p.defect/k)*(1+math.Sqrt(k/float64(p.n))) + 4*unit*k*p.size()
}

// scarce returns √(ν/χ²), χ² the 1 % quantile of ν = k(k−1)/2 degrees of freedom: by how much the norm
// of errors that k steps have shown ν numbers of is likely to be larger than these say.
func scarce(k int) float64 {
	if k < 2 {
		return 1 // nothing is known
	}
	nu := float64(k*(k-1)) / 2
	return math.Sqrt(nu / distuv.ChiSquared{K: nu}.Quantile(0.01))
}

// asymmetry returns the estimated square of the norm of the error of Az_j: the part of it in
// the space of the z_i, i < j, where z_iᵀAz_j should be β_{j−1} for i = j−1 and zero before,
// times n/j for the part that is not seen.
func (p *process) asymmetry(j int) float64 {
	if j == 0 {
		return 0
	}
	e := p.h[j-1] - p.res.Beta[j-1]
	sum := e * e
	for _, h := range p.h[:j-1] {
		sum += h * h
	}
	return sum * float64(p.n) / float64(j)
}

// dots sets h_i = x_iᵀw. Partial sums of rowBlock rows are added in their order, so the bits
// are the same for any number of threads.
func (p *process) dots(ctx context.Context, x [][]float64) error {
	k := len(x)
	blocks := (p.n + rowBlock - 1) / rowBlock
	err := accel.ForEach(ctx, blocks, func(_, b int) {
		i0, i1 := b*rowBlock, min((b+1)*rowBlock, p.n)
		wb := p.w[i0:i1]
		for i, xi := range x {
			p.part[b*p.o.Steps+i] = floats.Dot(xi[i0:i1], wb)
		}
	})
	if err != nil {
		return err
	}
	clear(p.h[:k])
	for b := range blocks {
		for i := range k {
			p.h[i] += p.part[b*p.o.Steps+i]
		}
	}
	return nil
}

// subtract sets w ← w − Σ_i h_i r_i.
func (p *process) subtract(ctx context.Context) error {
	return accel.ForEach(ctx, (p.n+rowBlock-1)/rowBlock, func(_, b int) {
		i0, i1 := b*rowBlock, min((b+1)*rowBlock, p.n)
		for i, r := range p.r {
			floats.AddScaled(p.w[i0:i1], -p.h[i], r[i0:i1])
		}
	})
}
