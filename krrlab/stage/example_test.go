package stage_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/stage"
)

// The monitor of a stage of three steps stops it after the second step. The stage returns its partial result.
func Example() {
	monitor := func(e stage.Event) error {
		fmt.Println(e)
		if e.Done == 2 {
			return pcg.ErrStop
		}
		return nil
	}
	ctx, finish := stage.Watch(context.Background())
	completed := 0
	for ctx.Err() == nil && completed < 3 {
		completed++
		stage.Notify(ctx, monitor, stage.Event{Stage: stage.Probes, Done: completed, Total: 3})
	}
	fmt.Println(finish(true, ctx.Err()))

	var lines stage.Lines
	lines.AddProblem(&stage.Header{Dataset: "blobs", Task: "classification", N: 300, D: 2, T: 1,
		Kernel: kernel.Spec{Name: "gaussian", Sigma: 2.0 / 3}, Lambda: 0.1})
	lines.Add("probes", "%d of 3", completed)
	lines.AddSeconds(0.02, "products", 0.015)
	fmt.Print(&lines)
	// Output:
	// probes: 33 %
	// probes: 67 %
	// <nil>
	// data           blobs: classification, n = 300, d = 2, t = 1
	// problem        kernel gaussian(sigma=0.6667), λ = 0.1
	// probes         2 of 3
	// milliseconds   products 15.0, total 20.0
}
