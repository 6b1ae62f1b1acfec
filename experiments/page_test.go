package experiments

import (
	"regexp"
	"strings"
	"testing"
)

// allReports returns invented laptop reports of all experiments.
func allReports(t *testing.T) []*Report {
	t.Helper()
	var out []*Report
	for _, id := range IDs() {
		out = append(out, invented(t, id, func(e *Entry) *Result {
			x := answer(50, 0.02+1e-6*float64(e.Case.S))
			x.Values = map[string]float64{"use": 1, "gram": 1, "factor": 1, "form": 1, "error": 1e-9}
			return x
		}))
	}
	return out
}

// TestPage: the page holds every table, figure, claim and source once, needs nothing outside
// itself, and is the same twice.
func TestPage(t *testing.T) {
	reports := allReports(t)
	page, err := Page(reports)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := Page(reports); again != page {
		t.Error("the same reports give another page")
	}
	tables, figures, claims := 0, 0, 0
	for _, r := range reports {
		tables += len(r.Tables()) + 1 // provenance
		if len(r.NotRun().Rows) > 0 {
			tables++
		}
		figures += len(r.Figures())
		claims += 2 * len(r.Verdicts()) // in the summary and in the section
		for _, v := range r.Verdicts() {
			if v.Detail != "" && !strings.Contains(page, string(typeset(v.Detail))) {
				t.Errorf("%s: the page has no %q", r.ID, v.Detail)
			}
		}
		if !strings.Contains(page, `<section id="`+r.ID+`-laptop">`) || !strings.Contains(page, `<a href="#`+r.ID+`-laptop">`) {
			t.Errorf("no section of %s, or no link to it", r.ID)
		}
	}
	for text, want := range map[string]int{
		"<table": tables, `<div class="box`: tables, `<div class="table">`: tables, `<p class="cue">`: tables, "<svg": 2 * figures, "<figcaption": figures, `<span class="word">`: claims,
	} {
		if got := strings.Count(page, text); got != want {
			t.Errorf("%d times %s, want %d", got, text, want)
		}
	}
	for _, tag := range []string{"div", "section", "figure", "table", "ul", "details", "p", "h2", "h3", "li", "svg", "sub"} {
		open := len(regexp.MustCompile("<"+tag+"[ >]").FindAllString(page, -1))
		if closed := strings.Count(page, "</"+tag+">"); open != closed {
			t.Errorf("%d of <%s>, %d of </%s>", open, tag, closed, tag)
		}
	}
	for _, m := range regexp.MustCompile(`(?:src|href|url)\s*[=(]\s*["']?([^"')\s>]+)`).FindAllStringSubmatch(page, -1) {
		if !strings.HasPrefix(m[1], "#") && !strings.HasPrefix(m[1], "https://doi.org/") {
			t.Errorf("the page needs %s", m[1])
		}
	}
	for _, want := range []string{"prefers-color-scheme: dark", "@media print", "max-width: 40rem", "λ<sub>p</sub>", "a processor, 2 threads"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// TestPageScales: reports of several scales are told apart, and the summary is of the largest.
func TestPageScales(t *testing.T) {
	laptop := allReports(t)[0]
	smoke := *laptop
	smoke.Scale = Smoke
	page, err := Page([]*Report{&smoke, laptop})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page, "(smoke scale)") || !strings.Contains(page, `id="table1-smoke"`) {
		t.Error("the scales are not told apart")
	}
	summary, _, _ := strings.Cut(page, `<section id="table1-smoke">`)
	if got, want := strings.Count(summary, `class="word"`), len(laptop.Verdicts()); got != want {
		t.Errorf("%d claims in the summary, want %d", got, want)
	}
}

func TestTypeset(t *testing.T) {
	for in, want := range map[string]string{
		"λ_p = 10λ":            "λ<sub>p</sub>\u00a0=\u00a010λ",
		"‖y_j−(K+λI)c_j‖₂":     "‖y<sub>j</sub>−(K+λI)c<sub>j</sub>‖₂",
		"cal_housing, x_train": "cal_housing, x_train",
		"1.33 % < 2":           "1.33\u00a0% &lt; 2",
	} {
		if got := string(typeset(in)); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// TestShown: the page says of which of the paper's tables and figures it is.
func TestShown(t *testing.T) {
	var all []*Report
	for _, id := range IDs() {
		all = append(all, &Report{ID: id})
	}
	for want, list := range map[string][]*Report{
		"Every table and figure":         all,
		"Table 1":                        all[:1],
		"Table 1 and Table 2":            all[:2],
		"Table 5, Figure 1 and Figure 2": all[4:],
		"What is claimed":                nil,
	} {
		if got := shown(list); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if html, err := Page([]*Report{table1Report(t, 0)}); err != nil || strings.Contains(html, "Every table") || !strings.Contains(html, "Table 1 of section 6") {
		t.Errorf("the page of table 1: %v", err)
	}
}
