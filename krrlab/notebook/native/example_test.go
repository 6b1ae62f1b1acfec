package native_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/krrlab/lab/krrlab/notebook/native"
)

// This example turns a message of the go command about a cell into an error with the line of the cell.
func ExampleCompile() {
	build := func(context.Context, map[string]string, []string) (string, error) {
		return "", errors.New("# notebook/cell; Cell 5:2: undefined: y; too many errors")
	}
	_, err := native.Compile(context.Background(), build, native.Source{
		Name: "Cell 5", Code: "func F(x float64) float64 { return x + y }",
		ImplicitImport: func(string) string { return "" },
	})
	fmt.Println(err)
	// Output: undefined: y (Cell 5, line 2)
}
