package experiments

import (
	"fmt"
	"strings"

	"github.com/krrlab/lab/plots"
)

// Experiment is a table or a figure of the paper, or one of the project's own, as data and
// functions of data. Plan says what to run; the others make of the results, which a Report
// holds, what is shown. They compute nothing, so that the same report gives the same
// bytes, with no data at hand.
type Experiment struct {
	ID      string // "table1"
	Title   string // one line
	Section string // where it is in the paper
	// Plan returns the entries at a scale, in the order of the report.
	Plan func(s Scale) []Entry
	// Tables returns the tables, Figures the figures, Verdicts what is claimed and whether
	// the results bear it out, Prose a paragraph or more on what was seen, its numbers taken
	// from the report. Figures, Verdicts and Prose may be nil.
	Tables   func(r *Report) []*plots.Table
	Figures  func(r *Report) []Figure
	Verdicts func(r *Report) []Verdict
	Prose    func(r *Report) string
}

// Entry is a case and its place in an experiment.
type Entry struct {
	Row  string `json:"row"`  // the table's row, or the figure's series: "MNIST"
	Role string `json:"role"` // what it is there: "proposed", "cg"
	Case Case   `json:"case"` //
	// Paper is the row of the published tables that it is beside; empty if there is none.
	Paper string `json:"paper,omitempty"`
	// Skip says why the case is not run at this scale; empty if it is.
	Skip string `json:"skip,omitempty"`
	// Expect is the number of iterations that the time is predicted with; 0: a guess.
	Expect int `json:"-"`
	// Result is what was measured; nil if the case was not run.
	Result *Result `json:"result,omitempty"`
}

// Figure is a figure with the name of its file.
type Figure struct {
	Name   string // without folder and extension: "figure1-gaussian"
	Figure *plots.Figure
}

// Verdict is a claim and what the results say of it.
type Verdict struct {
	Claim   string
	Outcome string // Holds, Fails or Open
	Detail  string // the numbers it was judged by
	On      string // what it was judged on, where that is not only the paper's data, whole
}

// Outcomes of a Verdict. Open: the results do not decide it, as at smoke scale, or where a case was
// not run. Claims on numbers are judged where data and n are the paper's; others on parts of the
// data too, which On names.
const (
	Holds = "holds"
	Fails = "fails"
	Open  = "open"
)

// registry lists the experiments in the order of reports.
var registry = []Experiment{table1, table2, table3, table4, table5, figure1, figure2, forms}

// IDs returns their identifiers.
func IDs() []string {
	var ids []string
	for _, e := range registry {
		ids = append(ids, e.ID)
	}
	return ids
}

// Find returns the experiment of that identifier.
func Find(id string) (*Experiment, error) {
	for i := range registry {
		if registry[i].ID == id {
			e := registry[i]
			return &e, nil
		}
	}
	return nil, fmt.Errorf("unknown experiment %q; there are %s, and all", id, strings.Join(IDs(), ", "))
}
