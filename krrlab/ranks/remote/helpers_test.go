package remote

import (
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

var gauss = kernel.Gaussian{Sigma: 1.5}

// kinds returns the same points in each storage; a third of their numbers is not zero. The byte points are others.
func kinds(n, d int) map[string]points.Points {
	return testkit.PointsInEachFormat(n, d, rng.New(8))
}

// classes assigns one of k labels to the points in turn.
func classes(x points.Points, k int) *datasets.Dataset {
	d := &datasets.Dataset{Name: "test", Task: datasets.Classification, X: x, Labels: []string{"a", "b", "c"}[:k]}
	n, _ := x.Dims()
	for i := range n {
		d.Class = append(d.Class, i%k)
	}
	return d
}

// regression assigns a number to each point.
func regression(x points.Points) *datasets.Dataset {
	d := &datasets.Dataset{Name: "test", Task: datasets.Regression, X: x}
	n, _ := x.Dims()
	for i := range n {
		d.Target = append(d.Target, float64(i%7)-3)
	}
	return d
}

// problem returns a classification problem with three classes.
func problem(n int) *datasets.Dataset { return classes(kinds(n, 4)["float64"], 3) }

// newLab returns the lab, or ends the test if that is an error.
func newLab(t *testing.T, train *datasets.Dataset, cfg krrlab.Config) *krrlab.Lab {
	t.Helper()
	l := testkit.Must(krrlab.New(train, cfg))
	return l
}

// timeless returns the JSON of a result without the values that depend on the clock, the free memory or the
// communication of the ranks.
func timeless(s any) any {
	return testkit.JSONWithoutTimes(s, func(key string, _ map[string]any) bool {
		return key == "bytes" || key == "peak_bytes"
	})
}
