package stage

import (
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// TestAffordableSeries: a stage that has other methods takes no series of many modes for fewer points.
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
		whole, _ := p.Series()
		if whole == nil {
			t.Fatalf("n = %d, σ = %g: no series", test.n, test.sigma)
		}
		s, bound := p.AffordableSeries()
		if (s != nil) != test.affordable || (bound > 0) != test.affordable {
			t.Errorf("n = %d, %d modes: affordable %t, error %g; want %t", test.n, whole.Modes(), s != nil, bound,
				test.affordable)
		}
		t.Logf("n = %d, σ = %g: %d modes", test.n, test.sigma, whole.Modes())
	}
}
