package datasets

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestAppend: answers, weights, labels, means, class weights and groups of the joined rows are those of all rows.
func TestAppend(t *testing.T) {
	d := &Dataset{Name: "a", X: points.NewDense(3, 1, []float64{1, 2, 1}), Target: []float64{1, 2, 1},
		MoreTargets: [][]float64{{5, 6, 5}}, Targets: []string{"u", "v"}, Columns: []string{"x"}}
	more := &Dataset{Name: "b", X: points.NewDense(1, 1, []float64{1}), Target: []float64{8},
		MoreTargets: [][]float64{{9}}, Weights: []float64{2}, Columns: []string{"x"}}
	check := func(_ *Dataset, err error) func(want string) {
		return func(want string) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one with %s", err, want)
			}
		}
	}
	d = must(d.Center().Group("together", nil))
	got := must(d.Append(more))
	if fmt.Sprint(got.Target, got.MoreTargets, got.Weights, got.Mean, got.Groups) !=
		"[1 2 1 8] [[5 6 5 9]] [1 1 1 2] [4 6.8] [0 1 0 0]" || got.Repeats.Rule != "together" {
		t.Errorf("%v %v %v %v %v", got.Target, got.MoreTargets, got.Weights, got.Mean, got.Groups)
	}
	standard, _, err := Scale("standard", d, nil)
	scaled := must(must(standard, err).Append(more))
	if v := scaled.X.(*points.Dense).Data; v[3] != v[0] {
		t.Errorf("a raw row is not scaled as the others: %v", v)
	}
	c := &Dataset{Name: "c", Task: Classification, X: points.NewDense(2, 1, []float64{1, 2}),
		Class: []int{0, 1}, Labels: []string{"no", "yes"}}
	e := &Dataset{Name: "e", Task: Classification, X: points.NewDense(2, 1, []float64{3, 4}),
		Class: []int{0, 0}, Labels: []string{"yes", "maybe"}}
	joined := must(must(c.Balance()).Append(e))
	if !slices.Equal(joined.Class, []int{0, 1, 1, 1}) || joined.ClassWeights[0] != 2 {
		t.Errorf("%v, weights %v", joined.Class, joined.ClassWeights)
	}
	e.Class[1] = 1
	check(c.Append(e))(`the label "maybe" is not among those of the fit`)
	named := *more
	named.Columns = []string{"y"}
	check(d.Append(&named))(`"y" here, "x" in the data to append to`)
	check(d.GroupBy([]int{0, 0, 1}).Append(more))("numbers of given groups")
	check(d.Append(c))("need answers for the same regression of 2 targets")
}
