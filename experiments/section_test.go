package experiments

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestResultsPageIsCurrent checks that the section of docs/results.md is made from the kept laptop results.
func TestResultsPageIsCurrent(t *testing.T) {
	reports := must(LoadReports("results"))
	text := must(os.ReadFile(filepath.Join("..", "docs", "results.md")))
	want := must(UpdateSection(string(text), Section(reports)))
	if want != string(text) {
		t.Error("docs/results.md does not match experiments/results: run make figures")
	}
}

// TestResultsAreCurrent checks that the tables and figures in the folder results are made from the kept reports, byte
// for byte, and that there are no other files.
func TestResultsAreCurrent(t *testing.T) {
	reports := must(LoadReports("results"))
	dir, want := t.TempDir(), map[string]bool{}
	for _, r := range reports {
		want[r.FileName()] = true
		names := must(r.WriteFiles(dir))
		for _, name := range names {
			base := filepath.Base(name)
			want[base] = true
			made := must(os.ReadFile(name))
			kept, err := os.ReadFile(filepath.Join("results", base))
			if err != nil || string(kept) != string(made) {
				t.Errorf("results/%s does not match %s: run make figures (%v)", base, r.FileName(), err)
			}
		}
	}
	kept := must(os.ReadDir("results"))
	for _, f := range kept {
		if !want[f.Name()] && !strings.HasPrefix(f.Name(), "testbed.") { // those are of package testbed
			t.Errorf("results/%s belongs to no report in this folder", f.Name())
		}
	}
}

// TestSection checks the section of docs/results.md for several sets of reports, and that UpdateSection replaces it.
func TestSection(t *testing.T) {
	if s := Section(nil); !strings.Contains(s, "No results at laptop scale are kept yet") {
		t.Errorf("without reports: %s", s)
	}
	smoke := table1Report(t, 0)
	smoke.Scale = Smoke
	if s := Section([]*Report{smoke}); s != noResults {
		t.Errorf("the section of smoke results, which are not kept, is %s", s)
	}
	s := Section([]*Report{table1Report(t, 0), table2Report(t, 37, 17)})
	expectContains(t, s, "| MNIST | 60,000 | 10,000 | 90 (85–95) | 85 | 37 |", "a processor with 2 threads",
		"- [Table 1](../experiments/results/table1.laptop.md) fails: iterations of table 1",
		"- [Table 2](../experiments/results/table2.laptop.md) open: iterations of table 2")
	if strings.Contains(s, " holds: ") {
		t.Errorf("a claim that holds is listed with those that fail or are open: %s", s)
	}
	s = Section([]*Report{madeUpReport(t, "figure1", figure1Result(0.004, 1))})
	expectContains(t, s, "![Random features against the exact method", "Of 3 claims 3 hold (")
	text := "a\n" + SectionBegin + "\nold\n" + SectionEnd + "\nb\n"
	got, err := UpdateSection(text, "new\n")
	if err != nil || got != "a\n"+SectionBegin+"\n\nnew\n\n"+SectionEnd+"\nb\n" {
		t.Errorf("the text becomes %q, %v", got, err)
	}
	if again, err := UpdateSection(got, "new\n"); err != nil || again != got {
		t.Errorf("a second update changes the text: %q, %v", again, err)
	}
	expectError(t, errorOf(UpdateSection("no markers", "new")), "the text has no ")
}

// TestReadmeRows checks that the numbers in the table of README.md are those of docs/results.md.
func TestReadmeRows(t *testing.T) {
	rows := func(name string) map[string][]string {
		text := must(os.ReadFile(filepath.Join("..", name)))
		out := map[string][]string{}
		_, table, _ := strings.Cut(string(text), "\n| data | n | s | iterations |")
		table, _, _ = strings.Cut(table, "\n\n")
		for _, line := range strings.Split(table, "\n")[2:] {
			var cells []string
			for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
				// The parentheses hold the smallest and the largest value.
				cell, bracket, _ := strings.Cut(strings.TrimSpace(cell), " (")
				if _, rest, ok := strings.Cut(bracket, ")"); ok {
					cell += rest
				}
				cells = append(cells, cell)
			}
			out[cells[0]] = cells[1:]
		}
		return out
	}
	inResults, inReadme := rows(filepath.Join("docs", "results.md")), rows("README.md")
	if len(inReadme) != 5 {
		t.Errorf("%d rows in README.md, want 5", len(inReadme))
	}
	for name, row := range inReadme {
		want := inResults[name]
		if len(want) != 9 {
			t.Errorf("%s is not in docs/results.md: %q", name, want)
			continue
		}
		if got, want := strings.Join(row, "|"), strings.Join(append(want[:6:6], want[7]), "|"); got != want {
			t.Errorf("%s: README.md has\n%s\ndocs/results.md\n%s", name, got, want)
		}
	}
}

// TestPartsSum checks that seconds that a page of the documentation lists in parts add up to their total, up to
// rounding.
func TestPartsSum(t *testing.T) {
	for _, name := range must(filepath.Glob("../docs/*.md")) {
		text := strings.ReplaceAll(string(must(os.ReadFile(name))), "\n", " ")
		for _, match := range regexp.MustCompile(`((?:[^,:;]* [\d.]+, )+)total ([\d.]+)`).FindAllStringSubmatch(text,
			-1) {
			sum, slack := 0.0, 0.0
			for _, part := range regexp.MustCompile(`([\d.]+), `).FindAllStringSubmatch(match[1], -1) {
				sum, slack = sum+must(strconv.ParseFloat(part[1], 64)), slack+0.05
			}
			after := text[strings.Index(text, match[0])+len(match[0]):]
			if plan := regexp.MustCompile(`^ plan         chosen in ([\d.]+) s`).FindStringSubmatch(after); plan != nil {
				sum += must(strconv.ParseFloat(plan[1], 64))
			}
			if total := must(strconv.ParseFloat(match[2], 64)); math.Abs(sum-total) > slack+0.05 {
				t.Errorf("%s: the parts add up to %.1f, the total is %.1f: %s", name, sum, total, match[0])
			}
		}
	}
}
