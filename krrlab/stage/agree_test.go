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
		errs        []error
		fails, stop bool
	}{{[]error{nil, nil, nil}, false, false}, {[]error{nil, pcg.ErrStop, nil}, false,
		true}, {[]error{pcg.ErrStop, nil, failure}, true, false}, {[]error{failure}, true, false},
		{[]error{pcg.ErrStop}, false, true}} {
		var wg sync.WaitGroup
		for r, ranks := range comm.Local(len(c.errs), 0) {
			wg.Go(func() {
				err := stage.AgreeToStop(context.Background(), ranks, c.errs[r])
				if errors.Is(err, pcg.ErrStop) != c.stop || (err != nil) != (c.stop || c.fails) || c.fails &&
					c.errs[r] == failure && !errors.Is(err, failure) {
					t.Errorf("%v: rank %d: %v", c.errs, r, err)
				}
			})
		}
		wg.Wait()
	}
}
