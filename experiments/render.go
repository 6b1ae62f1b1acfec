package experiments

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"

	"github.com/krrlab/lab/plots"
)

// WriteFiles writes the report's tables and figures into a folder, which it makes if it is
// not there, and returns the names of the files: <id>.<scale>.md with everything, each
// table as .csv and .tex, each figure as .svg and .png. The same report gives the same
// bytes.
func (r *Report) WriteFiles(dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("experiments: %w", err)
	}
	var names []string
	write := func(name, content string) error {
		name = filepath.Join(dir, name)
		names = append(names, name)
		return writeFile(name, []byte(content))
	}
	if err := write(r.base()+".md", r.Markdown()); err != nil {
		return names, err
	}
	for i, t := range r.Tables() {
		base := r.base()
		if i > 0 {
			base += fmt.Sprintf("-%d", i+1)
		}
		if err := write(base+".csv", t.CSV()); err != nil {
			return names, err
		}
		if err := write(base+".tex", t.LaTeX()); err != nil {
			return names, err
		}
	}
	for _, f := range r.Figures() {
		for _, ext := range []string{".svg", ".png"} {
			name := filepath.Join(dir, r.figureFile(f, ext))
			if err := f.Figure.Save(name); err != nil {
				return names, err
			}
			names = append(names, name)
		}
	}
	return names, nil
}

func (r *Report) figureFile(f Figure, ext string) string { return f.Name + "." + string(r.Scale) + ext }

// Markdown returns the whole report: text, tables, figures by the names that WriteFiles
// gives them, what was not run, verdicts and provenance.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: %s\n\n%s of the paper, %s scale.\n\n", r.ID, r.Title, firstUpper(r.Section), r.Scale)
	if p := r.Prose(); p != "" {
		fmt.Fprintf(&b, "%s\n\n", p)
	}
	for _, t := range r.Tables() {
		fmt.Fprintf(&b, "%s\n", t.Markdown())
	}
	for _, f := range r.Figures() {
		fmt.Fprintf(&b, "![%s](%s)\n\n%s\n\n", f.Figure.Title, r.figureFile(f, ".svg"), f.Figure.Caption)
	}
	if v := r.Verdicts(); len(v) > 0 {
		b.WriteString("What is claimed, and what the numbers say:\n\n")
		for _, v := range v {
			fmt.Fprintf(&b, "- %s\n", v)
		}
		b.WriteString("\n")
	}
	if t := r.NotRun(); len(t.Rows) > 0 {
		fmt.Fprintf(&b, "%s\n", t.Markdown())
	}
	b.WriteString(r.Provenance().Markdown())
	return b.String()
}

// HTML returns the report for a notebook.
func (r *Report) HTML() string {
	var b bytes.Buffer
	for _, t := range r.Tables() {
		b.WriteString(t.HTML())
	}
	for _, f := range r.Figures() {
		b.WriteString(f.Figure.HTML())
	}
	if v := r.Verdicts(); len(v) > 0 {
		b.WriteString("<ul>\n")
		for _, v := range v {
			fmt.Fprintf(&b, "<li>%s</li>\n", html.EscapeString(v.String()))
		}
		b.WriteString("</ul>\n")
	}
	if t := r.NotRun(); len(t.Rows) > 0 {
		b.WriteString(plots.FoldedHTML("what was not run", t.HTML()))
	}
	b.WriteString(plots.FoldedHTML("where the numbers come from", r.Provenance().HTML()))
	return b.String()
}

// String returns Text.
func (r *Report) String() string { return r.Text() }

// String gives a verdict in one line.
func (v Verdict) String() string {
	s := v.Outcome + ": " + v.Claim
	if v.Detail != "" {
		s += " (" + v.Detail + ")"
	}
	return s
}

func firstUpper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
