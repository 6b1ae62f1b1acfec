package golang

import "testing"

// TestMissing: the first cell says what the kernel lacks, in lines that the later ones do not repeat.
func TestMissing(t *testing.T) {
	s := open(t, nil)
	s.missing = []string{"this kernel lacks a", "this kernel lacks b"}
	cells(t, s, equal, step{"1", "stderr: this kernel lacks a\nthis kernel lacks b\n→1"}, step{"2", "→2"})
}
