package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/experiments"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// The function runScript in cli_test.go explains the scripts of these tests. In short, "$" begins a command line, and
// "2$" one that must exit with the status 2. The lines below a command must appear in its output. A line that begins
// with "!" must not appear.

// TestReproduce checks that an experiment whose results are saved is not run again, that its tables are written again
// from the saved report without change, and that the page of results keeps the text around its section.
func TestReproduce(t *testing.T) {
	enterTempFolder(t,
		map[string]string{"results.md": "before\n" + experiments.SectionBegin + "\n" + experiments.SectionEnd +
			"\nafter\n"})
	runScript(t, `
$ reproduce table5 table5 --into out
	Table 5:
	built-in classes
	What was not run
	adult/a9a is not at hand
	open: τ = 10⁻²
	Where the numbers come from`)
	report := testkit.Must(experiments.LoadReports("out"))[0]
	if result := report.Find("built-in classes, n = 1,500", "τ = 10⁻³")[0].Result; !result.Ran() ||
		result.Commit != "test" {
		t.Errorf("want a result of the commit test: %+v", result)
	}
	tables := string(readFile(t, "out/table5.smoke.md"))
	runScript(t, `
$ reproduce table5 --into out --page results.md
	0 cases, 
	!seed 1: converged
	wrote out/table5.smoke.json
	wrote results.md
2$ reproduce table5 --into out --from out
	exclude each other
$ reproduce --from out --page results.md
	table5.smoke.md`)
	testkit.Equal(t, string(readFile(t, "out/table5.smoke.md")), tables)
	if page := string(readFile(t, "results.md")); !strings.Contains(page, "No results at laptop scale") ||
		!strings.HasSuffix(page, "after\n") {
		t.Errorf("the page has no section of results, or lost the text after it: %s", page)
	}
}

// TestReproduceWithoutReports checks that reproduce --from refuses a missing folder, and that a folder without reports
// does not remove a table from the page.
func TestReproduceWithoutReports(t *testing.T) {
	text := "before\n" + experiments.SectionBegin + "\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n" + experiments.SectionEnd +
		"\nafter\n"
	enterTempFolder(t, map[string]string{"results.md": text})
	testkit.OK(t, os.Mkdir("empty", 0o755))
	runScript(t, `
1$ reproduce all --from none --page results.md
	there is no such folder
1$ reproduce all --from results.md --page results.md
	there is no such folder
1$ reproduce all --from empty --page results.md
	has no reports, so the table
$ reproduce --from empty
	has no reports`)
	testkit.Equal(t, string(readFile(t, "results.md")), text)
}

// TestReproduceList checks that --list names the missing data and counts the cases that cannot be run without them.
func TestReproduceList(t *testing.T) {
	enterTempFolder(t, nil)
	runScript(t, `
$ reproduce table3 --scale laptop --list --memory 3GB
	What is to be run
	admm, hinge loss, s = 15000
	0 cases, predicted 0 s, at most 0 B of memory; 0 done before, 16 not to be run
	left out because data are missing: epsilon, covtype-sample,
$ reproduce table3 --list
	What is to be run
	4 cases,`)
}

// TestReproduceInterrupted checks that an interrupted reproduction keeps its finished cases and prints the command that
// resumes it.
func TestReproduceInterrupted(t *testing.T) {
	out := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // cancels as soon as the result of the first case is saved
		for ctx.Err() == nil {
			if m, _ := filepath.Glob(filepath.Join(out, "*.json")); len(m) > 0 {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	code, _, stderr := runCommandContext(t, ctx, "reproduce", "table2", "--into", out)
	cancel()
	if want := "krrlab reproduce table2 --into " + out; code != exitInterrupted ||
		!strings.Contains(stderr, want) {
		t.Errorf("exit %d, %s", code, stderr)
	}
	runScript(t, "$ reproduce table2 --into "+out+"\n!, 0 done before")
}

// TestReproduceAtPaperScale checks that --scale paper prints its plan and does not start without --yes.
func TestReproduceAtPaperScale(t *testing.T) {
	code, out, stderr := runCommand(t, "reproduce", "table3", "--scale", "paper")
	if code != exitUsage || !strings.Contains(out, "What is to be run") ||
		!strings.Contains(stderr, "starts with --yes") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit %d, %s%s", code, out, stderr)
	}
}
