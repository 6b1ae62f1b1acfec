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

	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
	_ "github.com/krrlab/lab/plots/draw" // draws the figures
)

// Report contains the entries of an experiment at one scale, with the results of those that were run. The table, the
// figure and the verdicts are computed from the report alone, which is stored as JSON in <id>.<scale>.json.
type Report struct {
	ID      string  `json:"id"`      // identifier of the experiment, such as "table1"
	Scale   Scale   `json:"scale"`   // size of the cases
	Title   string  `json:"title"`   // title in one line
	Section string  `json:"section"` // section of the paper, such as "section 6.2, table 1"
	Entries []Entry `json:"entries"` // cases with their results
}

// FileName returns the name of the report's file: <id>.<scale>.json.
func (r *Report) FileName() string { return r.baseName() + ".json" }

// baseName returns the name of the report's files without the extension.
func (r *Report) baseName() string { return r.ID + "." + string(r.Scale) }

// Save writes the report as JSON, atomically. It creates the folder if it does not exist.
func (r *Report) Save(name string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return fmt.Errorf("experiments: %w", err)
	}
	return stage.WriteJSON(name, r)
}

// readReport reads a report that Save wrote. It returns an error if the report does not belong to the file name.
func readReport(name string) (*Report, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("experiments: %w", err)
	}
	var r Report
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields() // otherwise a case written by another version could be read as a different case
	if err = decoder.Decode(&r); err == nil && r.FileName() != filepath.Base(name) {
		err = fmt.Errorf("it holds %s", r.FileName())
	}
	if err != nil {
		return nil, fmt.Errorf("experiments: %s: %w; remove it to run its cases again", name, err)
	}
	return &r, nil
}

// LoadReports reads the reports in a folder, in the order of IDs and for each experiment from the smallest scale on. It
// returns no reports and no error if the folder has none or does not exist.
func LoadReports(dir string) ([]*Report, error) { return loadReports(dir, IDs()) }

// loadReports reads the reports of the given experiments in a folder, as LoadReports does.
func loadReports(dir string, ids []string) (reports []*Report, err error) {
	for _, id := range ids {
		for _, s := range scales {
			r, err := readReport(filepath.Join(dir, id+"."+string(s)+".json"))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			reports = append(reports, r)
		}
	}
	return reports, nil
}

// experiment returns the report's experiment. It panics if there is none with the report's ID.
func (r *Report) experiment() *Experiment {
	e, err := Find(r.ID)
	if err != nil {
		panic(err)
	}
	return e
}

// Table returns the experiment's table, which compares our numbers with the published ones.
func (r *Report) Table() *plots.Table { return r.experiment().Table(r) }

// Plot returns the experiment's figure; nil if it has none.
func (r *Report) Plot() *plots.Figure {
	if f := r.experiment().Plot; f != nil {
		return f(r)
	}
	return nil
}

// Verdicts returns the claims of the experiment with their outcomes.
func (r *Report) Verdicts() []Verdict { return r.experiment().Verdicts(r) }

// Rows returns the names of the rows without duplicates, in the order of the entries.
func (r *Report) Rows() []string {
	var rows []string
	for i := range r.Entries {
		rows = appendUnique(rows, r.Entries[i].Row)
	}
	return rows
}

// Find returns the entries of a row and a role, in the order of Entries: one for each seed.
func (r *Report) Find(row, role string) []*Entry {
	var out []*Entry
	for i := range r.Entries {
		if e := &r.Entries[i]; e.Row == row && e.Role == role {
			out = append(out, e)
		}
	}
	return out
}

// OK reports whether no case has failed. Cases that could not be run do not count as failed.
func (r *Report) OK() bool {
	return !slices.ContainsFunc(r.Entries, func(e Entry) bool { return e.Result != nil && e.Result.Status == Failed })
}

// noteTables returns the tables that follow the experiment's own table: the rows that were not run, if there are any,
// and the origin of the numbers.
func (r *Report) noteTables() []*plots.Table {
	if t := r.NotRun(); len(t.Rows) > 0 {
		return []*plots.Table{t, r.Provenance()}
	}
	return []*plots.Table{r.Provenance()}
}

// String returns the report for a terminal: the table, the verdicts and the notes.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.Table().Text())
	for _, v := range r.Verdicts() {
		fmt.Fprintf(&b, "%s\n", v)
	}
	for _, t := range r.noteTables() {
		fmt.Fprintf(&b, "\n%s", t.Text())
	}
	return b.String()
}

// WriteFiles writes the report into a folder and returns the names of the files: <id>.<scale>.md with the complete
// report, .csv with the table and, if the experiment has a figure, .svg with it. The same report gives the same bytes.
func (r *Report) WriteFiles(dir string) (names []string, err error) {
	content := map[string]string{".md": r.Markdown(), ".csv": r.Table().CSV()}
	if f := r.Plot(); f != nil {
		content[".svg"] = f.SVG()
	}
	for _, ext := range slices.Sorted(maps.Keys(content)) {
		name := filepath.Join(dir, r.baseName()+ext)
		if err := atomicfile.WriteFile(name, []byte(content[ext])); err != nil {
			return names, err
		}
		names = append(names, name)
	}
	return names, nil
}

// Markdown returns the report as Markdown: the table (for a figure, a link to the file with its points), a link to the
// figure that WriteFiles writes, the verdicts, the names of the rows that were not run, and the machine.
func (r *Report) Markdown() string {
	var verdicts []Verdict
	for _, v := range r.Verdicts() {
		verdicts = append(verdicts, v.short())
	}
	var b strings.Builder
	err := markdownTemplate.Execute(&b, map[string]any{"Report": r, "Section": firstUpper(r.Section),
		"Base": r.baseName(), "Figure": strings.HasPrefix(r.ID, "figure"), "Verdicts": verdicts,
		"Machines": machineNames(r)})
	if err != nil { // the template is part of this program
		panic(err)
	}
	return b.String()
}

// markdownTemplate is the template of Report.Markdown.
var markdownTemplate = template.Must(template.New("").Parse(`# {{.Report.ID}}: {{.Report.Title}}

{{.Section}} of the paper, {{.Report.Scale}} scale.

{{if .Figure}}Every point: [{{.Base}}.csv]({{.Base}}.csv).
{{else}}{{.Report.Table.Markdown}}{{end}}
{{with .Report.Plot}}![{{.Title}}]({{$.Base}}.svg)

{{.Caption}}

{{end}}{{range .Verdicts}}- {{.}}
{{end}}
{{with .Report.NotRun.Rows}}Not run, for reasons in the JSON: {{range $i, $row := .}}{{if $i}}; {{end}}{{index $row 0}}{{end}}. {{end -}}
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
	for _, t := range r.noteTables() {
		text += plots.FoldedHTML(strings.ToLower(t.Title), t.HTML())
	}
	return plots.KeepLastScript(text) // the table and the figure share one script
}

// short returns the verdict with its basis in place of its detailed numbers if the claim holds, because the numbers are
// in the table or the figure.
func (v Verdict) short() Verdict {
	if v.Outcome == Holds {
		v.Detail = v.Basis
	}
	return v
}

// String returns the outcome, the claim and the details in one line.
func (v Verdict) String() string {
	text := v.Outcome + ": " + v.Claim
	if v.Detail != "" {
		text += " (" + v.Detail + ")"
	}
	return text
}

// firstUpper returns s with its first letter, which must be an ASCII letter, in upper case.
func firstUpper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// Measure runs user-defined cases and returns their results in the same order. Equal cases are run once. Result.Status
// reports how a case ended. Nothing is written: o.Out is ignored. If ctx ends, Measure returns the error of ctx, and
// the results of cases that were not run are nil.
func Measure(ctx context.Context, cases []Case, o *Options) ([]*Result, error) {
	opt := *cmp.Or(o, &Options{})
	opt.Out = ""
	r := &Report{ID: "own", Title: "User-defined cases"}
	for _, c := range cases {
		r.Entries = append(r.Entries, Entry{Row: c.Data, Role: c.method(), Case: c})
	}
	_, err := Run(ctx, []*Report{r}, &opt)
	out := make([]*Result, len(cases))
	for i := range out {
		out[i] = r.Entries[i].Result
	}
	return out, err
}

// resultsDir is the folder of the project's reports, relative to its root.
var resultsDir = filepath.Join("experiments", "results")

// FindReport returns a report of the project's own results: the file <id>.<scale>.json in the folder
// experiments/results. The folder is searched for in the working directory and in all folders above it.
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
		parent := filepath.Dir(dir)
		if parent == dir {
			return nil, fmt.Errorf("experiments: no %s is kept yet in %s, here or above: krrlab reproduce %s --scale "+
				"%s measures it", name, resultsDir, id, s)
		}
		dir = parent
	}
}
