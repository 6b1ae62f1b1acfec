package krrlab

import (
	"testing"
	"time"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
)

// eigenvalues returns those of K formed from Eval, ascending.
func eigenvalues(t testing.TB, l *Lab) []float64 {
	t.Helper()
	r := newReference(t, l.cfg.Kernel, l.train.X, l.cfg.Lambda, l.y)
	mu := testkit.Eigenvalues(t, r.a)
	for i := range mu {
		mu[i] -= l.cfg.Lambda
	}
	return mu
}

// dimension returns Σ μ/(μ+λ).
func dimension(mu []float64, lambda float64) (s float64) {
	for _, m := range mu {
		s += m / (m + lambda)
	}
	return s
}

// TestStatDimCoverage counts how often the default interval covers the exact value on subsets of
// real data. It takes some minutes: KRRLAB_LONG.
func TestStatDimCoverage(t *testing.T) {
	dir := suite.RealData(t)
	if lib, err := accel.OpenBLAS(); err == nil { // for the time it takes
		accel.Use(lib)
		defer accel.Use(nil)
	}
	for name, sigma := range map[string]float64{"mnist": 8.5, "ijcnn1": 0.3} {
		p := testkit.Must(datasets.Load(t.Context(), name, &datasets.LoadOptions{Dirs: []string{dir}, N: 2000}))
		first := newLab(t, p.Train, Config{Kernel: kernel.Gaussian{Sigma: sigma}, Lambda: 0.01, Solver: PCG})
		exact := dimension(eigenvalues(t, first), 0.01)
		for _, m := range []StatDimMethod{Hutchinson, SLQ} {
			covered, reached, start := 0, 0, time.Now()
			for seed := range 100 {
				l := testkit.Must(first.With(func(c *Config) { c.Seed = uint64(seed) }))
				s := testkit.Must(l.StatDim(t.Context(), StatDimOptions{Method: m}))
				if s.Estimate.Covers(exact) {
					covered++
				}
				if s.WidthReached {
					reached++
				}
			}
			t.Logf("%s, %v: s_λ = %.5g covered in %d of 100 seeds, width reached in %d, %.0f s", name, m, exact,
				covered, reached, time.Since(start).Seconds())
			if covered < 90 || reached < 90 {
				t.Errorf("%s, %v: covered %d, reached %d of 100", name, m, covered, reached)
			}
		}
	}
}
