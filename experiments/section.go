package experiments

import (
	"fmt"
	"strings"

	"github.com/krrlab/lab/plots"
)

// Markers before and after the part of a page that UpdateSection replaces.
const (
	SectionBegin = "<!-- results: made by make figures from experiments/results; do not edit -->"
	SectionEnd   = "<!-- end of results -->"
)

// noResults is the text of the section if there are no results at scale Laptop.
const noResults = "No results at laptop scale are kept yet: `krrlab reproduce all --scale laptop` makes them.\n"

// Section returns the part of docs/results.md about the reports at scale Laptop: the table of results, figure 1, the
// number of verdicts of each outcome, and the verdicts that do not hold with their numbers. If there are no such
// reports, it returns noResults.
func Section(reports []*Report) string {
	byID := map[string]*Report{}
	var laptop []*Report
	for _, r := range reports {
		if r.Scale == Laptop {
			byID[r.ID] = r
			laptop = append(laptop, r)
		}
	}
	if len(laptop) == 0 {
		return noResults
	}
	var b strings.Builder
	if r := byID["table1"]; r != nil {
		fmt.Fprintf(&b, "%s\n", summaryTable(r, byID["table2"], byID["table4"]).Markdown())
	}
	if r := byID["figure1"]; r != nil {
		if f := r.Plot(); f != nil {
			fmt.Fprintf(&b, "![%s](../experiments/results/%s.svg)\n\n", f.Title, r.baseName())
		}
	}
	counts, notHolding := map[string]int{}, ""
	for _, r := range laptop {
		for _, v := range r.Verdicts() {
			if counts[v.Outcome]++; v.Outcome != Holds {
				notHolding += fmt.Sprintf("- [%s](../experiments/results/%s.md) %s\n",
					r.paperName(), r.baseName(), v)
			}
		}
	}
	fmt.Fprintf(&b, "%s ([the rule](reproduce.md#the-rule-for-claims)). Each, with its numbers, is in the page of its "+
		"table or figure in [experiments/results](../experiments/results), here only what does not hold.\n\n",
		tally(counts))
	return b.String() + notHolding
}

// summaryTable returns a short form of table 1. It has additional columns with the iterations for λ_p = 10λ, from table
// 2, and without a preconditioner, from table 4; they are blank if table2 or table4 is nil.
func summaryTable(table1, table2, table4 *Report) *plots.Table {
	t := &plots.Table{
		Title: "The paper's table 1 on this laboratory",
		Caption: "λ_p = λ; iterations are the median (least–most) of the seeds, seconds the median of those of " +
			"training, " +
			machineNames(table1) + ". Published numbers are given only where data and n are the paper's. All tables " +
			"and " +
			"figures: experiments/results.",
		Columns: plots.ParseColumns("data", "n", "s", "iterations :", "published :", "with 10λ :",
			"without preconditioner :", "seconds %.0f", "error :", "published :"),
	}
	for _, row := range table1.rowsWithRuns() {
		ours := table1.proposedOrAutoSample(row)
		if ours.firstRun == nil {
			continue
		}
		var published publishedRow
		if ours.firstRun.sameProblem() {
			published = table1.publishedRow("table1", row)
		}
		t.Add(row, ours.firstRun.Result.Data.N, ours.featuresCell(), ours.iterationsCell(),
			published.cell("iterations"),
			iterationsIn(table2, row, tenLambdaRole, ours.firstCase.S), iterationsIn(table4, row, plainRole, 0),
			ours.trainSeconds(),
			ours.errorCells(published, "error_rate"))
	}
	return t
}

// iterationsIn returns a cell with the iterations of a row and a role, and with their number of features if it differs
// from the argument features.
func iterationsIn(r *Report, row, role string, features int) plots.Cell {
	if r == nil {
		return plots.Blank()
	}
	cases := r.sampleOf(row, role)
	if cases.firstRun == nil || cases.firstCase.S == features {
		return cases.iterationsCell()
	}
	return plots.Text(fmt.Sprintf("%s, s = %d", cases.iterationsCell(), cases.firstCase.S))
}

// machineNames returns the machines that the report was measured on, separated by semicolons.
func machineNames(r *Report) string {
	var out []string
	for _, e := range r.Entries {
		if e.Result.Ran() {
			out = appendUnique(out, e.Result.Machine.shortName())
		}
	}
	return strings.Join(out, "; ")
}

// UpdateSection returns the text with section in place of the part between the markers. It returns an error if a marker
// is missing.
func UpdateSection(text, section string) (string, error) {
	head, afterBegin, hasBegin := strings.Cut(text, SectionBegin)
	_, tail, hasEnd := strings.Cut(afterBegin, SectionEnd)
	if !hasBegin || !hasEnd {
		return "", fmt.Errorf("experiments: the text has no %q with %q after it", SectionBegin, SectionEnd)
	}
	return head + SectionBegin + "\n\n" + section + "\n" + SectionEnd + tail, nil
}
