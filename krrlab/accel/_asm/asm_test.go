package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestGeneratedFilesUpToDate generates the assembly of simd and gemm again and compares it with the files in the
// repository, except for the first line, which contains the command.
func TestGeneratedFilesUpToDate(t *testing.T) {
	dir := t.TempDir()
	for _, pkg := range []string{"simd", "gemm"} {
		out, err := exec.Command("go", "run", ".", "-pkg", pkg, "-out", filepath.Join(dir, pkg+"_amd64.s"),
			"-stubs", filepath.Join(dir, "stub_amd64.go")).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, file := range files {
			want, _ := os.ReadFile(file)
			got, err := os.ReadFile(filepath.Join("..", pkg, filepath.Base(file)))
			_, want, _ = bytes.Cut(want, []byte("\n"))
			if _, got, _ = bytes.Cut(got, []byte("\n")); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s is out of date; run go generate in krrlab/accel/simd: %v", file, err)
			}
			_ = os.Remove(file)
		}
	}
}
