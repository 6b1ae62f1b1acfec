package krrlab

import (
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// TestFourier: the coefficients of the direct solver, for one and several targets, with and without weights; the residual
// is checked by rows of K, and the bound of K's error is reported.
func TestFourier(t *testing.T) {
	n := suite.Scale(300, 1500, 1500)
	for name, train := range map[string]*datasets.Dataset{"plane": datasets.SyntheticRegression(n, 2, 0.1, 1),
		"line": datasets.SyntheticRegression(n, 1, 0.1, 2), "classes": classesInPlane(n)} {
		for _, weighted := range []bool{false, true} {
			data := *train
			if weighted {
				data.Weights = make([]float64, n)
				for i := range data.Weights {
					data.Weights[i] = 1 + float64(i%3)
				}
			}
			cfg := Config{Kernel: kernel.Gaussian{Sigma: 0.4}, Lambda: 0.05, Solver: Direct, Storage: gram.Float64, Tol: 1e-8}
			want := mustSolve(t, &data, cfg)
			cfg.Solver, cfg.Storage = Fourier, gram.Auto
			sol := mustSolve(t, &data, cfg)
			if e := apart(sol.Model.C, want.Model.C); e > 1e-6 || !sol.Converged() || sol.StorageResiduals == nil ||
				!(sol.KBound > 0 && float64(sol.KBound) < 1e-9) {
				t.Errorf("%s, weights %v: off by %.3g; %v", name, weighted, e, sol)
			}
			testkit.Contains(t, sol.String(), "Fourier series", "rows in float64")
		}
	}
	plane := datasets.SyntheticRegression(60, 2, 0.1, 1)
	for want, c := range map[string]Config{
		"take the Gaussian kernel":       {Kernel: kernel.Laplacian{Sigma: 1}, Solver: Fourier},
		"sparse tiles suit":              {Kernel: kernel.Gaussian{Sigma: 1e-5}, Solver: Fourier},
		"stores no kernel matrix":        {Kernel: gauss, Solver: Fourier, Storage: gram.Float32},
		"has no preconditioner":          {Kernel: gauss, Solver: Fourier, Precond: Nystrom{S: 9}},
		"modes and 60 points need":       {Kernel: kernel.Gaussian{Sigma: 0.1}, Solver: Fourier, Memory: 1 << 20},
		"in one process, without checkp": {Kernel: gauss, Solver: Fourier, Checkpoint: &Checkpoint{Dir: t.TempDir()}},
	} {
		c.Lambda = 0.1
		l, err := New(plane, c)
		if err == nil {
			_, err = l.Solve(t.Context())
		}
		testkit.Fails(t, err, want)
	}
}

// classesInPlane are three classes of points.
func classesInPlane(n int) *datasets.Dataset {
	x := points.NewDense(n, 2, nil)
	rng.New(5).Float64s(x.Data, 0)
	d := &datasets.Dataset{Name: "thirds", Task: datasets.Classification, X: x, Class: make([]int, n),
		Labels: []string{"a", "b", "c"}}
	for i := range n {
		d.Class[i] = min(2, int(3*x.Row(i)[0]))
	}
	return d
}
