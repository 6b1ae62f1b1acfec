package statdim

import (
	"context"
	"testing"

	"github.com/krrlab/lab/krrlab/rng"
)

// method is one of the randomised methods.
type method struct {
	name string
	run  func(ctx context.Context, p *Problem, o *Options) (*Result, error)
}

var methods = []method{{"hutchinson", Hutchinson}, {"xtrace", XTrace}, {"slq", SLQ}}

// TestCoverage counts over seeds how often the 95 % interval covers the exact value, for
// designed spectra with and without a control variate, and that the width is reached
// wherever probes are not used up.
func TestCoverage(t *testing.T) {
	const n = 200
	for _, s := range spectra {
		d := s.design(n, 3)
		for _, controlled := range []bool{false, true} {
			for _, m := range methods {
				p := &Problem{K: d.k, Lambda: s.lambda}
				name := s.name + "/" + m.name
				if controlled {
					p.Control = control(t, d.features(30, 0.1, 5), 2*s.lambda)
					name += "/controlled"
				}
				t.Run(name, func(t *testing.T) {
					covered, reached, probes, count := 0, 0, 0, seeds()
					for seed := range count {
						r, err := m.run(t.Context(), p, &Options{Stream: rng.New(uint64(seed))})
						if err != nil {
							t.Fatal(err)
						}
						if r.Estimate.Covers(d.exact) {
							covered++
						}
						if r.Reached {
							reached++
						}
						probes += r.Probes
						if r.Reached != (r.Estimate.Width() <= 0.1) || !r.Reached && r.Probes < min(256, n/2) {
							t.Errorf("seed %d: %v of width %.3g with %d probes, reached %v", seed, r.Estimate, r.Estimate.Width(), r.Probes, r.Reached)
						}
					}
					t.Logf("s_λ = %.4g: %d of %d covered, %d reached 10 %%, %.1f probes", d.exact, covered, count, reached, float64(probes)/float64(count))
					if covered < least(count) {
						t.Errorf("95 %% interval covers %.6g in %d of %d seeds", d.exact, covered, count)
					}
				})
			}
		}
	}
}
