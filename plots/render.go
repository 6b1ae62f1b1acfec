package plots

import (
	"bytes"
	"encoding/csv"
	"html"
	"math"
	"slices"
	"strings"
	"text/template"

	"github.com/krrlab/lab/plots/internal/text"
)

func (t *Table) String() string { return t.Text() }

// Text returns the table with aligned columns, for a terminal or a log. A line break
// or a tab in a cell becomes a space.
func (t *Table) Text() string {
	var b strings.Builder
	if t.Title != "" {
		b.WriteString(text.OneLine(t.Title) + "\n")
	}
	rows := t.cells(text.OneLine)
	rule := make([]string, len(t.Columns))
	for _, row := range rows {
		for j, cell := range row {
			rule[j] = strings.Repeat("─", max(text.Columns(rule[j]), text.Columns(cell)))
		}
	}
	for _, row := range slices.Insert(rows, 1, rule) {
		line := ""
		for j, cell := range row {
			gap := strings.Repeat(" ", text.Columns(rule[j])-text.Columns(cell))
			if t.alignedRight(j) {
				line += gap + cell + "  "
			} else {
				line += cell + gap + "  "
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	if t.Caption != "" {
		b.WriteString(text.OneLine(t.Caption) + "\n")
	}
	return b.String()
}

var markdownEscape = strings.NewReplacer("\\", "\\\\", "|", "\\|", "*", "\\*", "_", "\\_", "`", "\\`",
	"<", "&lt;", ">", "&gt;", "&", "&amp;", "[", "\\[", "]", "\\]", "~", "\\~", "$", "\\$", "\r\n", "<br>", "\n",
	"<br>", "\r", " ")

// Markdown returns the table in the form GitHub and Jupyter know, with the title in
// bold above and the caption below.
func (t *Table) Markdown() string {
	return t.fill(markdown, markdownEscape.Replace, ":---", "---:")
}

// The forms of a table: templates of its escaped title, caption, heading and rows, and of the alignment of its columns.
var (
	markdown = template.Must(template.New("").Parse(`{{with .Title}}**{{.}}**

{{end}}|{{range .Head}} {{.}} |{{end}}
|{{range .Sides}}{{.}}|{{end}}
{{range .Rows}}|{{range .}} {{.}} |{{end}}
{{end}}{{with .Caption}}
{{.}}
{{end}}`))
	tableHTML = template.Must(template.New("").Parse(`<table>
{{if or .Title .Caption}}<caption>{{with .Title}}<b>{{.}}</b>{{end}}
{{- if and .Title .Caption}}<br>{{end}}{{.Caption}}</caption>
{{end}}<thead>
<tr>{{range $j, $cell := .Head}}<th style="text-align:{{index $.Sides $j}}">{{$cell}}</th>{{end}}</tr>
</thead>
<tbody>
{{range .Rows}}<tr>
{{- range $j, $cell := .}}<td style="text-align:{{index $.Sides $j}}">{{$cell}}</td>{{end}}</tr>
{{end}}</tbody>
</table>
`))
)

// fill returns the table in one of its forms, its texts escaped, with the form's words for the two alignments.
func (t *Table) fill(form *template.Template, escape func(string) string, leftWord, rightWord string) string {
	sides := make([]string, len(t.Columns))
	for j := range sides {
		if sides[j] = leftWord; t.alignedRight(j) {
			sides[j] = rightWord
		}
	}
	rows := t.cells(escape)
	var b strings.Builder
	err := form.Execute(&b, map[string]any{"Title": escape(t.Title), "Caption": escape(t.Caption), "Sides": sides,
		"Head": rows[0], "Rows": rows[1:]})
	if err != nil { // the forms are ours
		panic(err)
	}
	return b.String()
}

// CSV returns the table as comma-separated values (RFC 4180, lines end in a line
// feed) with one line of headings. Numbers have every digit, blank cells are empty,
// and neither title nor caption is in it.
func (t *Table) CSV() string {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	for i := -1; i < len(t.Rows); i++ {
		var rec []string
		for j := range t.Columns {
			rec = append(rec, t.record(i, j)...)
		}
		if len(rec) == 1 && rec[0] == "" {
			w.Flush()
			b.WriteString("\"\"\n") // an empty line would be no record
			continue
		}
		w.Write(rec) // a bytes.Buffer does not fail
	}
	w.Flush()
	return b.String()
}

// record returns the CSV fields of a cell, or of the heading of a column if i = -1: one field, or three in a column with
// a spread that has ends.
func (t *Table) record(i, j int) []string {
	hasEnds := false
	for k := range t.Rows {
		c := t.cell(k, j)
		hasEnds = hasEnds || c.kind == sampled && !math.IsNaN(c.ends[0])
	}
	name := t.Columns[j].head()
	rec := []string{name, name + " least", name + " most"}
	if i >= 0 {
		c := t.cell(i, j)
		rec = []string{c.String(), "", ""}
		switch c.kind {
		case numeral:
			rec[1], rec[2] = rec[0], rec[0]
		case sampled:
			for k, v := range []float64{c.value, c.ends[0], c.ends[1]} {
				if rec[k] = ""; !math.IsNaN(v) {
					rec[k] = Number(v).String()
				}
			}
		}
	}
	if !hasEnds {
		rec = rec[:1]
	}
	return rec
}

// HTML returns the table as an HTML table element, the title and the caption in its
// caption element.
func (t *Table) HTML() string {
	escape := func(s string) string { return strings.ReplaceAll(text.Markup(s), "\n", "<br>") }
	return t.fill(tableHTML, escape, "left", "right")
}

// PreHTML returns lines of text as preformatted HTML: a line that is too wide scrolls and does not wrap. If subscripts
// make the name at the head of a line narrower, blanks are added after it.
func PreHTML(lines string) string {
	var b strings.Builder
	for line := range strings.Lines(lines) {
		line, end := strings.CutSuffix(line, "\n")
		if head, rest, ok := strings.Cut(line, "  "); ok {
			short := text.Flat(head)
			line = short + strings.Repeat(" ", max(0, text.Columns(head)-text.Columns(short))) + "  " + rest
		}
		if b.WriteString(text.Markup(line)); end {
			b.WriteByte('\n')
		}
	}
	return `<pre style="white-space:pre;overflow-x:auto">` + b.String() + "</pre>\n"
}

// FoldedHTML returns HTML that is shown at a click on its name.
func FoldedHTML(name, inner string) string {
	return `<details><summary style="display:list-item;cursor:pointer;text-decoration:underline">show ` +
		html.EscapeString(name) + "</summary>\n" + inner + "</details>\n"
}
