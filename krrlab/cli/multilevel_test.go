package cli

import (
	"path/filepath"
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
		{[]string{"--sigma", "2", "--levels", "features:400,srht:100,gaussian:50"}, "features:400,srht:100,gaussian:50 of Fourier", 3},
		{[]string{"--sigma", "2", "--levels", "features:120", "--orthogonal"}, "of orthogonal Fourier", 1},
		{[]string{"--kernel", "polynomial", "--levels", "features:128,countsketch:64", "--lambda-p", "0.5"}, "λ_p = 0.5", 2},
		{[]string{"--sigma", "2", "--levels", "features:200,srht:20", "--work", "1e6"}, "no preconditioner", 2},
	} {
		var m krrlab.MultiLevel
		out := staged(t, &m, append([]string{"multilevel", "--train", train, "--target", "y", "--lambda", "0.1"}, c.args...)...)
		if !strings.Contains(out, c.want) || len(m.Chain) != c.levels || len(m.OneLevel) != c.levels-1 || m.N != 300 {
			t.Errorf("%v: %s\n%+v\nwant %q", c.args, out, m, c.want)
		}
	}
}

// TestMultiLevelUsage checks that bad arguments give one line that names them.
func TestMultiLevelUsage(t *testing.T) {
	train := write(t, t.TempDir(), "train.csv", table(100, nil, true))
	common := []string{"multilevel", "--train", train, "--target", "y", "--lambda", "0.1"}
	refused(t, exitUsage, common, [][]string{
		{"--levels", "", "--levels"}, {"--levels", "srht:5", "features first"}, {"--levels", "features:50,srht:60", "wider"},
		{"--levels", "features:50,fft:20", "unknown sketch"}, {"--confidence", "1", "--confidence"}, {"--lambda-p", "0", "--lambda-p 0"},
		{"--tol", "1", "--tol 1"}, {"--max-iter", "0", "--max-iter 0"}, {"--work", "-1", "--work -1"},
	}...)
	refused(t, exitError, common, []string{"--levels", "features:200,srht:150", "s = 150 for n = 100"}, []string{"--kernel", "laplacian", "--orthogonal", "orthogonal"})
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
	refused(t, exitUsage, append(fit, "--sketch"), [][]string{
		{"features:50", "--features", "20", "--features does not go with it"}, {"features:50", "--precond", "nystrom", "--precond features only"},
		{"features:50,srht:60", "wider"},
	}...)
	if code, _, errs := command(t, append(fit, "--sketch", "features:700,srht:400")...); code != exitError || !strings.Contains(errs, "s = 400 features for n = 300") {
		t.Errorf("s > n: exit %d, %q", code, errs)
	}
}
