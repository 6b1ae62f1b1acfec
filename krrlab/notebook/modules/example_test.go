package modules_test

import (
	"context"
	"fmt"

	"github.com/krrlab/lab/krrlab/notebook/modules"
)

// This example asks for a package that is compiled into the program, which needs no download.
func ExampleFinder_Download() {
	f := &modules.Finder{IsCompiled: func(path string) bool { return path == "gonum.org/v1/gonum/mat" }}
	defer f.Close()
	_, err := f.Download(context.Background(), "gonum.org/v1/gonum/mat@latest")
	fmt.Println(err)
	// Output: gonum.org/v1/gonum/mat@latest needs no download: import it
}
