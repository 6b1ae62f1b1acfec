package cli

import (
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab"
)

func TestStatDimCommand(t *testing.T) {
	train := write(t, t.TempDir(), "train.csv", table(200, nil, true))
	var values []float64
	for _, method := range []string{"auto", "exact", "hutchinson", "slq", "free"} {
		var s krrlab.StatDim
		out := staged(t, &s, "statdim", "--train", train, "--sigma", "1", "--lambda", "0.1", "--features", "50",
			"--method", method, "--grid", "0.1,1,10")
		if !strings.Contains(out, "s_λ(K)") {
			t.Errorf("%s: %s", method, out)
		}
		if method != "auto" && string(s.Method) != method || len(s.Curve) != 3 || s.Lambda != 0.1 {
			t.Errorf("%s: %+v", method, s)
		}
		values = append(values, s.Estimate.Value)
		if !(s.Estimate.Lo <= values[0] && values[0] <= s.Estimate.Hi) {
			t.Errorf("%s: %v does not cover the exact %g", method, s.Estimate, values[0])
		}
	}
}

func TestVerifyCommand(t *testing.T) {
	files(t, map[string]string{"train.csv": table(200, []string{"no", "yes"}, true),
		"test.csv": table(90, []string{"no", "yes"}, true)})
	script(t, "$ fit --train train.csv --scale standard --sigma 1 --lambda 0.1 --out m.krr")
	var v krrlab.Verification
	if out := staged(t, &v, "verify", "m.krr", "--train", "train.csv", "--test", "test.csv"); !strings.Contains(out,
		"proved") {
		t.Error(out)
	}
	if v.Targets != "given" || !(v.Residual <= 1e-3) || v.TestN != 90 || !v.Open.Known() ||
		!(v.Cond.Hi <= v.Simple*(1+1e-9)) {
		t.Errorf("%+v", v)
	}
	script(t, `
$ verify m.krr
	recovered from the answer
2$ verify
	--model FILE
2$ verify m.krr m.krr
	m.krr
2$ verify m.krr --data mnist --train train.csv
	--data and --train exclude
2$ verify m.krr --passes 0
	--passes 0
2$ verify m.krr --format tar
	tar
2$ verify m.krr --data mnist --target 1
	--target goes with --train
1$ verify none.krr
	none.krr
1$ verify m.krr --train test.csv
	90 rows
1$ verify train.csv
	train.csv`)
}
