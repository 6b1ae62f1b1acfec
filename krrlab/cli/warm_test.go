package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/model"
)

// TestWarm: fit --warm takes kernel, λ, scaling and target of the model, adds rows or changes λ, comes to the
// predictions of a fresh fit, and says how many iterations that took; a model of another problem is refused in one
// line.
func TestWarm(t *testing.T) {
	rows := strings.SplitAfter(table(300, nil, true), "\n")
	files(t, map[string]string{"few.csv": strings.Join(rows[:201], ""), "all.csv": strings.Join(rows, ""),
		"other.csv": table(400, nil, true)})
	const iterate = " --solver cg --tol 1e-6 --max-iter 3000"
	script(t, "$ fit --train few.csv --target a --drop b --scale standard --kernel matern32 --sigma 1.3 --lambda 0.2 "+
		"--out m.krr"+iterate)
	load := func(name string) *model.Model {
		t.Helper()
		m := testkit.Must(model.Load(name))
		return m
	}
	first := load("m.krr")
	for flags, rows := range map[string]int{"--train all.csv": 300, "--train few.csv --lambda 0.3": 200,
		"--train few.csv": 200} {
		script(t, "$ fit --warm m.krr --out next.krr "+flags+iterate+fmt.Sprintf("\nhas 200 of the %d rows, λ = 0.2: "+
			"the residual began at ", rows))
		got := load("next.krr")
		if n, d, _ := got.Dims(); n != rows || d != 2 || got.Kernel != first.Kernel || got.Scaling.Kind != "standard" ||
			got.Scaling.Shift[0] != first.Scaling.Shift[0] || got.Origin.Target != "a" {
			t.Errorf("%s: %v, target %s, %v", flags, got, got.Origin.Target, got.Scaling)
		}
	}
	script(t, `
$ fit --train all.csv --warm m.krr
	was not used: the direct solver does not iterate
1$ fit --warm m.krr --train all.csv --kernel gaussian --sigma 3
	the model has the kernel matern32(sigma=1.3), the fit gaussian(sigma=3)
1$ fit --warm m.krr --train all.csv --scale none
	not scaled as the model's points
1$ fit --warm m.krr --train all.csv --drop c
	feature column 1 is
1$ fit --warm m.krr --train other.csv
	row 0 (counted from 0)
1$ fit --train all.csv --warm none.krr
	cannot open model`)
}

// TestWarmTable: fit --warm reads columns of words and missing values as the model does, new words and new gaps in the
// rows added too.
func TestWarmTable(t *testing.T) {
	few := "city,x,y\n" + lines(60, func(i int) string {
		x := fmt.Sprint(i * 7 % 60)
		if i%9 == 4 {
			x = "NA"
		}
		return fmt.Sprintf("%s,%s,%d\n", []string{"ulm", "bonn"}[i%2], x, 100+i*7%60+30*(i%2))
	})
	files(t, map[string]string{"few.csv": few, "all.csv": few + "ulm,,111\nberlin,30,140\n",
		"whole.csv": table(30, nil, true)})
	script(t, `
$ fit --train few.csv --target y --categorical city --impute mean --solver cg --out m.krr
$ fit --train all.csv --warm m.krr --solver cg --out next.krr
	has 60 of the 62 rows
	all.csv: 1 word of categorical columns not in the training data
$ fit --train all.csv --warm m.krr --solver cg --impute median --out again.krr
	has 60 of the 62 rows
	note: --impute is not used: missing values are filled by the numbers of --warm
$ predict --model next.krr --in all.csv --out p.csv
	62 points
$ fit --train whole.csv --lambda 1 --out bare.krr
$ fit --train whole.csv --warm bare.krr --impute none
2$ fit --train whole.csv --warm bare.krr --impute mean
	--impute mean: the model of --warm fills no missing values`)
	first, err := model.Load("m.krr")
	if err != nil {
		t.Fatal(err)
	}
	second := testkit.Must(model.Load("next.krr"))
	if !second.Scaling.Fills() || second.Scaling.Fill[2] != first.Scaling.Fill[2] ||
		len(second.Origin.Categorical) != 1 || len(second.Origin.Categorical[0].Values) != 2 {
		t.Errorf("%v, %v", second.Scaling, second.Origin.Categorical)
	}
}
