package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab"
)

// read decodes a JSON file.
func readStage(t *testing.T, name string, into any) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(b, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestStatDimCommand(t *testing.T) {
	dir := t.TempDir()
	train := write(t, dir, "train.csv", table(200, nil, true))
	js, plot := filepath.Join(dir, "s.json"), filepath.Join(dir, "s.svg")
	var values []float64
	for _, method := range []string{"auto", "exact", "hutchinson", "xtrace", "slq", "free"} {
		code, out, errs := command(t, "statdim", "--train", train, "--sigma", "1", "--lambda", "0.1", "--features", "50",
			"--method", method, "--json", js, "--plot", plot, "--grid", "0.1,1,10")
		if code != exitOK || errs != "" || !strings.Contains(out, "s_λ(K)") {
			t.Fatalf("%s: exit %d, %s%s", method, code, out, errs)
		}
		var s krrlab.StatDim
		readStage(t, js, &s)
		if method != "auto" && s.Method != method || len(s.Curve) != 3 || s.Lambda != 0.1 {
			t.Errorf("%s: %+v", method, s)
		}
		values = append(values, s.Estimate.Value)
		if !(s.Estimate.Lo <= values[0] && values[0] <= s.Estimate.Hi) {
			t.Errorf("%s: %v does not cover the exact %g", method, s.Estimate, values[0])
		}
		if svg, err := os.ReadFile(plot); err != nil || !strings.Contains(string(svg), "statistical dimension") {
			t.Errorf("%s: picture: %v", method, err)
		}
	}
}

func TestStatDimUsage(t *testing.T) {
	train := write(t, t.TempDir(), "train.csv", table(50, nil, true))
	for _, args := range [][]string{
		{"--method", "guess"}, {"--confidence", "1"}, {"--confidence", "0"}, {"--width", "0"}, {"--max-probes", "3"}, {"--grid", "1,0"},
		{"--grid", ""}, {"--lambda-p", "0"}, {"--lambda", "-1"}, {"--features", "0"}, {"--precond", "magic"}, {"--eta"},
	} {
		code, out, errs := command(t, append([]string{"statdim", "--train", train}, args...)...)
		if code != exitUsage || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d, %q %q", args, code, out, errs)
		}
	}
	if code, _, errs := command(t, "statdim", "--train", train, "--features", "51"); code != exitError || !strings.Contains(errs, "1 ≤ s ≤ n") {
		t.Errorf("s > n: exit %d, %s", code, errs)
	}
}

func TestVerifyCommand(t *testing.T) {
	dir := t.TempDir()
	train, test := write(t, dir, "train.csv", table(200, []string{"no", "yes"}, true)), write(t, dir, "test.csv", table(90, []string{"no", "yes"}, true))
	m, js, plot := filepath.Join(dir, "m.krr"), filepath.Join(dir, "v.json"), filepath.Join(dir, "v.svg")
	if code, out, errs := command(t, "fit", "--train", train, "--scale", "standard", "--sigma", "1", "--lambda", "0.1", "--out", m); code != exitOK {
		t.Fatalf("exit %d, %s%s", code, out, errs)
	}
	code, out, errs := command(t, "verify", m, "--train", train, "--test", test, "--json", js, "--plot", plot)
	if code != exitOK || errs != "" || !strings.Contains(out, "proved") {
		t.Fatalf("exit %d, %s%s", code, out, errs)
	}
	var v krrlab.Verification
	readStage(t, js, &v)
	if v.Targets != "given" || !(v.Residual <= 1e-3) || v.TestN != 90 || !v.Open.Known() || !(v.Cond.Hi <= v.Simple*(1+1e-9)) {
		t.Errorf("%+v", v)
	}
	if code, out, _ := command(t, "verify", m); code != exitOK || !strings.Contains(out, "recovered from the answer") {
		t.Errorf("without data: exit %d, %s", code, out)
	}
	for _, args := range [][]string{
		{}, {m, m}, {m, "--data", "mnist", "--train", train}, {m, "--passes", "0"}, {m, "--format", "tar"}, {m, "--data", "mnist", "--target", "1"},
	} {
		if code, _, errs := command(t, append([]string{"verify"}, args...)...); code != exitUsage || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d, %s", args, code, errs)
		}
	}
	for _, args := range [][]string{{filepath.Join(dir, "none.krr")}, {m, "--train", test}, {train}} {
		if code, _, errs := command(t, append([]string{"verify"}, args...)...); code != exitError || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d, %s", args, code, errs)
		}
	}
}
