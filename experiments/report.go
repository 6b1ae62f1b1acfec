package experiments

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/krrlab/lab/plots"
)

// Report is an experiment that was run, whole or in part: its entries with their results.
// Its JSON, in <id>.<scale>.json, is all that tables, figures and verdicts are made of.
type Report struct {
	ID      string  `json:"id"`
	Scale   Scale   `json:"scale"`
	Title   string  `json:"title"`
	Section string  `json:"section"`
	Entries []Entry `json:"entries"`
}

// newReport makes the report of a plan whose entries have their results.
func newReport(p *Plan) *Report {
	e := p.Experiment
	return &Report{ID: e.ID, Scale: p.Scale, Title: e.Title, Section: e.Section, Entries: p.Entries}
}

// FileName returns the name of the report's file: <id>.<scale>.json.
func (r *Report) FileName() string { return r.base() + ".json" }

func (r *Report) base() string { return r.ID + "." + string(r.Scale) }

// Save writes the report as JSON, whole or not at all.
func (r *Report) Save(name string) error { return writeJSON(name, r) }

// LoadReport reads the report that Save wrote.
func LoadReport(name string) (*Report, error) {
	js, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("experiments: %w", err)
	}
	var r Report
	if err := json.Unmarshal(js, &r); err != nil {
		return nil, fmt.Errorf("experiments: %s: %w", name, err)
	}
	if _, err := Find(r.ID); err != nil {
		return nil, fmt.Errorf("experiments: %s: %w", name, err)
	}
	if _, err := ParseScale(string(r.Scale)); err != nil {
		return nil, fmt.Errorf("experiments: %s: %w", name, err)
	}
	return &r, nil
}

// LoadReports reads the reports in a folder, in the order of registry, and of Scales. A folder
// without any, or that does not exist, gives none.
func LoadReports(dir string) ([]*Report, error) {
	var out []*Report
	for _, id := range IDs() {
		for _, s := range Scales() {
			r, err := LoadReport(filepath.Join(dir, id+"."+string(s)+".json"))
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

// experiment returns the report's experiment. It panics if there is none of that name, which
// LoadReport and Run see to.
func (r *Report) experiment() *Experiment {
	e, err := Find(r.ID)
	if err != nil {
		panic(err)
	}
	return e
}

// Tables returns the experiment's tables: ours beside the published.
func (r *Report) Tables() []*plots.Table { return r.experiment().Tables(r) }

// Figures returns the experiment's figures.
func (r *Report) Figures() []Figure {
	if f := r.experiment().Figures; f != nil {
		return f(r)
	}
	return nil
}

// Verdicts returns what is claimed and what the results say of it.
func (r *Report) Verdicts() []Verdict {
	f := r.experiment().Verdicts
	if f == nil {
		return nil
	}
	list := f(r)
	for i := range list {
		v := &list[i]
		v.Detail, v.On = grouped(v.Detail), grouped(v.On)
	}
	return list
}

// Prose returns the text that goes with the tables and figures.
func (r *Report) Prose() string {
	if f := r.experiment().Prose; f != nil {
		return grouped(f(r))
	}
	return ""
}

// Rows returns the names of the rows, each once, in the order of the entries.
func (r *Report) Rows() []string {
	var rows []string
	seen := map[string]bool{}
	for i := range r.Entries {
		if name := r.Entries[i].Row; !seen[name] {
			seen[name] = true
			rows = append(rows, name)
		}
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
	for _, e := range r.Entries {
		if e.Result != nil && e.Result.Status == Failed {
			return false
		}
	}
	return true
}

// Text returns the report for a terminal: tables, what was not run, verdicts, provenance.
func (r *Report) Text() string {
	var b strings.Builder
	for _, t := range r.Tables() {
		fmt.Fprintf(&b, "%s\n", t.Text())
	}
	if t := r.NotRun(); len(t.Rows) > 0 {
		fmt.Fprintf(&b, "%s\n", t.Text())
	}
	for _, v := range r.Verdicts() {
		fmt.Fprintf(&b, "%s\n", v)
	}
	fmt.Fprintf(&b, "\n%s", r.Provenance().Text())
	return b.String()
}
