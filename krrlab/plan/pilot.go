package plan

import (
	"context"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// Pilot is what a subsample of m points says of the problem.
type Pilot struct {
	M       int     `json:"m"`
	Seconds float64 `json:"seconds"` // it took
	// Entry and Exact are the seconds that all threads take for an entry of K, as it is stored and in
	// float64 as accurately as residuals and landmarks want it.
	Entry float64 `json:"entry_seconds"`
	Exact float64 `json:"exact_entry_seconds"`
	// Fine says that float32 is not accurate enough for K.
	Fine bool `json:"fine"`

	task    *Task
	x       points.Points
	largest float64   // k(x, x)
	mean    float64   // of k(x, x)
	e       []float64 // e[j] = E‖residual of a point by j others‖², the squared pivots of K in the order drawn
}

// newPilot draws m points, forms their K and its residual curve.
func newPilot(ctx context.Context, t *Task, m int) (*Pilot, error) {
	start := time.Now()
	index := slices.Clone(rng.New(t.Seed).Sub("pilot").Perm(t.n)[:m])
	p := &Pilot{M: m, task: t, x: points.Gather(t.X, index)}
	lambda := t.Lambda * float64(m) / float64(t.n)
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
	p.Entry = p.entry(c.Arithmetic, p.Fine)
	p.Exact = p.entry(exact.Choice().Arithmetic, true)
	p.residuals(k.RawMatrix().Data)
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
// residual of a point after projection on j others, tr(K−K̂)/(n−j) of Nyström's K̂ of rank j in expectation.
func (p *Pilot) residuals(k []float64) {
	m := p.M
	for i := range m {
		p.largest = max(p.largest, k[i*m+i])
		p.mean += k[i*m+i] / float64(m)
	}
	a := slices.Clone(k)
	for shift := 1e-13 * p.largest * float64(m); ; shift *= 100 {
		for i := range m {
			a[i*m+i] += shift
		}
		if accel.Dpotrf(m, a, m) || shift >= p.largest { // also of K = 0
			break
		}
		copy(a, k)
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
