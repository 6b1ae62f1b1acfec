package cli

import (
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab"
)

// The function script in cli_test.go explains the scripts of these tests. In short, "$" begins a command line, and "1$"
// or "2$" one that must exit with this status. The lines below a command must appear in its output; a line after "!"
// must not.

// TestVerifyCommand checks the report of krrlab verify for a classifier with its training and test data, and the
// messages for a model without its data and for wrong command lines and files.
func TestVerifyCommand(t *testing.T) {
	enterFolder(t, map[string]string{"train.csv": table(200, []string{"no", "yes"}),
		"test.csv": table(90, []string{"no", "yes"})})
	script(t, "$ fit --train train.csv --scale standard --sigma 1 --lambda 0.1 --out m.krr")
	var verification krrlab.Verification
	if out := runStage(t, &verification, "verify", "m.krr", "--train", "train.csv", "--test", "test.csv"); !strings.Contains(out,
		"proved") {
		t.Error(out)
	}
	if verification.Targets != "given" || !(verification.Residual <= 1e-3) || verification.TestN != 90 || !verification.OpenShare.Known() ||
		!(verification.Cond.Hi <= verification.SimpleBound*(1+1e-9)) {
		t.Errorf("%+v", verification)
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
