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
		var options Options
		testkit.OK(t, options.setDefaults(n, 1, 1))
		if options.Test != Kappa || options.Target != 30 || options.Constants != Kappa5Constants ||
			options.Confidence != 0.95 || options.Eigen != 2048 || options.Steps != 150 ||
			[2]int{options.First, options.Max} != ladder {
			t.Errorf("n = %d: %+v, want s from %d to %d", n, options, ladder[0], ladder[1])
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
