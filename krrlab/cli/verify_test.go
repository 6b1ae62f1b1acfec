package cli

import (
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab"
)

func TestVerifyCommand(t *testing.T) {
	files(t, map[string]string{"train.csv": table(200, []string{"no", "yes"}, true),
		"test.csv": table(90, []string{"no", "yes"}, true)})
	script(t, "$ fit --train train.csv --scale standard --sigma 1 --lambda 0.1 --out m.krr")
	var v krrlab.Verification
	if out := staged(t, &v, "verify", "m.krr", "--train", "train.csv", "--test", "test.csv"); !strings.Contains(out,
		"proved") {
		t.Error(out)
	}
	if v.Targets != "given" || !(v.Residual <= 1e-3) || v.TestN != 90 || !v.OpenShare.Known() ||
		!(v.Cond.Hi <= v.SimpleBound*(1+1e-9)) {
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
