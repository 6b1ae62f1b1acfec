package stage_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// TestAgreeToStop checks that all ranks do what the rank with the most severe outcome does: continue, stop or fail. A
// single rank keeps its own error.
func TestAgreeToStop(t *testing.T) {
	failure := errors.New("bad")
	for _, c := range []struct {
		errs         []error // error of each rank
		fails, stops bool    // wanted outcome of every rank
	}{
		{errs: []error{nil, nil, nil}},
		{errs: []error{nil, pcg.ErrStop, nil}, stops: true},
		{errs: []error{pcg.ErrStop, nil, failure}, fails: true},
		{errs: []error{failure}, fails: true},
		{errs: []error{pcg.ErrStop}, stops: true},
	} {
		var wg sync.WaitGroup
		for r, ranks := range comm.Local(len(c.errs), 0) {
			wg.Go(func() {
				err := stage.AgreeToStop(context.Background(), ranks, c.errs[r])
				if errors.Is(err, pcg.ErrStop) != c.stops || (err != nil) != (c.stops || c.fails) || c.fails &&
					c.errs[r] == failure && !errors.Is(err, failure) {
					t.Errorf("ranks with the errors %v: rank %d returns %v; want a failure %t, a stop %t", c.errs, r,
						err, c.fails, c.stops)
				}
			})
		}
		wg.Wait()
	}
}
