package baseline

import (
	"context"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
)

// admmState is the state of block ADMM for one ρ, in scaled form. Vectors over rows and
// features are laid out as ADMM says; those of the blocks ij are R vectors over the features
// (x) or C over the rows (y). Duals of y_ij need no room: they are −ỹ_i.
type admmState struct {
	a   *ADMM
	rho float64

	y, yd  []float64   // y_i and its dual ỹ_i
	yij    [][]float64 // C: y_ij
	x, xd  []float64   // x_j, the consensus, and its dual x̃_j
	xij    [][]float64 // R: x_ij after the projection
	xijd   [][]float64 // R: their duals x̃_ij
	g      [][]float64 // R: Z_ijᵀ(y_ij+ỹ_i) (primal), Z_ijᵀw_ij (dual)
	c, tmp [][]float64 // R: x_j−x̃_ij, scratch over the features; dual: C over the rows
	w      [][]float64 // C: w_ij, dual

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
	nt, st, r, c := a.n*a.t, a.s*a.t, a.rowBlocks(), a.colBlocks()
	s := &admmState{
		a: a, rho: rho,
		y: make([]float64, nt), yd: make([]float64, nt), yij: vectors(c, nt),
		x: make([]float64, st), xd: make([]float64, st), xij: vectors(r, st), xijd: vectors(r, st), g: vectors(r, st), c: vectors(r, st),
		part: vectors(len(a.tasks), st), sums: make([]residuals, len(a.tasks)), work: make([]passScratch, accel.Threads()),
	}
	if a.dual {
		s.w, s.tmp = vectors(c, nt), vectors(c, nt)
	} else {
		s.tmp = vectors(r, st)
	}
	for i := range s.work {
		s.work[i].out, s.work[i].step = make([]float64, c*a.t*a.panel), make([]float64, a.panel)
	}
	return s
}

// iterate is one iteration: the proximal points and projections z₁, the averages z₂, the duals.
// After an error, ctx's, the state is undefined but for x.
func (s *admmState) iterate(ctx context.Context) (err error) {
	for i := range s.c {
		for k := range s.c[i] {
			s.c[i][k] = s.x[k] - s.xijd[i][k] // c_ij = x_j − x̃_ij
		}
	}
	if s.a.dual {
		return s.iterateDual(ctx)
	}
	// x_ij = (I+Z_ijᵀZ_ij)⁻¹(c_ij + Z_ijᵀ(y_ij+ỹ_i))
	for i := range s.c {
		for k, g := range s.g[i] {
			s.c[i][k] += g
		}
	}
	if err := s.solveBlocks(ctx, s.xBlock(s.c), s.xBlock(s.tmp), s.xBlock(s.xij)); err != nil {
		return err
	}
	// y_ij = Z_ijx_ij, the y-part, and Z_ijᵀ(y_ij+ỹ_i) for the next iteration, in one pass
	if s.total, err = s.pass(ctx, s.g, s.primalPanel); err != nil {
		return err
	}
	s.average()
	return nil
}

// iterateDual is iterate by the factors of I+Z_ijZ_ijᵀ: with d = y_ij+ỹ_i,
//
//	w_ij = (I+Z_ijZ_ijᵀ)⁻¹(Z_ijc_ij − d),  y_ij = w_ij + d,  x_ij = c_ij − Z_ijᵀw_ij.
func (s *admmState) iterateDual(ctx context.Context) (err error) {
	if _, err := s.pass(ctx, nil, s.rightPanel); err != nil { // Z_ijc_ij − d
		return err
	}
	if err := s.solveBlocks(ctx, s.yBlock(s.w), s.yBlock(s.tmp), s.yBlock(s.w)); err != nil {
		return err
	}
	if s.total, err = s.pass(ctx, s.g, s.dualPanel); err != nil { // y_ij, the y-part, Z_ijᵀw_ij
		return err
	}
	for i := range s.xij {
		for k, g := range s.g[i] {
			s.xij[i][k] = s.c[i][k] - g
		}
	}
	s.average()
	return nil
}

// xBlock and yBlock give the parts ij of vectors over features and rows.
func (s *admmState) xBlock(v [][]float64) func(i, j int) []float64 {
	return func(i, j int) []float64 { return s.a.colsOf(v[i], j) }
}

func (s *admmState) yBlock(v [][]float64) func(i, j int) []float64 {
	return func(i, j int) []float64 { return s.a.rowsOf(v[j], i) }
}

// solveBlocks sets out = (LLᵀ)⁻¹·in for every block; out may be in.
func (s *admmState) solveBlocks(ctx context.Context, in, tmp, out func(i, j int) []float64) error {
	tasks := s.a.solves
	err := accel.ForEach(ctx, len(tasks), func(_, q int) {
		k := tasks[q]
		s.a.factors[k.i][k.j].forwardBlock(k.b, tmp(k.i, k.j), in(k.i, k.j), s.a.t)
	})
	if err != nil {
		return err
	}
	return accel.ForEach(ctx, len(tasks), func(worker, q int) {
		k := tasks[q]
		s.a.factors[k.i][k.j].backwardBlock(k.b, out(k.i, k.j), tmp(k.i, k.j), s.a.t, &s.work[worker].simd)
	})
}

// average is the x-part of an iteration:
//
//	x_j^½ = ρ(x_j−x̃_j)/(λ+ρ)                  the proximal point of (λ/2)‖·‖²
//	x_j ← (x_j^½ + Σ_i x_ij)/(R+1)
//	x̃_j ← x̃_j + x_j^½ − x_j,  x̃_ij ← x̃_ij + x_ij − x_j
func (s *admmState) average() {
	shrink := s.rho / (s.a.lambda + s.rho)
	copies := float64(len(s.xij) + 1)
	sum := &s.total
	for k, old := range s.x {
		half := shrink * (old - s.xd[k])
		mean := half
		for _, x := range s.xij {
			mean += x[k]
		}
		mean /= copies
		d := half - mean
		s.xd[k] += d
		sum.primal += d * d
		sum.z1 += half * half
		sum.dual += s.xd[k] * s.xd[k]
		for i, x := range s.xij {
			d := x[k] - mean
			s.xijd[i][k] += d
			sum.primal += d * d
			sum.z1 += x[k] * x[k]
			sum.dual += s.xijd[i][k] * s.xijd[i][k]
		}
		sum.change += copies * (mean - old) * (mean - old)
		sum.z2 += copies * mean * mean
		s.x[k] = mean
	}
}
