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

// Experiment is a table or a figure of the paper. Plan lists the cases to run. The other functions present the results
// in a Report. They use only the results, so that the same report gives the same bytes, and they do not read the data
// sets.
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
	// Paper is the name of the row to compare with in the published tables, which is that of its data set; empty if
	// there is none.
	Paper string `json:"paper,omitempty"`
	// SkipReason is the reason why the case is not run at this scale; empty if it is run.
	SkipReason string `json:"skip,omitempty"`
	// ExpectedIterations is the number of iterations for predicting the time. If it is 0, the prediction has a typical
	// number for the method.
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

// Values of Verdict.Outcome. A claim about a number of the paper is judged only on rows with the paper's data and n.
// Other claims are also judged on parts of the data, which Verdict.Basis names.
const (
	Holds = "holds"
	Fails = "fails"
	Open  = "open" // the results do not decide it, for example at smoke scale, or because a case was not run
)

// registry lists the experiments in the order of reports.
var registry = []Experiment{
	{ID: "table1", Title: "Time, iterations and error of the method on each data set", Section: "section 6.2, table 1",
		Plan: table1Plan, Table: table1Table, Verdicts: table1Verdicts},
	{ID: "table2", Title: "Another ridge λ_p in the preconditioner", Section: "section 6.3, table 2",
		Plan: table2Plan, Table: table2Table, Verdicts: table2Verdicts},
	{ID: "table3", Title: "Against block ADMM on random features", Section: "section 6.3, table 3",
		Plan: table3Plan, Table: table3Table, Verdicts: table3Verdicts},
	{ID: "table4", Title: "Against conjugate gradients without a preconditioner", Section: "section 6.3, table 4",
		Plan: table4Plan, Table: table4Table, Plot: table4Plot, Verdicts: table4Verdicts},
	{ID: "table5", Title: "A tolerance of 10⁻² against 10⁻³", Section: "section 6.3, table 5",
		Plan: table5Plan, Table: table5Table, Verdicts: table5Verdicts},
	{ID: "figure1", Title: "Random features against the exact method, error and time over s",
		Section: "section 6.1, figure 1",
		Plan:    figure1Plan, Table: figure1Table, Plot: figure1Plot, Verdicts: figure1Verdicts},
	{ID: "figure2", Title: "Error over n and over time, the exact method and random features",
		Section: "section 6.1, figure 2",
		Plan:    figure2Plan, Table: figure2Table, Plot: figure2Plot, Verdicts: figure2Verdicts},
}

// IDs returns the identifiers of all experiments, in the order of reports.
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

// Case describes one measurement: a problem, and the options of krrlab.New or of a competing method. Equal cases are
// run once, even if several experiments need them. Zero values mean the defaults, also in krrlab.Config.
type Case struct {
	Data   string      `json:"data"`             // name in package datasets
	N      int         `json:"n,omitempty"`      // number of training rows, the first ones; default: all
	TestN  int         `json:"test_n,omitempty"` // number of test rows, the first ones; default: all
	Kernel kernel.Spec `json:"kernel"`           // the kernel k(x, z)
	// PrecondSpec has the kind of the preconditioner, its number S of features, which a competing method uses too, and
	// its ridge LambdaP.
	krrlab.PrecondSpec
	// Config has the solver, λ, the tolerance, the seed and more. Its Kernel and Precond follow from the fields above.
	krrlab.Config
	Method Method        `json:"method,omitempty"` // competing method; default: the solver Config.Solver
	Loss   baseline.Loss `json:"loss,omitempty"`   // loss function of ADMM
	// CountOnly omits the prediction of the test rows: only iterations and seconds are measured. It is set for all
	// seeds but the first one of a row whose test error is reported for the first seed only.
	CountOnly bool `json:"count_only,omitempty"`
}

// method returns the name of the method or solver of the case.
func (c Case) method() string { return cmp.Or(string(c.Method), c.Solver.String()) }

// key returns the JSON of the case, which identifies it.
func (c Case) key() string {
	encoded, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("experiments: a case is not JSON: %v", err)) // it contains a NaN
	}
	return string(encoded)
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

// settings returns the method and those of its options that are set, in one line.
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
