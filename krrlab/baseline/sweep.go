package baseline

import (
	"context"
	"fmt"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

// SweepResult is the answer of RandomFeaturesSweep.
type SweepResult struct {
	Sizes   []int            // asked for
	Results []*FeatureResult // those that are done, ascending; Status and residual are each one's own
	Stacked bool             // φ stacks independent draws of Sizes[0], Sizes[1]−Sizes[0], … features
	Status  pcg.Status       // the worst of the results', or Canceled
	Bytes   int64            // taken at most
	// Seconds of the whole. Those of a result are its own: the factor, the solves, the residuals
	// with the features they formed; not its share of what all have in common, Z and its Gram matrix.
	Seconds FeatureSeconds
}

// String has a line for each size.
func (r *SweepResult) String() string {
	var b strings.Builder
	how := "prefixes of one map"
	if r.Stacked {
		how = "stacked draws"
	}
	fmt.Fprintf(&b, "random features for %d of %d sizes, %s: %v in %.3g s (features %.3g s, gram %.3g s)",
		len(r.Results), len(r.Sizes), how, r.Status, r.Seconds.Total, r.Seconds.Features, r.Seconds.Gram)
	for _, q := range r.Results {
		fmt.Fprintf(&b, "\n  s = %d, %v: %v, residual %.3g, objective %.6g", q.S, q.Form, q.Status, q.MaxRelRes(), q.Objective)
	}
	return b.String()
}

// RandomFeaturesSweep is RandomFeatures for several numbers of features, ascending, with the
// features of each among those of the next, so that one Gram matrix serves all: with S the
// largest size,
//
//	Z_s = √(S/s)·Z_S[:, :s],  Z_sᵀZ_s + λI = (S/s)·(Z_SᵀZ_S)[:s, :s] + λI.
//
// Sizes above n take the dual form if Z can be kept, ZZᵀ being summed over the features as
// the sizes grow.
//
// A Fourier map has this property: its first features are those of a smaller one. For any
// other dist (TensorSketch, Chain) φ stacks independent draws of Sizes[0],
// Sizes[1]−Sizes[0], … features (feature.Stack), which has the same mean, and the variance of one
// draw where that is proportional to 1/s; Stacked says so. Draw 0 belongs to g, draw j > 0 to
// g.Sub("sweep", j).
//
// Work: nS² flops for all, s³/3 and the passes of RandomFeatures for each size. Memory: that of the
// largest size, and a second factor. It returns the errors of RandomFeatures and of dist; when
// ctx ends the results so far come with the error. It panics if there are no sizes
// or they are not positive and ascending.
func RandomFeaturesSweep(ctx context.Context, dist feature.Dist, x points.Points, lambda float64, y *mat.Dense, sizes []int, g rng.Stream, o *FeatureOptions) (*SweepResult, error) {
	var opt FeatureOptions
	if o != nil {
		opt = *o
	}
	_, d := x.Dims()
	maps, stacked, err := nested(dist, d, sizes, g)
	if err != nil {
		return nil, err
	}
	w, err := newSweeper(x, lambda, y, maps, sizes, opt)
	if err != nil {
		return nil, err
	}
	res := &SweepResult{Sizes: append([]int(nil), sizes...), Stacked: stacked, Bytes: w.bytes}
	err = w.run(ctx, func(r *FeatureResult) error {
		res.Results = append(res.Results, r)
		res.Status = max(res.Status, r.Status)
		return nil
	})
	res.Seconds = w.seconds
	for _, r := range res.Results {
		res.Seconds.Features += r.Seconds.Features
		res.Seconds.Factor += r.Seconds.Factor
		res.Seconds.Solve += r.Seconds.Solve
		res.Seconds.Residual += r.Seconds.Residual
	}
	res.Seconds.Total = w.elapsed()
	if err == nil {
		return res, nil
	}
	if len(res.Results) == 0 {
		return nil, err
	}
	if ctx.Err() != nil {
		res.Status = pcg.Canceled
	}
	return res, err
}

// nested returns a map for each size, the first features of each being those of the one
// before, but for the scale.
func nested(dist feature.Dist, d int, sizes []int, g rng.Stream) (maps []feature.Map, stacked bool, err error) {
	last := 0
	for _, s := range sizes {
		if s <= last {
			panic(fmt.Sprintf("baseline: sizes %v, want positive and ascending ones", sizes))
		}
		last = s
	}
	if len(sizes) == 0 {
		panic("baseline: no sizes to sweep over")
	}
	_, prefixes := dist.(feature.Fourier)
	var parts []feature.Map
	last = 0
	for j, s := range sizes {
		stream, size := g, s
		if !prefixes {
			size = s - last
			if j > 0 {
				stream = g.Sub("sweep", uint64(j))
			}
		}
		m, err := dist.Sample(d, size, stream)
		if err != nil {
			return nil, false, err
		}
		if !prefixes {
			parts = append(parts, m)
			m = feature.Stack(parts...)
		}
		maps, last = append(maps, m), s
	}
	return maps, !prefixes && len(sizes) > 1, nil
}

// Predict returns the predictions of every result, p×t each, with one pass over the features of the
// largest.
func (r *SweepResult) Predict(ctx context.Context, x points.Points) ([]*mat.Dense, error) {
	if len(r.Results) == 0 {
		return nil, fmt.Errorf("baseline: no size was solved")
	}
	ws := make([]*mat.Dense, len(r.Results))
	for i, q := range r.Results {
		ws[i] = q.W
	}
	return predictAll(ctx, r.Results[len(ws)-1].Map, ws, x)
}
