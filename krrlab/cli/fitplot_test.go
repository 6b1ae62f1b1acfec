package cli

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/model"
)

// TestFitPlot: --plot draws predictions against answers whatever the solver, of at most maxPoints training points, and
// of many classes the error of each; --plot-solve draws the convergence; a target that is zero is drawn too.
func TestFitPlot(t *testing.T) {
	rows := strings.Split(strings.TrimSpace(table(60, nil, false)), "\n")
	var zero, words, many strings.Builder
	for i, r := range rows {
		x := r[:strings.LastIndex(r, ",")]
		zero.WriteString(x + ",0\n")
		words.WriteString(x + "," + []string{"red", "blue"}[i/30] + "\n")
	}
	for i := range 202 {
		fmt.Fprintf(&many, "%d,%d,w%d\n", i, i*i%7, i/2)
	}
	files(t, map[string]string{"a.csv": strings.Join(rows, "\n"), "zero.csv": zero.String(),
		"words.csv": words.String(), "many.csv": many.String(), "long.csv": table(maxPoints+2, nil, false)})
	test, training := "of the test data)\n", "of the training data)\n"
	for args, c := range map[string][2]string{
		"--train a.csv --test a.csv":                              {test, "on 60 test points"},
		"--train a.csv --holdout 0.2 --solver pcg":                {test, "on 12 test points"},
		"--train a.csv":                                           {training, "on 60 training points"},
		"--train long.csv --solver pcg --tol 0.1":                 {training, "on 1001 training points"},
		"--train words.csv --solver cg":                           {training, "predicted class (1 blue, 2 red)"},
		"--train many.csv --task classification":                  {training, "points of the class"},
		"--train zero.csv --task regression":                      {training, "RMSE 0, "},
		"--train zero.csv --task regression --solver block-pcg":   {training, "RMSE 0, "},
		"--train a.csv --plot-solve s.svg --solver pcg --title T": {"wrote        s.svg\n", "<title>T<"},
	} {
		out := script(t, "$ fit --verbose --plot p.svg "+args)
		if !strings.Contains(out, "wrote        p.svg (predictions against answers of the ") ||
			!strings.HasSuffix(out, c[0]) {
			t.Errorf("%s: %s", args, out)
		}
		if !strings.Contains(string(read(t, "p.svg")), c[1]) {
			t.Errorf("%s: %q is not drawn", args, c[1])
		}
	}
	for _, args := range []string{"a.csv --solver pcg", "zero.csv --task regression --solver pcg",
		"a.csv --solver direct"} {
		script(t, "$ fit --plot-solve s.svg --train "+args)
		if !strings.Contains(string(read(t, "s.svg")), ">iteration<") {
			t.Errorf("%s: no convergence is drawn", args)
		}
	}
}

// TestConfusion: rows are the answers, columns the predictions; labels are matched by their text,
// and one that the model does not know has a row.
func TestConfusion(t *testing.T) {
	p := &model.Prediction{Labels: []string{"a", "b"}, Class: []int{0, 0, 1, 1, 1}}
	d := &datasets.Dataset{X: points.NewDense(5, 1, make([]float64, 5)), Labels: []string{"b", "a", "z"},
		Class: []int{1, 1, 1, 0, 2}}
	m := confusionPlot("t", p.Score(d).Classes).Map
	if want := [][]float64{{2, 1, 0}, {0, 1, 0}, {0, 1, 0}}; !reflect.DeepEqual(m.Z, want) {
		t.Errorf("%v, want %v", m.Z, want)
	}
	for labels, want := range map[string]struct {
		at    []float64
		names string
	}{
		"0 1 9":   {[]float64{0, 1, 9}, ""},
		"-1 1":    {[]float64{-1, 1}, ""},
		"1 10 2":  {[]float64{1, 2, 3}, " (1 1, 2 10, 3 2)"},
		"no yes":  {[]float64{1, 2}, " (1 no, 2 yes)"},
		"1.5 2.5": {[]float64{1, 2}, " (1 1.5, 2 2.5)"},
	} {
		if at, names := classAxis(strings.Fields(labels)); !reflect.DeepEqual(at, want.at) || names != want.names {
			t.Errorf("%s: %v%s", labels, at, names)
		}
	}
	if _, names := classAxis(strings.Fields(strings.Repeat("word ", 20))); len(names) > 70 ||
		!strings.HasSuffix(names, ", …)") {
		t.Error(names)
	}
}

// TestPlotLook: --title and --size are the picture's, "" is no title; a look without a picture and sizes that cannot be
// are refused.
func TestPlotLook(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "p.svg")
	for _, c := range []struct{ args, has, not string }{
		{"fit", "<title>synthetic-regression: RMSE ", `width="360pt"`},
		{"fit --size 5x3", `width="360pt" height="216pt"`, "nothing"},
		{"fit --title=", "<svg", "<title>"},
		{"loo --title λ_p!", "<title>λₚ!</title>", "<title>Leave"},
		{"plan --title= --size 8x2.5", `height="180pt"`, "<title>"},
	} {
		script(t, "$ "+c.args+" --data synthetic-regression --n 60 --plot "+svg)
		if got := string(read(t, svg)); !strings.Contains(got, c.has) || strings.Contains(got, c.not) {
			t.Errorf("%s: %q is not there, or %q is", c.args, c.has, c.not)
		}
	}
}
