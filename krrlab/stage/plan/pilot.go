package plan

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// Pilot has properties of K that were estimated from a random sample of the points.
type Pilot struct {
	M       int     `json:"m"`       // number of sampled points from which the properties are estimated
	Seconds float64 `json:"seconds"` // time that the pilot sample took
	cost.Entries
	// Residual is the mean residual of a point after projection on M others: the mean of the last squared pivots of the
	// Cholesky factor of K, taken in random order.
	Residual float64 `json:"left"`
	// LowRank is the number r of points after projection on which the other points have a total residual of at most rλ:
	// a number below M that was found, or one extrapolated by a power of the number of points; 0 if it is not below N.
	LowRank int `json:"low_rank"`
	// MeanRowSum estimates the mean over rows i of Σ_{j≠i}|k(x_i, x_j)|.
	MeanRowSum float64 `json:"row_sum"`
	// LargestRowSum estimates the largest row sum, including k(x_i, x_i).
	LargestRowSum float64 `json:"largest_row_sum"`

	task        *Task
	sample      []int       // indices of the sampled points
	choice      gram.Choice // how K would be stored if memory did not matter
	maxDiagonal float64     // largest k(x, x) in the sample
	trace       float64     // estimate of tr K
}

const (
	pilotShare     = 1. / 20 // share of the points in the pilot sample; a larger one takes longer
	minPilotPoints = 150     // smallest pilot sample: its last fifth, 30 pivots, gives Pilot.Residual
	maxPilotPoints = 1024    // largest pilot sample: it is factored, at a cost of its cube

	// timedPoints is the smallest number of points on which entries of K are timed. With only a few hundred points an
	// entry takes twice as long as with all points.
	timedPoints = 1024
)

// newPilot draws the pilot sample for a task. It computes the row sums and the Cholesky factor of K on the sample,
// chooses how to store the whole K, and times an entry of K, both exact and as stored.
func newPilot(ctx context.Context, t *Task) (*Pilot, error) {
	start := time.Now()
	p := &Pilot{task: t, M: min(t.N, maxPilotPoints, max(minPilotPoints, int(pilotShare*float64(t.N))))}
	p.sample = rng.New(t.Seed).Sub("pilot").Perm(t.N)[:min(t.N, max(p.M, timedPoints))]
	sample := points.Gather(t.X, p.sample)
	pilotPoints := sample.Slice(0, p.M)
	exact, err := gram.NewExact(t.Kernel, pilotPoints, t.Lambda, t.Tol*t.Lambda/20, nil)
	if err != nil {
		return nil, err
	}
	k := mat.NewDense(p.M, p.M, nil)
	if err = exact.DenseTo(ctx, k); err != nil {
		return nil, err
	}
	p.sumRows(k)
	p.choice, err = gram.Choose(ctx, t.Kernel, t.X, t.Lambda, &gram.Options{Storage: t.Fixed.Storage, Tiles: t.Tiles,
		PreferredAccuracy: t.PreferredError, MaxDroppedNorm: t.MaxDropped, Seed: t.Seed})
	if err != nil {
		return nil, err
	}
	if exact, err = gram.NewExact(t.Kernel, sample, t.Lambda, t.Tol*t.Lambda/20, nil); err == nil {
		p.ExactEntrySeconds, p.TimingSpread, err = timeEntry(ctx, exact)
	}
	if err != nil {
		return nil, err
	}
	recomputed := p.choice // the arithmetic of the choice, without its storage
	recomputed.Storage, recomputed.Sparse, recomputed.Bytes = gram.Recompute, nil, 1
	stored, err := gram.New(ctx, t.Kernel, sample, t.Lambda, &gram.Options{Tiles: gram.DenseTiles, Choice: &recomputed})
	if err == nil {
		var spread float64
		p.EntrySeconds, spread, err = timeEntry(ctx, stored)
		p.TimingSpread = max(p.TimingSpread, spread)
	}
	p.factorize(k)
	p.Seconds = time.Since(start).Seconds()
	return p, err
}

// timings is how many times an entry of K is timed. The quickest timing counts, since other programs disturb it least.
const timings = 5

// maxTimingSpread is the largest ratio of the slowest to the quickest timing that is not reported as a disturbance.
const maxTimingSpread = 1.5

// spreadText warns in a report that the timings disagree, and returns "" if they agree.
func spreadText(e *cost.Entries) string {
	if e.TimingSpread <= maxTimingSpread {
		return ""
	}
	return fmt.Sprintf("; the slowest of %d timings of K took %.3g times the quickest: the machine is busy, and the "+
		"prediction is of an idle one", timings, e.TimingSpread)
}

// timeEntry returns the seconds per entry of k, measured by products that form all entries of the lower triangle, and
// the ratio of the slowest timing to the quickest. The first product is not timed.
func timeEntry(ctx context.Context, k *gram.Matrix) (seconds, spread float64, err error) {
	n := k.Dim()
	x, y := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	err = k.MulTo(ctx, y, x)
	quickest, slowest := math.Inf(1), 0.
	for range timings {
		best := math.Inf(1) // the quickest product within 2 ms
		for start := time.Now(); err == nil && (math.IsInf(best, 1) || time.Since(start) < 2*time.Millisecond); {
			t := time.Now()
			err = k.MulTo(ctx, y, x)
			best = min(best, max(time.Since(t).Seconds(), 1e-9)) // not 0, by which others divide
		}
		quickest, slowest = min(quickest, best), max(slowest, best)
	}
	return quickest / (float64(n) * float64(n) / 2), slowest / quickest, cmp.Or(err, ctx.Err())
}

// sumRows sets the row sums and the largest diagonal entry from the sample k, scaled from M to N points.
func (p *Pilot) sumRows(k *mat.Dense) {
	m := float64(p.M)
	scaleToN := (float64(p.task.N) - 1) / max(1, m-1)
	for i := range p.M {
		var sum float64
		for j, v := range k.RawRowView(i) {
			if i != j {
				sum += math.Abs(v) * scaleToN
			}
		}
		p.MeanRowSum, p.trace = p.MeanRowSum+sum/m, p.trace+k.At(i, i)/m*float64(p.task.N)
		p.LargestRowSum, p.maxDiagonal = max(p.LargestRowSum, sum+k.At(i, i)), max(p.maxDiagonal, k.At(i, i))
	}
}

// factorize overwrites k by its Cholesky factor, after adding a multiple of the identity that covers rounding errors.
// It sets Residual to the mean of the last fifth of the squared pivots, and LowRank. If k is not positive definite, the
// rows from the failing pivot on keep their values, which then count as pivots.
func (p *Pilot) factorize(k *mat.Dense) {
	m, l := p.M, k.RawMatrix().Data
	for i := range m {
		l[i*m+i] += 1e-13 * p.maxDiagonal * float64(m)
	}
	accel.Dpotrf(m, l, m)
	pivots := make([]float64, m)
	for i := range m {
		pivots[i] = l[i*m+i] * l[i*m+i]
	}
	fifth := m - m*4/5
	mean := func(i int) float64 { return floats.Sum(pivots[i:i+fifth]) / float64(fifth) }
	p.Residual = mean(m - fifth)
	p.LowRank = p.lowRank(fifth, mean)
}

// lowRank returns Pilot.LowRank. mean(i) is the mean of the squared pivots i … i+window−1: the mean residual of window
// points, each after projection on the points before it.
//
// If no window has a residual of rλ/n per point, the rank r is extrapolated. The residual is assumed to decrease as
// r^−decay, with the decay between the windows that end at M/2 and at M, which gives r =
// M·(n·Residual/(λM))^(1/(1+decay)).
func (p *Pilot) lowRank(window int, mean func(i int) float64) int {
	n, lambda := float64(p.task.N), p.task.Lambda
	for i := 0; i <= p.M-window; i += max(1, window/4) {
		if n*mean(i) <= lambda*float64(i+window) {
			return i + window // the window's mean is above the residual at its end
		}
	}
	if p.M/2 < window {
		return 0
	}
	decay := math.Log2(mean(p.M/2-window) / p.Residual) // of the residual, when the number of points doubles
	rank := float64(p.M) * math.Pow(n*p.Residual/(lambda*float64(p.M)), 1/(1+decay))
	if !(decay > 0 && rank < n) {
		return 0
	}
	return int(math.Ceil(rank))
}
