package tune

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// errand is what the first rank, which searches, says to the others: a point to evaluate for all rows together, an
// event, or how it ended.
type errand struct {
	Kernel *kernel.Spec
	Shape  []float64
	Lambda float64
	Event  *stage.Event
	Result *Result
	Error  string
}

// runOnRanks is run where all ranks of c call it: the first searches, all evaluate full, which is not nil, together,
// and have the same result. tell is called on each.
func runOnRanks(ctx context.Context, c comm.Comm, data *problem, o Options, full *whole,
	tell func(stage.Event)) (*Result, error) {
	if c.Size() == 1 {
		return run(ctx, data, o, full, tell)
	}
	if c.Rank() > 0 {
		return follow(ctx, c, full, tell)
	}
	var lost error // of the others
	say := func(e errand) error {
		b, err := json.Marshal(&e)
		if err == nil {
			_, err = comm.Share(ctx, c, b, 0)
		}
		if lost == nil {
			lost = err
		}
		return err
	}
	together := &whole{name: full.name, loss: func(ctx context.Context, shape []float64, k kernel.Kernel,
		lambda float64) (*loss, error) {
		spec, err := kernel.ToSpec(k)
		if err == nil {
			err = say(errand{Kernel: &spec, Shape: shape, Lambda: lambda})
		}
		if err != nil {
			return nil, err
		}
		return full.loss(ctx, shape, k, lambda)
	}}
	searching, end := context.WithCancel(ctx)
	defer end()
	r, err := run(searching, data, o, together, func(e stage.Event) {
		if tell(e); say(errand{Event: &e}) != nil {
			end()
		}
	})
	if lost != nil {
		return r, errors.Join(lost, ctx.Err())
	}
	last := errand{Result: r}
	if err != nil {
		last.Result, last.Error = nil, err.Error()
	}
	if e := say(last); err == nil {
		err = e
	}
	return r, err
}

// follow does what the first rank says.
func follow(ctx context.Context, c comm.Comm, full *whole, tell func(stage.Event)) (*Result, error) {
	for {
		b, err := comm.Share(ctx, c, nil, 0)
		var e errand
		if err == nil {
			err = json.Unmarshal(b, &e)
		}
		switch {
		case err != nil:
			return nil, err
		case e.Error != "":
			return nil, errors.New(e.Error)
		case e.Result != nil:
			return e.Result, nil
		case e.Event != nil:
			tell(*e.Event)
		default:
			k, err := kernel.FromSpec(*e.Kernel)
			if err == nil {
				_, err = full.loss(ctx, e.Shape, k, e.Lambda)
			}
			if err != nil && ctx.Err() != nil { // else the first has the same, and continues
				return nil, err
			}
		}
	}
}
