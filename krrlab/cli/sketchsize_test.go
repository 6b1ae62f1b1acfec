package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab"
)

// TestSketchSize runs the command as a user would, and reads back what it writes.
func TestSketchSize(t *testing.T) {
	dir := t.TempDir()
	train := write(t, dir, "train.csv", table(300, nil, true))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--first", "16", "--kappa-target", "10"}, "found: s = "},
		{[]string{"--first", "16", "--kappa-target", "1.01"}, "none: no s up to 256 (its double is not below n) is accepted"},
		{[]string{"--first", "16", "--max", "64", "--test", "theorem7", "--preset", "kappa10"}, "κ(M⁻¹A) ≤ 9.95"},
		{[]string{"--first", "16", "--max", "64", "--test", "theorem7", "--constants", "0.1,0.2,0.3", "--product-free"}, "θ = 0.1, α = 0.2, γ = 0.3"},
		{[]string{"--first", "16", "--max", "32", "--lambda-p", "1"}, "λ_p = 1"},
	} {
		js, svg := filepath.Join(dir, "s.json"), filepath.Join(dir, "s.svg")
		args := append([]string{"sketch-size", "--train", train, "--target", "y", "--sigma", "2", "--lambda", "0.1", "--json", js, "--plot", svg}, c.args...)
		code, out, errs := command(t, args...)
		if code != 0 || !strings.Contains(out, c.want) {
			t.Fatalf("%v: exit %d, %s\n%s\nwant %q", c.args, code, errs, out, c.want)
		}
		b, err := os.ReadFile(js)
		if err != nil {
			t.Fatal(err)
		}
		var s krrlab.SketchSize
		if err := json.Unmarshal(b, &s); err != nil || len(s.Rungs) == 0 || s.N != 300 {
			t.Errorf("%v: JSON %v, %+v", c.args, err, s)
		}
		if b, err := os.ReadFile(svg); err != nil || !strings.Contains(string(b), "<svg") {
			t.Errorf("%v: no picture: %v", c.args, err)
		}
	}
}

// TestSketchSizeUsage checks that bad arguments give one line that names them.
func TestSketchSizeUsage(t *testing.T) {
	train := write(t, t.TempDir(), "train.csv", table(100, nil, true))
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--test", "theorem8"}, exitUsage, "theorem8"},
		{[]string{"--preset", "kappa7"}, exitUsage, "kappa7"},
		{[]string{"--constants", "0.1,0.2"}, exitUsage, "2 numbers"},
		{[]string{"--constants", "0.1,0.2,1"}, exitUsage, "γ=1"},
		{[]string{"--constants", "0.1,0.2,0.3", "--preset", "paper"}, exitUsage, "exclude"},
		{[]string{"--confidence", "2"}, exitUsage, "--confidence 2"},
		{[]string{"--kappa-target", "1"}, exitUsage, "--kappa-target 1"},
		{[]string{"--first", "0"}, exitUsage, "--first 0"},
		{[]string{"--first", "100"}, exitError, "s = 100 for n = 100"},
		{[]string{"--max", "100"}, exitError, "s = 100"},
		{[]string{"--lambda-p", "0"}, exitUsage, "--lambda-p 0"},
		{[]string{"--lambda-p", "1", "--test", "theorem7"}, exitError, "λ_p = 1"},
		{[]string{"--conditions-up-to", "-2"}, exitUsage, "--conditions-up-to -2"},
		{[]string{"--plot", "x.gif"}, exitUsage, "gif"},
	} {
		code, out, errs := command(t, append([]string{"sketch-size", "--train", train, "--target", "y", "--sigma", "2", "--lambda", "0.1"}, c.args...)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d, %q; want exit %d with %q in one line", c.args, code, errs, c.code, c.want)
		}
	}
}

// TestSketchSizeInterrupted checks that an interrupted command prints the rungs it has.
func TestSketchSizeInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	train := write(t, t.TempDir(), "train.csv", table(100, nil, true))
	code, _, errs := commandContext(t, ctx, "sketch-size", "--train", train, "--target", "y", "--sigma", "2")
	if code != exitInterrupted || !strings.Contains(errs, "interrupted") {
		t.Errorf("exit %d, %q", code, errs)
	}
}
