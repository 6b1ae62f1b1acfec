package experiments

import (
	"fmt"
	"math"
	"strings"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
)

// row is the part that all cases of a table's row have in common. Its data are a data set of the paper, a part of one,
// or a stand-in.
type row struct {
	name       string // name in our tables; the paper's name if the data and n are the paper's
	paper      string // row of the published tables to compare with; empty if there is none
	data       string // name in package datasets
	n, testN   int    // number of training and test rows, the first ones of the data set; 0 for all
	seeds      int    // number of seeds
	skipReason string // why the row is not run; empty if it is run
	usesAuto   bool   // the row is solved by the solver Auto and not by Algorithm 1
}

// rowsOf returns the rows of a table at a scale: the rows that the paper prints in this table, the stand-ins and the
// built-in problems. Only tables 1 and 4 have the rows solved by Auto.
func rowsOf(table string, s Scale) []row {
	var out []row
	for _, record := range readCSV("rows.csv")[1:] {
		r := row{name: record[1], paper: record[2], data: record[3], usesAuto: record[7] != "", skipReason: record[8]}
		must(fmt.Sscan(strings.Join(record[4:7], " "), &r.n, &r.testN, &r.seeds))
		if record[0] != string(s) || r.usesAuto && table != "table1" && table != "table4" {
			continue
		}
		if r.paper == "" || !(publishedRow{table, r.paper}).cell("dataset").IsBlank() {
			out = append(out, r)
		}
	}
	return out
}

// info returns the description of the row's data set. It panics if package datasets does not have it, since the rows
// are part of this program.
func (r row) info() *datasets.Info { return must(datasets.Lookup(r.data)) }

// trainingPoints returns the number of training points of the row.
func (r row) trainingPoints() int { return sizeOf(Case{Data: r.data, N: r.n}).N }

// tol returns the tolerance τ that the paper uses for the task.
func (r row) tol() float64 {
	if r.info().Task == datasets.Regression {
		return 1e-5
	}
	return 1e-3
}

// featureCount returns the number of features s for the row: the s in a column of a published table, multiplied by the
// ratio of the row's n to the published n. It is n/10 if there is no published s, at least 50 and at most n.
func (r row) featureCount(table, column string) int {
	published := publishedRow{table, r.paper}
	s := float64(r.trainingPoints()) / 10
	if v := published.number(column); !math.IsNaN(v) {
		s = v * float64(r.trainingPoints()) / float64(published.trainingPoints())
	}
	return min(r.trainingPoints(), max(50, int(math.Round(s))))
}

// solverCase returns the case of a solver with the row's data, σ, λ and τ.
func (r row) solverCase(s krrlab.Solver) Case {
	info := r.info()
	return Case{
		Data: r.data, N: r.n, TestN: r.testN, Kernel: kernel.Spec{Name: "gaussian", Sigma: info.Sigma},
		Config: krrlab.Config{Solver: s, Lambda: info.Lambda, Tol: r.tol(), Seed: 1},
	}
}

// pcgCase returns the case of Algorithm 1 (preconditioned conjugate gradients with random features) with s features and
// λ_p = factor·λ.
func (r row) pcgCase(s int, factor float64) Case {
	c := r.solverCase(krrlab.PCG)
	c.S, c.LambdaP = s, factor*c.Lambda
	return c
}

// newEntry returns the entry of a case. Its time is predicted with the iterations in a column of a published table.
func (r row) newEntry(role string, c Case, table, column string) Entry {
	e := Entry{Row: r.name, Role: role, Case: c, SkipReason: r.skipReason, Paper: r.paper}
	if v := (publishedRow{table, r.paper}).number(column); !math.IsNaN(v) {
		e.ExpectedIterations = int(v)
	}
	return e
}

// seedEntries returns an entry for each of the row's seeds. Only the first seed is tested; the others are run for their
// iterations and seconds.
func (r row) seedEntries(role string, c Case, table, column string) []Entry {
	var out []Entry
	for k := range r.seeds {
		c.Seed, c.CountOnly = uint64(k+1), k > 0
		out = append(out, r.newEntry(role, c, table, column))
	}
	return out
}

// proposedEntries returns the entries of Algorithm 1 with the s of a published table, which has the iterations in the
// given column. For a row solved by Auto it returns the entries of Auto.
func (r row) proposedEntries(table, iterationsColumn string) []Entry {
	if r.usesAuto {
		return r.seedEntries(autoRole, r.solverCase(krrlab.AutoSolver), "", "")
	}
	return r.seedEntries(proposedRole, r.pcgCase(r.featureCount(table, "s"), 1), table, iterationsColumn)
}

// sameProblem reports whether the entry's training data are all the training data of the published row. It compares the
// numbers of points: the number read if there is a result, and else the number in the registry.
func (e *Entry) sameProblem() bool {
	info, err := datasets.Lookup(e.Case.Data)
	if err != nil || e.Paper == "" || info.Paper == nil {
		return false
	}
	n := sizeOf(e.Case).N
	if e.Result.Ran() {
		n = e.Result.Data.N
	}
	return n == publishedRow{row: e.Paper}.trainingPoints()
}
