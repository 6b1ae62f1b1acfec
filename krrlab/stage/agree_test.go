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
	for _, test := range []struct {
		errs                 []error // error of each rank
		wantFails, wantStops bool    // wanted outcome of every rank
	}{
		{errs: []error{nil, nil, nil}},
		{errs: []error{nil, pcg.ErrStop, nil}, wantStops: true},
		{errs: []error{pcg.ErrStop, nil, failure}, wantFails: true},
		{errs: []error{failure}, wantFails: true},
		{errs: []error{pcg.ErrStop}, wantStops: true},
	} {
		var wg sync.WaitGroup
		for rank, communicator := range comm.Local(len(test.errs), 0) {
			wg.Go(func() {
				err := stage.AgreeToStop(context.Background(), communicator, test.errs[rank])
				if errors.Is(err, pcg.ErrStop) != test.wantStops || (err != nil) != (test.wantStops ||
					test.wantFails) || test.wantFails && test.errs[rank] == failure && !errors.Is(err, failure) {
					t.Errorf("ranks with the errors %v: rank %d returns %v; want a failure %t, a stop %t", test.errs,
						rank, err, test.wantFails, test.wantStops)
				}
			})
		}
		wg.Wait()
	}
}
