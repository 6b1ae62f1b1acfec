package golang

import "testing"

// TestMissingFeatures checks that the first cell prints the features that the kernel lacks, and that later cells do not
// repeat these lines.
func TestMissingFeatures(t *testing.T) {
	s := openSession(t, nil)
	s.missingFeatures = []string{"this kernel lacks a", "this kernel lacks b"}
	checkCells(t, s, equal, scriptCell{"1", "stderr: this kernel lacks a\nthis kernel lacks b\n→1"}, scriptCell{"2",
		"→2"})
}
