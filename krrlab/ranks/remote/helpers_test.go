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

// kinds returns the same points in each storage, a third of their numbers not zero; in bytes others.
func kinds(n, d int) map[string]points.Points {
	return testkit.PointsInEachFormat(n, d, rng.New(8))
}

// classes gives the points one of k labels in turn.
func classes(x points.Points, k int) *datasets.Dataset {
	d := &datasets.Dataset{Name: "test", Task: datasets.Classification, X: x, Labels: []string{"a", "b", "c"}[:k]}
	n, _ := x.Dims()
	for i := range n {
		d.Class = append(d.Class, i%k)
	}
	return d
}

// regression gives each point a number.
func regression(x points.Points) *datasets.Dataset {
	d := &datasets.Dataset{Name: "test", Task: datasets.Regression, X: x}
	n, _ := x.Dims()
	for i := range n {
		d.Target = append(d.Target, float64(i%7)-3)
	}
	return d
}

func problem(n int) *datasets.Dataset { return classes(kinds(n, 4)["float64"], 3) }

func newLab(t *testing.T, train *datasets.Dataset, cfg krrlab.Config) *krrlab.Lab {
	t.Helper()
	l := testkit.Must(krrlab.New(train, cfg))
	return l
}

// timeless returns the JSON of a stage without what depends on the clock, on memory at the time, or on
// how the ranks agreed.
func timeless(s any) any {
	return testkit.Timeless(s, func(key string, _ map[string]any) bool { return key == "bytes" || key == "peak_bytes" })
}
