package tune

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// message is sent by rank 0, which searches, to the other ranks. It is a point to evaluate on all rows together
// (Kernel, Shape and Lambda), an event, or the end of the search (Result or Error).
type message struct {
	Kernel *kernel.Spec
	Shape  []float64 // see family.shape
	Lambda float64
	Event  *stage.Event
	Result *Result
	Error  string
}

// searchOnRanks runs the search on all ranks of c, all of which must call it with a full that is not nil. Rank 0
// searches, all ranks evaluate full together, and all have the same result. Each rank calls its notify.
func searchOnRanks(ctx context.Context, c comm.Comm, data *problem, o Options, full *evaluator,
	notify func(stage.Event)) (*Result, error) {
	if c.Size() == 1 {
		return searchPoints(ctx, data, o, full, notify)
	}
	if c.Rank() > 0 {
		return evaluateForFirst(ctx, c, full, notify)
	}
	var sendErr error // first failure to send to the other ranks
	send := func(e message) error {
		b, err := json.Marshal(&e)
		if err == nil {
			_, err = comm.BroadcastBytes(ctx, c, b, 0)
		}
		if sendErr == nil {
			sendErr = err
		}
		return err
	}
	onAllRanks := &evaluator{name: full.name, loss: func(ctx context.Context, shape []float64, k kernel.Kernel,
		lambda float64) (*loss, error) {
		spec, err := kernel.ToSpec(k)
		if err == nil {
			err = send(message{Kernel: &spec, Shape: shape, Lambda: lambda})
		}
		if err != nil {
			return nil, err
		}
		return full.loss(ctx, shape, k, lambda)
	}}
	searchCtx, stopSearch := context.WithCancel(ctx)
	defer stopSearch()
	r, err := searchPoints(searchCtx, data, o, onAllRanks, func(e stage.Event) {
		if notify(e); send(message{Event: &e}) != nil {
			stopSearch()
		}
	})
	if sendErr != nil {
		return r, errors.Join(sendErr, ctx.Err())
	}
	finalMessage := message{Result: r}
	if err != nil {
		finalMessage.Result, finalMessage.Error = nil, err.Error()
	}
	if e := send(finalMessage); err == nil {
		err = e
	}
	return r, err
}

// evaluateForFirst evaluates the points that rank 0 sends, and passes its events to notify, until it sends the end of
// the search. It returns the result or the error of rank 0.
func evaluateForFirst(ctx context.Context, c comm.Comm, full *evaluator, notify func(stage.Event)) (*Result, error) {
	for {
		b, err := comm.BroadcastBytes(ctx, c, nil, 0)
		var e message
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
			notify(*e.Event)
		default:
			k, err := kernel.FromSpec(*e.Kernel)
			if err == nil {
				_, err = full.loss(ctx, e.Shape, k, e.Lambda)
			}
			if err != nil && ctx.Err() != nil { // rank 0 has any other error too, and continues
				return nil, err
			}
		}
	}
}
