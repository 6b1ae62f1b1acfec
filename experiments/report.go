package experiments

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
	_ "github.com/krrlab/lab/plots/draw" // pictures
)

// Report is an experiment that is to be run, or was, whole or in part: its entries, with results where there are any.
// Its JSON, in <id>.<scale>.json, is all that table, figure and verdicts are made of.
type Report struct {
	ID      string  `json:"id"`
	Scale   Scale   `json:"scale"`
	Title   string  `json:"title"`
	Section string  `json:"section"`
	Entries []Entry `json:"entries"`
}

// FileName returns the name of the report's file: <id>.<scale>.json.
func (r *Report) FileName() string { return r.base() + ".json" }

func (r *Report) base() string { return r.ID + "." + string(r.Scale) }

// Save writes the report as JSON, whole or not at all, into a folder that it makes if it is not there.
func (r *Report) Save(name string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("experiments: %w", err)
	}
	return stage.WriteJSON(name, r)
}

// readReport reads the report that Save wrote, by the name of its file.
func readReport(name string) (*Report, error) {
	js, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("experiments: %w", err)
	}
	var r Report
	d := json.NewDecoder(bytes.NewReader(js))
	d.DisallowUnknownFields() // else a case of another version would be read as another case
	if err = d.Decode(&r); err == nil && r.FileName() != filepath.Base(name) {
		err = fmt.Errorf("it holds %s", r.FileName())
	}
	if err != nil {
		return nil, fmt.Errorf("experiments: %s: %w; remove it to run its cases again", name, err)
	}
	return &r, nil
}

// LoadReports reads the reports in a folder, in the order of registry, and of scales. A folder
// without any, or that does not exist, gives none.
func LoadReports(dir string) ([]*Report, error) { return loadReports(dir, IDs()) }

func loadReports(dir string, ids []string) (out []*Report, err error) {
	for _, id := range ids {
		for _, s := range scales {
			r, err := readReport(filepath.Join(dir, id+"."+string(s)+".json"))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			out = append(out, r)
		}
	}
	return out, nil
}

// experiment returns the report's experiment. It panics if there is none of that name.
func (r *Report) experiment() *Experiment {
	e, err := Find(r.ID)
	if err != nil {
		panic(err)
	}
	return e
}

// Table returns the experiment's table: ours beside the published.
func (r *Report) Table() *plots.Table { return r.experiment().Table(r) }

// Plot returns the experiment's figure; nil if it has none.
func (r *Report) Plot() *plots.Figure {
	if f := r.experiment().Plot; f != nil {
		return f(r)
	}
	return nil
}

// Verdicts returns what is claimed and what the results say of it.
func (r *Report) Verdicts() []Verdict { return r.experiment().Verdicts(r) }

// Rows returns the names of the rows, each once, in the order of the entries.
func (r *Report) Rows() []string {
	var rows []string
	for i := range r.Entries {
		rows = once(rows, r.Entries[i].Row)
	}
	return rows
}

// Find returns the entries of a row and a role, in the order of the plan: one for each seed.
func (r *Report) Find(row, role string) []*Entry {
	var out []*Entry
	for i := range r.Entries {
		if e := &r.Entries[i]; e.Row == row && e.Role == role {
			out = append(out, e)
		}
	}
	return out
}

// OK reports whether every case that could run did.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Entries, func(e Entry) bool { return e.Result != nil && e.Result.Status == Failed })
}

// notes are the tables below the experiment's own: what was not run, if anything, and where the numbers come from.
func (r *Report) notes() []*plots.Table {
	if t := r.NotRun(); len(t.Rows) > 0 {
		return []*plots.Table{t, r.Provenance()}
	}
	return []*plots.Table{r.Provenance()}
}

// String returns the report for a terminal: table, verdicts, notes.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.Table().Text())
	for _, v := range r.Verdicts() {
		fmt.Fprintf(&b, "%s\n", v)
	}
	for _, t := range r.notes() {
		fmt.Fprintf(&b, "\n%s", t.Text())
	}
	return b.String()
}

// WriteFiles writes the report's table and figure into a folder, and returns the names of the files: <id>.<scale>.md
// with everything, the table as .csv, the figure as .svg. The same report gives the same bytes.
func (r *Report) WriteFiles(dir string) (names []string, err error) {
	content := map[string]string{".md": r.Markdown(), ".csv": r.Table().CSV()}
	if f := r.Plot(); f != nil {
		content[".svg"] = f.SVG()
	}
	for _, ext := range slices.Sorted(maps.Keys(content)) {
		name := filepath.Join(dir, r.base()+ext)
		if err := stage.WriteFile(name, []byte(content[ext])); err != nil {
			return names, err
		}
		names = append(names, name)
	}
	return names, nil
}

// Markdown returns the report: the table (of a figure the name of the file with its points), the figure by
// the name that WriteFiles gives it, verdicts, what was not run, and the machine.
func (r *Report) Markdown() string {
	var verdicts []Verdict
	for _, v := range r.Verdicts() {
		verdicts = append(verdicts, v.short(v.On))
	}
	var b strings.Builder
	err := markdown.Execute(&b, map[string]any{"Report": r, "Section": firstUpper(r.Section), "Base": r.base(),
		"Figure": strings.HasPrefix(r.ID, "figure"), "Verdicts": verdicts, "Machines": machines(r)})
	if err != nil { // the form is ours
		panic(err)
	}
	return b.String()
}

var markdown = template.Must(template.New("").Parse(`# {{.Report.ID}}: {{.Report.Title}}

{{.Section}} of the paper, {{.Report.Scale}} scale.

{{if .Figure}}Every point: [{{.Base}}.csv]({{.Base}}.csv).
{{else}}{{.Report.Table.Markdown}}{{end}}
{{with .Report.Plot}}![{{.Title}}]({{$.Base}}.svg)

{{.Caption}}

{{end}}{{range .Verdicts}}- {{.}}
{{end}}{{if .Report.NotRun.Rows}}
{{.Report.NotRun.Markdown}}{{end}}
Measured on {{.Machines}}. Dates, versions, files and their checksums: [{{.Base}}.json]({{.Base}}.json).
`))

// HTML returns the report for a notebook.
func (r *Report) HTML() string {
	text := r.Table().HTML()
	if f := r.Plot(); f != nil {
		text += f.HTML()
	}
	for _, v := range r.Verdicts() {
		text += fmt.Sprintf("<p>%s</p>\n", html.EscapeString(v.String()))
	}
	for _, t := range r.notes() {
		text += plots.FoldedHTML(strings.ToLower(t.Title), t.HTML())
	}
	return plots.OneScript(text)
}

// short returns the verdict with a text for the numbers, which stand in tables and figures, of a claim that
// holds.
func (v Verdict) short(text string) Verdict {
	if v.Outcome == Holds {
		v.Detail = text
	}
	return v
}

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

// Measure runs user-defined cases and returns their results, in their order; equal cases are run
// once. A result says itself how it ended. Nothing is written: o.Out is not used. If the context ends,
// the results of what was not reached are nil, and the error is the context's.
func Measure(ctx context.Context, cases []Case, o *Options) ([]*Result, error) {
	opt := *cmp.Or(o, &Options{})
	opt.Out = ""
	p := &Report{ID: "own", Title: "User-defined cases"}
	for _, c := range cases {
		p.Entries = append(p.Entries, Entry{Row: c.Data, Role: c.method(), Case: c})
	}
	_, err := Run(ctx, []*Report{p}, &opt)
	out := make([]*Result, len(cases))
	for i := range out {
		out[i] = p.Entries[i].Result
	}
	return out, err
}

// resultsDir is where the project keeps reports, below its root.
var resultsDir = filepath.Join("experiments", "results")

// FindReport returns the report of an experiment that the project keeps: the file of that name in
// the folder experiments/results, looked for in the working directory and above it.
func FindReport(id string, s Scale) (*Report, error) {
	if _, err := Find(id); err != nil {
		return nil, fmt.Errorf("experiments: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("experiments: %w", err)
	}
	name := (&Report{ID: id, Scale: s}).FileName()
	for {
		r, err := readReport(filepath.Join(dir, resultsDir, name))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return r, err
		}
		up := filepath.Dir(dir)
		if up == dir {
			return nil, fmt.Errorf("experiments: no %s is kept yet in %s, here or above: krrlab reproduce %s --scale "+
				"%s measures it", name, resultsDir, id, s)
		}
		dir = up
	}
}
