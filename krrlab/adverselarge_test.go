package krrlab

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/kernel/points"
)

// largeProblem has a smooth target.
func largeProblem(name string, x [][]float64, cfg Config) *adverse {
	y := make([]float64, len(x))
	for i := range y {
		y[i] = math.Sin(x[i][0]) + 0.3*rng.New(79).Normal(uint64(i))
	}
	h := &adverse{rows: x, cfg: cfg}
	h.train = &datasets.Dataset{Name: "large", Task: datasets.Regression,
		X: points.NewDense(len(x), len(x[0]), slices.Concat(x...)), Target: y}
	h.name = fmt.Sprintf("%s (n = %d, d = %d, %v, λ = %.2g, τ = %.2g, %v)", name, len(x), len(x[0]), cfg.Kernel,
		cfg.Lambda, cfg.Tol, cfg.Precond)
	return h
}

// TestAdverseWide: of a kernel so wide that landmarks leave less than float32 and 16 bits round, the landmarks are
// never refused as indefinite, and what is called certain of κ holds, however K is stored.
func TestAdverseWide(t *testing.T) {
	for i := range problems() / 75 {
		g := rng.New(82).Sub("wide", uint64(i))
		c, f := g.Sub("choice"), g.Sub("float")
		n, d := 240+c.IntN(0, 120), 1+c.IntN(1, 4)
		rows, lambda := adversePoints("plain", n, d, g), between(f, 1, -2.5, -1.5)
		for _, storage := range []gram.Storage{gram.Float32, gram.Fixed16} {
			h := largeProblem(fmt.Sprintf("wide kernel, number %d, %v", i, storage), rows, Config{
				Kernel: kernel.Gaussian{Sigma: math.Sqrt(float64(d)) * between(f, 0, 0.7, 1.6)}, Lambda: lambda,
				Tol: 1e-3, Seed: uint64(i),
				Solver: PCG, Storage: storage, Precond: sized(RPCholesky{}, n/10+c.IntN(2, n/3), lambda),
			})
			lab := newLab(t, h.train, h.cfg)
			z, err := lab.Z(t.Context())
			if err != nil {
				t.Errorf("%s: %v", h.name, err)
				continue
			}
			values, off, ok := h.pencil(lab, z)
			if bound := lab.z.value.Factor.CondBound(lambda, lambda); !ok || values[n-1]/values[0]*(1-off) > bound {
				t.Errorf("%s: κ = %.6g, certainly at most %.6g", h.name, values[n-1]/values[0], bound)
			}
		}
	}
}
