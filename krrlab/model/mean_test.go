package model

import (
	"math"
	"strings"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestMean checks a model with the mean of its targets. The mean is added to decision values and its rounding error
// to their bounds. A file with a mean has version 3, which older programs refuse, and a file without one still has
// version 1. Impossible means are refused.
func TestMean(t *testing.T) {
	z := &datasets.Dataset{X: kinds(300, 3, 2)["float64"]}
	m := random(kernels[0], kinds(7, 3, 1)["float64"], 1)
	m.ErrorBounds = &ErrorBounds{ANorm: []float64{0}}
	plain := *m
	m.Mean = []float64{1e6}
	b := save(t, m)
	if strings.Contains(m.String(), "f(x) = Σ") {
		t.Errorf("%v", m)
	}
	read, err := read(b)
	if err != nil || len(read.Mean) != 1 || read.Mean[0] != 1e6 {
		t.Fatalf("%v, %v", read, err)
	}
	testkit.Contains(t, string(entry(t, b, "model.json")), `"version": 3`)
	if meta := string(entry(t, save(t, &plain), "model.json")); !strings.Contains(meta, `"version": 1`) ||
		strings.Contains(meta, "mean") {
		t.Error(meta)
	}
	o := &Options{Float64: true}
	with, without := mustDecide(t, read, z.X, o), mustDecide(t, &plain, z.X, o)
	p := testkit.Must(read.Predict(t.Context(), z, o))
	wide := testkit.Must(read.DecisionBounds(z))
	narrow := testkit.Must(plain.DecisionBounds(z))
	for i := range z.Len() {
		difference := math.Abs((with.At(i, 0) - 1e6) - without.At(i, 0)) // the difference is exact
		if p.Value[i] != with.At(i, 0) || difference > wide.At(i, 0)+narrow.At(i, 0) ||
			wide.At(i, 0) < narrow.At(i, 0)+1e6*0x1p-53 {
			t.Fatalf("row %d: %g with the mean, %g without; bounds %g, %g", i, with.At(i, 0), without.At(i, 0),
				wide.At(i, 0), narrow.At(i, 0))
		}
	}
	for _, bad := range []*Model{
		{Mean: []float64{math.NaN()}}, {Mean: []float64{1, 2}}, {Mean: []float64{}},
		{Mean: []float64{1}, Labels: []string{"a", "b"}},
	} {
		m := *m
		m.Mean, m.Labels = bad.Mean, bad.Labels
		testkit.Fails(t, m.check(), "of the targets")
	}
}
