package cli

import (
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// The function runScript in cli_test.go explains the scripts of these tests. In short, "$" begins a command line, and
// "2$" one that must exit with the status 2. The lines below a command must appear in its output. A line that begins
// with "!" must not appear.

// TestVerifyCommand checks the report of krrlab verify for a classifier with its training and test data, and the
// messages for a model without its data and for wrong command lines and files.
func TestVerifyCommand(t *testing.T) {
	enterTempFolder(t, map[string]string{"train.csv": randomTable(200, []string{"no", "yes"}),
		"test.csv": randomTable(90, []string{"no", "yes"})})
	runScript(t, "$ fit --train train.csv --scale standard --sigma 1 --lambda 0.1 --out m.krr")
	var verification krrlab.Verification
	out := runStageCommand(t, &verification, "verify", "m.krr", "--train", "train.csv", "--test", "test.csv")
	testkit.Contains(t, out, "proved")
	if v := verification; v.Targets != "given" || !(v.Residual <= 1e-3) || v.TestN != 90 || !v.OpenShare.Known() ||
		!(v.Cond.Hi <= v.SimpleBound*(1+1e-9)) {
		t.Errorf("want the given targets, a residual of 1e-3, 90 test rows and κ below its simple bound: %+v", v)
	}
	out = runScript(t, `
$ fit --train train.csv --scale standard --sigma 1 --lambda 0.1 --holdout 0.2 --out held.krr
$ verify held.krr --train train.csv
	test`)
	testkit.Equal(t, strings.Count(out, "train.csv: csv"), 1)
	runScript(t, `
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
