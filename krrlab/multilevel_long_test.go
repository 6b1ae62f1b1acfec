package krrlab

import (
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/rng"
	"github.com/krrlab/lab/krrlab/suite"
)

// TestMultiLevelLong compares the stage on the first 2,000 points of MNIST and IJCNN1 with dense
// float64 matrices, for two seeds: both intervals of a level cover in
// at least 90 of 100 of each, and hi/lo of κ ≤ 1.5 in 90 of 100 where κ ≤ 100.
func TestMultiLevelLong(t *testing.T) {
	dir := suite.RealData(t)
	for _, name := range []string{"mnist", "ijcnn1"} {
		p := testkit.Must(datasets.Load(t.Context(), name, &datasets.LoadOptions{Dirs: []string{dir}, N: 2000}))
		for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: p.Info.Sigma},
			kernel.Polynomial{Gamma: 0.01, Coef0: 1, Degree: 3}} {
			t.Run(name+" "+k.String(), func(t *testing.T) { countLevels(t, p.Train, k) })
		}
	}
}

// countLevels counts how often the intervals of five levels cover, over two seeds.
func countLevels(t *testing.T, train *datasets.Dataset, k kernel.Kernel) {
	t.Helper()
	covered, all, narrow, small := 0, 0, 0, 0
	spec := levels(t, "features:2400,srht:1000,gaussian:400")
	for seed := range uint64(2) {
		lab := newLab(t, train, Config{Kernel: k, Lambda: 0.1, Solver: PCG, Seed: seed, Storage: gram.Float64})
		m := testkit.Must(lab.MultiLevel(t.Context(), &MultiLevelOptions{Levels: spec}))
		chain := testkit.Must(feature.ChainFor(k, spec))
		check := func(l MeasuredLevel, fm feature.Map) {
			norm, kappa := denseLevel(t, lab, fm)
			all++
			if l.Error.Lo <= norm*1.001 && l.Error.Hi >= norm*0.999 && l.Kappa.Lo <= kappa*1.001 &&
				l.Kappa.Hi >= kappa*0.999 {
				covered++
			} else {
				t.Logf("seed %d, %s:%d: error %v, exactly %g; κ %v, exactly %g", seed, l.Sketch, l.Width, l.Error,
					norm, *l.Kappa, kappa)
			}
			if kappa <= 100 {
				small++
				if l.Kappa.Hi <= 1.5*l.Kappa.Lo {
					narrow++
				}
			}
		}
		draw := func(dist feature.Dist, s int) feature.Map {
			fm := testkit.Must(dist.Sample(train.Dim(), s, rng.New(seed).Sub("features", 0)))
			return fm
		}
		drawn := draw(chain, 400).(*feature.ChainMap)
		for i, l := range m.Chain {
			check(l, drawn.Level(i+1))
		}
		for _, l := range m.OneLevel {
			check(l, draw(chain.Features, l.Width))
		}
	}
	t.Logf("%d of %d levels covered, %d of %d with κ ≤ 100 narrow", covered, all, narrow, small)
	if 10*covered < 9*all || 10*narrow < 9*small {
		t.Errorf("%d of %d levels covered, %d of %d narrow; want 90 %%", covered, all, narrow, small)
	}
}
