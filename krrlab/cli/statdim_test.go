package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab"
)

func TestStatDimCommand(t *testing.T) {
	train := write(t, t.TempDir(), "train.csv", table(200, nil, true))
	var values []float64
	for _, method := range []string{"auto", "exact", "hutchinson", "slq", "free"} {
		var s krrlab.StatDim
		out := staged(t, &s, "statdim", "--train", train, "--sigma", "1", "--lambda", "0.1", "--features", "50", "--method", method, "--grid", "0.1,1,10")
		if !strings.Contains(out, "s_λ(K)") {
			t.Errorf("%s: %s", method, out)
		}
		if method != "auto" && s.Method != method || len(s.Curve) != 3 || s.Lambda != 0.1 {
			t.Errorf("%s: %+v", method, s)
		}
		values = append(values, s.Estimate.Value)
		if !(s.Estimate.Lo <= values[0] && values[0] <= s.Estimate.Hi) {
			t.Errorf("%s: %v does not cover the exact %g", method, s.Estimate, values[0])
		}
	}
}

func TestStatDimUsage(t *testing.T) {
	train := write(t, t.TempDir(), "train.csv", table(50, nil, true))
	common := []string{"statdim", "--train", train}
	refused(t, exitUsage, common, [][]string{
		{"--method", "guess", "guess"}, {"--confidence", "1", "confidence"}, {"--confidence", "0", "confidence"}, {"--width", "0", "--width 0"},
		{"--max-probes", "3", "--max-probes 3"}, {"--grid", "1,0", "--grid 0"}, {"--grid", "", "--grid"}, {"--lambda-p", "0", "--lambda-p 0"},
		{"--lambda", "-1", "--lambda -1"}, {"--features", "0", "--features 0"}, {"--precond", "magic", "magic"}, {"--eta", "--method free"},
	}...)
	refused(t, exitError, common, []string{"--features", "51", "1 ≤ s ≤ n"})
}

func TestVerifyCommand(t *testing.T) {
	dir := t.TempDir()
	train, test := write(t, dir, "train.csv", table(200, []string{"no", "yes"}, true)), write(t, dir, "test.csv", table(90, []string{"no", "yes"}, true))
	m := filepath.Join(dir, "m.krr")
	if code, out, errs := command(t, "fit", "--train", train, "--scale", "standard", "--sigma", "1", "--lambda", "0.1", "--out", m); code != exitOK {
		t.Fatalf("exit %d, %s%s", code, out, errs)
	}
	var v krrlab.Verification
	if out := staged(t, &v, "verify", m, "--train", train, "--test", test); !strings.Contains(out, "proved") {
		t.Error(out)
	}
	if v.Targets != "given" || !(v.Residual <= 1e-3) || v.TestN != 90 || !v.Open.Known() || !(v.Cond.Hi <= v.Simple*(1+1e-9)) {
		t.Errorf("%+v", v)
	}
	if code, out, _ := command(t, "verify", m); code != exitOK || !strings.Contains(out, "recovered from the answer") {
		t.Errorf("without data: exit %d, %s", code, out)
	}
	refused(t, exitUsage, []string{"verify"}, [][]string{
		{"--model FILE"}, {m, m, "m.krr"}, {m, "--data", "mnist", "--train", train, "--data excludes"}, {m, "--passes", "0", "--passes 0"},
		{m, "--format", "tar", "tar"}, {m, "--data", "mnist", "--target", "1", "--target go with --train"},
	}...)
	refused(t, exitError, []string{"verify"}, []string{filepath.Join(dir, "none.krr"), "none.krr"}, []string{m, "--train", test, "90 rows"}, []string{train, "train.csv"})
}
