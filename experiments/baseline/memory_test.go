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
	x := draw(41, 3000, 4)
	y := wave(x, 2)
	m := sample(t, gaussian, 4, 900)
	for name, f := range map[string]func() (*baseline.Result, error){
		"features": func() (*baseline.Result, error) { return baseline.RandomFeatures(ctx, m, x, 0.1, y, nil) },
		"admm": func() (*baseline.Result, error) {
			return baseline.ADMM(ctx, m, x, 0.1, y, &baseline.ADMMOptions{MaxIter: 20})
		},
	} {
		var need int64
		got := allocated(func() { need = must(f()).Bytes })
		if got > need+need/2 || got < need/4 {
			t.Errorf("%s: %d bytes allocated, %d needed", name, got, need)
		}
		t.Log(name, got, need)
	}
}
