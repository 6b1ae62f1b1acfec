package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSizing plans ranks: the table, the least number that is enough, and what is in the way.
func TestSizing(t *testing.T) {
	md := filepath.Join(t.TempDir(), "t.md")
	code, out, stderr := command(t, "ranks", "--n", "60000", "--d", "784", "--t", "10", "--features", "6000", "--memory", "3GB", "--counts", "1,8", "--markdown", md)
	if code != exitOK {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	for _, want := range []string{"s = 6000, K as float32", "7.2", "288 MB", "enough", "ranks, each at most"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if b, err := os.ReadFile(md); err != nil || strings.Count(string(b), "\n|") < 3 {
		t.Errorf("%v:\n%s", err, b)
	}
	for args, want := range map[string]string{
		"ranks --n 1000000 --d 10 --features 50000 --memory 8GB":        "the factor of ZᵀZ+λ_pI",
		"ranks --n 1000000 --d 10000 --features 100 --memory 8GB":       "the points, all of them on each rank",
		"ranks --n 1000000 --d 10000 --nnz 1 --precond none --memory x": "--memory",
		"ranks --d 3":                                "--n 0",
		"ranks --n 10 --d 3 --storage auto":          "name a storage",
		"ranks --n 10 --d 3 --storage x":             "unknown storage",
		"ranks --n 10 --d 3 --features 11":           "want 1 to n",
		"ranks --n 10 --d 3 --counts 0":              "--counts 0",
		"ranks --n 10 --d 3 --nnz 31":                "want 1 to n·d",
		"ranks --n 10 --d 3 --precond x":             "unknown preconditioner",
		"ranks --n 10 --d 3 --precond none --t 0":    "--t 0",
		"ranks --n 10 --d 3 --markdown /nowhere/a.b": "cannot write",
	} {
		if code, _, stderr := command(t, strings.Fields(args)...); code == exitOK || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, %s, want %q", args, code, stderr, want)
		}
	}
}
