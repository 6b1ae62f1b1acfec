package remote

import (
	"math"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/points"
	"github.com/krrlab/lab/krrlab/rng"
)

var gauss = kernel.Gaussian{Sigma: 1.5}

// kinds returns the same points in each storage, a third of their numbers not zero; in bytes others.
func kinds(n, d int) map[string]points.Points {
	dense, single := points.NewDense(n, d, nil), points.NewDense32(n, d, nil)
	sparse := &points.CSR{N: n, D: d, Ptr: []int{0}}
	g := rng.New(8)
	for p := range n * d {
		if g.Sub("zero").IntN(uint64(p), 3) == 0 {
			single.Data[p] = float32(g.Normal(uint64(p)))
			dense.Data[p] = float64(single.Data[p])
			sparse.Col, sparse.Val = append(sparse.Col, int32(p%d)), append(sparse.Val, dense.Data[p])
		}
		if p%d == d-1 {
			sparse.Ptr = append(sparse.Ptr, len(sparse.Col))
		}
	}
	whole := points.NewBytes(n, d, 0.01, nil)
	for i := range n {
		for c := range d {
			whole.Row(i)[c] = uint8(100 * math.Abs(dense.Row(i)[c]))
		}
	}
	return map[string]points.Points{"float64": dense, "float32": single, "sparse": sparse, "bytes": whole}
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
