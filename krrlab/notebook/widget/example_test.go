package widget_test

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/notebook/widget"
)

// This example opens a slider, which is announced to the front ends, and then lets a front end move it.
func Example() {
	var set widget.Set
	var commID any
	publish := func(messageType string, content, _ map[string]any) {
		fmt.Println(messageType)
		commID = content["comm_id"]
	}
	slider, err := set.Open(widget.Spec{Kind: widget.IntSlider, Value: 500, Min: 1, Max: 2000, Step: 1}, publish,
		func() { fmt.Println("moved") })
	if err != nil {
		fmt.Println(err)
		return
	}
	message := fmt.Appendf(nil, `{"comm_id":%q,"data":{"method":"update","state":{"value":700}}}`, commID)
	set.Receive("comm_msg", message, publish)
	fmt.Println(slider.Value())
	// Output:
	// comm_open
	// moved
	// 700
}
