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

// Pilot has properties of K that were estimated from a random sample of the points. Projections are orthogonal
// projections in the feature space of the kernel.
type Pilot struct {
	SampleSize int     `json:"m"`       // number of sampled points from which the properties are estimated
	Seconds    float64 `json:"seconds"` // time that the pilot sample took
	cost.Entries
	// Residual is the mean squared residual of a point after projection on SampleSize others. The estimate is the mean
	// of the last fifth of the squared pivots of the Cholesky factor of K on the sample, in random order.
	Residual float64 `json:"left"`
	// LowRank is the number r of points such that the squared residuals of all other points, after projection on these
	// r, sum to at most rλ. A number above SampleSize is extrapolated. 0: the number is not known to be below N.
	LowRank int `json:"low_rank"`
	// Decay estimates how the mean squared residual of the other points decreases with the number r of points on which
	// they are projected: in proportion to r^−Decay near SampleSize. It is 0 if the sample is too small to tell.
	Decay float64 `json:"decay"`
	// MeanRowSum estimates the mean over rows i of Σ_{j≠i}|k(x_i, x_j)|.
	MeanRowSum float64 `json:"row_sum"`
	// LargestRowSum estimates the largest row sum, including k(x_i, x_i).
	LargestRowSum float64 `json:"largest_row_sum"`

	task        *Task
	sample      []int       // indices of the sampled points
	choice      gram.Choice // storage of K if memory did not matter
	maxDiagonal float64     // largest k(x, x) in the sample
	trace       float64     // estimate of tr K
}

const (
	pilotShare     = 1. / 20 // share of the points in the pilot sample; a larger sample takes longer
	minPilotPoints = 150     // smallest pilot sample: its last fifth, 30 pivots, gives Pilot.Residual
	maxPilotPoints = 1024    // largest pilot sample; the cost of its factorization grows with the cube of its size

	// timedPoints is the smallest number of points on which entries of K are timed. With only a few hundred points an
	// entry takes twice as long as with all points.
	timedPoints = 1024
)

// newPilot draws the pilot sample for a task. It computes the row sums and the Cholesky factor of K on the sample,
// chooses how to store the whole K, and times an entry of K, both exact and as stored.
func newPilot(ctx context.Context, t *Task) (*Pilot, error) {
	start := time.Now()
	p := &Pilot{task: t, SampleSize: min(t.N, maxPilotPoints, max(minPilotPoints, int(pilotShare*float64(t.N))))}
	p.sample = rng.New(t.Seed).Sub("pilot").Perm(t.N)[:min(t.N, max(p.SampleSize, timedPoints))]
	sample := points.Gather(t.X, p.sample)
	pilotPoints := sample.Slice(0, p.SampleSize)
	accuracy := t.Tol * t.Lambda / 20 // changes a residual by at most τ/20·‖y‖₂
	exact, err := gram.NewExact(t.Kernel, pilotPoints, t.Lambda, accuracy, nil)
	if err != nil {
		return nil, err
	}
	k := mat.NewDense(p.SampleSize, p.SampleSize, nil)
	if err = exact.DenseTo(ctx, k); err != nil {
		return nil, err
	}
	p.sumRows(k)
	p.choice, err = gram.Choose(ctx, t.Kernel, t.X, t.Lambda, &gram.Options{Storage: t.Fixed.Storage, Tiles: t.Tiles,
		PreferredAccuracy: t.PreferredError, MaxDroppedNorm: t.MaxDropped, Seed: t.Seed})
	if err != nil {
		return nil, err
	}
	if exact, err = gram.NewExact(t.Kernel, sample, t.Lambda, accuracy, nil); err == nil {
		p.ExactEntrySeconds, p.TimingSpread, err = timeEntry(ctx, exact)
	}
	if err != nil {
		return nil, err
	}
	// Entries as stored are timed by products that recompute them in the arithmetic of the choice.
	recomputedChoice := p.choice
	recomputedChoice.Storage, recomputedChoice.Sparse, recomputedChoice.Bytes = gram.Recompute, nil, 1
	stored, err := gram.New(ctx, t.Kernel, sample, t.Lambda, &gram.Options{Tiles: gram.DenseTiles,
		Choice: &recomputedChoice})
	if err == nil {
		var spread float64
		p.EntrySeconds, spread, err = timeEntry(ctx, stored)
		p.TimingSpread = max(p.TimingSpread, spread)
	}
	p.factorize(k)
	p.Seconds = time.Since(start).Seconds()
	return p, err
}

// An entry of K is timed several times. The quickest timing is used, because other programs disturb it least.
const (
	maxTimings      = 5    // largest number of timings
	timingAgreement = 1.05 // ratio of the two quickest timings at which no further timing is needed
)

// maxTimingSpread is the largest ratio of the slowest to the quickest timing that a report does not mention.
const maxTimingSpread = 1.5

// spreadText returns a warning that the timings disagree, or "" if they agree.
func spreadText(e *cost.Entries) string {
	if e.TimingSpread <= maxTimingSpread {
		return ""
	}
	return fmt.Sprintf("; the slowest timing of K took %.3g times the quickest: the machine is busy, and the "+
		"prediction is of an idle one", e.TimingSpread)
}

// timeEntry returns the seconds per entry of k, measured by products that form all entries of the lower triangle, and
// the ratio of the slowest timing to the quickest. The first product is not timed.
func timeEntry(ctx context.Context, k *gram.Matrix) (seconds, spread float64, err error) {
	n := k.Dim()
	x, y := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	err = k.MulTo(ctx, y, x)
	quickest, secondQuickest, slowest := math.Inf(1), math.Inf(1), 0.
	for i := 0; i < 2 || i < maxTimings && secondQuickest > timingAgreement*quickest; i++ {
		best := math.Inf(1) // the quickest product within 2 ms
		for start := time.Now(); err == nil && (math.IsInf(best, 1) || time.Since(start) < 2*time.Millisecond); {
			productStart := time.Now()
			err = k.MulTo(ctx, y, x)
			best = min(best, max(time.Since(productStart).Seconds(), 1e-9)) // positive, as callers divide by it
		}
		quickest, secondQuickest, slowest = min(quickest, best), min(secondQuickest, max(quickest, best)),
			max(slowest, best)
	}
	return quickest / (float64(n) * float64(n) / 2), slowest / quickest, cmp.Or(err, ctx.Err())
}

// sumRows sets the row sums, the trace and the largest diagonal entry from the kernel matrix k of the sample. Sums are
// scaled from SampleSize points to all points.
func (p *Pilot) sumRows(k *mat.Dense) {
	m := float64(p.SampleSize)
	scaleToN := (float64(p.task.N) - 1) / max(1, m-1)
	for i := range p.SampleSize {
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
// It sets Residual to the mean of the last fifth of the squared pivots, Decay from the fifths that end at half and at
// all of the pivots, and LowRank. If k is not positive definite, the rows from the failing pivot on keep their values,
// and their diagonal entries serve as pivots.
func (p *Pilot) factorize(k *mat.Dense) {
	m, l := p.SampleSize, k.RawMatrix().Data
	for i := range m {
		l[i*m+i] += 1e-13 * p.maxDiagonal * float64(m) // about 1,000 unit roundoffs of float64 for each point
	}
	accel.Dpotrf(m, l, m)
	pivots := make([]float64, m)
	for i := range m {
		pivots[i] = l[i*m+i] * l[i*m+i]
	}
	fifth := m - m*4/5
	windowMean := func(i int) float64 { return floats.Sum(pivots[i:i+fifth]) / float64(fifth) }
	p.Residual = windowMean(m - fifth)
	if half := m/2 - fifth; half >= 0 && p.Residual > 0 && windowMean(half) > p.Residual {
		p.Decay = math.Log2(windowMean(half) / p.Residual) // The number of points doubles between the windows.
	}
	p.LowRank = p.lowRank(fifth, windowMean)
}

// lowRank returns Pilot.LowRank. windowMean(i) returns the mean of the squared pivots i … i+window−1. Each of these is
// the squared residual of a point after projection on the points before it.
//
// Let m be the size of the sample. LowRank is the end r of the first window with n·windowMean ≤ rλ. If there is none, r
// is extrapolated: the residual is assumed to decrease as r^−Decay, which gives
// r = m·(n·Residual/(λm))^(1/(1+Decay)).
func (p *Pilot) lowRank(window int, windowMean func(i int) float64) int {
	n, m, lambda := float64(p.task.N), float64(p.SampleSize), p.task.Lambda
	for i := 0; i <= p.SampleSize-window; i += max(1, window/4) {
		if n*windowMean(i) <= lambda*float64(i+window) {
			return i + window // The residual at the end of the window is below the mean over the window.
		}
	}
	rank := m * math.Pow(n*p.Residual/(lambda*m), 1/(1+p.Decay))
	if !(p.Decay > 0 && rank < n) {
		return 0
	}
	return int(math.Ceil(rank))
}
