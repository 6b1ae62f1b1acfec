package krrlab

import (
	"testing"
	"time"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/suite"
)

var statDimMethods = []StatDimMethod{AutoStatDim, ExactStatDim, Hutchinson, SLQ, FreeStatDim}

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

func statDimLab(t testing.TB, cfg Config) *Lab {
	t.Helper()
	if cfg.Kernel == nil {
		cfg.Kernel = gauss
	}
	cfg.Solver = PCG
	l := newLab(t, regression(kinds(250, 4, 3)["float64"]), cfg)
	return l
}

// TestStatDim checks every method and preconditioner against the eigenvalues of K, at the λ
// asked and along the curve.
func TestStatDim(t *testing.T) {
	for _, p := range []Preconditioner{Features{S: 60, LambdaP: 0.1}, Nystrom{S: 60, LambdaP: 0.1},
		RPCholesky{S: 60, LambdaP: 0.1}, None{}} {
		l := statDimLab(t, Config{Lambda: 0.05, Seed: 3, Precond: p, Storage: gram.Float64})
		mu := eigenvalues(t, l)
		for _, m := range statDimMethods {
			if m == FreeStatDim && p == Preconditioner(None{}) {
				continue
			}
			s := testkit.Must(l.StatDim(t.Context(), StatDimOptions{Method: m, Confidence: 0.999}))
			if exact := dimension(mu, 0.05); !s.Estimate.Covers(exact) || m != FreeStatDim && !s.Reached {
				t.Errorf("%v, %v: s_λ = %.6g, got %v, reached %v", p, m, exact, s.Estimate, s.Reached)
			}
			for _, c := range s.Curve {
				if exact := dimension(mu, c.Lambda); !c.Estimate.Covers(exact) || c.Estimate.Lo > c.Estimate.Value ||
					c.Estimate.Hi < c.Estimate.Value {
					t.Errorf("%v, %v: s_%g = %.6g, got %v", p, m, c.Lambda, exact, c.Estimate)
				}
			}
			if len(s.Curve) != map[bool]int{false: 21}[m == Hutchinson] {
				t.Errorf("%v, %v: %d points of the curve", p, m, len(s.Curve))
			}
		}
	}
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
		p, err := datasets.Load(t.Context(), name, &datasets.LoadOptions{Dirs: []string{dir}, N: 2000})
		if err != nil {
			t.Fatal(err)
		}
		var shared *gram.Matrix
		var exact float64
		for _, m := range []StatDimMethod{Hutchinson, SLQ} {
			covered, reached, start := 0, 0, time.Now()
			for seed := range 100 {
				l := newLab(t, p.Train, Config{Kernel: kernel.Gaussian{Sigma: sigma}, Lambda: 0.01, Solver: PCG,
					Seed: uint64(seed)})
				if shared == nil {
					if shared, err = l.K(t.Context()); err != nil {
						t.Fatal(err)
					}
					exact = dimension(eigenvalues(t, l), 0.01)
				}
				l.k.a, l.k.accuracy = shared, l.system().Accuracy()
				s := testkit.Must(l.StatDim(t.Context(), StatDimOptions{Method: m}))
				if s.Estimate.Covers(exact) {
					covered++
				}
				if s.Reached {
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
