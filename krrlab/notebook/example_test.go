package notebook_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/krrlab/lab/krrlab/notebook"
)

// Install writes the kernel's specification below a prefix, as for one user.
func ExampleInstall() {
	prefix, err := os.MkdirTemp("", "jupyter")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(prefix)
	dir, err := notebook.Install(notebook.Spec{Prefix: prefix, Program: "/usr/bin/krrlab"})
	if err != nil {
		log.Fatal(err)
	}
	rel, _ := filepath.Rel(prefix, dir)
	fmt.Println(filepath.ToSlash(rel))
	// Output: share/jupyter/kernels/krrlab
}
