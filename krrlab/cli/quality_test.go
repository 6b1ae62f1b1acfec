package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestQualityCommand runs the command, and looks at what it prints and writes.
func TestQualityCommand(t *testing.T) {
	train := write(t, t.TempDir(), "train.csv", table(150, []string{"a", "b", "c"}, true))
	var q map[string]any
	out := staged(t, &q, "quality", "--train", train, "--target", "y", "--features", "60", "--sigma", "2", "--lambda-p", "0.1")
	for _, want := range []string{"κ(M⁻¹A)", "with 95 %", "exact", "PCG", "wrote"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	kappa := q["kappa"].(map[string]any)
	for _, name := range []string{"value", "lo", "hi", "confidence", "method", "seconds"} {
		if _, ok := kappa[name]; !ok {
			t.Errorf("κ has no %q", name)
		}
	}
	exact := q["kappa_exact"].(map[string]any)["value"].(float64)
	if lo, hi := kappa["lo"].(float64), kappa["hi"].(float64); exact < lo || exact > hi {
		t.Errorf("κ = %g, not in [%g, %g]", exact, lo, hi)
	}
}

// TestLambdaPCommand runs a sweep and a map.
func TestLambdaPCommand(t *testing.T) {
	dir := t.TempDir()
	train := write(t, dir, "train.csv", table(120, nil, true))
	js := filepath.Join(dir, "l.json")
	for _, extra := range [][]string{{"--points", "4"}, {"--map", "--points", "3"}, {"--sizes", "10,20", "--grid", "0.1,1"}} {
		args := append([]string{"lambda-p", "--train", train, "--target", "y", "--features", "40", "--sigma", "2", "--json", js}, extra...)
		code, out, errs := command(t, args...)
		if code != 0 || !strings.Contains(out, "η = ‖K−ZZᵀ‖₂") || !strings.Contains(out, "best") {
			t.Fatalf("%v: exit %d: %s%s", extra, code, out, errs)
		}
		l := report(t, js)
		sweeps := l["sweeps"].([]any)
		if want := map[string]int{"--points": 1, "--map": 4, "--sizes": 2}[extra[0]]; len(sweeps) != want {
			t.Errorf("%v: %d sweeps", extra, len(sweeps))
		}
		first := sweeps[0].(map[string]any)
		counted := first["points"].([]any)[0].(map[string]any)["iterations"] != nil
		if counted != (extra[0] == "--points") || l["best_s"].(float64) == 0 {
			t.Errorf("%v: %v", extra, first)
		}
	}
}

// TestTuneArguments: bad arguments get one clear line before any data is read.
func TestTuneArguments(t *testing.T) {
	refused(t, exitUsage, []string{"--train", "missing.csv"}, [][]string{
		{"quality", "--confidence", "1", "confidence 1"}, {"quality", "--width", "0", "--width 0"}, {"quality", "--steps", "0", "--steps 0"},
		{"quality", "--lambda-p", "-1", "--lambda-p -1"}, {"quality", "--tol", "1", "--tol 1"}, {"quality", "--max-iter", "0", "--max-iter 0"},
		{"quality", "--precond", "magic", "magic"}, {"quality", "--exact-below", "-7", "--exact-below -7"},
		{"lambda-p", "--grid", "0.1,0", "--grid 0"}, {"lambda-p", "--grid", "", `--grid "": want numbers separated by commas`}, {"lambda-p", "--sizes", "0", "--sizes 0"},
		{"lambda-p", "--confidence", "0", "confidence 0"}, {"lambda-p", "--points", "1", "--points 1: want at least 2"}, {"lambda-p", "--precond", "none", "no λ_p"},
		{"lambda-p", "--width", "-1", "--width -1"}, {"lambda-p", "--features", "0", "--features 0"}, {"lambda-p", "--tol", "2", "--tol 2"},
	}...)
	train := write(t, t.TempDir(), "train.csv", table(50, nil, true))
	refused(t, exitError, []string{"--train", train, "--target", "y"}, [][]string{
		{"quality", "--features", "51", "s = 51"}, {"lambda-p", "--features", "51", "s = 51"}, {"lambda-p", "--sizes", "10,51", "s = 51"},
	}...)
}
