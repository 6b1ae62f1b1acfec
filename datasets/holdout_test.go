package datasets

import (
	"slices"
	"testing"

	"github.com/krrlab/lab/krrlab/points"
)

// counted points: point i is (i), its class the one given.
func classed(class []int, labels ...string) *Dataset {
	x := points.NewDense(len(class), 1, nil)
	for i := range x.Data {
		x.Data[i] = float64(i)
	}
	return &Dataset{Name: "made", Task: Classification, X: x, Class: class, Labels: labels}
}

// TestHoldout: the parts are disjoint, whole, in order, the same for one seed and others for
// another, and hold each class's share.
func TestHoldout(t *testing.T) {
	class := slices.Concat(slices.Repeat([]int{0}, 50), slices.Repeat([]int{1}, 23), slices.Repeat([]int{2}, 4), []int{3})
	d := classed(class, "a", "b", "c", "d")
	for _, share := range []float64{0.01, 0.2, 0.5, 0.9} {
		train, held, err := d.Holdout(share, 7)
		if err != nil {
			t.Fatal(err)
		}
		if want := max(1, int(share*78+0.5)); held.Len() != want && share < 0.9 {
			t.Errorf("%g: %d rows are held out, want %d", share, held.Len(), want)
		}
		a, b := train.X.(*points.Dense).Data, held.X.(*points.Dense).Data
		if all := slices.Concat(a, b); !slices.IsSorted(a) || !slices.IsSorted(b) || len(all) != 78 {
			t.Errorf("%g: parts %v, %v", share, a, b)
		} else if slices.Sort(all); !slices.Equal(all, d.X.(*points.Dense).Data) {
			t.Errorf("%g: not a partition: %v", share, all)
		}
		for c, n := range []float64{50, 23, 4, 1} {
			k := 0
			for _, v := range held.Class {
				if v == c {
					k++
				}
			}
			if float64(k) > share*n+1 || float64(k) < share*n-1 || k == int(n) {
				t.Errorf("%g: %d of %g rows of class %d are held out", share, k, n, c)
			}
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
	if _, _, err := classed([]int{0, 1}, "a", "b").Holdout(0.2, 1); err == nil {
		t.Error("classes of one row each can be held out")
	}
}
