// Command krrlab fits, applies and studies kernel ridge regression on the command line. Package
// cli implements its commands, and krrlab help lists them with their flags. Package program adds
// what depends on the machine: signals, the terminal, environment variables, the BLAS and the
// MPI launcher.
package main

import (
	"os"

	_ "github.com/krrlab/lab/datasets/parquet" // registers the file format
	"github.com/krrlab/lab/krrlab/cmd/program"
)

// tag is the version that git describe prints. The linker sets it (make build, make release).
var tag string

func main() { os.Exit(program.Run(tag)) }
