package multilevel

import (
	"context"
	"fmt"
	"slices"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/precond/feature"
)

// LevelResult is the result for one level k of a chain of feature maps, whose feature matrix Z_k is n×s_k, or for a
// plain feature map.
type LevelResult struct {
	feature.ChainLevel
	Index int `json:"level"` // k = 1, 2, …; for a plain feature map, the last level with the same width
	Measurement
}

// measureChain measures every level of a chain of feature maps, which has the given levels, the narrowest level first.
// Before a level k > 1 it measures a plain feature map (one without sketches) of the same width, once per width. It
// returns both lists in the order of the levels. The chain and the plain maps use the same random stream
// stream.Sub("features", 0), so that their features are the same if the widths are equal. If ctx ends, measureChain
// returns the completed levels together with ctx's error.
func measureChain(ctx context.Context, p *problem, chain feature.Chain, levels feature.Levels, stream rng.Stream,
	o *Options) (chainLevels, featureLevels []LevelResult, err error) {
	lastLevel := len(levels) - 1
	_, d := p.X.Dims()
	sampled, err := feature.SampleWithin(o.memory, chain, d, levels[lastLevel].Width, stream.Sub("features", 0))
	if err != nil {
		return nil, nil, err
	}
	memory := o.memory.Reserve(feature.MapBytes(chain, d, levels[lastLevel].Width))
	// measureLevel completes r by the measurement of a feature map within a memory budget, and appends r to results.
	measureLevel := func(results *[]LevelResult, r LevelResult, name string, featureMap feature.Map,
		memory accel.Budget, stream rng.Stream) error {
		levelOptions := *o
		levelOptions.memory = memory
		levelOptions.progress = func(_, step string, completed, total int) { o.progress(name, step, completed, total) }
		measurement, err := measure(ctx, p, featureMap, stream, &levelOptions)
		if err == nil {
			r.Measurement = *measurement
			*results = append(*results, r)
		}
		return err
	}
	for index := lastLevel; index >= 0 && err == nil; index-- {
		level := levels[index]
		if index > 0 && (index == lastLevel || level.Width != levels[index+1].Width) {
			plain := LevelResult{ChainLevel: feature.ChainLevel{Sketch: "features", Width: level.Width},
				Index: index + 1}
			var featureMap feature.Map
			if featureMap, err = feature.SampleWithin(memory, chain.Features, d, level.Width,
				stream.Sub("features", 0)); err == nil {
				err = measureLevel(&featureLevels, plain, fmt.Sprintf("features alone, %d", level.Width), featureMap,
					memory.Reserve(feature.MapBytes(chain.Features, d, level.Width)),
					stream.Sub("multilevel one level", uint64(index)))
			}
		}
		if err == nil {
			name := fmt.Sprintf("level %d, %s:%d", index+1, level.Sketch, level.Width)
			err = measureLevel(&chainLevels, LevelResult{ChainLevel: level, Index: index + 1}, name,
				sampled.(*feature.ChainMap).Level(index+1), memory, stream.Sub("multilevel chain", uint64(index)))
		}
	}
	slices.Reverse(chainLevels)
	slices.Reverse(featureLevels)
	return chainLevels, featureLevels, err
}
