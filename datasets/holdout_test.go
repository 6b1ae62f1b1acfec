package datasets

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// classifiedRows returns points with the given classes. The only feature of point i is i.
func classifiedRows(class []int, labels ...string) *Dataset {
	x := points.NewDense(len(class), 1, nil)
	for i := range x.Data {
		x.Data[i] = float64(i)
	}
	return &Dataset{Name: "made", Task: Classification, X: x, Class: class, Labels: labels}
}

// TestHoldout checks that the two parts are a partition of the rows in their order, that they depend on the seed
// only, and that each row is held out equally often, whatever its class.
func TestHoldout(t *testing.T) {
	class := slices.Concat(slices.Repeat([]int{0}, 50), slices.Repeat([]int{1}, 23), slices.Repeat([]int{2}, 4),
		[]int{3})
	d := classifiedRows(class, "a", "b", "c", "d")
	for _, share := range []float64{0.01, 0.2, 0.5, 0.9} {
		train, test := mustPair(d.Holdout(share, 7))
		if want := max(1, int(share*78+0.5)); test.Len() != want && share < 0.9 {
			t.Errorf("%g: %d rows are held out, want %d", share, test.Len(), want)
		}
		trainRows, testRows := train.X.(*points.Dense).Data, test.X.(*points.Dense).Data
		if all := slices.Concat(trainRows, testRows); !slices.IsSorted(trainRows) || !slices.IsSorted(testRows) ||
			len(all) != 78 {
			t.Errorf("%g: parts %v, %v", share, trainRows, testRows)
		} else if slices.Sort(all); !slices.Equal(all, d.X.(*points.Dense).Data) {
			t.Errorf("%g: not a partition: %v", share, all)
		}
		for i, row := range testRows {
			if test.Class[i] != class[int(row)] {
				t.Errorf("%g: row %g has class %d", share, row, test.Class[i])
			}
		}
		if _, again, _ := d.Holdout(share, 7); !slices.Equal(again.X.(*points.Dense).Data, testRows) {
			t.Errorf("%g: another draw for the same seed", share)
		}
		if _, other, _ := d.Holdout(share, 8); share == 0.5 && slices.Equal(other.X.(*points.Dense).Data, testRows) {
			t.Errorf("%g: the same draw for another seed", share)
		}
	}
	timesHeldOut := make([]float64, 78)
	for seed := range uint64(1000) {
		_, test := mustPair(d.Holdout(0.25, seed))
		for _, v := range test.X.(*points.Dense).Data {
			timesHeldOut[int(v)]++
		}
	}
	for i, count := range timesHeldOut {
		// 20 of the 78 rows are held out. The count has the expectation 256 and the standard deviation 14; 70 are 5 of
		// them.
		if math.Abs(count-1000*20/78.0) > 70 {
			t.Errorf("row %d of class %d is held out %g times of 1,000", i, class[i], count)
		}
	}
	regression := classifiedRows(make([]int, 10))
	regression.Task, regression.Target, regression.Class = Regression, slices.Clone(regression.X.(*points.Dense).Data),
		nil
	train, test, err := regression.Holdout(0.25, 1)
	if err != nil || test.Len() != 3 || train.Len() != 7 || !slices.Equal(test.Target, test.X.(*points.Dense).Data) {
		t.Errorf("regression: %v, %v, %v", train, test, err)
	}
	for _, share := range []float64{0, 1, -1} {
		_, _, err := d.Holdout(share, 1)
		wantError(t, err, "want a number between 0 and 1")
	}
}

// TestHoldoutGroups checks that rows with equal features are in the same part, and that both parts have rows.
func TestHoldoutGroups(t *testing.T) {
	group := make([]int, 60)
	for i := range group {
		group[i] = i * i % 17
	}
	d := classifiedRows(group, strings.Split("abcdefghijklmnopq", "")...)
	d.X = points.Gather(d.X, group)
	d = must(d.GroupByRule("together", nil))
	for seed := range uint64(20) {
		train, test, err := d.Holdout(0.3, seed)
		if err != nil || test.Len() < 18 || train.Len()+test.Len() != 60 ||
			slices.ContainsFunc(test.Class, func(c int) bool { return slices.Contains(train.Labels, test.Labels[c]) }) {
			t.Errorf("%v and %v, %v", train, test, err)
		}
	}
	equal := must(classifiedRows(make([]int, 9), "a").Subset(make([]int, 9)).GroupByRule("together", nil))
	_, _, err := equal.Holdout(0.2, 1)
	wantError(t, err, "leaves no row to train on")
}
