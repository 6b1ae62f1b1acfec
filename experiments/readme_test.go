package experiments

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadmeIsCurrent: the README's result table is the one that the kept laptop results give; where
// there are none the README says so.
func TestReadmeIsCurrent(t *testing.T) {
	reports, err := LoadReports("results")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := UpdateReadme(string(text), ReadmeSection(reports))
	if err != nil {
		t.Fatal(err)
	}
	if want != string(text) {
		t.Error("README.md is not of experiments/results: make figures")
	}
}

// TestResultsAreCurrent: the tables that lie beside the kept results are those that they give.
func TestResultsAreCurrent(t *testing.T) {
	reports, err := LoadReports("results")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range reports {
		got, err := os.ReadFile(filepath.Join("results", r.base()+".md"))
		if err != nil || string(got) != r.Markdown() {
			t.Errorf("results/%s.md is not of %s: make figures (%v)", r.base(), r.FileName(), err)
		}
	}
}

func TestReadmeSection(t *testing.T) {
	if s := ReadmeSection(nil); !strings.Contains(s, "No results at laptop scale are kept yet") {
		t.Error(s)
	}
	smoke := table1Report(t, 0)
	smoke.Scale = Smoke
	if s := ReadmeSection([]*Report{smoke}); s != noResults {
		t.Errorf("of smoke results: %s", s)
	}
	s := ReadmeSection([]*Report{table1Report(t, 0), table2Report(t, 37, 17)})
	for _, want := range []string{"| MNIST | 60,000 | 10,000 | 90 (85–95) | 85 | 37 (37–37) |", "a processor with 2 threads", "- [Table 1](experiments/results/table1.laptop.md) holds: errors agree", "- [Table 2](experiments/results/table2.laptop.md) holds: λ_p = 10λ helps"} {
		if !strings.Contains(s, want) {
			t.Errorf("%q is not in\n%s", want, s)
		}
	}
	text := "a\n" + ReadmeBegin + "\nold\n" + ReadmeEnd + "\nb\n"
	got, err := UpdateReadme(text, "new\n")
	if err != nil || got != "a\n"+ReadmeBegin+"\n\nnew\n\n"+ReadmeEnd+"\nb\n" {
		t.Errorf("%q, %v", got, err)
	}
	if again, err := UpdateReadme(got, "new\n"); err != nil || again != got {
		t.Errorf("%q, %v", again, err)
	}
	if _, err := UpdateReadme("no markers", "new"); err == nil {
		t.Error("a text without markers passed")
	}
}
