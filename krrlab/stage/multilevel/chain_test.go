package multilevel

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/precond/feature"
)

// TestMeasureChain checks that each level has the result of measure for the map of the same seed, in the order of the
// chain, and that features alone are measured once per width. Progress names each level, and an interrupted chain
// returns the completed levels.
func TestMeasureChain(t *testing.T) {
	p, _ := newTestProblem(t, 120, 0.1, 0.1)
	levels := feature.Levels{{Sketch: "features", Width: 80}, {Sketch: "srht", Width: 40},
		{Sketch: "gaussian", Width: 40}, {Sketch: "gaussian", Width: 20}}
	chain := testkit.Must(feature.ChainFor(gauss, levels))
	var names []string
	options := completeOptions(Options{progress: func(level, _ string, _, _ int) {
		if len(names) == 0 || names[len(names)-1] != level {
			names = append(names, level)
		}
	}})
	stream := rng.New(3)
	measured, alone, err := measureChain(t.Context(), p, chain, levels, stream, options)
	if err != nil || len(measured) != 4 || len(alone) != 2 {
		t.Fatalf("levels %+v, features alone %+v, error %v; want 4 and 2", measured, alone, err)
	}
	if want := []string{"features alone, 20", "level 4, gaussian:20", "features alone, 40", "level 3, gaussian:40",
		"level 2, srht:40", "level 1, features:80"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	checkMeasurement := func(got LevelResult, featureMap feature.Map, stream rng.Stream) {
		t.Helper()
		want := testkit.Must(measure(t.Context(), p, featureMap, stream, completeOptions(Options{})))
		got.Seconds, want.Seconds = Seconds{}, Seconds{}
		got.Error.Seconds, want.Error.Seconds, got.Kappa.Seconds, want.Kappa.Seconds = 0, 0, 0, 0
		if !reflect.DeepEqual(got.Measurement, *want) {
			t.Errorf("level %d: %+v, want %+v", got.Index, got.Measurement, *want)
		}
	}
	chainMap := testkit.Must(chain.Sample(4, 20, stream.Sub("features", 0)))
	for k, level := range measured {
		if level.Index != k+1 || level.ChainLevel != levels[k] {
			t.Errorf("level %d: %+v", k+1, level)
		}
		checkMeasurement(level, chainMap.(*feature.ChainMap).Level(k+1), stream.Sub("multilevel chain", uint64(k)))
	}
	for i, k := range []int{2, 3} {
		featureMap := testkit.Must(chain.Features.Sample(4, levels[k].Width, stream.Sub("features", 0)))
		if level := alone[i]; level.Index != k+1 || level.Sketch != "features" || level.Width != levels[k].Width {
			t.Errorf("features alone: %+v", level)
		}
		checkMeasurement(alone[i], featureMap, stream.Sub("multilevel one level", uint64(k)))
	}
	ctx, cancel := context.WithCancel(t.Context())
	options.progress = func(level, _ string, _, _ int) {
		if level == "level 2, srht:40" {
			cancel()
		}
	}
	if measured, alone, err := measureChain(ctx, p, chain, levels, stream, options); err == nil || len(measured) != 2 ||
		measured[0].Index != 3 || len(alone) != 2 {
		t.Errorf("canceled in level 2: %d levels, %d of features alone, error %v", len(measured), len(alone), err)
	}
}

// TestMapMemory checks that the map of features alone counts in addition to the map of the chain, which is in memory.
func TestMapMemory(t *testing.T) {
	p, _ := newTestProblem(t, 120, 0.1, 0.1)
	levels := feature.Levels{{Sketch: "features", Width: 80}, {Sketch: "gaussian", Width: 40}}
	chain := testkit.Must(feature.ChainFor(gauss, levels))
	both := feature.MapBytes(chain, 4, 40) + feature.MapBytes(chain.Features, 4, 40)
	for limit, fits := range map[int64]bool{both - 1: false, both: true} {
		options := completeOptions(Options{memory: accel.Budget{Limit: limit}})
		_, _, err := measureChain(t.Context(), p, chain, levels, rng.New(3), options)
		if _, tooLarge := errors.AsType[*accel.MemoryError](err); tooLarge == fits {
			t.Errorf("%d bytes: %v", limit, err)
		}
	}
}
