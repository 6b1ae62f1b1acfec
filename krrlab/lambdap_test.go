package krrlab

import (
	"reflect"
	"testing"

	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
)

func lambdaPConfig() Config {
	return Config{Kernel: kernel.Gaussian{Sigma: 2}, Lambda: 0.01, Solver: PCG, Precond: Features{S: 60}, Tol: 1e-4,
		Seed: 2, Storage: gram.Float64}
}

// TestLambdaP compares the sweep with dense spectra, for features of both families and for landmarks.
func TestLambdaP(t *testing.T) {
	x := kinds(200, 5, 3)["float32"]
	poly := lambdaPConfig()
	poly.Kernel = kernel.Polynomial{Gamma: 0.2, Coef0: 1, Degree: 2}
	marks := lambdaPConfig()
	size := marks.Precond.(Features).S
	marks.Precond = RPCholesky{S: size}
	for name, cfg := range map[string]Config{"gaussian": lambdaPConfig(), "polynomial": poly, "landmarks": marks} {
		l := newLab(t, regression(x), cfg)
		z := wholeZ(t, l)
		for _, p := range testkit.Must(l.LambdaP(t.Context(), LambdaPOptions{Points: 6})).Sweeps[0].Points {
			v := denseSpectrum(t, cfg.Kernel, x, 0.01, z, p.LambdaP)
			if kappa := v[199] / v[0]; !p.Kappa.Covers(kappa) || p.Bound < kappa*(1-1e-9) {
				t.Errorf("%s: λ_p = %g: κ %v, bound %g, is %g", name, p.LambdaP, p.Kappa, p.Bound, kappa)
			}
		}
	}
}

// TestLambdaPMap: a row for each s on one grid; κ at the best λ_p falls as s grows, and the row
// of an s is that of a sweep with it.
func TestLambdaPMap(t *testing.T) {
	l := newLab(t, regression(kinds(300, 4, 3)["float64"]), lambdaPConfig())
	m := testkit.Must(l.LambdaP(t.Context(), LambdaPOptions{Points: 5, Sizes: []int{80, 20, 40}}))
	if len(m.Sweeps) != 3 || m.Sweeps[0].S != 20 || m.Sweeps[2].S != 80 {
		t.Fatalf("%v", m)
	}
	var grid []float64
	for _, r := range m.Sweeps {
		var g []float64
		for _, p := range r.Points {
			g = append(g, p.LambdaP)
			if p.Iterations != nil || p.Predicted > 0 != (p.Seconds > 0) {
				t.Errorf("s = %d: %+v", r.S, p)
			}
		}
		if grid == nil {
			grid = g
		} else if !reflect.DeepEqual(g, grid) {
			t.Errorf("grids %v and %v", g, grid)
		}
	}
	if a, b := m.Sweeps[0].Points[m.Sweeps[0].Best].Kappa.Value, m.Sweeps[2].Points[m.Sweeps[2].Best].Kappa.Value; b >= a {
		t.Errorf("κ %g with 20 features, %g with 80", a, b)
	}
	cfg := lambdaPConfig()
	cfg.Precond = Features{S: 40}
	one := testkit.Must(newLab(t, l.train, cfg).LambdaP(t.Context(), LambdaPOptions{Grid: grid, NoSolve: true}))
	for i, p := range one.Sweeps[0].Points {
		if q := m.Sweeps[1].Points[i]; p.Kappa.Value != q.Kappa.Value || p.Kappa.Hi != q.Kappa.Hi {
			t.Errorf("λ_p = %g: κ %v alone, %v in the map", p.LambdaP, p.Kappa, q.Kappa)
		}
	}
}
