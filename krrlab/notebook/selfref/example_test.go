package selfref_test

import (
	"fmt"
	"go/build"

	"github.com/cosmos72/gomacro/fast"

	_ "github.com/krrlab/lab/krrlab/notebook/bindings"
	"github.com/krrlab/lab/krrlab/notebook/selfref"
)

// A function that returns a type that refers to itself.
func Example() {
	build.Default.GOROOT = "" // types by reflection
	ir := fast.New()
	ir.ImportPackage("plots", "github.com/krrlab/lab/plots")
	selfref.Settle(ir.Comp.Universe)
	ir.Eval(`func none() *plots.Figure { return nil }`)
	v, _ := ir.Eval1(`none() == nil`)
	fmt.Println(v.Interface())
	// Output: true
}
