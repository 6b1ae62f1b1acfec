package interval

import (
	"errors"
	"math"
	"path/filepath"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/krylov/pcg"
	"github.com/krrlab/lab/krrlab/model"
)

// TestUnsolved checks that intervals that use AC as the targets are refused if C was solved too coarsely, because
// they would then miss the answers. The residual or the error bound of the model decides. At a usual tolerance they
// are allowed and cover.
func TestUnsolved(t *testing.T) {
	const n, lambda, level = 200, 1e-6, 0.9
	k := kernel.Gaussian{Sigma: 1.5}
	all := datasets.SyntheticRegression(n+300, 2, 0.1, 1)
	d, queries := all.Subset(rng.New(1).Perm(n + 300)[:n]), all.Subset(rng.New(1).Perm(n + 300)[n:])
	a := testkit.Must(gram.NewExact(k, d.X, lambda, 1e-12, nil))
	y := mat.NewDense(n, 1, d.Target)
	for _, c := range []struct {
		tol     float64
		allowed bool
	}{{0.5, false}, {0.2, false}, {1e-6, true}} {
		solved, err := pcg.Solve(t.Context(), a, nil, y, &pcg.Options{Tol: c.tol, MaxIter: 20000})
		if err != nil || solved.Status != pcg.Converged {
			t.Fatal(err, solved.Status)
		}
		residual := solved.MaxTrueRelRes()
		for _, m := range []*model.Model{
			{Origin: model.Origin{TrueResidual: &residual}},
			{Origin: model.Origin{TrueResidual: &residual},
				ErrorBounds: &model.ErrorBounds{ANorm: []float64{residual * mat.Norm(y, 2) / math.Sqrt(lambda)}}},
		} {
			m.Kernel, m.Lambda, m.X, m.C = k, lambda, d.X, solved.X
			s, err := NewFactoredSystem(t.Context(), m, accel.Budget{})
			if got := err == nil; got != c.allowed || !got && !errors.Is(err, ErrUnsolved) {
				t.Errorf("τ = %g, residual %.2g: error %v, want intervals: %v", c.tol, residual, err, c.allowed)
			}
			if err != nil {
				continue
			}
			p := predict(t, m, queries)
			intervals := testkit.Must(JackknifePlusIntervals(t.Context(), s, p, queries, level))
			if share := intervals.Coverage(p, queries); share < 2*level-1 {
				t.Errorf("τ = %g: the share %g of the answers is covered, want %g", c.tol, share, 2*level-1)
			}
		}
	}
	for _, residual := range []float64{1, 2, math.NaN(), -1} { // these give no bound of ‖y‖₂
		m := fit(t, d, k, 0.1)
		m.Origin.TrueResidual = &residual
		if _, err := NewFactoredSystem(t.Context(), m, accel.Budget{}); !errors.Is(err, ErrUnsolved) {
			t.Errorf("residual %g: error %v, want ErrUnsolved", residual, err)
		}
	}
}

// TestUnknownResidual checks that an unmeasured residual does not count as 0, in a model made by hand and in a file,
// and that a small residual of the stored K does not count if the fit calls it inaccurate.
func TestUnknownResidual(t *testing.T) {
	k := kernel.Gaussian{Sigma: 1}
	m := fit(t, datasets.SyntheticRegression(40, 2, 0.3, 1), k, 0.1)
	m.C.Scale(0.3, m.C) // far from the solution; no field of the model states this
	m.Origin = model.Origin{}
	name := filepath.Join(t.TempDir(), "m.krr")
	testkit.OK(t, m.Save(name))
	inaccurate := *m
	inaccurate.Origin = model.Origin{Status: pcg.Inaccurate.String(), TrueResidual: new(1e-9)}
	for description, m := range map[string]*model.Model{"made by hand": m, "loaded": testkit.Must(model.Load(name)),
		"inaccurate": &inaccurate} {
		if _, err := NewFactoredSystem(t.Context(), m, accel.Budget{}); !errors.Is(err, ErrUnsolved) {
			t.Errorf("a model that is %s: error %v, want ErrUnsolved", description, err)
		}
	}
}

// TestSmallEigenvalue checks a precomputed K for which K+λI has an eigenvalue far below λ. The error of an answer can
// then be far above ‖r‖₂/√λ, so intervals are allowed only if the residual is small enough for that eigenvalue.
func TestSmallEigenvalue(t *testing.T) {
	const n, lambda, smallest, y = 4, 0.1, 1e-6, 0.01
	k, c := points.NewDense(n, n, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		k.Row(i)[i] = 1
		c.Set(i, 0, 1/(1+lambda))
	}
	k.Row(0)[0] = smallest - lambda
	precomputed := testkit.Must(kernel.NewPrecomputed(k))
	// With Y = (y, 1, 1, 1) the error ‖c*−c‖_A is 10 for c_0 = 0, where ‖c‖_A = 1.65, and 0 for c_0 = c*_0, where
	// ‖c‖_A = 10.1.
	for _, solved := range []bool{false, true} {
		residual := y / math.Sqrt(n-1)
		c.Set(0, 0, 0)
		if solved {
			c.Set(0, 0, y/smallest)
			residual = 1e-12
		}
		m := &model.Model{Kernel: precomputed, Lambda: lambda, X: kernel.PrecomputedPoints(n), C: c,
			Origin: model.Origin{TrueResidual: &residual}}
		if _, err := NewFactoredSystem(t.Context(), m, accel.Budget{}); (err == nil) != solved ||
			err != nil && !errors.Is(err, ErrUnsolved) {
			t.Errorf("solved: %v; error %v, want ErrUnsolved unless solved", solved, err)
		}
	}
}
