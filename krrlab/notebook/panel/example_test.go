package panel_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/krrlab/notebook/display"
	"github.com/krrlab/lab/krrlab/notebook/panel"
	"github.com/krrlab/lab/krrlab/notebook/widget"
)

// This example makes a panel for a function in a notebook without controls, which shows the result for the default
// options.
func Example() {
	type options struct {
		N int `flag:"n" default:"12" help:"number to be squared"`
	}
	f, err := panel.FunctionSubject(func(o options) int { return o.N * o.N }, nil, "square")
	if err != nil {
		fmt.Println(err)
		return
	}
	show := func(d display.Data) { fmt.Println(d.Data["text/plain"]) }
	host := panel.Host{Models: new(widget.Set), Show: show, Update: show, Explain: func(v any) string { return fmt.Sprint(v) }}
	p, err := panel.New(context.Background(), host, f, "panel-1")
	fmt.Println(err)
	p.Close()
	// Output:
	// running…
	// 144
	// <nil>
}
