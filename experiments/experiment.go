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

// Experiment is a table or a figure of the paper, or one of the project's own. Plan lists the cases to run. The other
// functions present the results in a Report. They only format results, so that the same report gives the same bytes,
// and they do not need the data sets.
type Experiment struct {
	ID      string // identifier, such as "table1"
	Title   string // title in one line
	Section string // section, and table or figure, of the paper
	// Plan returns the entries at a scale, in the order of the report.
	Plan func(s Scale) []Entry
	// Table returns the table of the results.
	Table func(r *Report) *plots.Table
	// Plot returns the figure, or nil if there is nothing to draw. A nil function means that there is no figure.
	Plot func(r *Report) *plots.Figure
	// Verdicts returns the claims and whether the results confirm them.
	Verdicts func(r *Report) []Verdict
}

// Entry is a case with its row and its role in an experiment.
type Entry struct {
	Row  string `json:"row"`  // row of the table or series of the figure, such as "MNIST"
	Role string `json:"role"` // method in this row, such as "proposed" or "cg"
	Case Case   `json:"case"` // problem and options
	// Paper is the row of the published tables to compare with; empty if there is none.
	Paper string `json:"paper,omitempty"`
	// SkipReason is the reason why the case is not run at this scale; empty if it is run.
	SkipReason string `json:"skip,omitempty"`
	// ExpectedIterations is the number of iterations for predicting the time; 0 uses a guess.
	ExpectedIterations int `json:"-"`
	// Result contains the measurements; nil if the case was not run.
	Result *Result `json:"result,omitempty"`
}

// Verdict is a claim and its outcome by the results.
type Verdict struct {
	Claim   string
	Outcome string // Holds, Fails or Open
	Detail  string // the numbers that decided it
	Basis   string // rows or data that it was judged on; empty if these are the paper's data, without omissions
}

// Outcomes of a Verdict. A claim about a number of the paper is judged only on rows with the paper's data and n. Other
// claims are also judged on parts of the data, which Verdict.Basis names.
const (
	Holds = "holds"
	Fails = "fails"
	Open  = "open" // the results do not decide it, for example at smoke scale, or because a case was not run
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

// IDs returns the identifiers of all experiments.
func IDs() []string {
	var ids []string
	for _, e := range registry {
		ids = append(ids, e.ID)
	}
	return ids
}

// Find returns the experiment with this identifier, or an error if there is none.
func Find(id string) (*Experiment, error) {
	for i := range registry {
		if registry[i].ID == id {
			e := registry[i]
			return &e, nil
		}
	}
	return nil, fmt.Errorf("unknown experiment %q; there are %s, and all", id, strings.Join(IDs(), ", "))
}

// Method is a competing method, which is not one of krrlab's solvers.
type Method string

const (
	RandomFeatures Method = "random-features" // ridge regression on S random features, solved exactly
	ADMM           Method = "admm"            // block ADMM on S random features with the loss Case.Loss
)

// Case is one measurement, as data: a problem and the options of krrlab.New. Equal cases are run once, even if several
// experiments need them. Zero values mean the defaults, also in krrlab.Config.
type Case struct {
	Data   string      `json:"data"`             // name in package datasets
	N      int         `json:"n,omitempty"`      // the first n training rows; default: all
	TestN  int         `json:"test_n,omitempty"` // the first test rows; default: all
	Kernel kernel.Spec `json:"kernel"`           // the kernel k(x, z)
	krrlab.PrecondSpec
	krrlab.Config
	Method Method        `json:"method,omitempty"` // default: Config.Solver
	Loss   baseline.Loss `json:"loss,omitempty"`   // loss function of ADMM
	// CountOnly omits the prediction of the test rows. It is set for further seeds, for which only iterations and
	// seconds are needed.
	CountOnly bool `json:"count_only,omitempty"`
}

// method returns the name of the method or solver of the case.
func (c Case) method() string { return cmp.Or(string(c.Method), c.Solver.String()) }

// key returns the JSON of the case, which identifies it.
func (c Case) key() string {
	js, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("experiments: a case is not JSON: %v", err)) // it contains a NaN
	}
	return string(js)
}

// String describes the case in one line: the data set, n, and the method with its options.
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

// settings returns the method and its options in one line.
func (c Case) settings() string {
	parts := []string{c.method()}
	add := func(condition bool, format string, args ...any) {
		if condition {
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
