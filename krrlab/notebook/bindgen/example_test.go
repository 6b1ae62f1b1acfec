package bindgen_test

import (
	"fmt"

	"github.com/krrlab/lab/krrlab/notebook/bindgen"
)

// The file of a package's bindings is bind_STEM.go.
func ExampleStem() {
	fmt.Println(bindgen.Stem("gonum.org/v1/gonum/mat"))
	// Output: gonum_org_v1_gonum_mat
}
