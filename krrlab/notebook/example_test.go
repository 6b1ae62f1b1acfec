package notebook_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/krrlab/lab/krrlab/notebook"
)

// This example installs the specification of the kernel in a data folder of Jupyter.
func ExampleInstallKernel() {
	data, err := os.MkdirTemp("", "jupyter")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(data)
	dir, err := notebook.InstallKernel(notebook.KernelSpec{Data: data, Name: "krrlab", Program: "/usr/bin/krrlab"})
	if err != nil {
		log.Fatal(err)
	}
	rel, _ := filepath.Rel(data, dir)
	fmt.Println(filepath.ToSlash(rel))
	// Output: kernels/krrlab
}
