package cli

import (
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab"
)

// TestSketchSize runs the command as a user would, and reads back what it writes.
func TestSketchSize(t *testing.T) {
	train := write(t, t.TempDir(), "train.csv", table(300, nil, true))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--first", "16", "--kappa-target", "10"}, "found: s = "},
		{[]string{"--first", "16", "--kappa-target", "1.01"},
			"none: no s up to 256 (its double is not below n) is accepted"},
		{[]string{"--first", "16", "--max", "64", "--test", "theorem7", "--preset", "kappa10"}, "κ(M⁻¹A) ≤ 9.95"},
		{[]string{"--first", "16", "--max", "64", "--test", "theorem7", "--constants", "0.1,0.2,0.3", "--product-free"},
			"θ = 0.1, α = 0.2, γ = 0.3"},
		{[]string{"--first", "16", "--max", "32", "--lambda-p", "1"}, "λ_p = 1"},
	} {
		var s krrlab.SketchSize
		out := staged(t, &s, append([]string{"sketch-size", "--train", train, "--target", "y", "--sigma", "2",
			"--lambda", "0.1"}, c.args...)...)
		if !strings.Contains(out, c.want) || len(s.Rungs) == 0 || s.N != 300 {
			t.Errorf("%v: %s\n%+v\nwant %q", c.args, out, s, c.want)
		}
	}
}
