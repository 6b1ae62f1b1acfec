package bindings_test

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/notebook/bindings"
)

// What a notebook shows for a name.
func ExampleLookup() {
	e, ok := bindings.Lookup("krrlab", "Lab.Free")
	fmt.Println(e.Decl, ok)
	// Output: func (*Lab).Free() true
}
