package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/model/explain"
)

// The function runScript in cli_test.go explains the scripts of these tests. In short, "$" begins a command line, and
// "2$" one that must exit with the status 2. The lines below a command must appear in its output. A line that begins
// with "!" must not appear.

// TestFitPlot checks the pictures of a fit. For every solver, --plot draws predictions against answers of the test
// points or of at most 2000 training points; for classes it draws labels or, if there are many, the error of each
// class. A target that is zero everywhere is drawn too, and solve= in --plot draws the convergence of the solver.
func TestFitPlot(t *testing.T) {
	rows := strings.Split(strings.TrimSpace(randomRows(60, nil)), "\n")
	var zero, words, many strings.Builder
	for i, r := range rows {
		x := r[:strings.LastIndex(r, ",")]
		zero.WriteString(x + ",0\n")
		words.WriteString(x + "," + []string{"red", "blue"}[i/30] + "\n")
	}
	for i := range 202 {
		fmt.Fprintf(&many, "%d,%d,w%d\n", i, i*i%7, i/2)
	}
	enterTempFolder(t, map[string]string{"a.csv": strings.Join(rows, "\n"), "zero.csv": zero.String(),
		"words.csv": words.String(), "many.csv": many.String(), "long.csv": randomRows(2002, nil)})
	const drawn = "p.svg (predictions against answers)\n"
	// The keys are flags of fit; the values are texts in the output and in the picture.
	for args, want := range map[string][2]string{
		"--train a.csv --test a.csv":                                    {drawn, "on 60 test points"},
		"--train a.csv --holdout 0.2 --solver pcg":                      {drawn, "on 12 test points"},
		"--train a.csv":                                                 {drawn, "on 60 training points"},
		"--train long.csv --solver pcg --tol 0.1":                       {drawn, "on 1001 training points"},
		"--train words.csv --solver cg":                                 {drawn, ">blue<"},
		"--train many.csv --task classification":                        {drawn, "rows of the class"},
		"--train zero.csv --task regression":                            {drawn, "RMSE 0, "},
		"--train zero.csv --task regression --solver block-pcg":         {drawn, "RMSE 0, "},
		`--train a.csv --plot "p.svg solve=s.svg title=T" --solver pcg`: {"s.svg\n", "<title>T<"},
	} {
		out := runScript(t, "$ fit --verbose --plot p.svg "+args)
		if !strings.Contains(out, "wrote        "+want[0]) {
			t.Errorf("%s: %s", args, out)
		}
		if !strings.Contains(string(readFile(t, "p.svg")), want[1]) {
			t.Errorf("%s: %q is not drawn", args, want[1])
		}
	}
	for _, args := range []string{"a.csv --solver pcg", "zero.csv --task regression --solver pcg",
		"a.csv --solver direct"} {
		runScript(t, "$ fit --plot=solve=s.svg --train "+args)
		if !strings.Contains(string(readFile(t, "s.svg")), ">iteration<") {
			t.Errorf("%s: no convergence is drawn", args)
		}
	}
}

// TestPredictPlot checks that predict --plot draws predictions against answers, says how many of the rows were used for
// the fit, and refuses rows without answers. The rows of the fit are recognized in any order and among other rows.
func TestPredictPlot(t *testing.T) {
	rows := randomTable(60, nil)
	// r.csv has the rows of the fit in reverse order, and m.csv has 40 of them and 20 changed rows.
	head, body, _ := strings.Cut(strings.TrimSpace(rows), "\n")
	reversed := strings.Split(body, "\n")
	slices.Reverse(reversed)
	mixed := strings.Join(append([]string{head}, reversed[:40]...), "\n")
	for _, line := range reversed[40:] {
		mixed += "\n9" + strings.TrimLeft(line, "-")
	}
	enterTempFolder(t, map[string]string{"a.csv": rows, "x.csv": strings.ReplaceAll(rows, ",y\n", ",z\n"),
		"r.csv": head + "\n" + strings.Join(reversed, "\n"), "m.csv": mixed})
	runScript(t, "$ fit --train a.csv --out m.krr --sigma 2")
	testkit.Contains(t, runScript(t, "$ predict m.krr --in a.csv --out p.csv --plot p.html"), "wrote        p.html\n")
	testkit.Contains(t, string(readFile(t, "p.html")), "on 60 training points")
	runScript(t, "1$ predict m.krr --in x.csv --out q.csv --plot q.svg\n no answers")
	runScript(t, "$ predict m.krr --in r.csv --out p.csv\n\ttraining ")
	testkit.Contains(t, runScript(t, "$ predict m.krr --in m.csv --out p.csv --plot m.html"),
		"40 of 60 rows are of the fit")
	testkit.Contains(t, string(readFile(t, "m.html")), "on 60 rows, of which 40 are of the fit, with smaller errors")
	runScript(t, "$ explain m.krr --in m.csv --permutations 2\n 60 rows, of which 40 are of the fit")
}

// TestExplain checks that krrlab explain prints, draws and writes the importance of the columns, the most important one
// first, and says how many rows belong to the fit. Rows without answers and metrics of another task are refused.
func TestExplain(t *testing.T) {
	enterTempFolder(t, map[string]string{"a.csv": randomTable(60, nil), "x.csv": "a,b,c\n1,2,3\n4,5,6\n"})
	runScript(t, "$ fit --train a.csv --out m.krr --sigma 2")
	out := runScript(t, "$ explain m.krr --in a.csv --permutations 2 --top 2 --json e.json --plot e.svg")
	testkit.Contains(t, out, "60 training points: ", "mean of 2 permutations")
	var explanation explain.Explanation
	testkit.OK(t, json.Unmarshal(readFile(t, "e.json"), &explanation))
	if len(explanation.Columns) != 3 || len(explanation.Dependence) != 2 || explanation.Rows != 60 ||
		explanation.Columns[0].Mean < explanation.Columns[2].Mean {
		t.Errorf("want 3 columns in descending order, 2 dependences and 60 rows: %+v", explanation)
	}
	testkit.Contains(t, string(readFile(t, "e.svg")), ">"+explanation.Columns[0].Column+"<", "Importance")
	runScript(t, `1$ explain m.krr --in x.csv
		no answers
		2$ explain m.krr
		nothing to predict
		1$ explain m.krr --in a.csv --metric auc
		the answers are numbers`)
}

// TestExplainGroups checks that krrlab explain groups rows by the column of the fit, if the file has it, and otherwise
// by the rule of the fit, unless --groups or --repeats says otherwise. In each group of the table two rows of three
// have equal features.
func TestExplainGroups(t *testing.T) {
	rows := strings.Split(strings.TrimSpace(randomRows(40, nil)), "\n")
	grouped, plain := "a,b,c,y,patient,doctor\n", "a,b,c,y\n"
	for i := 0; i+1 < len(rows); i += 2 {
		for j, row := range []string{rows[i], rows[i], rows[i+1]} {
			grouped += fmt.Sprintf("%s,%d,%d\n", row, i, j)
			plain += row + "\n"
		}
	}
	enterTempFolder(t, map[string]string{"grouped.csv": grouped, "plain.csv": plain})
	runScript(t,
		"$ fit --train grouped.csv --target y --drop doctor --groups patient --sigma 2 --lambda 0.1 --out groups.krr\n"+
			"$ fit --train plain.csv --target y --repeats apart --sigma 2 --lambda 0.1 --out apart.krr\n"+
			"$ data pack --train plain.csv --target y --out packed --scale none")
	for args, copies := range map[string]float64{
		"groups.krr --in grouped.csv": 40, "groups.krr --in grouped.csv --repeats apart": 0,
		"groups.krr --in grouped.csv --groups doctor": 57, "groups.krr --in plain.csv": 20,
		"apart.krr --in plain.csv": 0, "apart.krr --in plain.csv --repeats together": 20,
		"apart.krr --data packed:train": 0, "apart.krr --data packed:train --repeats together": 20,
	} {
		out := runScript(t, "$ explain --permutations 2 --json e.json "+args)
		testkit.Equal[any](t, readReport(t, "e.json")["copies"], copies, args)
		testkit.Equal(t, strings.Contains(out, "a group counts once in the standard errors"), copies > 0, args)
	}
	runScript(t, `$ explain groups.krr --in plain.csv --permutations 2
		note: plain.csv has no column patient
$ explain groups.krr --data packed:train --permutations 2
		note: packed:train has no column patient
$ fit --train grouped.csv --target y --drop doctor --groups 4 --sigma 2 --lambda 0.1 --out numbered.krr
$ explain numbered.krr --in grouped.csv --permutations 2
		note: the groups of the fit are in column 4 of its file, which may have another number in grouped.csv
2$ explain groups.krr --data synthetic-regression:test --groups patient
		--groups goes with --in`)
}

// TestTitleAndSizeOfPlot checks that title= and size= in --plot set the title and size of a picture, and that an empty
// title draws none.
func TestTitleAndSizeOfPlot(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "p.svg")
	for _, c := range []struct{ args, want, absent string }{
		{"fit", "<title>synthetic-regression: RMSE ", `width="360pt"`},
		{"fit size=5x3", `width="360pt" height="216pt"`, "nothing"},
		{"fit title=", "<svg", "<title>"},
		{"loo title=λ_p!", "<title>λₚ!</title>", "<title>Leave"},
		{"plan title= size=8x2.5", `height="180pt"`, "<title>"},
	} {
		name, options, _ := strings.Cut(c.args, " ")
		plot := strings.TrimSpace(svg + " " + options)
		runScript(t, fmt.Sprintf(`$ %s --data synthetic-regression --n 60 --plot "%s"`, name, plot))
		if got := string(readFile(t, svg)); !strings.Contains(got, c.want) || strings.Contains(got, c.absent) {
			t.Errorf("%s: the picture lacks %q, or has %q", c.args, c.want, c.absent)
		}
	}
}
