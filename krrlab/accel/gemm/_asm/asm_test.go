package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/mmcloughlin/avo/printer"
)

// TestUpToDate compares the files that are checked in with what is generated.
func TestUpToDate(t *testing.T) {
	for name, make := range map[string]printer.Builder{
		"gemm_amd64.s": printer.NewGoAsm, "stub_amd64.go": printer.NewStubs,
	} {
		want, err := text(make)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile("../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is out of date; run go generate in krrlab/accel/gemm", name)
		}
	}
}
