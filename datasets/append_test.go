package datasets

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestAppend checks that the answers, weights, labels, means, class weights and groups of appended data are those of
// all rows together. Raw rows are scaled like the earlier ones, and rows with other labels, columns or targets are
// refused.
func TestAppend(t *testing.T) {
	d := &Dataset{Name: "a", X: points.NewDense(3, 1, []float64{1, 2, 1}), Target: []float64{1, 2, 1},
		MoreTargets: [][]float64{{5, 6, 5}}, TargetNames: []string{"u", "v"}, Columns: []string{"x"}}
	more := &Dataset{Name: "b", X: points.NewDense(1, 1, []float64{1}), Target: []float64{8},
		MoreTargets: [][]float64{{9}}, Weights: []float64{2}, Columns: []string{"x"}}
	d = must(d.Center().GroupByRule("together", nil))
	got := must(d.Append(more))
	if fmt.Sprint(got.Target, got.MoreTargets, got.Weights, got.Mean, got.Groups) !=
		"[1 2 1 8] [[5 6 5 9]] [1 1 1 2] [4 6.8] [0 1 0 0]" || got.Repeats.Rule != "together" {
		t.Errorf("targets %v, more targets %v, weights %v, mean %v, groups %v", got.Target, got.MoreTargets,
			got.Weights, got.Mean, got.Groups)
	}
	standard, _, err := Scale("standard", d, nil)
	scaled := must(must(standard, err).Append(more))
	if v := scaled.X.(*points.Dense).Data; v[3] != v[0] {
		t.Errorf("a raw row is not scaled as the others: %v", v)
	}
	classes := &Dataset{Name: "c", Task: Classification, X: points.NewDense(2, 1, []float64{1, 2}),
		Class: []int{0, 1}, Labels: []string{"no", "yes"}}
	moreClasses := &Dataset{Name: "e", Task: Classification, X: points.NewDense(2, 1, []float64{3, 4}),
		Class: []int{0, 0}, Labels: []string{"yes", "maybe"}}
	joined := must(must(classes.BalanceClasses()).Append(moreClasses))
	if !slices.Equal(joined.Class, []int{0, 1, 1, 1}) || joined.ClassWeights[0] != 2 {
		t.Errorf("%v, weights %v", joined.Class, joined.ClassWeights)
	}
	weighted := must(must(classes.WeighClasses("no=0.5,yes=4")).Append(moreClasses))
	if !slices.Equal(weighted.ClassWeights, []float64{0.5, 4}) {
		t.Errorf("given weights became %v", weighted.ClassWeights)
	}
	if ones := must(must(classes.WeighClasses("no=1")).Append(moreClasses)); !slices.Equal(ones.ClassWeights,
		[]float64{1, 1}) {
		t.Errorf("given weights that balance the first rows became %v", ones.ClassWeights)
	}
	wantError(t, errorFrom(classes.WeighClasses("yes=1,yes=2")), `the label "yes" has two weights`)
	wantError(t, errorFrom(classes.WeighClasses("yes")), "want none, balanced, or positive weights")
	moreClasses.Class[1] = 1
	wantError(t, errorFrom(classes.Append(moreClasses)), `the label "maybe" is not among those of the fit`)
	named := *more
	named.Columns = []string{"y"}
	wantError(t, errorFrom(d.Append(&named)), `"y" here, "x" in the data to append to`)
	wantError(t, errorFrom(d.GroupBy([]int{0, 0, 1}).Append(more)), "numbers of given groups")
	wantError(t, errorFrom(d.Append(classes)), "need answers for the same regression of 2 targets")
	swapped := *more
	swapped.TargetNames = []string{"v", "u"}
	wantError(t, errorFrom(d.Append(&swapped)),
		`have the targets "v", "u", the others "u", "v": give both in the same order`)
}

// TestAppendCodings checks that rows whose dates or coordinates are coded differently cannot be appended, and that
// rows that are read with the coding of the first ones can.
func TestAppendCodings(t *testing.T) {
	read := func(text string, options ReadOptions) *Dataset {
		return must(Read(strings.NewReader(text), "rows", &options))
	}
	for _, c := range []struct {
		options     ReadOptions
		first, next string
		wantErr     string // part of the error if the next file is read without the coding of the first one
	}{
		{ReadOptions{Target: "y", ColumnCodings: []ColumnCoding{{Column: "day", Dates: &DateCoding{}}}},
			"day,y\n2024-01-01,1\n2024-01-09,2\n", "day,y\n2024-02-01,1\n2024-02-09,2\n", `the column "day"`},
		{ReadOptions{Target: "y", Space: &Space{Columns: []string{"lon", "lat"}}},
			"lon,lat,y\n8,47,1\n9,48,2\n", "lon,lat,y\n9,47,1\n9,49,2\n", "the coordinates of the rows to append are projected"},
	} {
		c.options.Format = "csv"
		first, next := read(c.first, c.options), read(c.next, c.options)
		wantError(t, errorFrom(first.Append(next)), c.wantErr)
		if _, err := next.Append(&Dataset{X: next.X, Target: next.Target, Columns: next.Columns}); err == nil {
			t.Errorf("%s: rows without a coding are appended", c.wantErr)
		}
		c.options.ColumnCodings, c.options.Space, c.options.Columns = first.ColumnCodings, first.Space, first.Columns
		if all, err := first.Append(read(c.next, c.options)); err != nil || all.Len() != 4 {
			t.Errorf("%q: %v, want 4 rows", c.next, err)
		}
	}
}
