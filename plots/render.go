package plots

import (
	"bytes"
	"encoding/csv"
	"html"
	"slices"
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
	rows := t.cells(oneLine)
	rule := make([]string, len(t.Columns))
	for j := range rule {
		wide := 0
		for _, row := range rows {
			wide = max(wide, columns(row[j]))
		}
		rule[j] = strings.Repeat("─", wide)
	}
	for _, row := range slices.Insert(rows, 1, rule) {
		var l strings.Builder
		for j, cell := range row {
			gap := strings.Repeat(" ", columns(rule[j])-columns(cell))
			if t.align(j) == Right {
				cell = gap + cell
			} else {
				cell += gap
			}
			l.WriteString(cell + "  ")
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
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

var markdownEscape = strings.NewReplacer("\\", "\\\\", "|", "\\|", "*", "\\*", "_", "\\_", "`", "\\`",
	"<", "&lt;", ">", "&gt;", "&", "&amp;", "[", "\\[", "]", "\\]", "~", "\\~", "$", "\\$", "\r\n", "<br>", "\n", "<br>", "\r", " ")

// Markdown returns the table in the form GitHub and Jupyter know, with the title in
// bold above and the caption below.
func (t *Table) Markdown() string {
	var b strings.Builder
	if t.Title != "" {
		b.WriteString("**" + markdownEscape.Replace(t.Title) + "**\n\n")
	}
	rule := ""
	for j := range t.Columns {
		rule += map[Align]string{Left: "|:---", Right: "|---:"}[t.align(j)]
	}
	for i, row := range t.cells(markdownEscape.Replace) {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			b.WriteString(rule + "|\n")
		}
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
	rec := t.cells(func(s string) string { return s })
	for i := range rec {
		for j := range rec[i] {
			if i > 0 {
				rec[i][j] = t.cell(i-1, j).String()
			}
		}
		if len(rec[i]) == 1 && rec[i][0] == "" {
			w.Flush()
			b.WriteString("\"\"\n") // an empty line would be no record
			continue
		}
		w.Write(rec[i]) // a bytes.Buffer does not fail
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
	row := func(tag string, cells []string) {
		b.WriteString("<tr>")
		for j, cell := range cells {
			b.WriteString("<" + tag + ` style="text-align:` + t.align(j).String() + `">` + cell + "</" + tag + ">")
		}
		b.WriteString("</tr>\n")
	}
	rows := t.cells(esc)
	b.WriteString("<thead>\n")
	row("th", rows[0])
	b.WriteString("</thead>\n<tbody>\n")
	for _, cells := range rows[1:] {
		row("td", cells)
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
