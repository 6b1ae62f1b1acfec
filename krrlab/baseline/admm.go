package baseline

import (
	"context"
	"fmt"
	"time"

	"gonum.org/v1/gonum/mat"

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
	RowBlocks     int   // R ≥ 1 blocks of rows of Z, of nearly equal size. Default 1
	FeatureBlocks int   // C ≥ 1 blocks of columns. Default ⌈s/2048⌉
	Memory        int64 // bytes that may be taken, 0 for no limit
	// Progress, if not nil, is told how far the setup is: "features" (points), "factor" (blocks).
	Progress func(stage string, done, total int)
}

// ADMMSetup are the seconds that NewADMM spent.
type ADMMSetup struct {
	Features float64 // forming Z
	Gram     float64 // Z_ijᵀZ_ij or Z_ijZ_ijᵀ
	Factor   float64 // their Cholesky factors and L⁻¹
	Total    float64
}

// ADMM is the problem
//
//	min_W F(W) = Σ_i Σ_c loss(y_ic, (ZW)_ic) + (λ/2)‖W‖_F²,  Z n×s with rows φ(x_i)ᵀ,
//
// with Z in R×C blocks Z_ij and the factors of I + Z_ijᵀZ_ij that block ADMM needs, whatever
// ρ is. See the package doc for the method. Its methods must not be called at the same time.
type ADMM struct {
	m            feature.Map
	z            *points.Dense32
	targets      []float64 // in the layout of a row vector; see rowLayout
	loss         Loss
	lambda       float64
	n, s, t      int
	rowAt, colAt []int // bounds of the blocks
	dual         bool  // factors of I + Z_ijZ_ijᵀ
	factors      [][]*triangle
	solves       []solveTask
	tasks        []passTask
	panel        int // rows of Z that a task takes together
	setup        ADMMSetup
	bytes        int64
}

// solveTask is a block of rows, or of columns, of the factor ij.
type solveTask struct{ i, j, b int }

// passTask is a range of rows of row block i.
type passTask struct{ i, r0, r1 int }

// NewADMM forms the features of the points and factors the blocks: I + Z_ijᵀZ_ij = LLᵀ of
// order s/C or, where the blocks have fewer rows than columns, I + Z_ijZ_ijᵀ of order n/R.
//
// Work: Z, and for each block n/R·(s/C)² + 2/3·(s/C)³ flops (or the same with n/R and s/C
// exchanged). Memory: Z, 4ns bytes, the factors, 8·RC·min(s/C, n/R)², and blocks of t columns
// for the iteration, (2C+4)nt + (4R+20)st numbers.
//
// It returns an error if λ is not positive, the targets are not finite or, for Hinge and
// Logistic, not ±1, the features are not finite, the memory allowed is too little (a
// *LimitError), or ctx ends. It panics if shapes do not fit, an option is negative or there are
// more blocks than rows or columns.
func NewADMM(ctx context.Context, m feature.Map, x points.Points, lambda float64, y *mat.Dense, loss Loss, o *ADMMOptions) (*ADMM, error) {
	began := time.Now()
	var opt ADMMOptions
	if o != nil {
		opt = *o
	}
	n, dx := x.Dims()
	d, s := m.Dims()
	if dx != d || loss < Square || loss > Logistic || opt.Memory < 0 {
		panic(fmt.Sprintf("baseline: points of dimension %d, features of R^%d, loss %v, memory %d", dx, d, loss, opt.Memory))
	}
	if err := checkTargets(n, y); err != nil {
		return nil, err
	}
	if err := checkLambda(lambda); err != nil {
		return nil, err
	}
	if err := loss.checkCoding(y); err != nil {
		return nil, err
	}
	a := &ADMM{m: m, loss: loss, lambda: lambda, n: n, s: s}
	_, a.t = y.Dims()
	a.split(opt)
	if err := fits("block ADMM", fmt.Sprintf("n = %d, s = %d, %d×%d blocks", n, s, a.rowBlocks(), a.colBlocks()),
		a.need(), opt.Memory, "take fewer features or more blocks"); err != nil {
		return nil, err
	}
	a.targets = make([]float64, n*a.t)
	for i := range a.rowBlocks() {
		for r := a.rowAt[i]; r < a.rowAt[i+1]; r++ {
			for c, v := range y.RawRowView(r) {
				a.targets[a.rowIndex(i, c, r)] = v
			}
		}
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

// split settles the blocks and the tasks of a pass.
func (a *ADMM) split(o ADMMOptions) {
	r, c := o.RowBlocks, o.FeatureBlocks
	if r == 0 {
		r = 1
	}
	if c == 0 {
		c = (a.s + blockFeatures - 1) / blockFeatures
	}
	if r < 1 || c < 1 || r > a.n || c > a.s {
		panic(fmt.Sprintf("baseline: %d×%d blocks of a %d×%d matrix", r, c, a.n, a.s))
	}
	for i := range r + 1 {
		a.rowAt = append(a.rowAt, i*a.n/r)
	}
	for j := range c + 1 {
		a.colAt = append(a.colAt, j*a.s/c)
	}
	a.dual = (a.n+r-1)/r < (a.s+c-1)/c
	a.panel = max(8, min(passEntries/a.s, 96)&^7)
	for i := range r {
		i0, i1 := a.rowAt[i], a.rowAt[i+1]
		k := max(1, min((passTasks+r-1)/r, (i1-i0)/a.panel))
		for q := range k {
			a.tasks = append(a.tasks, passTask{i, i0 + q*(i1-i0)/k, i0 + (q+1)*(i1-i0)/k})
		}
	}
	a.bytes = a.need()
}

func (a *ADMM) rowBlocks() int { return len(a.rowAt) - 1 }
func (a *ADMM) colBlocks() int { return len(a.colAt) - 1 }

// order returns the order of the factor of block ij.
func (a *ADMM) order(i, j int) int {
	if a.dual {
		return a.rowAt[i+1] - a.rowAt[i]
	}
	return a.colAt[j+1] - a.colAt[j]
}

// need returns the bytes that the problem takes, and one solve of it.
func (a *ADMM) need() int64 {
	n, s, t, r, c := int64(a.n), int64(a.s), int64(a.t), int64(a.rowBlocks()), int64(a.colBlocks())
	sum, top := 4*n*s, int64(0)
	for i := range a.rowBlocks() {
		for j := range a.colBlocks() {
			k := int64(a.order(i, j))
			sum, top = sum+8*k*k, max(top, k)
		}
	}
	vectors := n*t*(c+2) + s*t*(4*r+2+int64(len(a.tasks)))
	if a.dual {
		vectors += n * t * 2 * c
	} else {
		vectors += s * t * r
	}
	return sum + 8*1024*top + 8*vectors
}

// Vectors over the rows lie by row blocks, each t×n_i: rowIndex is the place of row r of
// block i in column c. Vectors over the features lie by feature blocks, each t×s_j.
func (a *ADMM) rowIndex(i, c, r int) int {
	i0, i1 := a.rowAt[i], a.rowAt[i+1]
	return a.t*i0 + c*(i1-i0) + r - i0
}

// rowsOf returns the part of v that belongs to row block i, colsOf to feature block j.
func (a *ADMM) rowsOf(v []float64, i int) []float64 { return v[a.t*a.rowAt[i] : a.t*a.rowAt[i+1]] }
func (a *ADMM) colsOf(v []float64, j int) []float64 { return v[a.t*a.colAt[j] : a.t*a.colAt[j+1]] }

// weights returns a vector over the features as an s×t matrix.
func (a *ADMM) weights(v []float64) *mat.Dense {
	w := mat.NewDense(a.s, a.t, nil)
	for j := range a.colBlocks() {
		c0, c1 := a.colAt[j], a.colAt[j+1]
		for k, x := range a.colsOf(v, j) {
			w.Set(c0+k%(c1-c0), k/(c1-c0), x)
		}
	}
	return w
}

// block returns Z_ij from row r0 to r1.
func (a *ADMM) block(j, r0, r1 int) *points.Dense32 {
	c0, c1 := a.colAt[j], a.colAt[j+1]
	return &points.Dense32{N: r1 - r0, D: c1 - c0, Stride: a.z.Stride, Data: a.z.Data[r0*a.z.Stride+c0:]}
}

// factor forms and factors I + Z_ijᵀZ_ij, or I + Z_ijZ_ijᵀ, of every block and inverts the
// factors. The products are in float64: an error of the projection would shift the point that
// the iteration converges to.
func (a *ADMM) factor(ctx context.Context, progress func(stage string, done, total int)) error {
	total := a.rowBlocks() * a.colBlocks()
	for i := range a.rowBlocks() {
		row := make([]*triangle, a.colBlocks())
		for j := range row {
			start := time.Now()
			z, k := a.block(j, a.rowAt[i], a.rowAt[i+1]), a.order(i, j)
			g := precond.ZeroGram(k)
			var err error
			if a.dual {
				err = addOuter(ctx, g, z, false, nil)
			} else {
				err = g.AddRows(ctx, z, false)
			}
			if err != nil {
				return err
			}
			l := g.Take(1, 1) // I + Z_ijᵀZ_ij
			now := time.Now()
			a.setup.Gram += now.Sub(start).Seconds()
			if pivot := cholesky(l, k); pivot > 0 {
				return fmt.Errorf("baseline: I+ZᵀZ of block %d, %d of Z is not positive definite in float64 (pivot %d of %d): scale the kernel down", i, j, pivot, k)
			}
			if row[j] = newTriangle(l, k); row[j] == nil {
				return fmt.Errorf("baseline: the Cholesky factor of I+ZᵀZ of block %d, %d of Z is singular: scale the kernel down", i, j)
			}
			for b := range row[j].blocks() {
				a.solves = append(a.solves, solveTask{i, j, b})
			}
			a.setup.Factor += time.Since(now).Seconds()
			if progress != nil {
				progress("factor", i*a.colBlocks()+j+1, total)
			}
		}
		a.factors = append(a.factors, row)
	}
	return nil
}

// Bytes returns the memory that the problem and one solve of it take.
func (a *ADMM) Bytes() int64 { return a.bytes }

// Seconds returns what NewADMM spent.
func (a *ADMM) Seconds() ADMMSetup { return a.setup }

// String says in one line what was set up.
func (a *ADMM) String() string {
	what := "ZᵀZ"
	if a.dual {
		what = "ZZᵀ"
	}
	return fmt.Sprintf("block ADMM, %v loss, n = %d, s = %d, t = %d, λ = %g, %d×%d blocks, factors of I+%s: %.3g GB; features %.3g s, gram %.3g s, factor %.3g s",
		a.loss, a.n, a.s, a.t, a.lambda, a.rowBlocks(), a.colBlocks(), what, float64(a.bytes)/1e9, a.setup.Features, a.setup.Gram, a.setup.Factor)
}
