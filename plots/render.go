package plots

import (
	"bytes"
	"encoding/csv"
	"html"
	"image/color"
	"math"
	"slices"
	"strings"
	"text/template"
	"unicode"
	"unicode/utf8"

	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

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
	for _, row := range rows {
		for j, cell := range row {
			rule[j] = strings.Repeat("─", max(columns(rule[j]), columns(cell)))
		}
	}
	for _, row := range slices.Insert(rows, 1, rule) {
		line := ""
		for j, cell := range row {
			gap := strings.Repeat(" ", columns(rule[j])-columns(cell))
			if t.right(j) {
				line += gap + cell + "  "
			} else {
				line += cell + gap + "  "
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	if t.Caption != "" {
		b.WriteString(oneLine(t.Caption) + "\n")
	}
	return b.String()
}

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
	"<", "&lt;", ">", "&gt;", "&", "&amp;", "[", "\\[", "]", "\\]", "~", "\\~", "$", "\\$", "\r\n", "<br>", "\n",
	"<br>", "\r", " ")

// Markdown returns the table in the form GitHub and Jupyter know, with the title in
// bold above and the caption below.
func (t *Table) Markdown() string {
	return t.fill(markdown, markdownEscape.Replace, ":---", "---:")
}

// The forms of a table: of its title, caption, heading and rows as they are escaped, and the sides of its columns.
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

// fill returns the table in one of its forms, its texts escaped, with the form's words for the two sides.
func (t *Table) fill(form *template.Template, escape func(string) string, left, right string) string {
	sides := make([]string, len(t.Columns))
	for j := range sides {
		if sides[j] = left; t.right(j) {
			sides[j] = right
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

// record returns what CSV has of a cell, or of the heading of a column for i = -1: one field, or three in a column that
// has a spread with ends.
func (t *Table) record(i, j int) []string {
	ended := false
	for k := range t.Rows {
		c := t.cell(k, j)
		ended = ended || c.kind == sampled && !math.IsNaN(c.ends[0])
	}
	head := t.Columns[j].head()
	rec := []string{head, head + " least", head + " most"}
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
	if !ended {
		rec = rec[:1]
	}
	return rec
}

// HTML returns the table as an HTML table element, the title and the caption in its
// caption element.
func (t *Table) HTML() string {
	escape := func(s string) string { return strings.ReplaceAll(markup(s), "\n", "<br>") }
	return t.fill(tableHTML, escape, "left", "right")
}

// PreHTML returns lines of text as HTML that keeps them: a line that is too wide is scrolled to, not broken. What a
// name at the head of a line loses by its subscripts the blanks after it make good.
func PreHTML(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, end := strings.CutSuffix(line, "\n")
		if head, rest, ok := strings.Cut(line, "  "); ok {
			short := flat(head)
			line = short + strings.Repeat(" ", max(0, columns(head)-columns(short))) + "  " + rest
		}
		if b.WriteString(markup(line)); end {
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

// fonts holds Liberation Sans among others, whose metrics are those of Helvetica and Arial.
var fonts = font.DefaultCache

// fontOf returns the one typeface of the package at a size in points.
func fontOf(size vg.Length, bold bool) font.Font {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
	if bold {
		f.Weight = stdfont.WeightBold
	}
	return f
}

// run is a piece of text at one height: level +1 is raised, −1 lowered.
type run struct {
	text  string
	level int
}

const (
	raised   = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺⁽⁾ⁿᵀ"
	raisedP  = "0123456789−+()nT"
	lowered  = "₀₁₂₃₄₅₆₇₈₉₋₊₍₎ₐₑᵢⱼₖₘₙₚₛₜₓ"
	loweredP = "0123456789−+()aeijkmnpstx"
)

// translate maps the super- and subscript characters to plain ones.
var translate = func() map[rune]run {
	m := map[rune]run{'ℝ': {"R", 0}, '‑': {"-", 0}}
	for _, t := range []struct {
		from, to string
		level    int
	}{{raised, raisedP, 1}, {lowered, loweredP, -1}} {
		to := []rune(t.to)
		for i, r := range []rune(t.from) {
			m[r] = run{string(to[i]), t.level}
		}
	}
	return m
}()

// runs splits a line of text by height. See the package documentation for the rules.
func runs(s string) (out []run) {
	add := func(text string, level int) string {
		if n := len(out); n > 0 && out[n-1].level == level {
			out[n-1].text += text
		} else if text != "" {
			out = append(out, run{text, level})
		}
		return ""
	}
	scripted(oneLine(s), func(text string) string {
		for _, r := range text {
			if t, ok := translate[r]; ok {
				add(t.text, t.level)
			} else {
				add(string(r), 0)
			}
		}
		return ""
	}, add)
	return out
}

// script reads the sub- or superscript that starts at rs[i], and returns its text and
// the index behind it.
func script(rs []rune, i int) (group string, next int, ok bool) {
	if rs[i] != '_' && rs[i] != '^' || i == 0 || i+1 >= len(rs) {
		return "", 0, false
	}
	if rs[i+1] == '{' {
		if n := strings.IndexRune(string(rs[i+2:]), '}'); n >= 0 {
			g := []rune(string(rs[i+2:])[:n])
			return strings.NewReplacer("-", "−", "_", "").Replace(string(g)), i + 3 + len(g), true
		}
		return "", 0, false
	}
	word := func(j int) bool {
		return j >= 0 && j < len(rs) && translate[rs[j]].level == 0 &&
			(unicode.IsLetter(rs[j]) || unicode.IsDigit(rs[j]) || rs[j] == '_')
	}
	base, end := rs[i-1], i+2
	if !word(i+1) || rs[i+1] == '_' {
		return "", 0, false
	}
	// a symbol: a short word, as of λ_max and λ_pI
	if base == '‖' || base > unicode.MaxASCII && unicode.IsLetter(base) {
		for end < len(rs) && unicode.IsLower(rs[i+1]) && unicode.IsLower(rs[end]) {
			end++
		}
		return string(rs[i+1 : end]), end, end <= i+5 && (!word(end) || unicode.IsUpper(rs[end]))
	}
	alone := !word(i-2) || i >= 4 && rs[i-3] == '_' && unicode.IsUpper(rs[i-4]) // the second Z of Z_kZ_kᵀ
	after := !word(end) || unicode.IsUpper(base) && unicode.IsUpper(rs[end])
	return string(rs[i+1]), end, unicode.IsLetter(base) && alone && after
}

// scripted returns a line with its sub- and superscripts as write has them, of a text and a level, and the rest as
// plain has it.
func scripted(s string, plain func(string) string, write func(text string, level int) string) string {
	var b strings.Builder
	rs, from := []rune(s), 0
	for i := 0; i < len(rs); i++ {
		group, next, ok := script(rs, i)
		if !ok {
			continue
		}
		b.WriteString(plain(string(rs[from:i])) + write(group, map[bool]int{true: 1, false: -1}[rs[i] == '^']))
		from, i = next, next-1
	}
	return b.String() + plain(string(rs[from:]))
}

// flat returns a text in one line with sub- and superscripts in the characters that Unicode has of them: λₚ, λₘₐₓ;
// those that it has not remain as they are written.
func flat(s string) string {
	same := func(s string) string { return s }
	return scripted(oneLine(s), same, func(text string, level int) string {
		from, to, mark := []rune(loweredP), []rune(lowered), "_"
		if level > 0 {
			from, to, mark = []rune(raisedP), []rune(raised), "^"
		}
		var out []rune
		for _, r := range text {
			k := slices.Index(from, r)
			if k < 0 {
				if utf8.RuneCountInString(text) > 1 {
					text = "{" + text + "}"
				}
				return mark + text
			}
			out = append(out, to[k])
		}
		return string(out)
	})
}

// markup returns a text as HTML with its sub- and superscripts.
func markup(s string) string {
	return scripted(s, html.EscapeString, func(text string, level int) string {
		tag := map[int]string{1: "sup", -1: "sub"}[level]
		return "<" + tag + ">" + html.EscapeString(text) + "</" + tag + ">"
	})
}

// Heights of a raised and a lowered run, and their size, in units of the text's size.
const (
	scriptSize  = 0.72
	scriptRaise = 0.36
	scriptDrop  = 0.16
)

// set returns the face of a run in a text of font f, and its height above the baseline.
func (r run) set(f font.Font) (face font.Face, up vg.Length) {
	switch {
	case r.level > 0:
		return fonts.Lookup(f, f.Size*scriptSize), f.Size * scriptRaise
	case r.level < 0:
		return fonts.Lookup(f, f.Size*scriptSize), -f.Size * scriptDrop
	}
	return fonts.Lookup(f, f.Size), 0
}

// textWidth returns the width of one line of text.
func textWidth(s string, size vg.Length, bold bool) (w vg.Length) {
	for _, r := range runs(s) {
		face, _ := r.set(fontOf(size, bold))
		w += face.Width(r.text)
	}
	return w
}

// pen draws text, markers and frames on a canvas.
type pen struct{ vg.Canvas }

// text writes one line with its baseline at pt, aligned there by the fraction align of
// its width (0 left, ½ center, 1 right), turned by a quarter to the left if up.
func (p pen) text(s string, pt vg.Point, size vg.Length, clr color.Color, align float64, bold, up bool) {
	if s == "" {
		return
	}
	p.Push()
	defer p.Pop()
	p.SetColor(clr)
	if up {
		p.Translate(pt)
		p.Rotate(math.Pi / 2)
		pt = vg.Point{}
	}
	pt.X -= vg.Length(align) * textWidth(s, size, bold)
	for _, r := range runs(s) {
		face, up := r.set(fontOf(size, bold))
		p.FillString(face, pt.Add(vg.Point{Y: up}), r.text)
		pt.X += face.Width(r.text)
	}
}
