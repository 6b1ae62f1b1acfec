package baseline_test

import (
	"context"
	"testing"

	"github.com/krrlab/lab/krrlab/baseline"
	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// TestNeeds: all that a method allocates, scratch that lives shortly too, is at most 1.5 times what it
// said it needs, and what it says is no gross exaggeration.
func TestNeeds(t *testing.T) {
	ctx := context.Background()
	x := draw(41, 3000, 4)
	y := wave(x, 2)
	m := sample(t, gaussian, 4, 900)
	for name, f := range map[string]func() (int64, error){
		"features": func() (int64, error) {
			r, err := baseline.RandomFeatures(ctx, m, x, 0.1, y, nil)
			return r.Bytes, err
		},
		"admm": func() (int64, error) {
			a, err := baseline.NewADMM(ctx, m, x, 0.1, y, baseline.Square, nil)
			if err != nil {
				return 0, err
			}
			r, err := a.Solve(ctx, &baseline.ADMMSolve{MaxIter: 20})
			return r.Bytes, err
		},
	} {
		var need int64
		got := testkit.Allocated(func() {
			var err error
			if need, err = f(); err != nil {
				t.Fatal(name, err)
			}
		})
		if got > need+need/2 || got < need/4 {
			t.Errorf("%s: %d bytes allocated, %d needed", name, got, need)
		}
	}
}
