package baseline

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
)

const (
	blockFeatures = 2048    // most features of a block by default
	passTasks     = 16      // tasks aimed at in a pass over Z, whatever the number of threads
	passEntries   = 1 << 17 // entries of Z that a task multiplies both ways: 512 KiB
)

// ADMMOptions of NewADMM. Zero values, and nil, mean the defaults.
type ADMMOptions struct {
	FeatureBlocks int   // C ≥ 1 blocks of columns of Z. Default ⌈s/2048⌉
	Memory        int64 // bytes that may be taken, 0 for no limit
	// Progress, if not nil, is called with the progress of the setup: "features" (points), "factor" (blocks).
	Progress func(stage string, done, total int)
}

// ADMMSetup are the seconds that NewADMM spent.
type ADMMSetup struct {
	Features float64 // forming Z
	Gram     float64 // Z_jᵀZ_j
	Factor   float64 // their Cholesky factors and L⁻¹
	Total    float64
}

// ADMM is the problem
//
//	min_W F(W) = Σ_i Σ_c loss(y_ic, (ZW)_ic) + (λ/2)‖W‖_F²,  Z n×s with rows φ(x_i)ᵀ,
//
// with Z in C blocks of columns Z_j and the factors of I + Z_jᵀZ_j that block ADMM needs, whatever
// ρ is. See the package doc for the method. Its methods must not be called at the same time.
type ADMM struct {
	m       feature.Map
	z       *points.Dense32
	targets []float64 // t×n
	loss    Loss
	lambda  float64
	n, s, t int
	colAt   []int // bounds of the blocks
	factors []*triangle
	solves  []solveTask
	tasks   []passTask
	panel   int // rows of Z that a task takes together
	setup   ADMMSetup
	bytes   int64
}

// solveTask is a block of rows, or of columns, of the factor j.
type solveTask struct{ j, b int }

// passTask is a range of rows.
type passTask struct{ r0, r1 int }

// NewADMM forms the features of the points and factors the blocks: I + Z_jᵀZ_j = LLᵀ of order s/C.
//
// Work: Z, and for each block n·(s/C)² + 2/3·(s/C)³ flops. Memory: Z, 4ns bytes, the factors, 8s²/C,
// and blocks of t columns for the iteration, (C+2)nt + 23st numbers.
//
// It returns an error if the features are not finite, the memory allowed is too little, or ctx ends. It panics if
// shapes do not fit or there are more blocks than columns. Targets of Hinge are ±1.
func NewADMM(ctx context.Context, m feature.Map, x points.Points, lambda float64, y *mat.Dense, loss Loss,
	o *ADMMOptions) (*ADMM, error) {
	began := time.Now()
	opt := *cmp.Or(o, &ADMMOptions{})
	n, dx := x.Dims()
	d, s := m.Dims()
	rows, t := y.Dims()
	if dx != d || rows != n {
		panic(fmt.Sprintf("baseline: %d points of dimension %d, features of R^%d, %d rows of targets", n, dx, d, rows))
	}
	a := &ADMM{m: m, loss: loss, lambda: lambda, n: n, s: s, t: t, targets: byCols(y)}
	a.split(opt.FeatureBlocks)
	if err := fits("block ADMM", fmt.Sprintf("n = %d, s = %d, %d blocks", n, s, a.blocks()),
		a.bytes, opt.Memory, "take fewer features or more blocks"); err != nil {
		return nil, err
	}
	var progress func(done, total int)
	if opt.Progress != nil {
		progress = func(done, total int) { opt.Progress("features", done, total) }
	}
	z, err := feature.Matrix(ctx, m, x, progress)
	if err != nil {
		return nil, err
	}
	a.z = z
	a.setup.Features = time.Since(began).Seconds()
	if err := a.factor(ctx, opt.Progress); err != nil {
		return nil, err
	}
	a.setup.Total = time.Since(began).Seconds()
	return a, nil
}

// split settles the blocks, the tasks of a pass, and the bytes that the problem and one solve of it take.
func (a *ADMM) split(c int) {
	c = cmp.Or(c, (a.s+blockFeatures-1)/blockFeatures)
	if c < 1 || c > a.s {
		panic(fmt.Sprintf("baseline: %d blocks of %d features", c, a.s))
	}
	for j := range c + 1 {
		a.colAt = append(a.colAt, j*a.s/c)
	}
	a.panel = max(8, min(passEntries/a.s, 96)&^7)
	k := max(1, min(passTasks, a.n/a.panel))
	for q := range k {
		a.tasks = append(a.tasks, passTask{q * a.n / k, (q + 1) * a.n / k})
	}
	n, s, t := int64(a.n), int64(a.s), int64(a.t)
	a.bytes = 4*n*s + 8*(n*t*int64(c+2)+s*t*int64(7+k))
	for j := range c {
		order := int64(a.order(j))
		a.bytes += 8 * order * order
	}
	a.bytes += 8 * 1024 * ((s + int64(c) - 1) / int64(c))
}

// blocks returns C, order(j) the columns of block j.
func (a *ADMM) blocks() int     { return len(a.colAt) - 1 }
func (a *ADMM) order(j int) int { return a.colAt[j+1] - a.colAt[j] }

// colsOf returns the part of v that belongs to block j: vectors over the features lie by blocks, each
// t×s_j, those over the rows are t×n.
func (a *ADMM) colsOf(v []float64, j int) []float64 { return v[a.t*a.colAt[j] : a.t*a.colAt[j+1]] }

// weights returns a vector over the features as an s×t matrix.
func (a *ADMM) weights(v []float64) *mat.Dense {
	w := mat.NewDense(a.s, a.t, nil)
	for j := range a.blocks() {
		for k, x := range a.colsOf(v, j) {
			w.Set(a.colAt[j]+k%a.order(j), k/a.order(j), x)
		}
	}
	return w
}

// block returns Z_j from row r0 to r1.
func (a *ADMM) block(j, r0, r1 int) *points.Dense32 {
	return &points.Dense32{N: r1 - r0, D: a.order(j), Stride: a.z.Stride, Data: a.z.Data[r0*a.z.Stride+a.colAt[j]:]}
}

// factor forms and factors I + Z_jᵀZ_j of every block and inverts the factors. The products are in
// float64: an error of the projection would shift the point that the iteration converges to.
func (a *ADMM) factor(ctx context.Context, progress func(stage string, done, total int)) error {
	for j := range a.blocks() {
		start := time.Now()
		k := a.order(j)
		g := precond.ZeroGram(k)
		if err := g.AddRows(ctx, a.block(j, 0, a.n), false); err != nil {
			return err
		}
		l := g.Take(1) // I + Z_jᵀZ_j
		now := time.Now()
		a.setup.Gram += now.Sub(start).Seconds()
		if pivot := cholesky(l, k); pivot > 0 {
			return fmt.Errorf("baseline: I+ZᵀZ of block %d of Z is not positive definite in float64 (pivot %d of "+
				"%d): scale the kernel down", j, pivot, k)
		}
		if !accel.Dtrtri(k, l, k) {
			return fmt.Errorf("baseline: the Cholesky factor of I+ZᵀZ of block %d of Z is singular: scale the "+
				"kernel down", j)
		}
		f := &triangle{k, l}
		a.factors = append(a.factors, f)
		for b := range f.blocks() {
			a.solves = append(a.solves, solveTask{j, b})
		}
		a.setup.Factor += time.Since(now).Seconds()
		if progress != nil {
			progress("factor", j+1, a.blocks())
		}
	}
	return nil
}

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
		part: vectors(len(a.tasks), st), sums: make([]residuals, len(a.tasks)),
		work: make([]passScratch, accel.Threads()),
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
