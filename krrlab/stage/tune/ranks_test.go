package tune

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// TestRunOnRanks checks that all ranks evaluate the same points as a single process and get the same result, and that
// all ranks return an error if one of them is stopped.
func TestRunOnRanks(t *testing.T) {
	data := newProblem(t, datasets.SyntheticRegression(500, 2, 0.1, 1))
	options := Options{Kernels: []string{"gaussian", "laplacian"}, Rows: 150, Distance: "lengths"}
	// outcome has the results of a search on one rank.
	type outcome struct {
		resultJSON      string   // the result as JSON, without times
		evaluatedPoints []string // the points of the last level, in order
		eventCount      int
		err             error
	}
	// runRank runs the search on one rank of ranks, or without ranks if that is nil. It calls onEvent for each event.
	runRank := func(ctx context.Context, ranks comm.Comm, options Options, onEvent func(rank int)) (o outcome) {
		rank := 0
		if ranks != nil {
			rank = ranks.Rank()
		}
		full := &evaluator{name: "made up", loss: func(_ context.Context, shape []float64, k kernel.Kernel,
			lambda float64) (*loss, error) {
			o.evaluatedPoints = append(o.evaluatedPoints, fmt.Sprint(shape, k, lambda))
			l := &loss{rowLosses: make([]float64, 50)}
			for i := range l.rowLosses {
				l.rowLosses[i] = float64(1+i%5) + lambda
			}
			return l, nil
		}}
		notify := func(stage.Event) { o.eventCount++; onEvent(rank) }
		var result *Result
		if ranks == nil {
			result, o.err = searchPoints(ctx, data, options, full, notify)
		} else {
			result, o.err = searchOnRanks(ctx, ranks, data, options, full, notify)
		}
		if result != nil {
			for i := range result.Points {
				result.Points[i].Seconds = 0
			}
			for i := range result.Levels {
				result.Levels[i].Seconds = 0
			}
			for _, fit := range result.Distances {
				fit.Seconds = 0
			}
			result.Seconds, result.Best.Seconds = 0, 0
			encoded, err := json.Marshal(result)
			if o.resultJSON = string(encoded); err != nil {
				t.Error(err)
			}
		}
		return o
	}
	// runAll runs the search on rankCount ranks, each with its own context, and returns the outcomes by rank.
	runAll := func(rankCount int, options Options, ctx func(rank int) context.Context,
		onEvent func(rank int)) []outcome {
		outcomes := make([]outcome, rankCount)
		var group sync.WaitGroup
		for rank, ranks := range comm.Local(rankCount, 20*time.Second) {
			group.Go(func() { outcomes[rank] = runRank(ctx(rank), ranks, options, onEvent) })
		}
		group.Wait()
		return outcomes
	}
	ignore := func(int) {}
	testContext := func(int) context.Context { return t.Context() }
	want := runRank(t.Context(), nil, options, ignore)
	if want.err != nil || len(want.evaluatedPoints) == 0 {
		t.Fatalf("%+v", want)
	}
	for rankCount := 1; rankCount <= 3; rankCount++ {
		for rank, got := range runAll(rankCount, options, testContext, ignore) {
			if !reflect.DeepEqual(got, want) {
				t.Errorf("rank %d of %d: %+v\nwant %+v", rank, rankCount, got, want)
			}
		}
	}
	for stoppedRank := range 2 {
		ctx, stop := context.WithCancel(t.Context())
		events := 0
		outcomes := runAll(2, options, func(rank int) context.Context {
			if rank == stoppedRank {
				return ctx
			}
			return t.Context()
		}, func(rank int) {
			if rank == stoppedRank {
				if events++; events == 5 {
					stop()
				}
			}
		})
		for rank, got := range outcomes {
			if got.err == nil {
				t.Errorf("rank %d has no error although rank %d is stopped", rank, stoppedRank)
			}
		}
		stop()
	}
}
