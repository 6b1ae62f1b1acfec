package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/model"
)

// The function runScript in cli_test.go explains the scripts of these tests. In short, "$" begins a command line, and
// "2$" one that must exit with the status 2. The lines below a command must appear in its output. A line that begins
// with "!" must not appear.

// TestExtend checks the models that fit --extend makes. An extended classifier must predict like a fit to all rows
// within 1e-6, and verify must prove its residual. An extended weighted regression, with words as features, must
// satisfy the equations (K + λW⁻¹)c = y − mean of all its rows, which the test forms densely. Flags that the model
// determines, rows that do not fit the model, and a model without answers are errors.
func TestExtend(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	header, rows := "a,b,city,w,y,class\n", []string{}
	for i := range 160 {
		a, b := random.NormFloat64(), random.NormFloat64()
		rows = append(rows, fmt.Sprintf("%.5f,%.5f,%s,%d,%.6f,%s\n", a, b, []string{"p", "q"}[i%2], 1+i%3,
			a+math.Sin(b), []string{"low", "mid", "high"}[i%3]))
	}
	enterTempFolder(t, map[string]string{"old.csv": header + strings.Join(rows[:100], ""), "more.csv": header +
		strings.Join(rows[100:130], ""), "all.csv": header + strings.Join(rows[:130], ""), "test.csv": header +
		strings.Join(rows[130:], ""), "new.csv": header + "1,1,p,1,2,other\n"})
	runScript(t, `
$ fit --train old.csv --target y --drop class --categorical city --weights w --sigma 1 --lambda 0.1 --scale standard --tol 1e-9 --out m.krr
$ fit --extend m.krr --train more.csv --weights w --test test.csv --solver pcg --precond "nystrom features=20" --tol 1e-9 --out m2.krr
	note: m.krr before it was extended: RMSE
	on 30 points, weighted of more.csv
	appended     30 rows; kept: coefficients, as a start; made anew: K and preconditioner, as they are not stored
	on 30 points
$ fit --extend m2.krr --train test.csv --weights w --out m3.krr
	appended     30 rows; made anew: all, as a solver without iterations keeps nothing
$ fit --train all.csv --target class --drop y,w --categorical city --sigma 1 --lambda 0.1 --scale none --tol 1e-9 --out whole.krr
$ fit --train old.csv --target class --drop y,w --categorical city --sigma 1 --lambda 0.1 --scale none --tol 1e-9 --out c.krr
$ fit --extend c.krr --train more.csv --tol 1e-9 --solver block-pcg --out c2.krr
$ predict c2.krr --in test.csv --decision --out c2.csv
$ predict whole.krr --in test.csv --decision --out whole.csv
$ verify c2.krr --train all.csv
	proved
2$ fit --extend m.krr --train more.csv --drop class
	--drop: with --extend the model determines it
2$ fit --extend m.krr --train more.csv --tol 1e-9
	the rows of the fit of m.krr have weights: name the column of more.csv with the weights of the new rows, --weights COLUMN
2$ fit --extend m.krr --train more.csv --sigma 2
	--sigma: with --extend the model determines it: leave it out
1$ fit --extend c.krr --train new.csv
	the labels "other", of 1 of 1 rows, are not among the model's
1$ fit --extend no.krr --train more.csv
	cannot open model no.krr`)
	numbers := func(name string) (values []float64) {
		for _, line := range strings.Split(string(readFile(t, name)), "\n")[1:] {
			for _, cell := range strings.Split(line, ",") {
				if v, err := strconv.ParseFloat(cell, 64); err == nil {
					values = append(values, v)
				}
			}
		}
		return values
	}
	got, want := numbers("c2.csv"), numbers("whole.csv")
	testkit.Equal(t, len(got), len(want))
	for i, v := range got {
		testkit.Near(t, v, want[i], 1e-6, i)
	}
	// The extended weighted model must solve the dense equations of all its rows. The features of the new rows are
	// scaled as those of the first fit.
	m := testkit.Must(model.Load("m2.krr"))
	training := testkit.Must(m.TrainingData())

	var kc mat.VecDense
	kc.MulVec(testkit.KernelMatrix(m.Kernel, training.X), m.C.ColView(0))
	for i := range training.Len() {
		residual := training.Target[i] - m.Mean[0] - kc.AtVec(i) - m.Lambda*m.C.At(i, 0)/training.Weights[i]
		testkit.Near(t, residual, 0, 1e-6, i)
	}
	m.Answers = nil
	testkit.OK(t, m.Save("bare.krr"))
	runScript(t, `
1$ fit --extend bare.krr --train more.csv
	there are no answers of the rows of the fit`)
}

// TestExtendThreshold checks that the report of fit --extend has the error rate of the saved model at its threshold:
// the threshold of the extended model, or that of the flag --threshold. The option --stop labels is refused with a
// threshold other than 0. Without a threshold, it counts the labels of the test rows.
func TestExtendThreshold(t *testing.T) {
	random, rows := rand.New(rand.NewPCG(3, 4)), []string{}
	for range 160 {
		a := random.NormFloat64()
		rows = append(rows, fmt.Sprintf("%.5f,%s\n", a, []string{"no",
			"yes"}[int(random.Float64()+0.7*float64(min(1, max(0, a))))%2]))
	}
	enterTempFolder(t, map[string]string{"old.csv": "a,y\n" + strings.Join(rows[:80], ""), "more.csv": "a,y\n" +
		strings.Join(rows[80:110], ""), "test.csv": "a,y\n" + strings.Join(rows[110:], "")})
	runScript(t, `
$ fit --train old.csv --sigma 1 --lambda 1 --threshold 0.7 --out m.krr`)
	for _, c := range []struct{ flags, line string }{
		{"", "threshold    0.7, that of m.krr"}, {"--threshold -0.5", "threshold    -0.5, as asked for"},
	} {
		runScript(t, `
$ fit --extend m.krr --train more.csv --test test.csv `+c.flags+` --json r.json --verbose --out m2.krr
	`+c.line)
		m := testkit.Must(model.Load("m2.krr"))
		test := testkit.Must(readForModel(t.Context(), m, "test.csv", datasets.ReadOptions{}))
		want := testkit.Must(m.Evaluate(t.Context(), test, nil))
		var report struct {
			TestError float64 `json:"test_error"`
		}
		testkit.OK(t, json.Unmarshal(readFile(t, "r.json"), &report))
		testkit.Near(t, report.TestError, want.ErrorRate, 0, c.flags)
		m.Threshold = 0
		if other := testkit.Must(m.Evaluate(t.Context(), test, nil)); other.ErrorRate == want.ErrorRate {
			t.Errorf("the threshold does not change the error %g", want.ErrorRate)
		}
	}
	runScript(t, `
2$ fit --extend m.krr --train more.csv --stop labels=5%
	--stop labels counts labels at the threshold 0, and that of m.krr is 0.7`)
	// Without a threshold, --stop labels=3% stops when at most 3 % of the labels of the 50 test rows are still open.
	runScript(t, `
$ fit --train old.csv --sigma 0.1 --lambda 1 --out zero.krr
$ fit --extend zero.krr --train more.csv --test test.csv --solver cg --stop labels=3% --json labels.json`)
	var report struct {
		Open int `json:"labels_open"`
	}
	testkit.OK(t, json.Unmarshal(readFile(t, "labels.json"), &report))
	if share := float64(report.Open) / 50; share > 0.03 {
		t.Errorf("%.0f %% of the labels are open", 100*share)
	}
}
