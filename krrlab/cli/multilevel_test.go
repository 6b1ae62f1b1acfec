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

// TestMultiLevel runs the command as a user would, and reads back what it writes.
func TestMultiLevel(t *testing.T) {
	dir := t.TempDir()
	train := write(t, dir, "train.csv", table(300, nil, true))
	for _, c := range []struct {
		args   []string
		want   string
		levels int
	}{
		{[]string{"--sigma", "2", "--levels", "features:400,srht:100,gaussian:50"}, "features:400,srht:100,gaussian:50 of Fourier", 3},
		{[]string{"--sigma", "2", "--levels", "features:120", "--orthogonal"}, "of orthogonal Fourier", 1},
		{[]string{"--kernel", "polynomial", "--levels", "features:128,countsketch:64", "--lambda-p", "0.5"}, "λ_p = 0.5", 2},
		{[]string{"--sigma", "2", "--levels", "features:200,srht:20", "--work", "1e6"}, "no preconditioner", 2},
	} {
		js, svg := filepath.Join(dir, "m.json"), filepath.Join(dir, "m.svg")
		code, out, errs := command(t, append([]string{"multilevel", "--train", train, "--target", "y", "--lambda", "0.1", "--json", js, "--plot", svg}, c.args...)...)
		if code != 0 || !strings.Contains(out, c.want) {
			t.Fatalf("%v: exit %d, %s\n%s\nwant %q", c.args, code, errs, out, c.want)
		}
		b, err := os.ReadFile(js)
		if err != nil {
			t.Fatal(err)
		}
		var m krrlab.MultiLevel
		if err := json.Unmarshal(b, &m); err != nil || len(m.Chain) != c.levels || len(m.OneLevel) != c.levels-1 || m.N != 300 {
			t.Errorf("%v: JSON %v, %+v", c.args, err, m)
		}
		if b, err := os.ReadFile(svg); err != nil || !strings.Contains(string(b), "<svg") {
			t.Errorf("%v: no picture: %v", c.args, err)
		}
	}
}

// TestMultiLevelUsage checks that bad arguments give one line that names them.
func TestMultiLevelUsage(t *testing.T) {
	train := write(t, t.TempDir(), "train.csv", table(100, nil, true))
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--levels", ""}, exitUsage, "--levels"},
		{[]string{"--levels", "srht:5"}, exitUsage, "features first"},
		{[]string{"--levels", "features:50,srht:60"}, exitUsage, "wider"},
		{[]string{"--levels", "features:50,fft:20"}, exitUsage, "unknown sketch"},
		{[]string{"--levels", "features:200,srht:150"}, exitError, "s = 150 for n = 100"},
		{[]string{"--confidence", "1"}, exitUsage, "--confidence"},
		{[]string{"--lambda-p", "0"}, exitUsage, "--lambda-p 0"},
		{[]string{"--tol", "1"}, exitUsage, "--tol 1"},
		{[]string{"--max-iter", "0"}, exitUsage, "--max-iter 0"},
		{[]string{"--work", "-1"}, exitUsage, "--work -1"},
		{[]string{"--kernel", "laplacian", "--orthogonal"}, exitError, "orthogonal"},
	} {
		code, out, errs := command(t, append([]string{"multilevel", "--train", train, "--target", "y", "--lambda", "0.1"}, c.args...)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d, %q; want exit %d with %q in one line", c.args, code, errs, c.code, c.want)
		}
	}
}

// TestMultiLevelInterrupted checks the end of an interrupted command.
func TestMultiLevelInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	train := write(t, t.TempDir(), "train.csv", table(100, nil, true))
	if code, _, errs := commandContext(t, ctx, "multilevel", "--train", train, "--target", "y", "--sigma", "2"); code != exitInterrupted || !strings.Contains(errs, "interrupted") {
		t.Errorf("exit %d, %q", code, errs)
	}
}

// TestFitSketch fits with features in several levels.
func TestFitSketch(t *testing.T) {
	dir := t.TempDir()
	train := write(t, dir, "train.csv", table(300, nil, true))
	js := filepath.Join(dir, "r.json")
	fit := []string{"fit", "--train", train, "--target", "y", "--sigma", "2", "--lambda", "0.1", "--solver", "pcg"}
	code, out, errs := command(t, append(fit, "--sketch", "features:400,srht:100,gaussian:50", "--json", js)...)
	if r := report(t, js); code != 0 || r["s"] != 50.0 || !strings.HasSuffix(r["features"].(string), "to 400 → srht to 100 → gaussian to 50") {
		t.Errorf("exit %d, %s\n%s", code, errs, out)
	}
	for want, args := range map[string][]string{
		"--features does not go with it": {"--sketch", "features:50", "--features", "20"},
		"--precond features only":        {"--sketch", "features:50", "--precond", "nystrom"},
		"wider":                          {"--sketch", "features:50,srht:60"},
	} {
		if code, _, errs := command(t, append(fit, args...)...); code != exitUsage || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d, %q; want one line with %q", args, code, errs, want)
		}
	}
	if code, _, errs := command(t, append(fit, "--sketch", "features:700,srht:400")...); code != exitError || !strings.Contains(errs, "s = 400 features for n = 300") {
		t.Errorf("s > n: exit %d, %q", code, errs)
	}
}
