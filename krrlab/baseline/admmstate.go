package baseline

import (
	"context"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
)

// admmState is the state of block ADMM for one ρ, in scaled form. Vectors over rows and features are laid
// out as ADMM says. The dual of y_j needs no room: it is −ỹ.
type admmState struct {
	a   *ADMM
	rho float64

	y, yd   []float64   // y and its dual ỹ
	yj      [][]float64 // C: y_j
	x, xd   []float64   // the consensus, and its dual x̃
	xj, xjd []float64   // x_j after the projection, and their duals x̃_j
	g       []float64   // Z_jᵀ(y_j+ỹ)
	c, tmp  []float64   // x−x̃_j, and scratch

	part  [][]float64 // of each task: its share of g
	sums  []residuals // of each task
	work  []passScratch
	total residuals
}

// residuals are the sums of squares that the stopping test is made of.
type residuals struct {
	primal float64 // ‖z₁−z₂‖²
	change float64 // ‖z₂−z₂'‖², z₂' that of the iteration before
	z1, z2 float64 // ‖z₁‖², ‖z₂‖²
	dual   float64 // ‖u‖²
	loss   float64 // of a measuring pass: Σ loss(y, (ZW))
	conj   float64 // and Σ loss*(y, u)
}

func (r *residuals) add(o residuals) {
	r.primal += o.primal
	r.change += o.change
	r.z1 += o.z1
	r.z2 += o.z2
	r.dual += o.dual
	r.loss += o.loss
	r.conj += o.conj
}

// passScratch is the scratch of one worker.
type passScratch struct {
	out  []float64 // C blocks of t×panel
	step []float64 // panel
	simd simd.Workspace
}

func vectors(k, size int) [][]float64 {
	v := make([][]float64, k)
	for i := range v {
		v[i] = make([]float64, size)
	}
	return v
}

// start returns the state of zero iterations: all zero.
func (a *ADMM) start(rho float64) *admmState {
	nt, st := a.n*a.t, a.s*a.t
	v := vectors(7, st)
	s := &admmState{
		a: a, rho: rho, y: make([]float64, nt), yd: make([]float64, nt), yj: vectors(a.blocks(), nt),
		x: v[0], xd: v[1], xj: v[2], xjd: v[3], g: v[4], c: v[5], tmp: v[6],
		part: vectors(len(a.tasks), st), sums: make([]residuals, len(a.tasks)), work: make([]passScratch, accel.Threads()),
	}
	for i := range s.work {
		s.work[i].out, s.work[i].step = make([]float64, a.blocks()*a.t*a.panel), make([]float64, a.panel)
	}
	return s
}

// iterate is one iteration: the proximal points and projections, the averages, the duals. After an
// error, ctx's, the state is undefined but for x.
func (s *admmState) iterate(ctx context.Context) (err error) {
	for k := range s.c {
		s.c[k] = s.x[k] - s.xjd[k] + s.g[k]
	}
	if err := s.solveBlocks(ctx); err != nil { // x_j = (I+Z_jᵀZ_j)⁻¹(x − x̃_j + Z_jᵀ(y_j+ỹ))
		return err
	}
	// y_j = Z_jx_j, the y-part, and Z_jᵀ(y_j+ỹ) for the next iteration, in one pass
	if s.total, err = s.pass(ctx, s.g, s.iteratePanel); err != nil {
		return err
	}
	s.average()
	return nil
}

// solveBlocks sets xj = (LLᵀ)⁻¹·c, block by block.
func (s *admmState) solveBlocks(ctx context.Context) error {
	a := s.a
	err := accel.ForEach(ctx, len(a.solves), func(_, q int) {
		k := a.solves[q]
		a.factors[k.j].forwardBlock(k.b, a.colsOf(s.tmp, k.j), a.colsOf(s.c, k.j), a.t)
	})
	if err != nil {
		return err
	}
	return accel.ForEach(ctx, len(a.solves), func(worker, q int) {
		k := a.solves[q]
		a.factors[k.j].backwardBlock(k.b, a.colsOf(s.xj, k.j), a.colsOf(s.tmp, k.j), a.t, &s.work[worker].simd)
	})
}

// average is the x-part of an iteration:
//
//	x^½ = ρ(x−x̃)/(λ+ρ)                  the proximal point of (λ/2)‖·‖²
//	x ← (x^½ + x_j)/2
//	x̃ ← x̃ + x^½ − x,  x̃_j ← x̃_j + x_j − x
func (s *admmState) average() {
	shrink := s.rho / (s.a.lambda + s.rho)
	sum := &s.total
	for k, old := range s.x {
		half, own := shrink*(old-s.xd[k]), s.xj[k]
		mean := (half + own) / 2
		s.xd[k] += half - mean
		s.xjd[k] += own - mean
		sum.primal += (half-mean)*(half-mean) + (own-mean)*(own-mean)
		sum.z1 += half*half + own*own
		sum.dual += s.xd[k]*s.xd[k] + s.xjd[k]*s.xjd[k]
		sum.change += 2 * (mean - old) * (mean - old)
		sum.z2 += 2 * mean * mean
		s.x[k] = mean
	}
}
