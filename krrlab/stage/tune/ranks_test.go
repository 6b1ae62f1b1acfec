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

// TestRunOnRanks checks that all ranks evaluate the same points and have the result of a single process, and that all
// ranks return if one of them is stopped.
func TestRunOnRanks(t *testing.T) {
	d := newProblem(t, datasets.SyntheticRegression(500, 2, 0.1, 1))
	o := Options{Kernels: []string{"gaussian", "laplacian"}, Rows: 150, Distance: "lengths"}
	// outcome is what a rank has at the end of a search.
	type outcome struct {
		js        string   // the result as JSON, without times
		evaluated []string // the evaluated points
		events    int
		err       error
	}
	run := func(ctx context.Context, c comm.Comm, o Options, event func(rank int)) (e outcome) {
		rank := 0
		if c != nil {
			rank = c.Rank()
		}
		full := &evaluator{name: "made up", loss: func(_ context.Context, shape []float64, k kernel.Kernel,
			lambda float64) (*loss, error) {
			e.evaluated = append(e.evaluated, fmt.Sprint(shape, k, lambda))
			l := &loss{rows: make([]float64, 50)}
			for i := range l.rows {
				l.rows[i] = float64(1+i%5) + lambda
			}
			return l, nil
		}}
		tell := func(stage.Event) { e.events++; event(rank) }
		var r *Result
		if c == nil {
			r, e.err = searchPoints(ctx, d, o, full, tell)
		} else {
			r, e.err = searchOnRanks(ctx, c, d, o, full, tell)
		}
		if r != nil {
			for i := range r.Points {
				r.Points[i].Seconds = 0
			}
			for i := range r.Levels {
				r.Levels[i].Seconds = 0
			}
			for _, f := range r.Distances {
				f.Seconds = 0
			}
			r.Seconds, r.Best.Seconds = 0, 0
			b, err := json.Marshal(r)
			if e.js = string(b); err != nil {
				t.Error(err)
			}
		}
		return e
	}
	runAll := func(p int, o Options, ctx func(rank int) context.Context, event func(rank int)) []outcome {
		outcomes := make([]outcome, p)
		var wg sync.WaitGroup
		for r, c := range comm.Local(p, 20*time.Second) {
			wg.Go(func() { outcomes[r] = run(ctx(r), c, o, event) })
		}
		wg.Wait()
		return outcomes
	}
	ignore := func(int) {}
	testContext := func(int) context.Context { return t.Context() }
	want := run(t.Context(), nil, o, ignore)
	if want.err != nil || len(want.evaluated) == 0 {
		t.Fatalf("%+v", want)
	}
	for p := 1; p <= 3; p++ {
		for r, got := range runAll(p, o, testContext, ignore) {
			if !reflect.DeepEqual(got, want) {
				t.Errorf("rank %d of %d: %+v\nwant %+v", r, p, got, want)
			}
		}
	}
	for stopped := range 2 {
		ctx, stop := context.WithCancel(t.Context())
		events := 0
		outcomes := runAll(2, o, func(rank int) context.Context {
			if rank == stopped {
				return ctx
			}
			return t.Context()
		}, func(rank int) {
			if rank == stopped {
				if events++; events == 5 {
					stop()
				}
			}
		})
		for r, got := range outcomes {
			if got.err == nil {
				t.Errorf("rank %d has no error although rank %d is stopped", r, stopped)
			}
		}
		stop()
	}
}
