package multilevel

import (
	"context"
	"fmt"
	"slices"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/precond/feature"
)

// Level is the result for one Z_k, n×s_k.
type Level struct {
	feature.ChainLevel
	Level int `json:"level"` // k = 1, 2, …; for features alone, the level with the same width
	Measured
}

// measureChain measures every level of a chain, the narrowest first. Before each level but the first, it measures
// features alone of the same width, once per width. It returns both in the order of the levels. The maps are those that
// g.Sub("features", 0) samples. If ctx ends, it returns the completed levels together with ctx's error.
func measureChain(ctx context.Context, p *problem, chain feature.Chain, levels feature.Levels, g rng.Stream,
	o *Options) (chainLevels, featureLevels []Level, err error) {
	opt := *o
	lastLevel := len(levels) - 1
	_, d := p.X.Dims()
	sampled, err := chain.Sample(d, levels[lastLevel].Width, g.Sub("features", 0))
	if err != nil {
		return nil, nil, err
	}
	measureLevel := func(dst *[]Level, name string, index int, level feature.ChainLevel, m feature.Map,
		g rng.Stream) error {
		if progress := opt.progress; progress != nil {
			opt.progress = func(_, step string, completed, total int) { progress(name, step, completed, total) }
			defer func() { opt.progress = progress }()
		}
		r, err := measure(ctx, p, m, g, &opt)
		if err == nil {
			*dst = append(*dst, Level{level, index + 1, *r})
		}
		return err
	}
	for index := lastLevel; index >= 0 && err == nil; index-- {
		level := levels[index]
		if index > 0 && (index == lastLevel || level.Width != levels[index+1].Width) {
			level := feature.ChainLevel{Sketch: "features", Width: level.Width}
			var m feature.Map
			if m, err = chain.Features.Sample(d, level.Width, g.Sub("features", 0)); err == nil {
				err = measureLevel(&featureLevels, fmt.Sprintf("features alone, %d", level.Width), index, level, m,
					g.Sub("multilevel one level", uint64(index)))
			}
		}
		if err == nil {
			name := fmt.Sprintf("level %d, %s:%d", index+1, level.Sketch, level.Width)
			err = measureLevel(&chainLevels, name, index, level, sampled.(*feature.ChainMap).Level(index+1),
				g.Sub("multilevel chain", uint64(index)))
		}
	}
	slices.Reverse(chainLevels)
	slices.Reverse(featureLevels)
	return chainLevels, featureLevels, err
}
