package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRaceCommand runs races, and looks at what they print and write.
func TestRaceCommand(t *testing.T) {
	dir := t.TempDir()
	train := write(t, dir, "train.csv", table(150, []string{"a", "b", "c"}, true))
	js, svg := filepath.Join(dir, "r.json"), filepath.Join(dir, "r.svg")
	for _, extra := range [][]string{nil, {"--runners", "rpcholesky", "--finish"}, {"--kernel", "matern32"}} {
		args := append([]string{"race", "--train", train, "--target", "y", "--features", "60", "--sigma", "2", "--tol", "1e-6", "--json", js, "--plot", svg}, extra...)
		code, out, errs := command(t, args...)
		if code != 0 || !strings.Contains(out, "winner") || !strings.Contains(out, "M = I") || strings.Contains(out, "nobody") {
			t.Fatalf("%v: exit %d: %s%s", extra, code, out, errs)
		}
		r := report(t, js)
		racers, winner := r["racers"].([]any), int(r["winner"].(float64))
		if want := map[bool]int{false: 4, true: 2}[len(extra) == 3]; len(racers) != want || winner < 0 || winner >= want {
			t.Errorf("%v: %d racers, winner %d", extra, len(racers), winner)
		}
		if won := racers[winner].(map[string]any); len(extra) == 3 && won["phase"] != "done" {
			t.Errorf("%v: %v", extra, won)
		}
		if b, err := os.ReadFile(svg); err != nil || !strings.Contains(string(b), "<svg") {
			t.Errorf("the figure: %v", err)
		}
	}
	regression := write(t, dir, "regression.csv", table(150, nil, true))
	if code, _, errs := command(t, "race", "--train", regression, "--target", "y", "--features", "60", "--sigma", "2", "--json", js); code != 0 || report(t, js)["tol"] != 1e-5 {
		t.Errorf("regression: exit %d, %s, τ = %v", code, errs, report(t, js)["tol"])
	}
	for _, c := range [][]string{
		{"--runners", "magic", `--runners "magic"`}, {"--runners", "features,none", `--runners "none"`}, {"--features", "0", "--features 0"},
		{"--lambda-p", "0", "--lambda-p 0"}, {"--tol", "1", "--tol 1"}, {"--max-iter", "0", "--max-iter 0"},
	} {
		code, _, errs := command(t, append([]string{"race", "--train", "missing.csv"}, c[:2]...)...)
		if code != exitUsage || !strings.Contains(errs, c[2]) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d: %s", c, code, errs)
		}
	}
}
