package main

import (
	"bytes"
	"os"
	"testing"
)

// TestUpToDate compares the files that are checked in with what is generated.
func TestUpToDate(t *testing.T) {
	out, err := files()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range out {
		if got, err := os.ReadFile("../" + name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is out of date; run go generate in krrlab/accel/simd: %v", name, err)
		}
	}
}
