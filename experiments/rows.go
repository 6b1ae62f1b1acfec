package experiments

import (
	"embed"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/plots"
)

// row is one data set of the paper's tables, a part of it, or a stand-in: what the cases of
// a table's row have in common.
type row struct {
	name   string // of the row; the paper's where data and n are the paper's
	paper  string // the row of the published tables beside it; empty for none
	data   string // in package datasets
	n      int    // first training rows; 0: all
	testN  int    // first test rows; 0: all
	points int    // n, or the whole set's
	sigma  float64
	lambda float64
	share  float64 // n over the published n, which s is scaled by; 0 for stand-ins
	tol    float64 // the paper's τ for the task
	seeds  int
	skip   string
	auto   bool // solved by Auto, in place of Algorithm 1
}

// set is a row as it is written down: the rest is looked up.
type set struct {
	name, paper, data string
	n, testN, seeds   int
	skip              string
	auto              bool
}

const (
	tooLarge = "K takes 2n² bytes in float32, more than a laptop has; figure2 shows how error and time grow with n"
	slowRead = "reading and splitting the file takes longer than this scale allows"
)

// sets are the rows of the tables at each scale. At scale Paper they are those printed.
var sets = map[Scale][]set{
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
	for _, x := range sets[s] {
		if x.auto && table != "table1" && table != "table4" {
			continue
		}
		if x.paper == "" || isPublished(table, x.paper) {
			out = append(out, x.row())
		}
	}
	return out
}

// row looks up what belongs to a set. It panics for a name that package datasets does not
// have: the sets are written down above.
func (x set) row() row {
	info, err := datasets.Lookup(x.data)
	if err != nil {
		panic(err)
	}
	w := row{
		name: x.name, paper: x.paper, data: x.data, n: x.n, testN: x.testN, points: info.N,
		sigma: info.Sigma, lambda: info.Lambda, tol: 1e-3, seeds: x.seeds, skip: x.skip, auto: x.auto,
	}
	if x.n > 0 {
		w.points = x.n
	}
	if info.Task == datasets.Regression {
		w.tol = 1e-5
	}
	if x.paper != "" {
		w.share = float64(w.points) / float64(publishedN(x.paper))
	}
	return w
}

// publishedN returns the number of training points of a row of the published tables.
func publishedN(name string) int {
	switch name { // in tables 4 and 5 only, which do not print n
	case "MNIST-200K":
		return 200000
	case "MNIST-300K":
		return 300000
	}
	return int(published1("table1", name, "n"))
}

// isPublished reports whether a published table has a row.
func isPublished(table, name string) bool {
	t, err := Published(table)
	if err != nil {
		panic(err)
	}
	_, ok := lookup(t, name, t.Columns[0].Name)
	return ok
}

// published1 returns a number of a published table; NaN where it is blank, a word or not there.
func published1(table, name, column string) float64 {
	t, err := Published(table)
	if err != nil {
		panic(err)
	}
	cell, _ := lookup(t, name, column)
	if v, ok := cell.Float(); ok {
		return v
	}
	return math.NaN()
}

// width returns the s of a published table scaled by the share of the points: as printed
// where n is the paper's; n/10 for what has no published s. At least 50.
func (w row) width(table, column string) int {
	s := float64(w.points) / 10
	if v := published1(table, w.paper, column); !math.IsNaN(v) {
		s = v * w.share
	}
	return min(w.points, max(50, int(math.Round(s))))
}

// expect returns a published number of iterations, for the time; 0 if there is none.
func (w row) expect(table, column string) int {
	if v := published1(table, w.paper, column); !math.IsNaN(v) {
		return int(v)
	}
	return 0
}

// solve returns the case of a method with the row's data, σ, λ and τ.
func (w row) solve(m Method) Case {
	return Case{
		Data: w.data, N: w.n, TestN: w.testN, Kernel: kernel.Spec{Name: "gaussian", Sigma: w.sigma}, Lambda: w.lambda,
		Method: m, Tol: w.tol, Seed: 1,
	}
}

// pcg returns the case of Algorithm 1.
func (w row) pcg(s int, lambdaP, tol float64) Case {
	c := w.solve(PCG)
	c.S, c.LambdaP, c.Tol = s, lambdaP, tol
	return c
}

func (w row) entry(role string, c Case, expect int) Entry {
	return Entry{Row: w.name, Role: role, Case: c, Skip: w.skip, Paper: w.paper, Expect: expect}
}

// seeded returns the entry of a case with the row's number of seeds: the first with its
// test, the others for their iterations only.
func (w row) seeded(role string, c Case, expect int) []Entry {
	var out []Entry
	for k := range w.seeds {
		c.Seed, c.CountOnly = uint64(k+1), k > 0
		out = append(out, w.entry(role, c, expect))
	}
	return out
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
	return n == publishedN(e.Paper)
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

//go:embed paper/*.csv
var paper embed.FS

// published holds the tables in their order, with the paper's captions.
var published = []struct{ id, title string }{
	{"table1", "Running time and resources on EC2"},
	{"table2", "Running time and resources on EC2 when using different λ in the preconditioner"},
	{"table3", "Comparison to high-performance random features solver based on block ADMM"},
	{"table4", "Comparison to CG without preconditioning"},
	{"table5", "Comparison between setting tolerance to 10⁻² and 10⁻³"},
}

// Tables returns the identifiers that Published knows: "table1" to "table5".
func Tables() []string {
	ids := make([]string, len(published))
	for i, p := range published {
		ids[i] = p.id
	}
	return ids
}

// Published returns a table of the paper as it was printed; see the package
// documentation for the conventions. The first column is the data set. Use Lookup for
// a single value. The table is the caller's to change.
func Published(id string) (*plots.Table, error) {
	i := slices.IndexFunc(published, func(p struct{ id, title string }) bool { return p.id == id })
	if i < 0 {
		return nil, fmt.Errorf("experiments: the paper has no table %q; there are %s", id, strings.Join(Tables(), ", "))
	}
	f, err := paper.Open("paper/" + id + ".csv")
	if err != nil {
		return nil, fmt.Errorf("experiments: %w", err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("experiments: %s: %w", id, err)
	}
	t := &plots.Table{Title: published[i].title, Caption: "As published by Avron, Clarkson and Woodruff (2017)."}
	for _, name := range rows[0] {
		t.Columns = append(t.Columns, column(name))
	}
	for _, row := range rows[1:] {
		var cells []plots.Cell
		for _, s := range row {
			cells = append(cells, cell(s))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t, nil
}

// column makes a column of its name in a file; the suffix _s of a time is its unit.
func column(name string) plots.Column {
	if base, ok := strings.CutSuffix(name, "time_s"); ok {
		return plots.Column{Name: base + "time", Unit: "s"}
	}
	return plots.Column{Name: name}
}

// cell reads a field: blank, a number or a word.
func cell(s string) plots.Cell {
	if s == "" {
		return plots.Blank()
	}
	if v, err := strconv.ParseFloat(s, 64); err == nil {
		return plots.Number(v)
	}
	return plots.Text(s)
}

// lookup returns the cell of a data set's row in a table's column, both by their
// names, and whether there is one. Columns are named as in the files under paper,
// without the unit: "s", "iterations", "time", "error_rate".
func lookup(t *plots.Table, dataset, name string) (plots.Cell, bool) {
	j := slices.IndexFunc(t.Columns, func(c plots.Column) bool { return c.Name == name })
	for _, row := range t.Rows {
		if j >= 0 && j < len(row) && row[0] == plots.Text(dataset) {
			return row[j], true
		}
	}
	return plots.Cell{}, false
}
