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
			if !e.Result.Ran() {
				continue
			}
			if m := e.Result.Machine.String(); !slices.Contains(p.Machines, m) {
				p.Machines = append(p.Machines, m)
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

// section makes a report's part of the page.
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

// svgOf takes caption and width out of a figure's HTML: the page has its own.
func svgOf(f *plots.Figure) template.HTML {
	bare := *f
	bare.Caption = ""
	svg := strings.TrimSuffix(strings.TrimPrefix(bare.HTML(), "<figure>\n"), "</figure>\n")
	return template.HTML(strings.Replace(svg, `style="max-width:100%;height:auto" `, "", 1))
}
