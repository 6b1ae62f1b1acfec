package krrlab

import (
	"context"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/sketchsize"
	"github.com/krrlab/lab/krrlab/suite"
)

// TestSketchSizeOnData checks on 2,000 rows of MNIST and IJCNN1 that the κ of the Z picked is
// within the target, by dense linear algebra in float64, for ten seeds. KRRLAB_LONG=1 and the
// data in $KRRLAB_DATA ask for it.
func TestSketchSizeOnData(t *testing.T) {
	dir := suite.RealData(t)
	if lib, err := accel.OpenBLAS(); err == nil {
		accel.Use(lib)
		defer accel.Use(nil)
	}
	const target, lambda, seeds = 30, 0.1, 10
	ctx := context.Background()
	for _, name := range []string{"mnist", "ijcnn1"} {
		p, err := datasets.Load(ctx, name, &datasets.LoadOptions{Dirs: []string{dir}, N: 2000})
		if err != nil {
			t.Skip(err)
		}
		k := kernel.Gaussian{Sigma: p.Info.Sigma}
		for seed := range uint64(seeds) {
			cfg := Config{Kernel: k, Lambda: lambda, Seed: seed, Solver: PCG}
			lab := newLab(t, p.Train, cfg)
			got, err := lab.SketchSize(ctx, SketchSizeOptions{Target: target})
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != sketchsize.Found {
				t.Errorf("%s, seed %d: %s", name, seed, got.Status)
				continue
			}
			cfg.Precond = Features{S: got.S, LambdaP: ridge(lab)}
			if lab, err = New(p.Train, cfg); err != nil {
				t.Fatal(err)
			}
			z := testkit.Must(lab.Z(ctx))
			v := denseSpectrum(t, k, p.Train.X, lambda, z, lambda)
			kappa := v[z.N-1] / v[0]
			last := got.Rungs[len(got.Rungs)-1].Kappa
			t.Logf("%s, seed %d: s = %d, κ = %.4g, in [%.4g, %.4g] said", name, seed, got.S, kappa, last.Lo, last.Hi)
			if kappa > target {
				t.Errorf("%s, seed %d: s = %d has κ = %g, target %d", name, seed, got.S, kappa, target)
			}
		}
	}
}
