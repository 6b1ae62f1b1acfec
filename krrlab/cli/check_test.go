package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/theory"
)

// TestCheck runs claims as a user would, and reads back what is written.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	js := filepath.Join(dir, "c.json")
	code, out, errs := command(t, "check", "proposition2", "lambda-p", "--trials", "20", "--json", js)
	if code != 0 || !strings.Contains(out, "2 of 2 claims checked with 20 trials each") || !strings.Contains(out, "all pass") {
		t.Fatalf("exit %d, %s\n%s", code, errs, out)
	}
	b := read(t, js)
	var r theory.Report
	if err := json.Unmarshal(b, &r); err != nil || len(r.Claims) != 2 || r.Claims[1].Claim != "lambda-p" || r.Claims[1].Verdict != theory.Pass {
		t.Errorf("%v: %s", err, b)
	}
	code, out, errs = command(t, "check", "lambda-p", "--trials", "20", "--verbose")
	if code != 0 || !strings.Contains(out, "fails by:") || !strings.Contains(out, "|M·M⁻¹ − I|") {
		t.Errorf("exit %d, %s\n%s", code, errs, out)
	}
	code, out, errs = command(t, "check", "iterations", "--figures", filepath.Join(dir, "figures"))
	if code != 0 {
		t.Fatalf("exit %d, %s\n%s", code, errs, out)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "figures", "iterations.svg")); err != nil || !strings.Contains(string(b), "<svg") {
		t.Errorf("no figure: %v", err)
	}
}

// TestCheckUsage checks that bad arguments give one line that names them.
func TestCheckUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"theorem8"}, exitUsage, "theorem8"},
		{[]string{"--trials", "3"}, exitUsage, "at least 20"},
		{[]string{"--json", "a", "--figures", "b"}, exitUsage, "exclude"},
		{[]string{"--json", "/nowhere/a.json"}, exitError, "/nowhere"},
		{[]string{"proposition2", "--figures", t.TempDir()}, exitError, "figure"},
	} {
		code, _, errs := command(t, append([]string{"check"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d, %q", c.args, code, errs)
		}
	}
}

// TestCheckEnd checks the exit codes of a failure and of an interruption.
func TestCheckEnd(t *testing.T) {
	var out, errs strings.Builder
	a := &app{env: Env{Stdout: &out, Stderr: &errs}}
	bad := &theory.Report{Trials: 20, Claims: []theory.Result{{Claim: "lemma4", Verdict: theory.Pass}, {Claim: "theorem1", Verdict: theory.Fail}}}
	if err := a.checkEnd(context.Background(), &checkFlags{}, bad, 2, 0); err != errStatus(exitError) || !strings.Contains(out.String(), "failed: theorem1") {
		t.Errorf("%v: %s", err, &out)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	out.Reset()
	if err := a.checkEnd(ctx, &checkFlags{}, bad, 24, 0); err != errStatus(exitInterrupted) || !strings.Contains(out.String(), "2 of 24") || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("%v: %s%s", err, &out, &errs)
	}
}
