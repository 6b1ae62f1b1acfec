package experiments

import (
	_ "embed" // page/report.html
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"

	"github.com/krrlab/lab/plots"
)

//go:embed page/report.html
var pageText string

var pageTemplate = template.Must(template.New("report").Parse(pageText))

// pageTable is a table on the page: its title and caption stand above the box that it scrolls in.
type pageTable struct {
	Title, Caption template.HTML
	HTML           template.HTML
	Rows           int
	Text           bool // no numbers: its cells may break
}

// pageFigure is a figure on the page, drawn for a screen and for a phone.
type pageFigure struct{ Wide, Narrow, Caption template.HTML }

// pageSection is a report on the page.
type pageSection struct {
	Anchor, Where string
	Heading       template.HTML
	Scale         Scale
	Prose         []template.HTML // paragraphs
	Tables        []pageTable
	Figures       []pageFigure
	Claims        []pageClaim
	NotRun        *pageTable // nil if everything was
	Provenance    pageTable
}

// pageClaim is a verdict on the page.
type pageClaim struct {
	Outcome       string
	Claim, Detail template.HTML
}

// page is what page/report.html shows.
type page struct {
	Title    string
	What     string // which of the paper's tables and figures
	Machines []string
	Sections []pageSection
	Claims   []pageClaim // of the largest scale
	Count    string
	Mixed    bool // reports of more than one scale
	Reports  string
}

// Page returns one HTML document, with nothing outside it but links, that shows reports in the
// order given: text, figures as SVG, tables, claims, what was not run, and where the numbers
// come from. The same reports give the same bytes.
func Page(reports []*Report) (string, error) {
	p := page{Title: "The paper’s tables and figures, measured again"}
	scales := map[Scale]bool{}
	for _, r := range reports {
		scales[r.Scale] = true
	}
	p.Mixed = len(scales) > 1
	for _, r := range reports {
		for _, e := range r.Entries {
			if e.Result.Ran() {
				p.Machines = once(p.Machines, e.Result.Machine.String())
			}
		}
		s := r.section()
		p.Sections = append(p.Sections, s)
		if r.Scale == largestScale(scales) {
			for _, c := range s.Claims { // the numbers stand in the section
				p.Claims = append(p.Claims, pageClaim{c.Outcome, typeset(label(r.ID)+": ") + c.Claim, ""})
			}
		}
	}
	p.Count, p.What = countClaims(p.Claims), shown(reports)
	p.Reports = fmt.Sprintf("%d reports", len(reports))
	if len(reports) == 1 {
		p.Reports = "1 report"
	}
	var b strings.Builder
	if err := pageTemplate.Execute(&b, p); err != nil {
		return "", fmt.Errorf("experiments: %w", err)
	}
	return strings.TrimSpace(b.String()) + "\n", nil
}

// shown names the tables and figures of the paper that the reports are of.
func shown(reports []*Report) string {
	var names []string
	all := true
	for _, id := range IDs() {
		name := label(id)
		if !strings.Contains(name, " ") { // not the paper's
			continue
		}
		if slices.ContainsFunc(reports, func(r *Report) bool { return r.ID == id }) {
			names = append(names, name)
		} else {
			all = false
		}
	}
	switch n := len(names); {
	case all:
		return "Every table and figure"
	case n == 0:
		return "What is claimed"
	case n == 1:
		return names[0]
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}

// largestScale returns the largest of the scales.
func largestScale(of map[Scale]bool) Scale {
	var out Scale
	for _, s := range Scales() {
		if of[s] {
			out = s
		}
	}
	return out
}

// countClaims says how many claims hold, fail and are open.
func countClaims(list []pageClaim) string {
	counts := map[string]int{}
	for _, v := range list {
		counts[v.Outcome]++
	}
	s := tally(counts)
	if counts[Open] > 0 {
		s += ". Open: what it needs was not run to its end, or the scale is too small"
	}
	return s + ". The numbers each was judged by stand in its section."
}

// label returns the name of an experiment as the paper writes it: "Table 1".
func label(id string) string {
	for _, kind := range []string{"table", "figure"} {
		if number, ok := strings.CutPrefix(id, kind); ok {
			return firstUpper(kind) + " " + number
		}
	}
	return firstUpper(id)
}

func (r *Report) section() pageSection {
	s := pageSection{
		Anchor: r.ID + "-" + string(r.Scale), Heading: typeset(label(r.ID) + ": " + r.Title), Where: firstUpper(r.Section), Scale: r.Scale,
		Provenance: tableOn(r.Provenance()),
	}
	s.Provenance.Title, s.Provenance.Text = "", true
	for text := range strings.SplitSeq(r.Prose(), "\n\n") {
		if text != "" {
			s.Prose = append(s.Prose, typeset(text))
		}
	}
	for _, v := range r.Verdicts() {
		s.Claims = append(s.Claims, pageClaim{v.Outcome, typeset(v.Claim), typeset(v.Detail)})
	}
	for _, t := range r.Tables() {
		x := tableOn(t)
		if strings.HasSuffix(t.Title, r.Title) { // the section's heading
			x.Title = ""
		}
		s.Tables = append(s.Tables, x)
	}
	for _, f := range r.Figures() {
		s.Figures = append(s.Figures, figureOn(f.Figure))
	}
	if t := r.NotRun(); len(t.Rows) > 0 {
		x := tableOn(t)
		x.Title, x.Text = "", true
		s.NotRun = &x
	}
	return s
}

// subscript finds one letter under another, as in λ_p and y_j.
var subscript = regexp.MustCompile(`(^|[^\p{L}\p{N}_])(\p{L})_(\p{L})($|[^\p{L}\p{N}_])`)

// typeset escapes a text, lowers its subscripts, and keeps numbers with their signs and units in
// one line.
func typeset(s string) template.HTML { return lowered(template.HTMLEscapeString(s)) }

// lowered is typeset for what is HTML already.
func lowered(s string) template.HTML {
	s = subscript.ReplaceAllString(s, "$1$2<sub>$3</sub>$4")
	return template.HTML(strings.NewReplacer(" %", "\u00a0%", " = ", "\u00a0=\u00a0").Replace(s))
}

// tableOn takes title and caption out of a table: a caption inside it would scroll with it.
func tableOn(t *plots.Table) pageTable {
	bare := *t
	bare.Title, bare.Caption = "", ""
	return pageTable{Title: typeset(t.Title), Caption: typeset(t.Caption), HTML: lowered(bare.HTML()), Rows: len(t.Rows)}
}

// A figure on a phone: its width in inches, and the heights of a panel and of what is above.
const phoneWidth, phonePanel, phoneHead = 4.2, 2.5, 0.75

// figureOn draws a figure for a screen, and for a phone with its panels one below the other.
func figureOn(f *plots.Figure) pageFigure {
	narrow := *f
	narrow.Columns, narrow.Width = 1, phoneWidth
	narrow.Height = phoneHead + phonePanel*float64(max(1, len(f.Panels)))
	return pageFigure{svgOf(f), svgOf(&narrow), typeset(f.Caption)}
}

// svgOf returns a figure's drawing without its caption and width: the page has its own.
func svgOf(f *plots.Figure) template.HTML {
	bare := *f
	bare.Caption = ""
	_, svg, _ := strings.Cut(bare.SVG(), "<svg ")
	return template.HTML("<svg " + svg)
}

// Markers of the part of a page that Section's text stands between.
const (
	SectionBegin = "<!-- results: made by make figures from experiments/results; do not edit -->"
	SectionEnd   = "<!-- end of results -->"
)

// noResults is the section where there are no laptop results.
const noResults = "No results at laptop scale are kept yet: `krrlab reproduce all --scale laptop` makes them.\n"

// Section returns what docs/results.md says of the reports at scale Laptop: the result table,
// figure 1, and the verdicts, with the numbers they were judged by where a claim does not
// hold, and otherwise with the rows; a line that says so if there are no reports.
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
		for _, f := range r.Figures()[:min(1, len(r.Figures()))] {
			fmt.Fprintf(&b, "![%s](../experiments/results/%s)\n\n%s\n\n", f.Figure.Title, r.figureFile(f, ".svg"), f.Figure.Caption)
		}
	}
	counts := map[string]int{}
	for _, r := range laptop {
		for _, v := range r.Verdicts() {
			counts[v.Outcome]++
		}
	}
	fmt.Fprintf(&b, "%s ([the rule](reproduce.md#the-rule-for-claims)). The numbers behind each verdict are in [experiments/results](../experiments/results):\n\n", tally(counts))
	for _, r := range laptop {
		for _, v := range r.Verdicts() {
			if v.Outcome == Holds {
				v.Detail = ""
				if v.On != "" {
					v.Detail = "on " + v.On
				}
			}
			fmt.Fprintf(&b, "- [%s](../experiments/results/%s.md) %s\n", label(r.ID), r.base(), v)
		}
	}
	return b.String()
}

// summaryTable is table 1 in short, with the iterations for λ_p = 10λ and without a
// preconditioner beside it where there are those reports.
func summaryTable(one, two, four *Report) *plots.Table {
	t := &plots.Table{
		Title: "The paper's table 1 on this laboratory",
		Caption: "λ_p = λ; iterations are the median (least–most) of the seeds, seconds the median of those of training, " + machines(one) +
			". Published numbers are given only where data and n are the paper's. All tables and figures: experiments/results.",
		Columns: []plots.Column{
			dataColumn, {Name: "n"}, {Name: "s"}, textual("iterations"), textual("published"), textual("with 10λ"), textual("without preconditioner"),
			{Name: "seconds", Format: "%.0f"}, textual("error"), textual("published"),
		},
	}
	for _, row := range one.ranRows() {
		s := one.sampleOf(row, proposed)
		if s.first == nil {
			continue
		}
		p := one.paperOf(row)
		its, err := plots.Blank(), plots.Blank()
		if s.first.sameProblem() {
			its, err = publishedCell("table1", p, "iterations"), publishedError("table1", p, "error_rate")
		}
		t.Add(row, s.first.Result.Data.N, s.first.Case.S, s.text(), its, iterationsIn(two, row, tenLambda, s.first.Case.S), iterationsIn(four, row, plainRole, 0),
			s.train(), errorText(s.first.Result), err)
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
	if x.first == nil || x.first.Case.S == s {
		return x.text()
	}
	return plots.Text(fmt.Sprintf("%s, s = %d", x.text(), x.first.Case.S))
}

func machines(r *Report) string {
	var out, cpus []string
	for _, e := range r.Entries {
		if m := e.Result; m.Ran() && !slices.Contains(cpus, m.Machine.CPU) {
			cpus = append(cpus, m.Machine.CPU)
			out = append(out, fmt.Sprintf("%s with %d threads", m.Machine.CPU, m.Machine.Threads))
		}
	}
	return strings.Join(out, "; ")
}

// UpdateSection returns the text with the section in place of what stands between the markers.
func UpdateSection(text, section string) (string, error) {
	head, rest, ok := strings.Cut(text, SectionBegin)
	_, tail, closed := strings.Cut(rest, SectionEnd)
	if !ok || !closed {
		return "", fmt.Errorf("experiments: the text has no %q with %q after it", SectionBegin, SectionEnd)
	}
	return head + SectionBegin + "\n\n" + section + "\n" + SectionEnd + tail, nil
}
