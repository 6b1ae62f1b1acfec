package direct_test

import (
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/krylov/direct"
)

// TestFasterPrecision checks that float32 is chosen for many points only, and if K+λI has a float32 factor and one
// round of refinement reaches the tolerance.
func TestFasterPrecision(t *testing.T) {
	for _, test := range []struct {
		n                    int
		largest, lambda, tol float64
		want                 direct.Precision
	}{
		{3341, 1, 0.1, 1e-5, direct.Float32Refined},
		{2000, 1, 0.1, 1e-5, direct.Float64},
		{3341, 1, 0.1, 1e-8, direct.Float64},
		{3341, 1e6, 0.1, 1e-3, direct.Float64},
		{3341, 1, 1e-4, 0.5, direct.Float64},
		{3341, 1, 2.1e-4, 0.5, direct.Float32Refined},
	} {
		testkit.Equal(t, direct.FasterPrecision(test.n, test.largest, test.lambda, test.tol), test.want, test)
	}
}
