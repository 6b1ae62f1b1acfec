package datasets

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab/kernel/points"
)

// counted points: point i is (i), its class the one given.
func classed(class []int, labels ...string) *Dataset {
	x := points.NewDense(len(class), 1, nil)
	for i := range x.Data {
		x.Data[i] = float64(i)
	}
	return &Dataset{Name: "made", Task: Classification, X: x, Class: class, Labels: labels}
}

// TestHoldout: the parts are disjoint, whole, in order, the same for one seed and others for another, and every row
// is held out as often, whatever its class.
func TestHoldout(t *testing.T) {
	class := slices.Concat(slices.Repeat([]int{0}, 50), slices.Repeat([]int{1}, 23), slices.Repeat([]int{2}, 4),
		[]int{3})
	d := classed(class, "a", "b", "c", "d")
	for _, share := range []float64{0.01, 0.2, 0.5, 0.9} {
		train, held := must2(d.Holdout(share, 7))
		if want := max(1, int(share*78+0.5)); held.Len() != want && share < 0.9 {
			t.Errorf("%g: %d rows are held out, want %d", share, held.Len(), want)
		}
		a, b := train.X.(*points.Dense).Data, held.X.(*points.Dense).Data
		if all := slices.Concat(a, b); !slices.IsSorted(a) || !slices.IsSorted(b) || len(all) != 78 {
			t.Errorf("%g: parts %v, %v", share, a, b)
		} else if slices.Sort(all); !slices.Equal(all, d.X.(*points.Dense).Data) {
			t.Errorf("%g: not a partition: %v", share, all)
		}
		for i, v := range b {
			if held.Class[i] != class[int(v)] {
				t.Errorf("%g: row %g has class %d", share, v, held.Class[i])
			}
		}
		if _, again, _ := d.Holdout(share, 7); !slices.Equal(again.X.(*points.Dense).Data, b) {
			t.Errorf("%g: another draw for the same seed", share)
		}
		if _, other, _ := d.Holdout(share, 8); share == 0.5 && slices.Equal(other.X.(*points.Dense).Data, b) {
			t.Errorf("%g: the same draw for another seed", share)
		}
	}
	count := make([]float64, 78)
	for seed := range uint64(1000) {
		_, held := must2(d.Holdout(0.25, seed))
		for _, v := range held.X.(*points.Dense).Data {
			count[int(v)]++
		}
	}
	for i, c := range count { // 256 ± 14
		if math.Abs(c-1000*20/78.0) > 70 {
			t.Errorf("row %d of class %d is held out %g times of 1,000", i, class[i], c)
		}
	}
	r := classed(make([]int, 10))
	r.Task, r.Target, r.Class = Regression, slices.Clone(r.X.(*points.Dense).Data), nil
	train, held, err := r.Holdout(0.25, 1)
	if err != nil || held.Len() != 3 || train.Len() != 7 || !slices.Equal(held.Target, held.X.(*points.Dense).Data) {
		t.Errorf("regression: %v, %v, %v", train, held, err)
	}
	for _, share := range []float64{0, 1, -1} {
		if _, _, err := d.Holdout(share, 1); err == nil {
			t.Errorf("a share of %g is accepted", share)
		}
	}
}

// TestHoldoutTogether: equal rows are on one side, and some are left to train on.
func TestHoldoutTogether(t *testing.T) {
	of := make([]int, 60)
	for i := range of {
		of[i] = i * i % 17
	}
	d := classed(of, strings.Split("abcdefghijklmnopq", "")...)
	d.X = points.Gather(d.X, of)
	d = must(d.Group("together", nil))
	for seed := range uint64(20) {
		train, held, err := d.Holdout(0.3, seed)
		if err != nil || held.Len() < 18 || train.Len()+held.Len() != 60 ||
			slices.ContainsFunc(held.Class, func(c int) bool { return slices.Contains(train.Labels, held.Labels[c]) }) {
			t.Errorf("%v and %v, %v", train, held, err)
		}
	}
	if _, _, err := must(classed(make([]int, 9), "a").Subset(make([]int, 9)).Group("together", nil)).Holdout(0.2, 1); err == nil {
		t.Error("rows that are all equal are split")
	}
}
