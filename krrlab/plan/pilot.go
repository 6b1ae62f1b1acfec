package plan

import (
	"cmp"
	"context"
	"math"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	decision "github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/vecchia"
)

// Pilot is what m of the points, drawn at random, say of the problem.
type Pilot struct {
	M       int     `json:"m"`
	Seconds float64 `json:"seconds"` // it took
	// Look is the seconds of deciding how K is kept, which a candidate's do not include; they are predicted where a direct solver is chosen before,
	// and included.
	Look float64 `json:"look_seconds"`
	Entries

	task    *Task
	k       *gram.Unformed
	choice  *gram.Choice // how K is kept where memory does not matter; nil before look
	stored  gram.Storage // as chosen, or supposed
	rows    []int        // the points, of task.X
	x       points.Points
	levels  *kernel.Levels   // of x
	known   map[tile]float64 // seconds of an entry
	largest float64          // k(x, x)
	mean    float64          // of k(x, x)
	rms     float64          // of k(x, z)
	c       float64          // the largest ‖c_j‖₂/‖y_j‖₂, as estimated
	e       []float64        // e[j] = E‖residual of a point by j others‖², the squared pivots of K in random order
	// neighbors and damping are k and ω of a sparse inverse without pivots: by its rule, once K has been looked at.
	neighbors int
	damping   float64
}

// Entries are the seconds that all threads take for an entry of K.
type Entries struct {
	Stored  float64 `json:"entry_seconds"`         // as it is stored
	Columns float64 `json:"columns_entry_seconds"` // in float64, as accurately as landmarks want it
	Exact   float64 `json:"exact_entry_seconds"`   // and true residuals
	Test    float64 `json:"test_entry_seconds"`    // of K(test, train), as predictions want it
	// Dense is of the direct solvers' K, in float32 and float64.
	Dense [2]float64 `json:"dense_entry_seconds"`
}

// tilePoints are the points whose tiles are timed.
const tilePoints = 512

// newPilot times tiles of K, and forms and factors K of some points.
func newPilot(ctx context.Context, t *Task, rates Rates) (*Pilot, error) {
	start := time.Now()
	unformed, err := gram.NewUnformed(t.Kernel, t.X, t.Lambda, &gram.Options{
		Storage: t.Storage, Tiles: t.Tiles, Prefer: cmp.Or(t.Prefer, 20*t.Tol*t.Lambda), Drop: t.Drop, Seed: t.Seed,
	})
	if err != nil {
		return nil, err
	}
	p := &Pilot{task: t, k: unformed, neighbors: min(UsualNeighbors, t.n-1), rows: rng.New(t.Seed).Sub("pilot").Perm(t.n), known: map[tile]float64{}}
	p.x = points.Gather(t.X, p.rows[:min(t.n, tilePoints)])
	p.time()
	p.Look = p.looking(rates)
	p.M = p.size(rates)
	p.rows = p.rows[:p.M]
	k := mat.NewDense(p.M, p.M, nil)
	exact, err := gram.NewExact(t.Kernel, points.Gather(t.X, p.rows), t.Lambda, t.Lambda/1000, nil)
	if err == nil {
		err = exact.DenseTo(ctx, k)
	}
	if err != nil {
		return nil, err
	}
	p.c = p.coefficients(k, p.residuals(k))
	if t.Tests > 0 {
		arith, mean, err := p.predictions(k)
		if err != nil {
			return nil, err
		}
		p.Test = p.entry(tile{arith, mean != nil, arith != kernel.Float32, false})
	}
	p.Seconds = time.Since(start).Seconds()
	return p, nil
}

// pilotShare is what more than the least points of a pilot may take of the time of forming K.
const pilotShare = 0.025

// size returns the points whose K is formed and factored: an eighth of n, from 256 to 1,024, or as many more, n/4 and 4,096 at most, as take a
// fortieth of the time that forming all of K takes, and a quarter of the memory.
func (p *Pilot) size(r Rates) int {
	n, memory := p.task.n, float64(p.task.Memory)
	m := min(n, max(n/8, 256), 1024)
	for s := float64(m + 256); s <= float64(min(n/4, 4096)); s += 256 {
		if memory > 0 && 16*s*s > memory/4 || s*s*(p.Columns/2+16/r.Touch)+cholesky(s, r.Gemm64, r.Potrf64) > pilotShare*float64(n)*float64(n)/2*(p.Stored+4/r.Touch) {
			break
		}
		m = int(s)
	}
	return m
}

// looking predicts the seconds of look: K of its rows is formed as accurately as need be and as it is kept, and norms of both are taken in some
// thirty products each.
func (p *Pilot) looking(r Rates) float64 {
	const passes = 90
	m := float64(p.k.Rows())
	return m * m / 2 * (p.Exact + p.Stored + 8*passes/r.Read + 4*8/r.Touch)
}

// look decides how K is kept.
func (p *Pilot) look(ctx context.Context) error {
	start := time.Now()
	c, err := p.k.Look(ctx)
	if err != nil {
		return err
	}
	p.choice, p.stored, p.Look = &c, c.Storage, time.Since(start).Seconds()
	p.Stored = p.entry(tile{c.Arithmetic, c.Centred, c.Storage == gram.Float64, true})
	if err = p.local(ctx); err != nil {
		return err
	}
	p.Seconds += time.Since(start).Seconds()
	return nil
}

// local finds k and ω of a sparse inverse without pivots.
func (p *Pilot) local(ctx context.Context) error {
	t := p.task
	if t.Precond != "" && t.Precond != Vecchia || t.LambdaP > 0 || kernel.Given(t.Kernel) != nil {
		return nil
	}
	k, err := gram.NewExact(t.Kernel, t.X, t.Lambda, t.Lambda/1000, nil)
	if err == nil {
		p.neighbors, p.damping, err = vecchia.Look(ctx, k, &vecchia.Options{Seed: t.Order})
	}
	return err
}

// suppose sets how K is stored before look.
func (p *Pilot) suppose(s gram.Storage) {
	arith, centred := p.k.First(s)
	p.stored, p.Stored = s, p.entry(tile{arith, centred, s == gram.Float64, true})
}

// time sets the entries.
func (p *Pilot) time() {
	t := p.task
	p.levels = kernel.NewLevels(t.Kernel, p.x, points.NewPanel(p.x).Norms)
	wide := func(accuracy float64) float64 {
		arith, centred := p.k.Exact(accuracy)
		return p.entry(tile{arith, centred, true, true})
	}
	p.suppose(cmp.Or(t.Storage, gram.Float32))
	p.Columns, p.Exact = wide(t.Lambda/1000), wide(t.Tol*t.Lambda/20)
	arith, centred := p.k.Exact(t.Lambda / 10)
	for i := range p.Dense {
		p.Dense[i] = p.entry(tile{arith, centred, i > 0, false})
	}
}

// predictions returns the arithmetic of the tiles of predictions, and the mean that their points are moved to, if they are, by the rule of package model.
// Errors of entries in float32 that are independent and as large as those of K put decision values off by rms(E)·‖c‖₂, the largest of 64 by two and a half times
// that; ‖c‖₁ is √(2/π)·√n‖c‖₂ of normal numbers, and the largest |F| twice ‖y‖₂/√n.
func (p *Pilot) predictions(k *mat.Dense) (kernel.Arithmetic, []float64, error) {
	t, panel := p.task, points.NewPanel(p.task.X)
	c := p.c * math.Sqrt(float64(t.n)) / 2 // ‖c‖₂ ÷ max|F|
	mean := kernel.Origin(t.Kernel, panel)
	if mean != nil {
		panel = points.NewPanel(points.Shift(t.X, mean))
	}
	arith, err := decision.Arithmetic(t.Kernel, kernel.ExtentOf(panel), cmp.Or(t.Predict, &decision.Options{}), 0.8*c*math.Sqrt(float64(t.n)), func() (float64, error) {
		return 2.5 * c * p.single(k, mean), nil
	})
	if arith == kernel.Differences {
		mean = nil
	}
	return arith, mean, err
}

// single returns the root mean square of what entries of K are off in float32, of points moved to a mean if there is one.
func (p *Pilot) single(k *mat.Dense, mean []float64) float64 {
	x := p.x
	if mean != nil {
		x = points.Shift(x, mean)
	}
	b := min(p.M, tilePoints) / 2
	if b == 0 {
		return 0
	}
	all, tile, sum := points.NewPanel32(x), make([]float32, b*b), 0.0
	kernel.Tile32(tile, b, p.task.Kernel, all.Slice(0, b), all.Slice(b, 2*b), kernel.Float32, new(kernel.Workspace))
	for i := range b {
		for j, v := range k.RawRowView(i)[b : 2*b] {
			sum += (float64(tile[i*b+j]) - v) * (float64(tile[i*b+j]) - v)
		}
	}
	return math.Sqrt(sum) / float64(b)
}

// tile is a way to form a tile of K.
type tile struct {
	arith                 kernel.Arithmetic
	centred, wide, levels bool // levels: by a table of values where there is one
}

// entry returns the seconds of all threads for an entry; each kind of tile is timed once.
func (p *Pilot) entry(k tile) float64 {
	k.levels = k.levels && p.levels != nil
	if s := p.known[k]; s > 0 {
		return s
	}
	m, _ := p.x.Dims()
	b, threads, view := max(1, min(m/2, 256)), accel.Threads(), p.x
	if k.centred {
		view = points.Shift(view, points.Mean(view))
	}
	panel := points.NewPanel
	if k.arith == kernel.Float32 {
		panel = points.NewPanel32
	}
	all := panel(view)
	x, z := all.Slice(0, b), all.Slice(m-b, m) // of one point with itself
	work := make([]kernel.Workspace, threads)
	wides, narrows := make([][]float64, threads), make([][]float32, threads)
	for i := range threads {
		wides[i], narrows[i] = make([]float64, b*b), make([]float32, b*b)
	}
	p.known[k] = timedAfter(func() {}, func() {
		_ = accel.ForEach(context.Background(), threads, func(who, _ int) {
			w := &work[who]
			switch {
			case k.levels && k.wide:
				p.levels.Tile64(wides[who], b, x, z, w)
			case k.levels:
				p.levels.Tile32(narrows[who], b, x, z, w)
			case k.wide:
				kernel.Tile64(wides[who], b, p.task.Kernel, x, z, k.arith, w)
			default:
				kernel.Tile32(narrows[who], b, p.task.Kernel, x, z, k.arith, w)
			}
		})
	}) / float64(threads*b*b)
	return p.known[k]
}

// residuals factors K of the pilot's points in random order: the square of pivot j is the
// residual of a point after projection on j others, tr(K−K̂)/(n−j) of Nyström's K̂ of rank j in expectation. It returns the factor.
func (p *Pilot) residuals(k *mat.Dense) (l []float64) {
	m := p.M
	for s := range m {
		p.largest = max(p.largest, k.At(s, s))
		p.mean += k.At(s, s) / float64(m)
	}
	p.rms = mat.Norm(k, 2) / float64(m)
	l = make([]float64, m*m)
	p.definite(l, k)
	p.e = make([]float64, m)
	for i := range m {
		p.e[i] = l[i*m+i] * l[i*m+i]
	}
	return l
}

// definite sets l as factor does, with the least shift of a few with which it can.
func (p *Pilot) definite(l []float64, k *mat.Dense) {
	shift := max(1e-13*p.largest*float64(p.M), 0x1p-1022) // which numbers below do not grow from
	for !factor(l, k, p.M, shift) && shift < p.largest {
		shift *= 100
	}
}

// factor sets l to the lower Cholesky factor of k of the first m points, row-major, with shift added to the diagonal.
func factor(l []float64, k *mat.Dense, m int, shift float64) bool {
	for i := range m {
		copy(l[i*m:], k.RawRowView(i)[:i+1])
		l[i*m+i] += shift
	}
	return accel.Dpotrf(m, l, m)
}

// coefficients estimates the largest ‖c_j‖₂/‖y_j‖₂. With LLᵀ = K_s+λI and Lw = y_s the coefficient of the last of s points in random order is
//
//	r/(λ+v),  r = w_s·L_ss,  v = L_ss²−λ,
//
// its y less what the others predict, over λ and the variance that they leave of it. With more points v goes down as e does. Less than that the mean square of
// coefficients grows by the power of s by which those of the points from m/8 to 3m/8, with their v so reduced, are above those from m/2 to m, m ≤ 1,024: y is then
// better explained. And ‖c‖₂ ≤ ‖y‖₂/λ. a, M², is overwritten.
func (p *Pilot) coefficients(k *mat.Dense, a []float64) (most float64) {
	m, lambda, n := min(p.M, 1024), p.task.Lambda, float64(p.task.n)
	if m < 8 || !factor(a, k, m, lambda) {
		return 1 / lambda
	}
	w := mat.NewDense(m, p.task.t, nil)
	for i, r := range p.rows[:m] {
		w.SetRow(i, p.task.Y.RawRowView(r))
	}
	blas64.Trsm(blas.Left, blas.NoTrans, 1, blas64.Triangular{Uplo: blas.Lower, Diag: blas.NonUnit, N: m, Stride: m, Data: a}, w.RawMatrix())
	early, late := float64(m)/4, float64(m)*3/4
	for j := range p.task.t {
		norm := mat.Norm(p.task.Y.ColView(j), 2)
		if norm == 0 {
			continue
		}
		mean := func(lo, hi int, from, to float64) (v float64) { // square of the coefficients of those points ÷ ‖y_j‖₂, with the variance of to points
			q := min(1, p.residual(to)/p.residual(from))
			for i := lo; i < hi; i++ {
				l := a[i*m+i]
				c := w.At(i, j) / norm * l / (lambda + q*max(l*l-lambda, 0))
				v += c * c / float64(hi-lo)
			}
			return max(v, 1e-300)
		}
		better := min(1, mean(m/2, m, late, late)/mean(m/8, 3*m/8, early, late))
		c := math.Sqrt(n * mean(m/2, m, late, n) * math.Pow(better, max(0, math.Log(n/late)/math.Log(late/early))))
		if !(c < 1/lambda) {
			c = 1 / lambda
		}
		most = max(most, c)
	}
	return most
}

// residual returns e(s), the mean of the curve about s. Beyond what the subsample has, the odds (k−e)/e of a point's being
// explained, k the mean of k(x, x), go on as a power of s: they are 1/e where e is small, and 1−e/k where s points hardly explain others.
func (p *Pilot) residual(s float64) float64 {
	mean := func(s float64) float64 {
		lo, hi := int(0.8*s), max(int(1.2*s), int(0.8*s)+1)
		hi = min(hi, p.M)
		lo = min(lo, hi-1)
		var sum float64
		for _, v := range p.e[lo:hi] {
			sum += v
		}
		return max(sum/float64(hi-lo), 1e-300)
	}
	most := 0.85 * float64(p.M)
	if s <= most {
		return mean(s)
	}
	odds := func(s float64) float64 { return max(p.mean/mean(s)-1, 1e-6) }
	end := odds(most)
	slope := math.Log(end/odds(most/3)) / math.Log(3)
	return p.mean / (1 + end*math.Pow(s/most, max(slope, 0)))
}
