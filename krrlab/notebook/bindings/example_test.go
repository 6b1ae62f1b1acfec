package bindings_test

import (
	"fmt"

	"github.com/gopherdata/gophernotes/imports"

	_ "github.com/krrlab/lab/krrlab/notebook/bindings"
)

// This example looks up a function of the laboratory in the bindings. A program that imports the bindings can run cells
// that import the laboratory.
func Example() {
	table := imports.Packages["github.com/krrlab/lab/krrlab"]
	fmt.Println(table.Name, table.Binds["New"].Type())
	// Output: krrlab func(*datasets.Dataset, krrlab.Config) (*krrlab.Lab, error)
}
