package cli

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/checkpoint"
)

// TestCheckpointFlags: what cannot be meant is refused before any work.
func TestCheckpointFlags(t *testing.T) {
	for _, c := range []struct {
		args, want string
	}{
		{"--resume", "--resume goes with --checkpoint DIR"},
		{"--checkpoint-every 3it", "--checkpoint-every goes with --checkpoint DIR"},
		{"--checkpoint x --checkpoint-every 3", "want a time such as 30s"},
		{"--checkpoint x --checkpoint-every 0it", "want a time such as 30s"},
		{"--checkpoint x --checkpoint-every -2s", "want a time such as 30s"},
		{"--rank-timeout 0s", "want a positive time"},
	} {
		args := append([]string{"fit", "--data", "synthetic-classes", "--n", "50"}, strings.Fields(c.args)...)
		if code, _, stderr := command(t, args...); code != exitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit code %d, %s", c.args, code, stderr)
		}
	}
}

// TestCheckpoint stops a fit at its iterations' end, says what is kept, and goes on.
func TestCheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	args := []string{"fit", "--data", "synthetic-classes", "--n", "300", "--features", "20", "--lambda", "0.01", "--tol", "1e-6",
		"--checkpoint", dir, "--checkpoint-every", "1it"}
	code, _, stderr := command(t, append(args, "--max-iter", "5")...)
	if code != exitNotConverged {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, stderr := commandContext(t, ctx, append(args, "--resume")...); code != exitInterrupted || stderr == "" {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if code, _, stderr = command(t, args...); code != exitError || !strings.Contains(stderr, "has a checkpoint") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	code, out, stderr := command(t, append(args, "--resume")...)
	if code != exitOK || !strings.Contains(stderr, "resuming from the checkpoint") || !strings.Contains(out, "converged") {
		t.Errorf("exit code %d, %s%s", code, out, stderr)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v are left after the end", left)
	}
}

// TestInterruptedSolve: how far an interrupted solve came is said in one line, and nothing is written.
func TestInterruptedSolve(t *testing.T) {
	dir := t.TempDir()
	kept, m, js := filepath.Join(dir, "kept"), filepath.Join(dir, "m.krr"), filepath.Join(dir, "fit.json")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if files, _ := filepath.Glob(filepath.Join(kept, "checkpoint-*")); len(files) > 0 { // it iterates
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	code, out, errs := commandContext(t, ctx, "fit", "--data", "synthetic-regression", "--n", "1000", "--solver", "cg", "--lambda", "1e-9", "--tol", "1e-12",
		"--max-iter", "1000000", "--checkpoint", kept, "--checkpoint-every", "1it", "--out", m, "--json", js)
	want := regexp.MustCompile(`\Akrrlab: interrupted after (1 iteration|[1-9]\d* iterations), residual \d\.\de[-+]\d+ by recurrence; the checkpoint in .* is kept; --resume continues from it\n\z`)
	if lines := strings.SplitAfter(errs, "\n"); code != exitInterrupted || out != "" || !want.MatchString(lines[len(lines)-2]) {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
	for _, name := range []string{m, js} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s is written", name)
		}
	}
}

// TestHasCheckpoint: a folder's name is no pattern.
func TestHasCheckpoint(t *testing.T) {
	a := &app{kept: filepath.Join(t.TempDir(), "run[1]")}
	if a.hasCheckpoint() {
		t.Error("a checkpoint in no folder")
	}
	s, err := checkpoint.Open(a.kept, [32]byte{})
	if err == nil {
		err = s.Save(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !a.hasCheckpoint() {
		t.Error("a checkpoint is not found")
	}
}
