package plan

import (
	"cmp"
	"context"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// Pilot is what m of the points, drawn at random, say of the problem: those that a solve looks at before it forms K, or more.
type Pilot struct {
	M       int     `json:"m"`
	Seconds float64 `json:"seconds"` // it took
	Look    float64 `json:"look_seconds"`
	Entries

	task    *Task
	choice  gram.Choice // how K is kept where memory does not matter
	x       points.Points
	largest float64   // k(x, x)
	mean    float64   // of k(x, x)
	rms     float64   // of k(x, z)
	e       []float64 // e[j] = E‖residual of a point by j others‖², the squared pivots of K in random order
}

// Entries are the seconds that all threads take for an entry of K.
type Entries struct {
	Stored  float64 `json:"entry_seconds"`         // as it is stored
	Columns float64 `json:"columns_entry_seconds"` // in float64, as accurately as landmarks want it
	Exact   float64 `json:"exact_entry_seconds"`   // and true residuals
	// Dense is of the direct solvers' K, in float32 and float64.
	Dense [2]float64 `json:"dense_entry_seconds"`
}

// newPilot looks at K, and at more of it where that costs little beside forming it.
func newPilot(ctx context.Context, t *Task, rates Rates) (*Pilot, error) {
	start := time.Now()
	prefer := cmp.Or(t.Prefer, 20*t.Tol*t.Lambda)
	look, err := gram.Look(ctx, t.Kernel, t.X, t.Lambda, &gram.Options{Storage: t.Storage, Prefer: prefer, Seed: t.Seed})
	if err != nil {
		return nil, err
	}
	p := &Pilot{M: len(look.Rows), Look: time.Since(start).Seconds(), task: t, choice: look.Choice}
	p.x = points.Gather(t.X, look.Rows)
	p.time(look)
	k := look.K
	if m := p.size(rates); m > p.M {
		p.M, k = m, mat.NewDense(m, m, nil)
		exact, err := gram.NewExact(t.Kernel, points.Gather(t.X, rng.New(t.Seed).Sub("pilot").Perm(t.n)[:m]), t.Lambda, t.Lambda/1000, nil)
		if err == nil {
			err = exact.DenseTo(ctx, k)
		}
		if err != nil {
			return nil, err
		}
	}
	p.residuals(k)
	p.Seconds = time.Since(start).Seconds()
	return p, nil
}

// size returns the most points, n/4 and 4,096 at most, whose K is formed and factored in a tenth of the time that forming
// all of K takes, and in a quarter of the memory.
func (p *Pilot) size(r Rates) (m int) {
	n, memory := float64(p.task.n), float64(p.task.Memory)
	for s := 1024.; s <= min(n/4, 4096); s += 256 {
		if memory > 0 && 16*s*s > memory/4 || s*s*(p.Columns/2+16/r.Touch)+cholesky(s, r.Gemm64, r.Potrf64) > 0.1*n*n/2*(p.Stored+4/r.Touch) {
			break
		}
		m = int(s)
	}
	return m
}

// time sets the entries, each kind of tile timed once.
func (p *Pilot) time(look *gram.Sample) {
	t, known := p.task, map[tile]float64{}
	levels := kernel.NewLevels(t.Kernel, p.x, points.NewPanel(p.x).Norms)
	entry := func(k tile) float64 {
		if known[k] == 0 {
			known[k] = p.entry(k)
		}
		return known[k]
	}
	wide := func(accuracy float64) float64 {
		arith, centred := look.Exact(accuracy)
		return entry(tile{arith, centred, true, levels})
	}
	c := look.Choice
	p.Stored = entry(tile{c.Arithmetic, c.Centred, c.Storage == gram.Float64, levels})
	p.Columns, p.Exact = wide(t.Lambda/1000), wide(t.Tol*t.Lambda/20)
	arith, centred := look.Exact(t.Lambda / 10)
	for i := range p.Dense {
		p.Dense[i] = entry(tile{arith, centred, i > 0, nil})
	}
}

// tile is a way to form a tile of K.
type tile struct {
	arith         kernel.Arithmetic
	centred, wide bool
	levels        *kernel.Levels // nil without a table of values
}

// entry returns the seconds of all threads for an entry.
func (p *Pilot) entry(k tile) float64 {
	b, threads, view := min(p.M/2, 256), accel.Threads(), p.x
	if k.centred {
		view = points.Shift(view, points.Mean(view))
	}
	panel := points.NewPanel
	if k.arith == kernel.Float32 {
		panel = points.NewPanel32
	}
	all := panel(view)
	x, z := all.Slice(0, b), all.Slice(b, 2*b)
	work := make([]kernel.Workspace, threads)
	wides, narrows := make([][]float64, threads), make([][]float32, threads)
	for i := range threads {
		wides[i], narrows[i] = make([]float64, b*b), make([]float32, b*b)
	}
	return timedAfter(func() {}, func() {
		_ = accel.ForEach(context.Background(), threads, func(who, _ int) {
			w := &work[who]
			switch {
			case k.levels != nil && k.wide:
				k.levels.Tile64(wides[who], b, x, z, w)
			case k.levels != nil:
				k.levels.Tile32(narrows[who], b, x, z, w)
			case k.wide:
				kernel.Tile64(wides[who], b, p.task.Kernel, x, z, k.arith, w)
			default:
				kernel.Tile32(narrows[who], b, p.task.Kernel, x, z, k.arith, w)
			}
		})
	}) / float64(threads*b*b)
}

// residuals factors K of the pilot's points in random order: the square of pivot j is the
// residual of a point after projection on j others, tr(K−K̂)/(n−j) of Nyström's K̂ of rank j in expectation.
func (p *Pilot) residuals(k *mat.Dense) {
	m, order := p.M, rng.New(p.task.Seed).Sub("pilot").Perm(p.M)
	a := make([]float64, m*m)
	for s := range m {
		p.largest = max(p.largest, k.At(s, s))
		p.mean += k.At(s, s) / float64(m)
	}
	p.rms = mat.Norm(k, 2) / float64(m)
	for shift := 1e-13 * p.largest * float64(m); ; shift *= 100 {
		for i, s := range order {
			for j, r := range order[:i+1] {
				a[i*m+j] = k.At(s, r)
			}
			a[i*m+i] += shift
		}
		if accel.Dpotrf(m, a, m) || shift >= p.largest { // also of K = 0
			break
		}
	}
	p.e = make([]float64, m)
	for i := range m {
		p.e[i] = a[i*m+i] * a[i*m+i]
	}
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
