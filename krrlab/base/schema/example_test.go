package schema_test

import (
	"flag"
	"fmt"
	"io"

	"github.com/krrlab/lab/krrlab/base/schema"
)

type options struct {
	Steps int       `flag:"steps" default:"300" check:">=1" help:"maximum number of steps"`
	Width float64   `flag:"width" default:"0.2" check:"positive" help:"relative width to stop at"`
	Grid  []float64 `flag:"grid" check:"positive" help:"values of λ, separated by commas (default: λ/10 to 10λ)"`
}

// Example completes and checks the options of a Go caller, and registers flags for the same fields.
func Example() {
	opts := options{Steps: 20}
	fmt.Println(schema.Complete(&opts), opts)
	fmt.Println(schema.Complete(&options{Steps: -1}))

	opts = options{}
	optionSet, flags := schema.Of(&opts), flag.NewFlagSet("stage", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	for _, option := range optionSet.Fields {
		flags.Var(option, option.Name, option.Help)
	}
	fmt.Println(flags.Parse([]string{"--steps", "7", "--grid", "0.1,1"}), optionSet.Complete(), opts)
	fmt.Println(optionSet.Lookup("grid").Set("0"))
	// Output:
	// <nil> {20 0.2 []}
	// Steps -1: want at least 1, such as 300
	// <nil> <nil> {7 0.2 [0.1 1]}
	// --grid 0: want a positive number
}
