package krrlab

import (
	"math"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
	"github.com/krrlab/lab/krrlab/precond"
)

// TestOwner: the fingerprint of a computation changes with all that the answer depends on, and with
// nothing that may differ when it is resumed.
func TestOwner(t *testing.T) {
	owner := func(train *datasets.Dataset, change func(*Config)) [32]byte {
		t.Helper()
		cfg := Config{Kernel: gauss, Lambda: 0.1, Solver: PCG, Precond: Features{S: 20, LambdaP: 0.2}, Tol: 1e-6,
			Seed: 3, Storage: gram.Float64}
		if change != nil {
			change(&cfg)
		}
		return testkit.Must(newLab(t, train, cfg).fingerprint())
	}
	train := ranksProblem(40)
	seen := map[[32]byte]string{owner(train, nil): "unchanged"}
	differs := func(what string, sum [32]byte) {
		t.Helper()
		if other, ok := seen[sum]; ok {
			t.Errorf("%s: the fingerprint of %s", what, other)
		}
		seen[sum] = what
	}
	for what, change := range map[string]func(*Config){
		"kernel":   func(c *Config) { c.Kernel = kernel.Gaussian{Sigma: math.Nextafter(gauss.Sigma, 9)} },
		"λ":        func(c *Config) { c.Lambda = math.Nextafter(0.1, 1) },
		"solver":   func(c *Config) { c.Solver = BlockPCG },
		"precond":  func(c *Config) { c.Precond = RPCholesky{S: 20, LambdaP: 0.2} },
		"features": func(c *Config) { c.Precond = Features{S: 21, LambdaP: 0.2} },
		"λ_p":      func(c *Config) { c.Precond = Features{S: 20, LambdaP: math.Nextafter(0.2, 1)} },
		"form":     func(c *Config) { c.Precond = Features{S: 20, LambdaP: 0.2, Form: precond.FormEigen} },
		"nystrom":  func(c *Config) { c.Precond = Nystrom{S: 20, LambdaP: 0.2} },
		"spectral": func(c *Config) { c.Precond = Nystrom{S: 20, LambdaP: 0.2, Spectral: true} },
		"given":    func(c *Config) { c.Precond = Nystrom{S: 2, LambdaP: 0.2, Landmarks: []int{3, 1}} },
		"others":   func(c *Config) { c.Precond = Nystrom{S: 2, LambdaP: 0.2, Landmarks: []int{3, 2}} },
		"τ":        func(c *Config) { c.Tol = math.Nextafter(1e-6, 1) },
		"storage":  func(c *Config) { c.Storage = gram.Float32 },
		"seed":     func(c *Config) { c.Seed = 4 },
		"residual": func(c *Config) { c.Exact = ExactResidual },
	} {
		differs(what, owner(train, change))
	}
	for what, change := range map[string]func(d *datasets.Dataset){
		"a class": func(d *datasets.Dataset) { d.Class[7] = (d.Class[7] + 1) % len(d.Labels) },
		"a label": func(d *datasets.Dataset) { d.Labels[1] += "x" },
		"a number": func(d *datasets.Dataset) {
			x := d.X.(*points.Dense)
			x.Data[5] = math.Nextafter(x.Data[5],
				9)
		},
		"a row less": func(d *datasets.Dataset) { *d = *d.Head(39) },
		"numbers as y": func(d *datasets.Dataset) {
			d.Task, d.Target, d.Class = datasets.Regression,
				make([]float64, 40), nil
		},
		"another y": func(d *datasets.Dataset) {
			d.Task, d.Target, d.Class = datasets.Regression, make([]float64, 40), nil
			d.Target[39] = 1e-3
		},
	} {
		d := ranksProblem(40)
		change(d)
		differs(what, owner(d, nil))
	}
	for what, change := range map[string]func(*Config){
		"iterations": func(c *Config) { c.MaxIter = 7 },
		"memory":     func(c *Config) { c.Memory = 1 << 30 },
		"monitor":    func(c *Config) { c.Monitor = func(Event) error { return nil } },
	} {
		if sum := owner(train, change); seen[sum] != "unchanged" {
			t.Errorf("another fingerprint for other %s", what)
		}
	}
}
