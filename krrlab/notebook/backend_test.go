package notebook

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestInterruptOfRanks runs a solve of a cell through a launcher that never ends by itself, and interrupts the cell.
// The progress of the ranks must be shown, the launcher must be terminated, and the next cell must run.
func TestInterruptOfRanks(t *testing.T) {
	dir := t.TempDir()
	launcher := filepath.Join(dir, "mpirun")
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = --version ] && exit\ntrap ': >%s/ended; exit 1' TERM\n: "+
		">%s/started\nwhile :; do sleep 0.05; echo '{\"event\":{\"Stage\":\"solve\",\"Iteration\":7}}'; done\n", dir, dir)
	testkit.OK(t, os.WriteFile(launcher, []byte(script), 0o755))
	c := startKernel(t)
	c.run(fmt.Sprintf(`import ("github.com/krrlab/lab/datasets"; "github.com/krrlab/lab/krrlab"; "github.com/krrlab/lab/krrlab/kernel"; "github.com/krrlab/lab/krrlab/ranks/remote")
lab, err := krrlab.New(datasets.SyntheticClasses(50, 2, 2, 0, 1), krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Precond: krrlab.Features{S: 5}, Monitor: Progress(),
	Backend: &remote.Backend{Ranks: 2, Launcher: %q, Program: "/bin/true"}})
if err != nil { panic(err) }`, launcher))
	id := c.send(c.shell, "execute_request", map[string]any{"code": "lab.Solve(ctx)"})
	awaitFile(t, filepath.Join(dir, "started"))
	isShown := false
	for limit := time.After(3 * time.Minute); !isShown; { // until the progress that the ranks report is shown
		select {
		case message := <-c.published:
			isShown = strings.Contains(string(message.Content), "solve: iteration 7")
		case <-limit:
			t.Fatal("no progress is shown")
		}
	}
	c.interrupt <- os.Interrupt
	reply := contentOf(c.wait(c.answers[c.shell], "execute_reply"))
	got := c.publishedFor(id)
	if reply["status"] != "error" || !strings.Contains(fmt.Sprint(reply["evalue"]), "canceled") {
		t.Errorf("%v: %s", reply, got)
	}
	awaitFile(t, filepath.Join(dir, "ended"))
	if got, _ := c.run("1 + 1"); !strings.HasSuffix(got, "execute_result 2") {
		t.Errorf("%q", got)
	}
}

// awaitFile waits up to three minutes until a file exists.
func awaitFile(t *testing.T, name string) {
	t.Helper()
	for range 9000 {
		if _, err := os.Stat(name); err == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("no %s", name)
}
