package cli

import (
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestPlanCommand runs the command with what is held, and looks at what it prints and writes.
func TestPlanCommand(t *testing.T) {
	files(t, map[string]string{"train.csv": table(150, []string{"a", "b", "c"}, true)})
	t.Setenv("XDG_CACHE_HOME", ".")
	var p map[string]any
	out := staged(t, &p, "plan", "--train", "train.csv", "--target", "y", "--holdout", "0.2", "--sigma", "2")
	testkit.Contains(t, out, "choice", "direct, float64", "runner-up", "--solver direct --storage float64", "wrote")
	fields(t, p, "choice runner_up predicted_bytes candidates flags")
	s := p["predicted_seconds"]
	fields(t, s, "kernel features factor solve predict total")
	if s.(map[string]any)["predict"].(float64) <= 0 {
		t.Error("the test points are not counted")
	}
	script(t, "$ plan --train train.csv --target y --sigma 2 --precond nystrom --features 40 --json p.json")
	for _, c := range report(t, "p.json")["candidates"].([]any) {
		if c := c.(map[string]any); c["precond"] != "nystrom" || c["s"] != 40.0 {
			t.Errorf("held is nystrom with s = 40; a candidate is %v", c)
		}
	}
}
