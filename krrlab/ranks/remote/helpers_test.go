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

// pointsInEachFormat returns n points of dimension d in each storage format, by name; a third of their coordinates are
// not zero. The formats have the same points, except for the format bytes.
func pointsInEachFormat(n, d int) map[string]points.Points {
	return testkit.PointsInEachFormat(n, d, rng.New(8))
}

// classes returns a classification problem in which the given number of labels are assigned to the points x in turn.
func classes(x points.Points, count int) *datasets.Dataset {
	d := &datasets.Dataset{Name: "test", Task: datasets.Classification, X: x, Labels: []string{"a", "b", "c"}[:count]}
	n, _ := x.Dims()
	for i := range n {
		d.Class = append(d.Class, i%count)
	}
	return d
}

// regression returns a regression problem in which the targets of the points x have a period of 7.
func regression(x points.Points) *datasets.Dataset {
	d := &datasets.Dataset{Name: "test", Task: datasets.Regression, X: x}
	n, _ := x.Dims()
	for i := range n {
		d.Target = append(d.Target, float64(i%7)-3)
	}
	return d
}

// problem returns a classification problem with three classes.
func problem(n int) *datasets.Dataset { return classes(pointsInEachFormat(n, 4)["float64"], 3) }

// newLab returns the lab, and panics if krrlab.New fails.
func newLab(t *testing.T, train *datasets.Dataset, cfg krrlab.Config) *krrlab.Lab {
	t.Helper()
	return testkit.Must(krrlab.New(train, cfg))
}

// withoutTimes returns the JSON of a result without the values that depend on the clock, the free memory or the
// communication of the ranks.
func withoutTimes(s any) any {
	return testkit.JSONWithoutTimes(s, func(key string, _ map[string]any) bool {
		return key == "bytes" || key == "peak_bytes"
	})
}
