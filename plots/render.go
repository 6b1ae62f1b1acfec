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

// String implements fmt.Stringer. It returns the table for a terminal.
func (t *Table) String() string { return t.Text() }

// Text returns the table with aligned columns, for a terminal or a log. Line breaks and tabs in a cell become spaces.
func (t *Table) Text() string {
	var lines strings.Builder
	if t.Title != "" {
		lines.WriteString(text.OneLine(t.Title) + "\n")
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
			if t.isAlignedRight(j) {
				line += gap + cell + "  "
			} else {
				line += cell + gap + "  "
			}
		}
		lines.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	if t.Caption != "" {
		lines.WriteString(text.OneLine(t.Caption) + "\n")
	}
	return lines.String()
}

// markdownEscape escapes the characters that Markdown treats as special, and writes line breaks as <br>.
var markdownEscape = strings.NewReplacer("\\", "\\\\", "|", "\\|", "*", "\\*", "_", "\\_", "`", "\\`",
	"<", "&lt;", ">", "&gt;", "&", "&amp;", "[", "\\[", "]", "\\]", "~", "\\~", "$", "\\$", "\r\n", "<br>", "\n",
	"<br>", "\r", " ")

// Markdown returns the table in GitHub's extension of Markdown, which Jupyter shows too. The title is above the table,
// in bold, and the caption below.
func (t *Table) Markdown() string {
	return t.fill(markdown, markdownEscape.Replace, ":---", "---:")
}

// Templates of a table. Their data are the escaped title, caption, headings and rows, and a word for the alignment of
// each column.
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

// fill executes a template with the texts of the table, each of which it passes through escape. leftWord and rightWord
// are the template's words for the alignment of a column.
func (t *Table) fill(tmpl *template.Template, escape func(string) string, leftWord, rightWord string) string {
	sides := make([]string, len(t.Columns))
	for j := range sides {
		sides[j] = leftWord
		if t.isAlignedRight(j) {
			sides[j] = rightWord
		}
	}
	rows := t.cells(escape)
	var filled strings.Builder
	err := tmpl.Execute(&filled, map[string]any{"Title": escape(t.Title), "Caption": escape(t.Caption), "Sides": sides,
		"Head": rows[0], "Rows": rows[1:]})
	if err != nil { // the templates are part of this program
		panic(err)
	}
	return filled.String()
}

// CSV returns the table as comma-separated values (RFC 4180, but lines end in a line feed) with one line of headings.
// It contains neither title nor caption. Numbers have all digits, and blank cells are empty. A column in which a cell
// is a Spread with ends takes three columns.
func (t *Table) CSV() string {
	records := make([][]string, len(t.Rows)+1)
	for j := range t.Columns {
		name, width := t.Columns[j].heading(), 1 // width is the number of columns in CSV, 1 or 3
		fields := [][3]string{{name, name + " least", name + " most"}}
		for i := range t.Rows {
			cell := t.cell(i, j)
			fields = append(fields, cell.csv())
			if cell.kind == spreadCell && !math.IsNaN(cell.ends[0]) {
				width = 3
			}
		}
		for i := range fields {
			records[i] = append(records[i], fields[i][:width]...)
		}
	}
	var text bytes.Buffer
	w := csv.NewWriter(&text)
	for _, record := range records {
		if len(record) == 1 && record[0] == "" {
			w.Flush()
			text.WriteString("\"\"\n") // an empty line would not be a record
			continue
		}
		w.Write(record) // a bytes.Buffer does not fail
	}
	w.Flush()
	return text.String()
}

// csv returns the value, the lower and the upper end of the cell for CSV. A number is its own ends, and a text has
// none.
func (c Cell) csv() (fields [3]string) {
	switch c.kind {
	case numberCell:
		return [3]string{c.String(), c.String(), c.String()}
	case spreadCell:
		for k, v := range []float64{c.value, c.ends[0], c.ends[1]} {
			if !math.IsNaN(v) {
				fields[k] = Number(v).String()
			}
		}
		return fields
	}
	return [3]string{c.text}
}

// HTML returns the table as an HTML table element. Its caption element contains the title and the caption.
func (t *Table) HTML() string {
	escape := func(s string) string { return strings.ReplaceAll(text.Markup(s), "\n", "<br>") }
	return t.fill(tableHTML, escape, "left", "right")
}

// PreformattedHTML returns lines of text as preformatted HTML. A line that is too wide scrolls and does not wrap. The
// name at the beginning of a line ends before two blanks. If it is narrower with subscripts, blanks are added after it.
func PreformattedHTML(lines string) string {
	var escaped strings.Builder
	for line := range strings.Lines(lines) {
		line, endsInBreak := strings.CutSuffix(line, "\n")
		if name, value, ok := strings.Cut(line, "  "); ok {
			flat := text.Flat(name)
			line = flat + strings.Repeat(" ", max(0, text.Columns(name)-text.Columns(flat))) + "  " + value
		}
		if escaped.WriteString(text.Markup(line)); endsInBreak {
			escaped.WriteByte('\n')
		}
	}
	return `<pre style="white-space:pre;overflow-x:auto">` + escaped.String() + "</pre>\n"
}

// FoldedHTML returns HTML that is hidden until the reader clicks on its name.
func FoldedHTML(name, inner string) string {
	return `<details><summary style="display:list-item;cursor:pointer;text-decoration:underline">show ` +
		html.EscapeString(name) + "</summary>\n" + inner + "</details>\n"
}
