package lanczos

import (
	"context"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/rng"
)

const (
	rowBlock = 2048    // rows of a task, and of a partial sum
	unit     = 0x1p-53 // of rounding
)

// Run takes up to o.Steps steps of Lanczos's process with A from a start uniform on the
// sphere. It returns an error if the context ends (its error), if A or o.Monitor return one,
// or if a number is not finite; the Result then holds the steps before, and is nil if
// there were none. It panics for options that make no sense.
func Run(ctx context.Context, a Operator, o *Options) (*Result, error) {
	return run(ctx, a, euclid{a.Dim()}, o)
}

// RunPencil is Run for the pencil (A, M), with the spectrum of M⁻¹A. It also returns an error
// if M is not positive definite. It panics if the orders differ.
func RunPencil(ctx context.Context, a Operator, m Metric, o *Options) (*Result, error) {
	if a.Dim() != m.Dim() {
		panic(fmt.Sprintf("lanczos: A of order %d with M of order %d", a.Dim(), m.Dim()))
	}
	return run(ctx, a, m, o)
}

// euclid is the metric M = I.
type euclid struct{ n int }

func (m euclid) Dim() int { return m.n }

func (m euclid) SolveTo(_ context.Context, dst, r *mat.Dense) error {
	dst.Copy(r)
	return nil
}

func (m euclid) NormalTo(_ context.Context, dst *mat.Dense, g rng.Stream) error {
	g.Normals(dst.RawMatrix().Data, 0)
	return nil
}

// process is the state of a run.
type process struct {
	a   Operator
	m   Metric
	o   Options
	n   int
	res *Result

	r, z   [][]float64 // r_j and z_j = M⁻¹r_j; the same where M = I
	w, y   *mat.Dense  // n×1: Az_j less its projection, and M⁻¹ of it
	h      []float64   // z_iᵀw
	part   []float64   // partial sums
	defect float64     // Σ of squares of what should be zero
}

func run(ctx context.Context, a Operator, m Metric, o *Options) (*Result, error) {
	n := a.Dim()
	opt := o.settled(n)
	p := &process{
		a: a, m: m, o: opt, n: n, res: &Result{N: n, confidence: opt.Confidence},
		w: mat.NewDense(n, 1, nil), y: mat.NewDense(n, 1, nil),
		h: make([]float64, opt.Steps), part: make([]float64, (n+rowBlock-1)/rowBlock*opt.Steps),
	}
	began := time.Now()
	err := p.start(ctx)
	for err == nil && p.res.Steps < opt.Steps && !p.res.Converged {
		if err = p.step(ctx); err != nil {
			break
		}
		p.res.Seconds = time.Since(began).Seconds()
		p.res.Slack = math.Sqrt(2*p.defect) + 4*unit*float64(p.res.Steps)*p.size()
		p.res.judge(&opt)
		if opt.Monitor != nil {
			err = opt.Monitor(p.res)
		}
		if p.exhausted() {
			break
		}
	}
	if p.res.Steps == 0 {
		return nil, err
	}
	return p.res, err
}

// size returns the largest number of T.
func (p *process) size() float64 {
	var s float64
	for j, a := range p.res.Alpha {
		s = max(s, math.Abs(a), p.res.Beta[j])
	}
	return s
}

// exhausted reports whether the space is invariant: nothing is left to find in it.
func (p *process) exhausted() bool {
	k := p.res.Steps
	return k > 0 && p.res.Beta[k-1] == 0
}

// start draws r₁ and z₁.
func (p *process) start(ctx context.Context) error {
	if err := p.m.NormalTo(ctx, p.w, p.o.Start); err != nil {
		return err
	}
	norm, err := p.norm(ctx)
	if err != nil {
		return err
	}
	if norm == 0 {
		return fmt.Errorf("lanczos: the start vector is zero")
	}
	p.keep(norm)
	return nil
}

// norm sets y = M⁻¹w and returns √(wᵀy).
func (p *process) norm(ctx context.Context) (float64, error) {
	y := p.w
	if _, plain := p.m.(euclid); !plain {
		y = p.y
		t := time.Now()
		if err := p.m.SolveTo(ctx, p.y, p.w); err != nil {
			return 0, err
		}
		p.res.SolveTo.Calls++
		p.res.SolveTo.Seconds += time.Since(t).Seconds()
	}
	if err := p.dots(ctx, [][]float64{y.RawMatrix().Data}); err != nil {
		return 0, err
	}
	switch q := p.h[0]; {
	case math.IsNaN(q) || math.IsInf(q, 0):
		return 0, fmt.Errorf("lanczos: a number is not finite at step %d", p.res.Steps+1)
	case q < 0:
		return 0, fmt.Errorf("lanczos: wᵀM⁻¹w = %.3g at step %d: M is not positive definite", q, p.res.Steps+1)
	default:
		return math.Sqrt(q), nil
	}
}

// keep appends w/norm to the r_j and y/norm to the z_j.
func (p *process) keep(norm float64) {
	scaled := func(x *mat.Dense) []float64 {
		out := make([]float64, p.n)
		for i, v := range x.RawMatrix().Data {
			out[i] = v / norm
		}
		return out
	}
	r := scaled(p.w)
	p.r = append(p.r, r)
	if _, plain := p.m.(euclid); plain {
		p.z = append(p.z, r)
		return
	}
	p.z = append(p.z, scaled(p.y))
}

// step takes one step of the process.
func (p *process) step(ctx context.Context) error {
	j := p.res.Steps // counted from 0
	t := time.Now()
	if err := p.a.MulTo(ctx, p.w, mat.NewDense(p.n, 1, p.z[j])); err != nil { // w = Az_j
		return err
	}
	p.res.MulTo.Calls++
	p.res.MulTo.Seconds += time.Since(t).Seconds()
	if err := p.dots(ctx, p.z); err != nil { // h_i = z_iᵀAz_j
		return err
	}
	alpha := p.h[j] // α_j = z_jᵀAz_j
	defect := p.asymmetry(j)
	if err := p.subtract(ctx); err != nil { // w ← w − Σ_i h_i r_i
		return err
	}
	if err := p.dots(ctx, p.z); err != nil { // once more, for what rounding left
		return err
	}
	alpha += p.h[j]
	if err := p.subtract(ctx); err != nil {
		return err
	}
	beta, err := p.norm(ctx) // β_j = √(wᵀM⁻¹w)
	if err != nil {
		return err
	}
	res := p.res
	if j+1 == p.n || beta <= 8*unit*max(p.size(), math.Abs(alpha)) {
		beta = 0
	}
	p.defect += defect
	res.Alpha, res.Beta, res.Steps = append(res.Alpha, alpha), append(res.Beta, beta), j+1
	if beta > 0 && j+1 < p.o.Steps {
		p.keep(beta) // r_{j+1} = w/β_j, z_{j+1} = M⁻¹w/β_j
	}
	return nil
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
	w, k := p.w.RawMatrix().Data, len(x)
	blocks := (p.n + rowBlock - 1) / rowBlock
	err := accel.ForEach(ctx, blocks, func(_, b int) {
		i0, i1 := b*rowBlock, min((b+1)*rowBlock, p.n)
		wb := w[i0:i1]
		for i, xi := range x {
			p.part[b*p.o.Steps+i] = dot(xi[i0:i1], wb)
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
	w := p.w.RawMatrix().Data
	return accel.ForEach(ctx, (p.n+rowBlock-1)/rowBlock, func(_, b int) {
		i0, i1 := b*rowBlock, min((b+1)*rowBlock, p.n)
		wb := w[i0:i1]
		for i, r := range p.r {
			h := p.h[i]
			for l, v := range r[i0:i1] {
				wb[l] -= h * v
			}
		}
	})
}

// dot returns xᵀy, in four sums.
func dot(x, y []float64) float64 {
	var s0, s1, s2, s3 float64
	y = y[:len(x)]
	i := 0
	for ; i+4 <= len(x); i += 4 {
		s0 += x[i] * y[i]
		s1 += x[i+1] * y[i+1]
		s2 += x[i+2] * y[i+2]
		s3 += x[i+3] * y[i+3]
	}
	for ; i < len(x); i++ {
		s0 += x[i] * y[i]
	}
	return s0 + s1 + (s2 + s3)
}
