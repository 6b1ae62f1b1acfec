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

// TestResultsAreCurrent: the tables and figures that lie beside the kept results are those that they
// give, all of them and no others. Of a PNG only that it is there: its bytes are those of a compressor.
func TestResultsAreCurrent(t *testing.T) {
	reports, err := LoadReports("results")
	if err != nil {
		t.Fatal(err)
	}
	dir, want := t.TempDir(), map[string]bool{}
	for _, r := range reports {
		want[r.FileName()] = true
		names, err := r.WriteFiles(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			base := filepath.Base(name)
			want[base] = true
			made, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			kept, err := os.ReadFile(filepath.Join("results", base))
			if err != nil || filepath.Ext(base) != ".png" && string(kept) != string(made) {
				t.Errorf("results/%s is not of %s: make figures (%v)", base, r.FileName(), err)
			}
		}
	}
	kept, err := os.ReadDir("results")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range kept {
		if !want[f.Name()] {
			t.Errorf("results/%s is of no report that is kept", f.Name())
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
	s = ReadmeSection([]*Report{invented(t, "figure1", mnist1(0.004, 1))})
	for _, want := range []string{"Test error (left) and seconds", "holds: s does not change the exact method's error: all s and seeds within 0.1 % (on mnist, 20,000 training rows"} {
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
