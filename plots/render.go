package plots

import (
	"bytes"
	"encoding/csv"
	"html"
	"strings"
	"unicode"
)

// String returns Text.
func (t *Table) String() string { return t.Text() }

// Text returns the table with aligned columns, for a terminal or a log. A line break
// or a tab in a cell becomes a space.
func (t *Table) Text() string {
	var b strings.Builder
	if t.Title != "" {
		b.WriteString(oneLine(t.Title) + "\n")
	}
	width := make([]int, len(t.Columns))
	for j := range t.Columns {
		width[j] = columns(oneLine(t.Columns[j].head()))
		for i := range t.Rows {
			width[j] = max(width[j], columns(oneLine(t.show(i, j))))
		}
	}
	line := func(cell func(j int) string) {
		var l strings.Builder
		for j := range t.Columns {
			if j > 0 {
				l.WriteString("  ")
			}
			l.WriteString(pad(oneLine(cell(j)), width[j], t.align(j)))
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	line(func(j int) string { return t.Columns[j].head() })
	line(func(j int) string { return strings.Repeat("─", width[j]) })
	for i := range t.Rows {
		line(func(j int) string { return t.show(i, j) })
	}
	if t.Caption != "" {
		b.WriteString(oneLine(t.Caption) + "\n")
	}
	return b.String()
}

// oneLine puts a text on one line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || isMark(r) {
			return ' '
		}
		return r
	}, s)
}

// columns returns how many columns of a terminal s takes.
func columns(s string) (n int) {
	for _, r := range s {
		if !unicode.Is(unicode.Mn, r) {
			n++
		}
	}
	return n
}

// pad fills s to n columns.
func pad(s string, n int, a Align) string {
	gap := max(n-columns(s), 0)
	left := 0
	switch a {
	case Right:
		left = gap
	case Center:
		left = gap / 2
	}
	return strings.Repeat(" ", left) + s + strings.Repeat(" ", gap-left)
}

var markdownEscape = strings.NewReplacer("\\", "\\\\", "|", "\\|", "*", "\\*", "_", "\\_", "`", "\\`",
	"<", "&lt;", ">", "&gt;", "&", "&amp;", "[", "\\[", "]", "\\]", "~", "\\~", "$", "\\$", "\r\n", "<br>", "\n", "<br>", "\r", " ")

// Markdown returns the table in the form GitHub and Jupyter know, with the title in
// bold above and the caption below.
func (t *Table) Markdown() string {
	var b strings.Builder
	if t.Title != "" {
		b.WriteString("**" + markdownEscape.Replace(t.Title) + "**\n\n")
	}
	for j := range t.Columns {
		b.WriteString("| " + markdownEscape.Replace(t.Columns[j].head()) + " ")
	}
	b.WriteString("|\n")
	for j := range t.Columns {
		switch t.align(j) {
		case Right:
			b.WriteString("|---:")
		case Center:
			b.WriteString("|:---:")
		default:
			b.WriteString("|:---")
		}
	}
	b.WriteString("|\n")
	for i := range t.Rows {
		for j := range t.Columns {
			b.WriteString("| " + markdownEscape.Replace(t.show(i, j)) + " ")
		}
		b.WriteString("|\n")
	}
	if t.Caption != "" {
		b.WriteString("\n" + markdownEscape.Replace(t.Caption) + "\n")
	}
	return b.String()
}

// CSV returns the table as comma-separated values (RFC 4180, lines end in a line
// feed) with one line of headings. Numbers have every digit, blank cells are empty,
// and neither title nor caption is in it.
func (t *Table) CSV() string {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	rec := make([]string, len(t.Columns))
	for j := range t.Columns {
		rec[j] = t.Columns[j].head()
	}
	w.Write(rec) // a bytes.Buffer does not fail
	for i := range t.Rows {
		for j := range rec {
			rec[j] = t.cell(i, j).String()
		}
		if len(rec) == 1 && rec[0] == "" {
			w.Flush()
			b.WriteString("\"\"\n") // an empty line would be no record
			continue
		}
		w.Write(rec)
	}
	w.Flush()
	return b.String()
}

// HTML returns the table as an HTML table element, the title and the caption in its
// caption element.
func (t *Table) HTML() string {
	var b strings.Builder
	esc := func(s string) string {
		return strings.ReplaceAll(html.EscapeString(s), "\n", "<br>")
	}
	b.WriteString("<table>\n")
	if t.Title != "" || t.Caption != "" {
		b.WriteString("<caption>")
		if t.Title != "" {
			b.WriteString("<b>" + esc(t.Title) + "</b>")
		}
		if t.Title != "" && t.Caption != "" {
			b.WriteString("<br>")
		}
		b.WriteString(esc(t.Caption) + "</caption>\n")
	}
	row := func(tag string, cell func(j int) string) {
		b.WriteString("<tr>")
		for j := range t.Columns {
			side := t.align(j).String()
			b.WriteString("<" + tag + ` style="text-align:` + side + `">` + esc(cell(j)) + "</" + tag + ">")
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("<thead>\n")
	row("th", func(j int) string { return t.Columns[j].head() })
	b.WriteString("</thead>\n<tbody>\n")
	for i := range t.Rows {
		row("td", func(j int) string { return t.show(i, j) })
	}
	b.WriteString("</tbody>\n</table>\n")
	return b.String()
}

// PreHTML returns lines of text as HTML that keeps them: a line that is too wide is scrolled to, not broken.
func PreHTML(text string) string {
	return `<pre style="white-space:pre;overflow-x:auto">` + html.EscapeString(text) + "</pre>\n"
}

// FoldedHTML returns HTML that is shown at a click on its name.
func FoldedHTML(name, inner string) string {
	return `<details><summary style="display:list-item;cursor:pointer;text-decoration:underline">show ` + html.EscapeString(name) + "</summary>\n" + inner + "</details>\n"
}
