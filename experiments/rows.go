package experiments

import (
	"fmt"
	"math"

	"github.com/krrlab/lab/datasets"
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
	auto     bool // solved by Auto, in place of Algorithm 1
}

const (
	tooLarge = "K takes 2n² bytes in float32, more than a laptop has; figure2 shows how error and time grow with n"
	slowRead = "reading and splitting the file takes longer than this scale allows"
)

// sets are the rows of the tables at each scale. At scale Paper they are those printed.
var sets = map[Scale][]row{
	Smoke: {
		{"built-in classes, n = 1,500", "", "synthetic-classes", 1500, 500, 2, "", false},
		{"ADULT, first 1,000 rows", "ADULT", "adult", 1000, 500, 2, "", false},
		{"IJCNN1, first 1,000 rows", "IJCNN1", "ijcnn1", 1000, 500, 2, "", false},
		{"MNIST, first 1,000 rows", "MNIST", "mnist", 1000, 500, 2, "", false},
		{"COVTYPE, first 1,000 rows of a subset", "COVTYPE", "covtype-sample", 1000, 500, 2, slowRead, false},
		{"built-in classes, n = 1,500, auto", "", "synthetic-classes", 1500, 500, 1, "", true},
		{"built-in regression, n = 1,000", "", "synthetic-regression", 1000, 500, 2, "", false},
	},
	Laptop: {
		{"GISETTE", "GISETTE", "gisette", 0, 0, 5, "", false},
		{"ADULT", "ADULT", "adult", 0, 0, 5, "", false},
		{"IJCNN1", "IJCNN1", "ijcnn1", 0, 0, 3, "", false},
		{"MNIST", "MNIST", "mnist", 0, 0, 3, "", false},
		{"MNIST-200K", "MNIST-200K", "mnist-400k", 200000, 0, 1, tooLarge, false},
		{"MNIST-300K", "MNIST-300K", "mnist-400k", 300000, 0, 1, tooLarge, false},
		{"MNIST-400K", "MNIST-400K", "mnist-400k", 0, 0, 1, tooLarge, false},
		{"MNIST-1M", "MNIST-1M", "mnist-1m", 0, 0, 1, tooLarge, false},
		{"EPSILON, first 20,000 rows", "EPSILON", "epsilon", 20000, 0, 5, "", false},
		{"COVTYPE, 40,000 rows of a subset", "COVTYPE", "covtype-sample", 40000, 40000, 3, "", false},
		{"COVTYPE, 7 classes, 20,000 rows of a subset", "", "covtype7-sample", 20000, 20000, 5, "", false},
		{"COVTYPE, 341,278 rows of a subset, auto", "COVTYPE", "covtype-sample", 0, 0, 1, "", true},
		{"COVTYPE, 7 classes, 341,278 rows of a subset, auto", "", "covtype7-sample", 0, 0, 1, "", true},
		{"YEARMSD, first 40,000 rows", "YEARMSD", "yearpredictionmsd", 40000, 0, 5, "", false},
		{"California housing (stand-in for YEARMSD)", "", "cal-housing", 0, 0, 5, "", false},
		{"protein (stand-in for YEARMSD)", "", "protein", 0, 0, 5, "", false},
	},
	Paper: {
		{"GISETTE", "GISETTE", "gisette", 0, 0, 1, "", false},
		{"ADULT", "ADULT", "adult", 0, 0, 1, "", false},
		{"IJCNN1", "IJCNN1", "ijcnn1", 0, 0, 1, "", false},
		{"MNIST", "MNIST", "mnist", 0, 0, 1, "", false},
		{"MNIST-200K", "MNIST-200K", "mnist-400k", 200000, 0, 1, "", false},
		{"MNIST-300K", "MNIST-300K", "mnist-400k", 300000, 0, 1, "", false},
		{"MNIST-400K", "MNIST-400K", "mnist-400k", 0, 0, 1, "", false},
		{"MNIST-1M", "MNIST-1M", "mnist-1m", 0, 0, 1, "", false},
		{"EPSILON", "EPSILON", "epsilon", 0, 0, 1, "", false},
		{"COVTYPE", "COVTYPE", "covtype", 0, 0, 1, "", false},
		{"YEARMSD", "YEARMSD", "yearpredictionmsd", 0, 0, 1, "", false},
	},
}

// rowsOf returns the rows of a table at a scale: those that the paper prints in it, and the
// stand-ins and built-in problems. Tables 1 and 4 have those of Auto.
func rowsOf(table string, s Scale) []row {
	var out []row
	for _, w := range sets[s] {
		if w.auto && table != "table1" && table != "table4" {
			continue
		}
		if w.paper == "" || !(printed{table, w.paper}).cell("dataset").IsBlank() {
			out = append(out, w)
		}
	}
	return out
}

// info looks up the data set. It panics for a name that package datasets does not have: the rows are written down above.
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

// solve returns the case of a method with the row's data, σ, λ and τ.
func (w row) solve(m Method) Case {
	info := w.info()
	return Case{
		Data: w.data, N: w.n, TestN: w.testN, Kernel: kernel.Spec{Name: "gaussian", Sigma: info.Sigma}, Lambda: info.Lambda,
		Method: m, Tol: w.tol(), Seed: 1,
	}
}

// pcg returns the case of Algorithm 1 with λ_p = factor·λ.
func (w row) pcg(s int, factor float64) Case {
	c := w.solve(PCG)
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

// proposed returns the entries of Algorithm 1 with the s of a published table, whose iterations are in a column; of Auto
// in a row of its own.
func (w row) proposed(table, iterations string) []Entry {
	if w.auto {
		return w.seeded(autoRole, w.solve(Auto), "", "")
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
	n := info.N
	if e.Case.N > 0 {
		n = min(n, e.Case.N)
	}
	if e.Result.Ran() {
		n = e.Result.Data.N
	}
	return n == printed{row: e.Paper}.points()
}

// dataText says what part of which data the entry ran on.
func (e *Entry) dataText() string {
	if e.Result == nil || e.Result.Data.N == 0 {
		return ""
	}
	d := e.Result.Data
	if d.Note == "" {
		return fmt.Sprintf("%s, whole", d.Name)
	}
	return fmt.Sprintf("%s: %s", d.Name, d.Note)
}
