package krrlab

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/precond"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/solve"
)

func levels(t testing.TB, spec string) feature.Levels {
	t.Helper()
	l := testkit.Must(feature.ParseLevels(spec))
	return l
}

func multiLevelLab(t testing.TB, n int, k kernel.Kernel, c Config) *Lab {
	t.Helper()
	c.Kernel, c.Solver, c.Lambda, c.Seed = k, PCG, 0.05, 3
	lab := newLab(t, regression(kinds(n, 5, 4)["float64"]), c)
	return lab
}

// TestMultiLevel checks what the stage says against the parts it is made of: the maps that fit
// draws, the iterations that PCG takes with M of them, and the views of the numbers.
func TestMultiLevel(t *testing.T) {
	for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 1.5}, kernel.Polynomial{Gamma: 0.2, Coef0: 1, Degree: 3}} {
		const n, spec = 400, "features:600,countsketch:200,srht:100,gaussian:40"
		lab := multiLevelLab(t, n, k, Config{})
		m := testkit.Must(lab.MultiLevel(t.Context(), &MultiLevelOptions{Levels: levels(t, spec)}))
		if len(m.Chain) != 4 || len(m.OneLevel) != 3 || m.N != n || m.Confidence != 0.95 || m.Levels.String() != spec {
			t.Fatalf("%v: %+v", k, m)
		}
		for i, l := range m.Chain {
			if l.Level != i+1 || l.ChainLevel != m.Levels[i] || !l.Converged || l.Kappa == nil {
				t.Errorf("%v, level %d: %+v", k, i+1, l)
			}
			chain := testkit.Must(feature.ChainFor(k, m.Levels[:i+1]))
			checkLevel(t, lab, l, chain, i == 3)
		}
		alone := testkit.Must(feature.For(k))
		for i, l := range m.OneLevel {
			if l.Level != i+2 || l.Width != m.Levels[i+1].Width || l.Sketch != "features" {
				t.Errorf("%v, features alone: %+v", k, l)
			}
			checkLevel(t, lab, l, alone, true)
		}
	}
}

// checkLevel compares a level with dense eigenvalues and, where fit draws the same map, with PCG and M
// formed in float64.
func checkLevel(t *testing.T, lab *Lab, l MeasuredLevel, dist feature.Dist, same bool) {
	t.Helper()
	if !same {
		return
	}
	cfg := lab.Config()
	cfg.Precond = Features{Map: dist, S: l.Width}
	fit := newLab(t, lab.train, cfg)
	z := testkit.Must(fit.Z(t.Context()))
	a := testkit.Must(fit.K(t.Context()))
	w := testkit.Must(precond.New(t.Context(), z, ridge(fit), &precond.Options{Form: precond.FormLInv}))
	res := testkit.Must(pcg.Solve(t.Context(), a, w, fit.y, &pcg.Options{Tol: cfg.Tol, Aim: solve.Default.Aim,
		MaxIter: cfg.MaxIter}))
	if res.Iterations != l.Iterations || res.Status != l.Status {
		t.Errorf("%v: %d iterations (%s), PCG takes %d (%v)", dist, l.Iterations, l.Status, res.Iterations, res.Status)
	}
	m := testkit.Must(dist.Sample(lab.train.Dim(), l.Width, rng.New(cfg.Seed).Sub("features", 0)))
	norm, kappa := denseLevel(t, lab, m)
	if l.Error.Lo > norm*1.001 || l.Error.Hi < norm*0.999 || l.Kappa.Lo > kappa*1.001 || l.Kappa.Hi < kappa*0.999 {
		t.Errorf("%v: error %v, exactly %g; κ %v, exactly %g", dist, l.Error, norm, *l.Kappa, kappa)
	}
}

// denseLevel returns ‖ZZᵀ−K‖₂ and κ(M⁻¹A) from dense float64 matrices and their eigenvalues.
func denseLevel(t testing.TB, lab *Lab, m feature.Map) (norm, kappa float64) {
	t.Helper()
	cfg := lab.Config()
	n, _, _ := lab.Dims()
	_, s := m.Dims()
	z := mat.NewDense(n, s, nil)
	m.MapTo(z.RawMatrix().Data, s, lab.train.X, &feature.Workspace{})
	var zz mat.SymDense
	zz.SymOuterK(1, z)
	x := rows(lab.train.X)
	e, k := mat.NewSymDense(n, nil), mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			k.SetSym(i, j, cfg.Kernel.Eval(x[i], x[j]))
			e.SetSym(i, j, zz.At(i, j)-k.At(i, j))
		}
	}
	v, w := testkit.Eigenvalues(t, e), testkit.Pencil(t, testkit.Plus(k, cfg.Lambda), testkit.Plus(&zz, ridge(lab)))
	return max(math.Abs(v[0]), math.Abs(v[n-1])), w[n-1] / w[0]
}
