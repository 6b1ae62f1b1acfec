package sketchsize

import (
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond/feature"
)

// TestDefaults checks the documented defaults, and the memory of a rung by its formula.
func TestDefaults(t *testing.T) {
	for n, ladder := range map[int][2]int{2000: {128, 1999}, 80: {10, 79}, 5: {1, 4}} { // first and largest s
		var o Options
		testkit.OK(t, o.setDefaults(n, 1, 1))
		if o.Test != Kappa || o.Target != 30 || o.Constants != Kappa5Constants || o.Confidence != 0.95 ||
			o.Eigen != 2048 || o.Steps != 150 || [2]int{o.First, o.Max} != ladder {
			t.Errorf("n = %d: %+v, want s from %d to %d", n, o, ladder[0], ladder[1])
		}
	}
	const n, s, d = 1000, 100, 4
	const maps = (4*d + 20) * (s + s/2) // of all features, and of the half that is added
	for test, want := range map[TestName]int64{Kappa: 6*n*s + 18*s*s + maps, Theorem7: 6*n*s + 34*s*s + maps} {
		rung := &search{options: Options{Test: test}, problem: Problem{X: points.NewDense(n, d, nil),
			Map: feature.Fourier{Kernel: kernel.Gaussian{Sigma: 1}}}}
		rung.n = n
		testkit.Equal(t, rung.bytes(s), want, "bytes of a rung,", test)
	}
}
