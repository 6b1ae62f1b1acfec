// Command asm writes the assembly of package gemm and its Go declarations:
//
//	cd krrlab/accel/gemm && go generate
//
// Every micro-kernel, of float32 or float64, for AVX2 or AVX-512, is written by the one
// method kernel.build, those of bytes by byteKernel.build, the packing routines, of AVX, by transposer.build
// and copier.build.
package main

import (
	"log"
	"os"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

func main() {
	for name, make := range map[string]printer.Builder{
		"gemm_amd64.s":  printer.NewGoAsm,
		"stub_amd64.go": printer.NewStubs,
	} {
		out, err := text(make)
		if err == nil {
			err = os.WriteFile("../"+name, out, 0o644)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
}

// text prints the routines in one form.
func text(make printer.Builder) ([]byte, error) {
	f, err := file()
	if err != nil {
		return nil, err
	}
	if err := pass.Compile.Execute(f); err != nil {
		return nil, err
	}
	return make(printer.Config{
		Name: "krrlab/accel/gemm/_asm with avo v0.6.0, run by go generate in krrlab/accel/gemm",
		Pkg:  "gemm",
	}).Print(f)
}

// file builds all routines.
func file() (*ir.File, error) {
	c := build.NewContext()
	for _, k := range kernels {
		k.build(c)
	}
	for _, k := range byteKernels {
		k.build(c)
	}
	for _, t := range transposers {
		t.build(c)
	}
	for _, t := range copiers {
		t.build(c)
	}
	return c.Result()
}
