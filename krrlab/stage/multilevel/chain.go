package multilevel

import (
	"context"
	"fmt"
	"slices"

	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/precond/feature"
)

// Level is what was measured of one Z_k, n×s_k.
type Level struct {
	feature.ChainLevel
	Level int `json:"level"` // k = 1, 2, …; of features alone, the level whose width they have
	Measured
}

// measureChain measures every level of a chain, which has the given widths, and features alone of each width after the
// first, the narrowest first; it returns them in the order of the levels. The maps are those that g.Sub("features", 0)
// samples. If ctx ends, what was finished is returned beside its error.
func measureChain(ctx context.Context, p *problem, chain feature.Chain, levels feature.Levels, g rng.Stream,
	o *Options) (all, alone []Level, err error) {
	opt := *o
	last := len(levels) - 1
	_, d := p.X.Dims()
	drawn, err := chain.Sample(d, levels[last].Width, g.Sub("features", 0))
	if err != nil {
		return nil, nil, err
	}
	level := func(to *[]Level, name string, k int, l feature.ChainLevel, m feature.Map, g rng.Stream) error {
		if progress := opt.progress; progress != nil {
			opt.progress = func(_, part string, done, total int) { progress(name, part, done, total) }
			defer func() { opt.progress = progress }()
		}
		r, err := measure(ctx, p, m, g, &opt)
		if err == nil {
			*to = append(*to, Level{l, k + 1, *r})
		}
		return err
	}
	for k := last; k >= 0 && err == nil; k-- {
		l := levels[k]
		if k > 0 && (k == last || l.Width != levels[k+1].Width) {
			l := feature.ChainLevel{Sketch: "features", Width: l.Width}
			var m feature.Map
			if m, err = chain.Features.Sample(d, l.Width, g.Sub("features", 0)); err == nil {
				err = level(&alone, fmt.Sprintf("features alone, %d", l.Width), k, l, m,
					g.Sub("multilevel one level", uint64(k)))
			}
		}
		if err == nil {
			name := fmt.Sprintf("level %d, %s:%d", k+1, l.Sketch, l.Width)
			err = level(&all, name, k, l, drawn.(*feature.ChainMap).Level(k+1), g.Sub("multilevel chain", uint64(k)))
		}
	}
	slices.Reverse(all)
	slices.Reverse(alone)
	return all, alone, err
}
