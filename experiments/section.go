package experiments

import (
	"fmt"
	"strings"

	"github.com/krrlab/lab/plots"
)

// Markers of the part of a page that Section's text stands between.
const (
	SectionBegin = "<!-- results: made by make figures from experiments/results; do not edit -->"
	SectionEnd   = "<!-- end of results -->"
)

// noResults is the section where there are no laptop results.
const noResults = "No results at laptop scale are kept yet: `krrlab reproduce all --scale laptop` makes them.\n"

// Section returns what docs/results.md says about the reports at scale Laptop: the result table,
// figure 1, and the verdicts, with the numbers they were judged by where a claim does not
// hold; a line that says so if there are no reports.
func Section(reports []*Report) string {
	by := map[string]*Report{}
	var laptop []*Report
	for _, r := range reports {
		if r.Scale == Laptop {
			by[r.ID] = r
			laptop = append(laptop, r)
		}
	}
	if len(laptop) == 0 {
		return noResults
	}
	var b strings.Builder
	if r := by["table1"]; r != nil {
		fmt.Fprintf(&b, "%s\n", summaryTable(r, by["table2"], by["table4"]).Markdown())
	}
	if r := by["figure1"]; r != nil {
		if f := r.Plot(); f != nil {
			fmt.Fprintf(&b, "![%s](../experiments/results/%s.svg)\n\n", f.Title, r.base())
		}
	}
	counts, other := map[string]int{}, ""
	for _, r := range laptop {
		for _, v := range r.Verdicts() {
			if counts[v.Outcome]++; v.Outcome != Holds {
				other += fmt.Sprintf("- [%s](../experiments/results/%s.md) %s\n",
					r.name(), r.base(), v.short(""))
			}
		}
	}
	fmt.Fprintf(&b, "%s ([the rule](reproduce.md#the-rule-for-claims)). Each, with its numbers, is in the page of its "+
		"table or figure in [experiments/results](../experiments/results), here only what does not hold.\n\n",
		tally(counts))
	return b.String() + other
}

// summaryTable is table 1 in short, with the iterations for λ_p = 10λ and without a
// preconditioner beside it where there are those reports.
func summaryTable(one, two, four *Report) *plots.Table {
	t := &plots.Table{
		Title: "The paper's table 1 on this laboratory",
		Caption: "λ_p = λ; iterations are the median (least–most) of the seeds, seconds the median of those of " +
			"training, " +
			machines(one) + ". Published numbers are given only where data and n are the paper's. All tables and " +
			"figures: experiments/results.",
		Columns: plots.Heads("data", "n", "s", "iterations :", "published :", "with 10λ :",
			"without preconditioner :", "seconds %.0f", "error :", "published :"),
	}
	for _, row := range one.ranRows() {
		s := one.oursOf(row)
		if s.first == nil {
			continue
		}
		var p printed
		if s.first.sameProblem() {
			p = one.printed("table1", row)
		}
		t.Add(row, s.first.Result.Data.N, s.width(), s.text(), p.cell("iterations"),
			iterationsIn(two, row, tenLambda, s.c.S), iterationsIn(four, row, plainRole, 0), s.train(),
			s.besideError(p, "error_rate"))
	}
	return t
}

// iterationsIn returns the iterations of a row and a role, and their s where it is not the one
// given.
func iterationsIn(r *Report, row, role string, s int) plots.Cell {
	if r == nil {
		return plots.Blank()
	}
	x := r.sampleOf(row, role)
	if x.first == nil || x.c.S == s {
		return x.text()
	}
	return plots.Text(fmt.Sprintf("%s, s = %d", x.text(), x.c.S))
}

func machines(r *Report) string {
	var out []string
	for _, e := range r.Entries {
		if e.Result.Ran() {
			out = once(out, e.Result.Machine.short())
		}
	}
	return strings.Join(out, "; ")
}

// UpdateSection returns the text with what is between the markers replaced by the section.
func UpdateSection(text, section string) (string, error) {
	head, rest, ok := strings.Cut(text, SectionBegin)
	_, tail, closed := strings.Cut(rest, SectionEnd)
	if !ok || !closed {
		return "", fmt.Errorf("experiments: the text has no %q with %q after it", SectionBegin, SectionEnd)
	}
	return head + SectionBegin + "\n\n" + section + "\n" + SectionEnd + tail, nil
}
