package experiments

import (
	"fmt"
	"math"
	"strings"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
)

// row is one data set of the paper's tables, a part of it, or a stand-in: what the cases of
// a table's row have in common.
type row struct {
	name     string // the paper's where data and n are the paper's
	paper    string // the row of the published tables beside it; empty for none
	data     string // in package datasets
	n, testN int    // the first rows of training and test; 0: all
	seeds    int
	skip     string
	auto     bool // solved by Auto, instead of Algorithm 1
}

// rowsOf returns the rows of a table at a scale: those that the paper prints in it, and the
// stand-ins and built-in problems. Tables 1 and 4 have those of Auto.
func rowsOf(table string, s Scale) []row {
	var out []row
	for _, x := range records("rows.csv")[1:] {
		w := row{name: x[1], paper: x[2], data: x[3], auto: x[7] != "", skip: x[8]}
		if _, err := fmt.Sscan(strings.Join(x[4:7], " "), &w.n, &w.testN, &w.seeds); err != nil {
			panic(err)
		}
		if x[0] != string(s) || w.auto && table != "table1" && table != "table4" {
			continue
		}
		if w.paper == "" || !(printed{table, w.paper}).cell("dataset").IsBlank() {
			out = append(out, w)
		}
	}
	return out
}

// info looks up the data set. It panics for a name that package datasets does not have: the rows are ours.
func (w row) info() *datasets.Info {
	info, err := datasets.Lookup(w.data)
	if err != nil {
		panic(err)
	}
	return info
}

func (w row) points() int { return sizeOf(Case{Data: w.data, N: w.n}).N }

// tol returns the paper's τ for the task.
func (w row) tol() float64 {
	if w.info().Task == datasets.Regression {
		return 1e-5
	}
	return 1e-3
}

// width returns the s of a published table scaled by the share of the points: as printed
// where n is the paper's; n/10 for what has no published s. At least 50.
func (w row) width(table, column string) int {
	p := printed{table, w.paper}
	s := float64(w.points()) / 10
	if v := p.number(column); !math.IsNaN(v) {
		s = v * float64(w.points()) / float64(p.points())
	}
	return min(w.points(), max(50, int(math.Round(s))))
}

// solve returns the case of a solver with the row's data, σ, λ and τ.
func (w row) solve(s krrlab.Solver) Case {
	info := w.info()
	return Case{
		Data: w.data, N: w.n, TestN: w.testN, Kernel: kernel.Spec{Name: "gaussian", Sigma: info.Sigma},
		Config: krrlab.Config{Solver: s, Lambda: info.Lambda, Tol: w.tol(), Seed: 1},
	}
}

// pcg returns the case of Algorithm 1 with λ_p = factor·λ.
func (w row) pcg(s int, factor float64) Case {
	c := w.solve(krrlab.PCG)
	c.S, c.LambdaP = s, factor*c.Lambda
	return c
}

// entry returns the entry of a case that takes the iterations of a column of a published table, for the time predicted.
func (w row) entry(role string, c Case, table, column string) Entry {
	e := Entry{Row: w.name, Role: role, Case: c, Skip: w.skip, Paper: w.paper}
	if v := (printed{table, w.paper}).number(column); !math.IsNaN(v) {
		e.Expect = int(v)
	}
	return e
}

// seeded returns the entry of a case with the row's number of seeds: the first with its
// test, the others for their iterations only.
func (w row) seeded(role string, c Case, table, column string) []Entry {
	var out []Entry
	for k := range w.seeds {
		c.Seed, c.CountOnly = uint64(k+1), k > 0
		out = append(out, w.entry(role, c, table, column))
	}
	return out
}

// proposed returns the entries of Algorithm 1 with the s of a published table, whose iterations are in a column; of
// Auto in a separate row.
func (w row) proposed(table, iterations string) []Entry {
	if w.auto {
		return w.seeded(autoRole, w.solve(krrlab.AutoSolver), "", "")
	}
	return w.seeded(proposed, w.pcg(w.width(table, "s"), 1), table, iterations)
}

// sameProblem reports whether the entry's training data are those of the published row,
// all of them: by the registry, and where there is a result by what was read.
func (e *Entry) sameProblem() bool {
	info, err := datasets.Lookup(e.Case.Data)
	if err != nil || e.Paper == "" || info.Paper == nil {
		return false
	}
	n := sizeOf(e.Case).N
	if e.Result.Ran() {
		n = e.Result.Data.N
	}
	return n == printed{row: e.Paper}.points()
}
