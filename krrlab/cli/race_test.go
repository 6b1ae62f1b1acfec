package cli

import (
	"strings"
	"testing"
)

// TestRaceCommand runs races, and looks at what they print and write.
func TestRaceCommand(t *testing.T) {
	dir := t.TempDir()
	train := write(t, dir, "train.csv", table(150, []string{"a", "b", "c"}, true))
	for _, extra := range [][]string{nil, {"--runners", "rpcholesky"}, {"--kernel", "matern32"}} {
		var r map[string]any
		out := staged(t, &r, append([]string{"race", "--train", train, "--target", "y", "--features", "60", "--sigma",
			"2", "--tol", "1e-6"}, extra...)...)
		if !strings.Contains(out, "winner") || !strings.Contains(out, "M = I") || strings.Contains(out, "nobody") {
			t.Fatalf("%v: %s", extra, out)
		}
		racers, winner := r["racers"].([]any), int(r["winner"].(float64))
		if want := map[bool]int{false: 5, true: 2}[len(extra) > 0 && extra[0] == "--runners"]; len(racers) != want ||
			winner < 0 || winner >= want {
			t.Errorf("%v: %d racers, winner %d", extra, len(racers), winner)
		}
		if won := racers[winner].(map[string]any); len(extra) > 0 && extra[0] == "--runners" && won["phase"] != "done" {
			t.Errorf("%v: %v", extra, won)
		}
	}
}
