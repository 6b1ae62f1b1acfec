package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/accel/simd"
	"github.com/krrlab/lab/krrlab/internal/checkpoint"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// The function runScript in cli_test.go explains the scripts of these tests. In short, "$" begins a command line, and
// "2$" one that must exit with the status 2. The lines below a command must appear in its output. A line that begins
// with "!" must not appear.

// TestResume stops a fit at its iteration limit and checks four things. A canceled resume exits with the interruption
// code; a fit without --resume refuses the existing checkpoint; a fit with --resume converges; and the checkpoint is
// deleted at the end.
func TestResume(t *testing.T) {
	enterTempFolder(t, nil)
	const fit = "fit --data synthetic-classes --n 300 --lambda 0.01 --tol 1e-6 --precond \"auto features=20\" " +
		"--checkpoint \"kept every=1it\""
	runScript(t, "3$ "+fit+" --max-iter 5")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, stderr := runCommandContext(t, ctx, append(splitLine(fit), "--resume")...); code != exitInterrupted ||
		stderr == "" {
		t.Errorf("canceled with --resume: exit code %d, want %d: %s", code, exitInterrupted, stderr)
	}
	runScript(t, strings.ReplaceAll(`
1$ FIT
	has a checkpoint
$ FIT --resume
	resuming from the checkpoint
	converged`, "FIT", fit))
	if files, _ := os.ReadDir("kept"); len(files) > 0 {
		t.Errorf("the checkpoint %v is not deleted", files)
	}
}

// TestResumeWithOtherArithmetic checks that a fit that resumes a checkpoint of another instruction set names both, in a
// note, in its report and in its JSON, also if it is interrupted and resumed again.
func TestResumeWithOtherArithmetic(t *testing.T) {
	paths := simd.Paths()
	if len(paths) < 2 {
		t.Skip("the processor has one instruction set")
	}
	defer simd.UsePath(simd.CurrentPath())
	enterTempFolder(t, nil)
	const fit = "fit --data synthetic-classes --n 300 --lambda 0.01 --tol 1e-6 --solver cg --checkpoint \"kept every=1it\" "
	runScript(t, "3$ "+fit+"--cpu portable --max-iter 5")
	mixed := fmt.Sprintf("with gonum, portable, then gonum, %v", paths[len(paths)-1])
	runScript(t, "3$ "+fit+"--cpu portable --resume --max-iter 6 --quiet\n!then")
	code, out, stderr := runCommand(t, splitLine(fit+"--resume --max-iter 9")...)
	testkit.Equal(t, code, exitNotConverged)
	testkit.Contains(t, stderr, mixed)
	testkit.Contains(t, out, "checkpoint", mixed)
	runScript(t, "$ "+fit+"--resume --json r.json\n"+mixed)
	testkit.Equal[any](t, "with "+readReport(t, "r.json")["mixed_arithmetic"].(string), mixed)
}

// TestInterruptedSolve checks that the last line of an interrupted fit says how many iterations were done, the residual
// reached, and where the checkpoint is. The fit must print no results and write neither model nor report.
func TestInterruptedSolve(t *testing.T) {
	dir := t.TempDir()
	kept, modelFile, reportFile := filepath.Join(dir, "kept"), filepath.Join(dir, "m.krr"), filepath.Join(dir,
		"fit.json")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			// The first checkpoint shows that the iteration runs.
			if files, _ := filepath.Glob(filepath.Join(kept, "checkpoint-*")); len(files) > 0 {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	code, out, stderr := runCommandContext(t, ctx, "fit", "--data", "synthetic-regression", "--n", "1000", "--solver",
		"cg",
		"--lambda", "1e-9", "--tol", "1e-12",
		"--max-iter", "1000000", "--checkpoint", kept+" every=1it", "--out", modelFile, "--json", reportFile)
	want := regexp.MustCompile(`\Akrrlab: interrupted after (1 iteration|[1-9]\d* iterations), recursive residual \d\.\de[-+]\d+; ` +
		`the checkpoint in .* is kept; --resume continues from it\n\z`)
	if lines := strings.SplitAfter(stderr, "\n"); code != exitInterrupted || out != "" ||
		!want.MatchString(lines[len(lines)-2]) {
		t.Errorf("exit code %d, want %d; printed %s%s", code, exitInterrupted, out, stderr)
	}
	for _, name := range []string{modelFile, reportFile} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s is written", name)
		}
	}
}

// TestResumeHint checks that the hint to resume finds a checkpoint in a folder whose name contains characters of
// file patterns, and that there is no hint without a checkpoint.
func TestResumeHint(t *testing.T) {
	a, dir := &app{}, filepath.Join(t.TempDir(), "run[1]")
	a.checkpointDir.Store(dir)
	testkit.Equal(t, a.resumeHint(), "")
	testkit.OK(t, testkit.Must(checkpoint.Open(dir, [32]byte{})).Save(nil))
	if a.resumeHint() == "" {
		t.Errorf("the checkpoint in %s is not found", dir)
	}
}

// TestCheckpointInterval checks that the interval of --checkpoint is printed in the form in which it was read.
func TestCheckpointInterval(t *testing.T) {
	for _, text := range []string{"30s", "1m", "1m30s", "10s", "500ms", "10it"} {
		var interval checkpointInterval
		testkit.OK(t, interval.Set(text))
		testkit.Equal(t, interval.String(), text)
	}
}
