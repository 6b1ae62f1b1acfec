package experiments

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/krrlab/lab/experiments/baseline"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
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
	// Table returns the table, Plot the figure, nil if there is nothing to draw, Verdicts what is claimed and whether
	// the results bear it out.
	Table    func(r *Report) *plots.Table
	Plot     func(r *Report) *plots.Figure
	Verdicts func(r *Report) []Verdict
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
var registry = []Experiment{
	{"table1", "Time, iterations and error of the method on each data set", "section 6.2, table 1",
		table1Plan, table1Table, nil, table1Verdicts},
	{"table2", "Another ridge λ_p in the preconditioner", "section 6.3, table 2",
		table2Plan, table2Table, nil, table2Verdicts},
	{"table3", "Against block ADMM on random features", "section 6.3, table 3",
		table3Plan, table3Table, nil, table3Verdicts},
	{"table4", "Against conjugate gradients without a preconditioner", "section 6.3, table 4",
		table4Plan, table4Table, table4Plot, table4Verdicts},
	{"table5", "A tolerance of 10⁻² against 10⁻³", "section 6.3, table 5",
		table5Plan, table5Table, nil, table5Verdicts},
	{"figure1", "Random features against the exact method, error and time over s", "section 6.1, figure 1",
		figure1Plan, figure1Table, figure1Plot, figure1Verdicts},
	{"figure2", "Error over n and over time, the exact method and random features", "section 6.1, figure 2",
		figure2Plan, figure2Table, figure2Plot, figure2Verdicts},
}

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

// Method is a rival of krrlab's solvers.
type Method string

const (
	RandomFeatures Method = "random-features" // ridge regression on S random features, exact
	ADMM           Method = "admm"            // block ADMM on S random features, Loss
)

// Case is one thing to measure, as data: a problem and the options of krrlab.New for it. Equal cases are run
// once, whichever experiments ask for them. Zero values mean the defaults, those of krrlab.Config too.
type Case struct {
	Data   string      `json:"data"`             // name in package datasets
	N      int         `json:"n,omitempty"`      // the first n training rows; default: all
	TestN  int         `json:"test_n,omitempty"` // the first test rows; default: all
	Kernel kernel.Spec `json:"kernel"`           // k(x, z)
	krrlab.PrecondSpec
	krrlab.Config
	Method Method        `json:"method,omitempty"` // default: Config.Solver
	Loss   baseline.Loss `json:"loss,omitempty"`   // of ADMM
	// CountOnly leaves out the test: for further seeds, of which only iterations and
	// seconds are wanted.
	CountOnly bool `json:"count_only,omitempty"`
}

// method names what solves the case.
func (c Case) method() string { return cmp.Or(string(c.Method), c.Solver.String()) }

// key is the JSON of the case.
func (c Case) key() string {
	js, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("experiments: a case is not JSON: %v", err)) // a NaN in it
	}
	return string(js)
}

func (c Case) String() string {
	var b strings.Builder
	if c.Data != "" {
		b.WriteString(c.Data + ", ")
	}
	if c.N > 0 {
		fmt.Fprintf(&b, "n = %d, ", c.N)
	}
	return b.String() + c.settings()
}

// settings describes what is done with the data, in one line.
func (c Case) settings() string {
	parts := []string{c.method()}
	add := func(on bool, format string, args ...any) {
		if on {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(c.Loss != "", "%s loss", c.Loss)
	add(c.S > 0, "s = %d", c.S)
	add(c.LambdaP > 0, "λ_p = %g", c.LambdaP)
	add(c.Tol > 0, "τ = %g", c.Tol)
	add(true, "seed %d", c.Seed)
	return strings.Join(parts, ", ")
}
