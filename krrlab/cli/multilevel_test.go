package cli

import (
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab"
)

// TestMultiLevel runs the command as a user would, and reads back what it writes.
func TestMultiLevel(t *testing.T) {
	train := write(t, t.TempDir(), "train.csv", table(300, nil, true))
	for _, c := range []struct {
		args   []string
		want   string
		levels int
	}{
		{[]string{"--sigma", "2", "--levels", "features:400,srht:100,gaussian:50"},
			"features:400,srht:100,gaussian:50 of Fourier", 3},
		{[]string{"--kernel", "polynomial", "--levels", "features:128,countsketch:64", "--lambda-p", "0.5"},
			"λ_p = 0.5", 2},
		{[]string{"--sigma", "2", "--levels", "features:200,srht:20", "--work", "1e6"}, "no preconditioner", 2},
	} {
		var m krrlab.MultiLevel
		out := staged(t, &m, append([]string{"multilevel", "--train", train, "--target", "y", "--lambda", "0.1"},
			c.args...)...)
		if !strings.Contains(out, c.want) || len(m.Chain) != c.levels || len(m.OneLevel) != c.levels-1 || m.N != 300 {
			t.Errorf("%v: %s\n%+v\nwant %q", c.args, out, m, c.want)
		}
	}
}

// TestFitSketch fits with features in several levels.
func TestFitSketch(t *testing.T) {
	files(t, map[string]string{"train.csv": table(300, nil, true)})
	script(t, "$ fit --train train.csv --target y --sigma 2 --lambda 0.1 --solver pcg --sketch "+
		"features:400,srht:100,gaussian:50 --json r.json")
	if r := report(t, "r.json"); r["s"] != 50.0 || !strings.HasSuffix(r["features"].(string),
		"to 400 → srht to 100 → gaussian to 50") {
		t.Errorf("%v", r)
	}
}
