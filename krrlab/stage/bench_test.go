package stage

import (
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// TestAffordableSeries checks that a stage with other methods does not use a Fourier series if it has more than 2,000
// modes and more modes than points.
func TestAffordableSeries(t *testing.T) {
	for _, test := range []struct {
		n          int
		sigma      float64
		affordable bool
	}{
		{n: 500, sigma: 0.8, affordable: true},  // few modes
		{n: 500, sigma: 0.3, affordable: false}, // more modes than 2,000 and than points
		{n: 6000, sigma: 0.3, affordable: true}, // more modes than 2,000, and more points
	} {
		p := &Problem{Header: Header{N: test.n, T: 1, Lambda: 0.1}, Kernel: kernel.Gaussian{Sigma: test.sigma},
			X: testkit.RandomPoints(1, test.n, 2), Comm: comm.Alone()}
		complete, _ := p.Series()
		if complete == nil {
			t.Fatalf("n = %d, σ = %g: no series", test.n, test.sigma)
		}
		s, bound := p.AffordableSeries()
		if (s != nil) != test.affordable || (bound > 0) != test.affordable {
			t.Errorf("n = %d, %d modes: affordable %t, error %g; want %t", test.n, complete.Modes(), s != nil, bound,
				test.affordable)
		}
		t.Logf("n = %d, σ = %g: %d modes", test.n, test.sigma, complete.Modes())
	}
}
