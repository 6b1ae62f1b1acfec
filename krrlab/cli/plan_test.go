package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestPlanCommand runs the command with what is held, and looks at what it prints and writes.
func TestPlanCommand(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	train := write(t, dir, "train.csv", table(150, []string{"a", "b", "c"}, true))
	js, svg := filepath.Join(dir, "p.json"), filepath.Join(dir, "p.svg")
	code, out, errs := command(t, "plan", "--train", train, "--target", "y", "--holdout", "0.2", "--sigma", "2", "--json", js, "--plot", svg)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, want := range []string{"choice", "direct, float64", "runner-up", "--solver direct --storage float64", "wrote"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	p := report(t, js)
	for _, name := range []string{"choice", "runner_up", "predicted_bytes", "candidates", "flags"} {
		if p[name] == nil {
			t.Errorf("no %q in %v", name, p)
		}
	}
	s := p["predicted_seconds"].(map[string]any)
	for _, name := range []string{"kernel", "features", "factor", "solve", "predict", "total"} {
		if _, ok := s[name].(float64); !ok {
			t.Errorf("no %q in %v", name, s)
		}
	}
	if s["predict"].(float64) <= 0 {
		t.Error("the test points are not counted")
	}
	code, _, errs = command(t, "plan", "--train", train, "--target", "y", "--sigma", "2", "--precond", "nystrom", "--features", "40", "--json", js)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, c := range report(t, js)["candidates"].([]any) {
		if c := c.(map[string]any); c["precond"] != "nystrom" || c["s"] != 40.0 {
			t.Errorf("held is nystrom with s = 40; a candidate is %v", c)
		}
	}
	if code, _, errs = command(t, "plan", "--train", train, "--json", svg, "--plot", svg); code == 0 || !strings.Contains(errs, "that is the file of --json") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
