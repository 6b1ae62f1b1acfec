package tune

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
)

// message is sent by rank 0, which runs the search, to the other ranks. It has a point that all ranks evaluate together
// on all rows of the data (Kernel, Shape and Lambda), or an event, or the end of the search (Result or Error).
type message struct {
	Kernel *kernel.Spec
	Shape  []float64 // see family.shape
	Lambda float64
	Event  *stage.Event
	Result *Result
	Error  string
}

// searchOnRanks runs the search on all ranks, each of which must call it. Rank 0 runs the search on samples of the
// rows. All ranks evaluate points on all rows together, by full, which must not be nil. All ranks return the same
// result, and each calls its own notify with the events of the search.
func searchOnRanks(ctx context.Context, ranks comm.Comm, data *problem, options Options, full *evaluator,
	notify func(stage.Event)) (*Result, error) {
	if ranks.Size() == 1 {
		return searchPoints(ctx, data, options, full, notify)
	}
	if ranks.Rank() > 0 {
		return evaluateForFirst(ctx, ranks, full, notify)
	}
	var sendErr error // first failure to send to the other ranks
	send := func(m message) error {
		encoded, err := json.Marshal(&m)
		if err == nil {
			_, err = comm.BroadcastBytes(ctx, ranks, encoded, 0)
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
	result, err := searchPoints(searchCtx, data, options, onAllRanks, func(event stage.Event) {
		if notify(event); send(message{Event: &event}) != nil {
			stopSearch()
		}
	})
	if sendErr != nil {
		return result, errors.Join(sendErr, ctx.Err())
	}
	finalMessage := message{Result: result}
	if err != nil {
		finalMessage.Result, finalMessage.Error = nil, err.Error()
	}
	if finalErr := send(finalMessage); err == nil {
		err = finalErr
	}
	return result, err
}

// evaluateForFirst evaluates the points that rank 0 sends, and passes the events that rank 0 sends to notify, until
// rank 0 sends the end of the search. It returns the result or the error of rank 0.
func evaluateForFirst(ctx context.Context, ranks comm.Comm, full *evaluator,
	notify func(stage.Event)) (*Result, error) {
	for {
		encoded, err := comm.BroadcastBytes(ctx, ranks, nil, 0)
		var m message
		if err == nil {
			err = json.Unmarshal(encoded, &m)
		}
		switch {
		case err != nil:
			return nil, err
		case m.Error != "":
			return nil, errors.New(m.Error)
		case m.Result != nil:
			return m.Result, nil
		case m.Event != nil:
			notify(*m.Event)
		default:
			k, err := kernel.FromSpec(*m.Kernel)
			if err == nil {
				_, err = full.loss(ctx, m.Shape, k, m.Lambda)
			}
			if err != nil && ctx.Err() != nil { // rank 0 gets any other error as well, and continues the search
				return nil, err
			}
		}
	}
}
