package model

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestTargetMean checks a model with the mean of its targets. The mean is added to decision values and its rounding
// error to their bounds. A file with a mean has version 3, which older programs refuse, and a file without one still
// has version 1. Impossible means are refused.
func TestTargetMean(t *testing.T) {
	z := &datasets.Dataset{X: pointsInFormats(300, 3, 2)["float64"]}
	m := randomModel(kernels[0], pointsInFormats(7, 3, 1)["float64"], 1)
	m.ErrorBounds = &ErrorBounds{ANorm: []float64{0}}
	withoutMean := *m
	const mean = 1e6
	m.Mean = []float64{mean}
	file := savedBytes(t, m)
	if strings.Contains(m.String(), "f(x) = Σ") {
		t.Errorf("the formula %v omits the mean", m)
	}
	loaded := testkit.Must(readBytes(file))
	if !slices.Equal(loaded.Mean, m.Mean) {
		t.Fatalf("the loaded model has the mean %v, want %v", loaded.Mean, m.Mean)
	}
	testkit.Contains(t, string(entry(t, file, "model.json")), `"version": 3`)
	if meta := string(entry(t, savedBytes(t, &withoutMean), "model.json")); !strings.Contains(meta, `"version": 1`) ||
		strings.Contains(meta, "mean") {
		t.Errorf("model.json without a mean: %s", meta)
	}
	o := &Options{Float64: true}
	p := testkit.Must(loaded.Predict(t.Context(), z, o))
	got, want := decide(t, loaded, z.X, o), decide(t, &withoutMean, z.X, o)
	gotBounds, wantBounds := testkit.Must(loaded.DecisionBounds(z)), testkit.Must(withoutMean.DecisionBounds(z))
	for i, v := range p.Value {
		bound, boundWithoutMean := gotBounds.At(i, 0), wantBounds.At(i, 0)
		difference := math.Abs((v - mean) - want.At(i, 0)) // v − mean is exact
		if got.At(i, 0) != v || difference > bound+boundWithoutMean || bound < boundWithoutMean+mean*0x1p-53 {
			t.Fatalf("row %d: %g with the mean, %g without; bounds %g, %g", i, v, want.At(i, 0), bound,
				boundWithoutMean)
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
