package cli

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/theory"
)

// The function runScript in cli_test.go explains the scripts of these tests. In short, "$" begins a command line, and
// "2$" one that must exit with the status 2. The lines below a command must appear in its output. A line that begins
// with "!" must not appear.

// TestCheck checks the output of krrlab check for single claims, and the JSON report and the figure that it writes.
func TestCheck(t *testing.T) {
	enterTempFolder(t, nil)
	runScript(t, `
$ check lambda-p --trials 20 --verbose
	fails by:
	|M·M⁻¹ − I|
$ check iterations --figures figures
$ check proposition2 lambda-p --trials 20 --json c.json
	2 of 2 claims checked with 20 trials each
	all pass`)
	text := readFile(t, "c.json")
	var report theory.Report
	if err := json.Unmarshal(text, &report); err != nil || len(report.Claims) != 2 ||
		report.Claims[1].Claim != "lambda-p" || report.Claims[1].Verdict != theory.Pass {
		t.Errorf("error %v; want two claims, the second lambda-p passed: %s", err, text)
	}
	testkit.Contains(t, string(readFile(t, "figures/iterations.svg")), "<svg")
}

// TestFinishCheck checks the exit code and the last lines of finishCheck for a claim that fails, and the note that it
// leaves for an interrupted run.
func TestFinishCheck(t *testing.T) {
	var out strings.Builder
	a := &app{env: Env{Stdout: &out}}
	oneFailed := &theory.Report{Trials: 20, Claims: []theory.Result{{Claim: "lemma4", Verdict: theory.Pass},
		{Claim: "theorem1", Verdict: theory.Fail}}}
	if err := a.finishCheck(context.Background(), &checkFlags{}, oneFailed, 2, 0); err != errStatus(exitError) ||
		!strings.Contains(out.String(), "failed: theorem1") {
		t.Errorf("one claim fails: error %v, printed %s", err, &out)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	out.Reset()
	if err := a.finishCheck(ctx, &checkFlags{}, oneFailed, 24, 0); err != context.Canceled ||
		!strings.Contains(out.String(), "2 of 24") || !strings.Contains(a.interruptedNote, "until then") {
		t.Errorf("interrupted after 2 of 24 claims: error %v, printed %s, note %s", err, &out, a.interruptedNote)
	}
}
