package cli

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/experiments"
)

// TestReproduce runs an experiment as a user would, goes on with it, and makes its tables anew
// from the report.
func TestReproduce(t *testing.T) {
	out := t.TempDir()
	code, stdout, errs := command(t, "reproduce", "table5", "table5", "--out", out)
	if code != 0 {
		t.Fatalf("exit %d, %s\n%s", code, errs, stdout)
	}
	for _, want := range []string{"Table 5:", "built-in classes", "What was not run", "adult/a9a is not at hand", "open: τ = 10⁻²", "Where the numbers come from"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not in\n%s", want, stdout)
		}
	}
	r, err := experiments.LoadReport(filepath.Join(out, "table5.smoke.json"))
	if err != nil {
		t.Fatal(err)
	}
	if x := r.Find("built-in classes, n = 1,500", "τ = 10⁻³")[0].Result; !x.Ran() || x.Commit != "test" {
		t.Errorf("result %+v", x)
	}
	md := read(t, filepath.Join(out, "table5.smoke.md"))
	code, stdout, errs = command(t, "reproduce", "table5", "--out", out, "--resume")
	if code != 0 || !strings.Contains(stdout, "0 cases, ") || strings.Contains(stdout, "seed 1: converged") {
		t.Errorf("resumed: exit %d, %s\n%s", code, errs, stdout)
	}
	page := write(t, out, "results.md", "before\n"+experiments.SectionBegin+"\n"+experiments.SectionEnd+"\nafter\n")
	again := filepath.Join(out, "again")
	code, stdout, errs = command(t, "reproduce", "--from", out, "--out", again, "--page", page)
	if code != 0 || !strings.Contains(stdout, "table5.smoke.md") {
		t.Fatalf("exit %d, %s\n%s", code, errs, stdout)
	}
	if b, err := os.ReadFile(filepath.Join(again, "table5.smoke.md")); err != nil || string(b) != string(md) {
		t.Errorf("tables made anew differ: %v", err)
	}
	if b, err := os.ReadFile(page); err != nil || !strings.Contains(string(b), "No results at laptop scale") || !strings.HasSuffix(string(b), "after\n") {
		t.Errorf("page: %s, %v", b, err)
	}
}

// TestReproduceFromNothing: a folder that is not there is an error, and one without reports takes no
// table out of a page.
func TestReproduceFromNothing(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	text := "before\n" + experiments.SectionBegin + "\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n" + experiments.SectionEnd + "\nafter\n"
	page := write(t, dir, "results.md", text)
	for from, want := range map[string]string{filepath.Join(dir, "none"): "there is no such folder", page: "there is no such folder", empty: "has no reports: the table"} {
		code, _, errs := command(t, "reproduce", "all", "--from", from, "--page", page)
		if code != exitError || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: exit %d, %s", from, code, errs)
		}
	}
	if b, err := os.ReadFile(page); err != nil || string(b) != text {
		t.Errorf("page: %s, %v", b, err)
	}
	if code, out, errs := command(t, "reproduce", "--from", empty); code != exitOK || !strings.Contains(out, "has no reports") {
		t.Errorf("exit %d, %s, %s", code, errs, out)
	}
}

// TestReproduceList: without data the list says how many cases are left out, and for want of which
// data.
func TestReproduceList(t *testing.T) {
	code, stdout, errs := command(t, "reproduce", "table3", "table4", "--list", "--memory", "3GB")
	// The seconds are those of the machine.
	got := regexp.MustCompile(`(?m)  +\S+ (s|min) +\S+ [kMG]B  .*$`).ReplaceAllString(stdout, " …")
	want := `id        scale   cases left out predicted    memory  title
table3    smoke       4        4 …
table3    laptop      0       16         –         –  Against block ADMM on random features
table3    paper       0       10         –         –  Against block ADMM on random features
table4    smoke       6       12 …
table4    laptop      0       60         –         –  Against conjugate gradients without a preconditioner
table4    paper       0       20         –         –  Against conjugate gradients without a preconditioner
left out because data are missing: epsilon, covtype-sample, covtype7-sample, yearpredictionmsd, cal-housing, protein, gisette, adult, mnist (krrlab data fetch NAME downloads, krrlab data info NAME says where else; then --data-dir or $KRRLAB_DATA)
`
	if code != exitOK || errs != "" || got != want {
		t.Errorf("exit %d, %s\n%s\nwant\n%s", code, errs, got, want)
	}
}

// TestReproduceInterrupted: what was done is kept, and the command that goes on is said.
func TestReproduceInterrupted(t *testing.T) {
	out := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // as soon as the first case is kept
		for ctx.Err() == nil {
			if m, _ := filepath.Glob(filepath.Join(out, "cases", "*.json")); len(m) > 0 {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	code, _, errs := commandContext(t, ctx, "reproduce", "table2", "--out", out)
	cancel()
	if want := "krrlab reproduce table2 --scale smoke --out " + out + " --resume"; code != exitInterrupted || !strings.Contains(errs, want) {
		t.Errorf("exit %d, %s", code, errs)
	}
	if code, stdout, errs := command(t, "reproduce", "table2", "--out", out, "--resume"); code != 0 || strings.Contains(stdout, ", 0 done before") {
		t.Errorf("exit %d, %s\n%s", code, errs, stdout)
	}
}

// TestReproduceUsage checks that bad arguments give one line that names them, and that scale paper
// does not start unasked.
func TestReproduceUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{nil, exitUsage, "want an experiment: table1, table2"},
		{[]string{"table9"}, exitUsage, `unknown experiment "table9"; there are table1, table2`},
		{[]string{"table1", "--scale", "huge"}, exitUsage, "there are smoke, laptop, paper"},
		{[]string{"table1", "--page", "x"}, exitUsage, "--page goes with --from"},
		{[]string{"table1", "--memory", "much"}, exitUsage, "--memory"},
		{[]string{"table3", "--scale", "paper"}, exitUsage, "starts with --yes"},
		{[]string{"table2", "--out", "/dev/null/x"}, exitError, "/dev/null"},
	} {
		code, stdout, errs := command(t, append([]string{"reproduce"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d, %s", c.args, code, errs)
		}
		if len(c.args) == 3 && c.args[2] == "paper" && !strings.Contains(stdout, "What is to be run") {
			t.Errorf("the plan is not printed: %s", stdout)
		}
	}
}
