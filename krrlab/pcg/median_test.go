package pcg_test

import (
	"context"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/pcg"
)

// TestMedianIndexShapes: candidates of another shape than the first, or than A, are refused in the
// package's own words.
func TestMedianIndexShapes(t *testing.T) {
	a := dense{mat.NewSymDense(2, []float64{2, 0, 0, 2})}
	one := mat.NewDense(2, 1, []float64{1, 1})
	for name, xs := range map[string][]*mat.Dense{
		"none": {}, "rows": {one, mat.NewDense(3, 1, nil)}, "columns": {one, mat.NewDense(2, 2, nil)}, "order": {mat.NewDense(3, 1, nil), mat.NewDense(3, 1, nil)},
	} {
		func() {
			defer func() {
				if v, _ := recover().(string); !strings.HasPrefix(v, "pcg: ") {
					t.Errorf("%s: panic %q", name, v)
				}
			}()
			_, _ = pcg.MedianIndex(context.Background(), a, xs)
			t.Errorf("%s: taken", name)
		}()
	}
	if got, err := pcg.MedianIndex(context.Background(), a, []*mat.Dense{one}); err != nil || len(got) != 1 || got[0] != 0 {
		t.Errorf("of one candidate: %v, %v", got, err)
	}
}
