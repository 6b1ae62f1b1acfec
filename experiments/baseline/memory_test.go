package baseline_test

import (
	"context"
	"testing"

	"github.com/krrlab/lab/experiments/baseline"
)

// TestNeeds checks that the bytes that a method allocates, including temporary memory, are between a fourth of and 1.5
// times its stated need.
func TestNeeds(t *testing.T) {
	ctx := context.Background()
	x := randomPoints(41, 3000, 4)
	y := smoothTargets(x, 2)
	m := sampleFeatures(t, gaussian, 4, 900)
	for name, fit := range map[string]func() (*baseline.Result, error){
		"features": func() (*baseline.Result, error) { return baseline.RandomFeatures(ctx, m, x, 0.1, y, nil) },
		"admm": func() (*baseline.Result, error) {
			return baseline.ADMM(ctx, m, x, 0.1, y, &baseline.ADMMOptions{MaxIter: 20})
		},
	} {
		var need int64
		got := allocatedBytes(func() { need = must(fit()).Bytes })
		if got > need+need/2 || got < need/4 {
			t.Errorf("%s: %d bytes allocated, %d needed", name, got, need)
		}
		t.Log(name, got, need)
	}
}
