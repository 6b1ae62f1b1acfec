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

// TestReproduce runs an experiment as a user would, resumes it, and makes its tables again
// from the report.
func TestReproduce(t *testing.T) {
	files(t, map[string]string{"results.md": "before\n" + experiments.SectionBegin + "\n" + experiments.SectionEnd +
		"\nafter\n"})
	script(t, `
$ reproduce table5 table5 --into out
	Table 5:
	built-in classes
	What was not run
	adult/a9a is not at hand
	open: τ = 10⁻²
	Where the numbers come from`)
	r := testkit.Must(experiments.LoadReports("out"))[0]
	if x := r.Find("built-in classes, n = 1,500", "τ = 10⁻³")[0].Result; !x.Ran() || x.Commit != "test" {
		t.Errorf("result %+v", x)
	}
	md := string(read(t, "out/table5.smoke.md"))
	script(t, `
$ reproduce table5 --into out --page results.md
	0 cases, 
	!seed 1: converged
	wrote out/table5.smoke.json
	wrote results.md
2$ reproduce table5 --into out --from out
	exclude each other
$ reproduce --from out --page results.md
	table5.smoke.md`)
	testkit.Equal(t, string(read(t, "out/table5.smoke.md")), md)
	if b := string(read(t, "results.md")); !strings.Contains(b, "No results at laptop scale") ||
		!strings.HasSuffix(b, "after\n") {
		t.Errorf("page: %s", b)
	}
}

// TestReproduceFromNothing: a folder that is not there is an error, and one without reports takes no
// table out of a page.
func TestReproduceFromNothing(t *testing.T) {
	text := "before\n" + experiments.SectionBegin + "\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n" + experiments.SectionEnd +
		"\nafter\n"
	files(t, map[string]string{"results.md": text})
	testkit.OK(t, os.Mkdir("empty", 0o755))
	script(t, `
1$ reproduce all --from none --page results.md
	there is no such folder
1$ reproduce all --from results.md --page results.md
	there is no such folder
1$ reproduce all --from empty --page results.md
	has no reports, so the table
$ reproduce --from empty
	has no reports`)
	testkit.Equal(t, string(read(t, "results.md")), text)
}

// TestReproduceList: without data the list says how many cases are left out, and for want of which
// data.
func TestReproduceList(t *testing.T) {
	files(t, nil)
	script(t, `
$ reproduce table3 --scale laptop --list --memory 3GB
	What is to be run
	admm, hinge loss, s = 15000
	0 cases, predicted 0 s, at most 0 B of memory; 0 done before, 16 not to be run
	left out because data are missing: epsilon, covtype-sample,
$ reproduce table3 --list
	What is to be run
	4 cases,`)
}

// TestReproduceInterrupted: what was done is kept, and the command that resumes is printed.
func TestReproduceInterrupted(t *testing.T) {
	out := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // as soon as the first case is kept
		for ctx.Err() == nil {
			if m, _ := filepath.Glob(filepath.Join(out, "*.json")); len(m) > 0 {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	code, _, errs := commandContext(t, ctx, "reproduce", "table2", "--into", out)
	cancel()
	if want := "krrlab reproduce table2 --into " + out; code != exitInterrupted ||
		!strings.Contains(errs, want) {
		t.Errorf("exit %d, %s", code, errs)
	}
	script(t, "$ reproduce table2 --into "+out+"\n!, 0 done before")
}

// TestReproducePaper: scale paper prints its plan and does not start unasked.
func TestReproducePaper(t *testing.T) {
	code, out, errs := command(t, "reproduce", "table3", "--scale", "paper")
	if code != exitUsage || !strings.Contains(out, "What is to be run") ||
		!strings.Contains(errs, "starts with --yes") || strings.Count(errs, "\n") != 1 {
		t.Errorf("exit %d, %s%s", code, out, errs)
	}
}
