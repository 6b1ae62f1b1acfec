package engine_test

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/notebook/engine"
)

// This example runs two cells; the second one uses the declaration of the first.
func ExampleEngine_Compile() {
	e := engine.New(nil)
	for _, code := range []string{"func double[T int | float64](x T) T { return 2 * x }", "double(1.5)"} {
		cell, err := e.Compile("cell", code)
		if err != nil {
			fmt.Println(err)
			return
		}
		values, err := cell.Run(func() bool { return false }, func(int) {})
		if err != nil {
			fmt.Println(err)
		}
		for _, v := range values {
			fmt.Println(v.Value, engine.TypeString(v.Type))
		}
	}
	// Output: 3 float64
}
