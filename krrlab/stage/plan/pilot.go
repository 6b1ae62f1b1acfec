package plan

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// Pilot is what a few of the points, drawn at random, tell of K.
type Pilot struct {
	M       int     `json:"m"`
	Seconds float64 `json:"seconds"` // it took
	cost.Entries
	// Left is the mean residual of a point after projection on M others: the last squared pivots of K in random order.
	Residual float64 `json:"left"`
	// Sum estimates Σ_j|k(x_i, x_j)|, j ≠ i, of a row of K on average, Largest the largest one with k(x_i, x_i).
	MeanRowSum    float64 `json:"row_sum"`
	LargestRowSum float64 `json:"largest_row_sum"`

	task   *Task
	choice gram.Choice // how K is kept where memory does not matter
	most   float64     // k(x, x)
}

const (
	pilotShare, pilotLeast, pilotMost = 1. / 20, 150, 1024 // points, of n, at least and at most
	// an entry of K is timed on so many at least: of a few hundred it takes twice as long as of all
	timedPoints = 1024
)

// newPilot times entries of K of some points, sums and factors it, and finds how K would be kept.
func newPilot(ctx context.Context, t *Task) (*Pilot, error) {
	start := time.Now()
	p := &Pilot{task: t, M: min(t.N, pilotMost, max(pilotLeast, int(pilotShare*float64(t.N))))}
	all := points.Gather(t.X, rng.New(t.Seed).Sub("pilot").Perm(t.N)[:min(t.N, max(p.M, timedPoints))])
	sub := all.Slice(0, p.M)
	exact, err := gram.NewExact(t.Kernel, sub, t.Lambda, t.Tol*t.Lambda/20, nil)
	if err != nil {
		return nil, err
	}
	k := mat.NewDense(p.M, p.M, nil)
	if err = exact.DenseTo(ctx, k); err != nil {
		return nil, err
	}
	p.sum(k)
	p.choice, err = gram.Choose(ctx, t.Kernel, t.X, t.Lambda, &gram.Options{Storage: t.Fixed.Storage, Tiles: t.Tiles,
		PreferredAccuracy: t.PreferredError, MaxDroppedNorm: t.MaxDropped, Seed: t.Seed})
	if err != nil {
		return nil, err
	}
	if exact, err = gram.NewExact(t.Kernel, all, t.Lambda, t.Tol*t.Lambda/20, nil); err == nil {
		p.ExactEntrySeconds, p.TimingSpread, err = entry(ctx, exact)
	}
	if err != nil {
		return nil, err
	}
	by := p.choice // for the arithmetic
	by.Storage, by.Sparse, by.Bytes = gram.Recompute, nil, 1
	stored, err := gram.New(ctx, t.Kernel, all, t.Lambda, &gram.Options{Tiles: gram.DenseTiles, Chosen: &by})
	if err == nil {
		var spread float64
		p.EntrySeconds, spread, err = entry(ctx, stored)
		p.TimingSpread = max(p.TimingSpread, spread)
	}
	p.factor(k)
	p.Seconds = time.Since(start).Seconds()
	return p, err
}

// timings is how often an entry of K is timed. The quickest counts, which other programs distort least.
const timings = 5

// mostSpread is up to which Spread timings agree.
const mostSpread = 1.5

// spreadText says that timings disagree; "" if they do not.
func spreadText(e *cost.Entries) string {
	if e.TimingSpread <= mostSpread {
		return ""
	}
	return fmt.Sprintf("; the slowest of %d timings of K took %.3g times the quickest: the machine is busy, and the "+
		"prediction is of an idle one", timings, e.TimingSpread)
}

// entry returns the seconds of an entry of K of some points, by products for which it is formed, and how many times as
// long the slowest of the timings took.
func entry(ctx context.Context, k *gram.Matrix) (seconds, spread float64, err error) {
	n := k.Dim()
	x, y := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	err = k.MulTo(ctx, y, x)
	quickest, slowest := math.Inf(1), 0.
	for range timings {
		best := math.Inf(1) // of those within 2 ms
		for start := time.Now(); err == nil && (math.IsInf(best, 1) || time.Since(start) < 2*time.Millisecond); {
			t := time.Now()
			err = k.MulTo(ctx, y, x)
			best = min(best, max(time.Since(t).Seconds(), 1e-9))
		}
		quickest, slowest = min(quickest, best), max(slowest, best)
	}
	return quickest / (float64(n) * float64(n) / 2), slowest / quickest, cmp.Or(err, ctx.Err())
}

// sum sums rows of K.
func (p *Pilot) sum(k *mat.Dense) {
	m := float64(p.M)
	others := (float64(p.task.N) - 1) / max(1, m-1)
	for i := range p.M {
		var sum float64
		for j, v := range k.RawRowView(i) {
			if i != j {
				sum += math.Abs(v) * others
			}
		}
		p.MeanRowSum += sum / m
		p.LargestRowSum, p.most = max(p.LargestRowSum, sum+k.At(i, i)), max(p.most, k.At(i, i))
	}
}

// factor sets Left, and overwrites k by a factor of it and of what rounding takes. Of an indefinite K rows stay as they
// are from where there is none.
func (p *Pilot) factor(k *mat.Dense) {
	m, l := p.M, k.RawMatrix().Data
	for i := range m {
		l[i*m+i] += 1e-13 * p.most * float64(m)
	}
	accel.Dpotrf(m, l, m)
	for i := m * 4 / 5; i < m; i++ {
		p.Residual += l[i*m+i] * l[i*m+i] / float64(m-m*4/5)
	}
}
