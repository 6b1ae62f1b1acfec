package plan

import (
	"context"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/lowrank"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
)

// Pilot is what a subsample of m points says of the problem.
type Pilot struct {
	M       int     `json:"m"`
	Runs    int     `json:"runs"`    // solves of it
	Seconds float64 `json:"seconds"` // in all
	// Entry and Exact are the seconds that all threads take for an entry of K, as it is stored and in
	// float64 as accurately as residuals and landmarks want it.
	Entry float64 `json:"entry_seconds"`
	Exact float64 `json:"exact_entry_seconds"`
	// Fine says that float32 is not accurate enough for K.
	Fine bool `json:"fine"`

	task  *Task
	clock float64 // seconds after which a solve is ended
	share float64 // m/n
	x     points.Points
	y     *mat.Dense
	k     []float64 // K of the subsample, m×m, λ left out
	e     []float64 // e[j] = E‖residual of a point by j others‖², the squared pivots of K in the order drawn
	z     map[zKey]*points.Dense32
	runs  map[runKey]int
}

type zKey struct {
	method string
	s, m   int
}

type runKey struct {
	zKey
	ridge float64
	block bool
}

// newPilot draws m points, forms their K and its residual curve.
func newPilot(ctx context.Context, t *Task, m int) (*Pilot, error) {
	start := time.Now()
	index := slices.Clone(rng.New(t.Seed).Sub("pilot").Perm(t.n)[:m])
	p := &Pilot{M: m, task: t, clock: leastPilot / 2, share: float64(m) / float64(t.n), x: points.Gather(t.X, index), z: map[zKey]*points.Dense32{}, runs: map[runKey]int{}}
	p.y = mat.NewDense(m, t.t, nil)
	for i, k := range index {
		p.y.SetRow(i, t.Y.RawRowView(k))
	}
	lambda := t.Lambda * p.share
	stored, err := gram.New(ctx, t.Kernel, p.x, lambda, &gram.Options{Storage: t.Storage, Prefer: 20 * t.Tol * lambda, Seed: t.Seed})
	if err != nil {
		return nil, err
	}
	c := stored.Choice()
	p.Fine = c.Storage == gram.Float64
	exact := stored.Exact(lambda / 1000)
	k := mat.NewDense(m, m, nil)
	if err := exact.DenseTo(ctx, k); err != nil {
		return nil, err
	}
	p.k = k.RawMatrix().Data
	p.Entry = p.entry(c.Arithmetic, p.Fine)
	p.Exact = p.entry(exact.Choice().Arithmetic, true)
	p.residuals()
	p.Seconds = time.Since(start).Seconds()
	return p, nil
}

// entry returns the seconds of all threads for an entry of a tile.
func (p *Pilot) entry(arith kernel.Arithmetic, wide bool) float64 {
	b, threads := min(p.M/2, 256), accel.Threads()
	x, z := points.NewPanel(p.x.Slice(0, b)), points.NewPanel(p.x.Slice(b, 2*b))
	work := make([]kernel.Workspace, threads)
	wides, narrows := make([][]float64, threads), make([][]float32, threads)
	for i := range threads {
		wides[i], narrows[i] = make([]float64, b*b), make([]float32, b*b)
	}
	run := func() {
		_ = accel.ForEach(context.Background(), 2*threads, func(who, _ int) {
			if wide {
				kernel.Tile64(wides[who], b, p.task.Kernel, x, z, arith, &work[who])
			} else {
				kernel.Tile32(narrows[who], b, p.task.Kernel, x, z, arith, &work[who])
			}
		})
	}
	return timedAfter(run, run) / float64(2*threads*b*b)
}

// residuals factors K of the subsample: the points are in random order, so the square of pivot j is the
// residual of a point after projection on j others, tr(K−K̂)/n of Nyström's K̂ of rank j in expectation.
func (p *Pilot) residuals() {
	m := p.M
	a := slices.Clone(p.k)
	var largest float64
	for i := range m {
		largest = max(largest, a[i*m+i])
	}
	for shift := 1e-13 * largest * float64(m); ; shift *= 100 {
		for i := range m {
			a[i*m+i] += shift
		}
		if accel.Dpotrf(m, a, m) || shift > largest {
			break
		}
		copy(a, p.k)
	}
	p.e = make([]float64, m)
	for i := range m {
		p.e[i] = a[i*m+i] * a[i*m+i]
	}
}

// residual returns e(s), the mean of the curve about s; beyond what the subsample has by its slope there.
func (p *Pilot) residual(s float64) float64 {
	mean := func(s float64) float64 {
		lo, hi := int(0.8*s), max(int(1.2*s), int(0.8*s)+1)
		hi = min(hi, p.M)
		lo = min(lo, hi-1)
		var sum float64
		for _, v := range p.e[lo:hi] {
			sum += v
		}
		return sum / float64(hi-lo)
	}
	most := 0.85 * float64(p.M)
	if s <= most {
		return mean(s)
	}
	end, middle := mean(most), mean(most/3)
	slope := math.Log(middle/end) / math.Log(3)
	return end * math.Pow(s/most, -max(slope, 0))
}

// dense is K+λI of the first points of a subsample.
type dense struct {
	k      []float64
	m, ld  int
	lambda float64
}

func (a *dense) Dim() int { return a.m }

func (a *dense) MulTo(_ context.Context, dst, src *mat.Dense) error {
	dst.Copy(src)
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, blas64.General{Rows: a.m, Cols: a.m, Stride: a.ld, Data: a.k}, src.RawMatrix(), a.lambda, dst.RawMatrix())
	return nil
}

// Diag, Columns and EntryError make it a source of landmarks.
func (a *dense) Diag() []float64 {
	d := make([]float64, a.m)
	for i := range d {
		d[i] = a.k[i*a.ld+i]
	}
	return d
}

func (a *dense) Columns(_ context.Context, idx []int, dst *mat.Dense) error {
	for i := range a.m {
		row := dst.RawRowView(i)
		for c, j := range idx {
			row[c] = a.k[i*a.ld+j]
		}
	}
	return nil
}

func (a *dense) EntryError() float64 { return 0x1p-40 }

// factor returns Z of a method and rank of the subsample.
func (p *Pilot) factor(ctx context.Context, key zKey) (*points.Dense32, error) {
	if z := p.z[key]; z != nil {
		return z, nil
	}
	g := rng.New(p.task.Seed).Sub("pilot factor")
	src := &dense{k: p.k, m: key.m, ld: p.M}
	var f *lowrank.Factor
	var err error
	switch key.method {
	case Features:
		var fm feature.Map
		var dist feature.Dist
		if dist, err = feature.For(p.task.Kernel); err != nil {
			return nil, err
		}
		_, d := p.x.Dims()
		if fm, err = dist.Sample(d, key.s, g); err == nil {
			p.z[key], err = feature.Matrix(ctx, fm, p.x.Slice(0, key.m), nil)
		}
		return p.z[key], err
	case Nystrom:
		f, err = lowrank.Nystrom(ctx, src, key.s, g, nil)
	default:
		f, err = lowrank.RPCholesky(ctx, src, key.s, g, nil)
	}
	if err != nil {
		return nil, err
	}
	p.z[key] = f.F
	return f.F, nil
}

// mostPilot is the most iterations of a pilot's solve.
const mostPilot = 400

// solve counts the iterations of a method of rank s on the first m points with ridge λ and λ_p = ridge·λ;
// the limit where it does not converge. What takes a quarter of a second, on a busy machine, is extrapolated with M,
// and taken for the limit without.
func (p *Pilot) solve(ctx context.Context, method string, m, s int, lambda, ridge float64, block bool, limit int) (int, error) {
	a := &dense{k: p.k, m: m, ld: p.M, lambda: lambda}
	var w pcg.Preconditioner
	if method != None {
		z, err := p.factor(ctx, zKey{method, s, m})
		if err != nil {
			return 0, err
		}
		if w, err = precond.New(ctx, z, ridge*lambda, &precond.Options{Form: precond.FormL}); err != nil {
			return 0, err
		}
	}
	run := pcg.Solve
	if block {
		run = pcg.SolveBlock
	}
	p.Runs++
	start, sofar := time.Now(), 1.0
	stop := func(it *pcg.Iteration) error {
		if sofar = it.MaxRelRes; time.Since(start).Seconds() > p.clock {
			return pcg.ErrStop
		}
		return nil
	}
	res, err := run(ctx, a, w, p.y.Slice(0, m, 0, p.task.t).(*mat.Dense), &pcg.Options{Tol: p.task.Tol, MaxIter: limit, Monitor: stop})
	switch {
	case res == nil:
		return limit, ctx.Err()
	case err == nil && res.Status == pcg.Stopped && method != None && sofar < 0.5: // at the rate so far, which without M is no guide
		return min(limit, int(math.Ceil(float64(res.Iterations)*math.Log(p.task.Tol)/math.Log(sofar)))), nil
	case err == nil && res.Status != pcg.Converged:
		return limit, nil
	}
	return res.Iterations, err
}

// count predicts the iterations of a method on all points: mostPilot or more where they are many.
//
// With M of rank s the problem is replaced by one of all lengths m/n as long: m points, rank s' = s·m/n, and the
// ridge λ' = λ·e(s')/e(s), e the residual curve. Where the spectrum of K decays like a power about s,
// the eigenvalues of M⁻¹A then have the same distribution, and iterations are as many. Without M the ridge is λm/n,
// with which the leading eigenvalues are those of K in proportion. What is left of a growth with m is
// read off from half the points, and goes on, damped without landmarks.
func (p *Pilot) count(ctx context.Context, method string, s int, ridge float64, block bool, limit int) (int, error) {
	key := runKey{zKey{method, s, 0}, ridge, block}
	if n, ok := p.runs[key]; ok {
		return n, nil
	}
	start := time.Now()
	defer func() { p.Seconds += time.Since(start).Seconds() }()
	var its [2]float64
	for i, m := range []int{p.M, p.M / 2} {
		share := float64(m) / float64(p.task.n)
		small, lambda := 0, p.task.Lambda*share
		if method != None {
			small = max(1, int(math.Round(float64(s)*share)))
			lambda = p.task.Lambda * p.residual(float64(small)) / p.residual(float64(s))
		}
		n, err := p.solve(ctx, method, m, small, lambda, ridge, block, limit)
		if err != nil {
			return 0, err
		}
		if n >= limit { // slower than another, whatever is left of growth
			p.runs[key] = n
			return n, nil
		}
		its[i] = float64(max(n, 1))
	}
	growth := min(max(1, its[0]/its[1]), mostGrowth)
	share := 1.0
	if method == None || method == Features {
		share = damped
	}
	n := int(math.Ceil(its[0] * math.Pow(growth, share*math.Log2(float64(p.task.n)/float64(p.M)))))
	p.runs[key] = n
	return n, nil
}

// damped is the share of the growth from m/2 to m points that goes on at each further doubling without a
// preconditioner and with random features; with landmarks all of it does. Both were chosen on MNIST, COVTYPE and IJCNN1 at n = 20,000.
const damped = 0.65

// mostGrowth bounds the growth, which a clock that ends a solve, or few points, may exaggerate.
const mostGrowth = 1.5
