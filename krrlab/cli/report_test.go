package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krrlab/lab/experiments"
)

// TestReport makes the page of one report, and says what is missing where there is none.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	code, _, errs := command(t, "report", "--results", dir)
	if code != exitError || !strings.Contains(errs, "krrlab reproduce") || strings.Count(errs, "\n") != 1 {
		t.Errorf("no reports: exit %d, %q", code, errs)
	}
	e, err := experiments.Find("table1")
	if err != nil {
		t.Fatal(err)
	}
	entries := experiments.NewPlan(e, experiments.Smoke).Entries
	r := &experiments.Report{ID: "table1", Scale: experiments.Smoke, Title: e.Title, Section: e.Section, Entries: entries}
	if err := r.Save(filepath.Join(dir, r.FileName())); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(dir, "new", "page.html")
	code, out, errs := command(t, "report", "--results", dir, "--out", page)
	if code != exitOK || !strings.Contains(out, "page.html: 1 report") {
		t.Fatalf("exit %d, %s%s", code, out, errs)
	}
	b, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(b), "not reached before the run was interrupted") || !strings.HasSuffix(string(b), "</html>\n") {
		t.Errorf("%v: %.200s", err, b)
	}
	if err := os.WriteFile(filepath.Join(dir, r.FileName()), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, _, errs = command(t, "report", "--results", dir, "--out", page)
	if code != exitError || !strings.Contains(errs, r.FileName()) || strings.Count(errs, "\n") != 1 {
		t.Errorf("a damaged report: exit %d, %q", code, errs)
	}
	if code, _, errs = command(t, "report", "table1"); code != exitUsage {
		t.Errorf("an argument: exit %d, %q", code, errs)
	}
}
