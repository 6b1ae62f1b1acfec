package multilevel_test

import (
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/base/rng"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/stage/multilevel"
)

// TestRun compares the result of the stage with independent computations: the same maps, the iterations of PCG with
// their M, and the texts and figures.
func TestRun(t *testing.T) {
	train := datasets.SyntheticRegression(400, 5, 0.1, 4)
	for _, k := range []kernel.Kernel{kernel.Gaussian{Sigma: 1.5}, kernel.Polynomial{Gamma: 0.2, Coef0: 1, Degree: 3}} {
		const spec = "features:600,countsketch:200,srht:100,gaussian:40"
		lab := testkit.Must(krrlab.New(train, krrlab.Config{Kernel: k, Solver: krrlab.PCG, Lambda: 0.05, Seed: 3}))
		m := testkit.Must(lab.MultiLevel(t.Context(), &multilevel.Options{Levels: levels(spec)}))
		if len(m.Chain) != 4 || len(m.FeaturesAlone) != 3 || m.N != 400 || m.Confidence != 0.95 ||
			m.Levels.String() != spec {
			t.Fatalf("%v: %+v", k, m)
		}
		for i, l := range m.Chain {
			if l.Index != i+1 || l.ChainLevel != m.Levels[i] || !l.Converged || l.Kappa == nil {
				t.Errorf("%v, level %d: %+v", k, i+1, l)
			}
		}
		checkLevel(t, lab, m.LambdaP, m.Chain[3], testkit.Must(feature.ChainFor(k, m.Levels)))
		alone := testkit.Must(feature.For(k))
		for i, l := range m.FeaturesAlone {
			if l.Index != i+2 || l.Width != m.Levels[i+1].Width || l.Sketch != "features" {
				t.Errorf("%v, features alone: %+v", k, l)
			}
			checkLevel(t, lab, m.LambdaP, l, alone)
		}
		testkit.Contains(t, m.String(), "chain", spec, "level 4", "one level", "confidence")
		rows, f := m.Table().Rows, m.Plot()
		if len(rows) != 7 || len(f.Panels) != 4 || len(f.Panels[0].Series) != 2 || len(f.Panels[3].Series[1].X) != 4 {
			t.Errorf("%v: %d rows, picture %+v", k, len(rows), f)
		}
		if v, ok := rows[3][6].Float(); !ok || v != m.Chain[3].Kappa.Value {
			t.Errorf("%v: κ of level 4 is %v in the table, want %v", k, v, m.Chain[3].Kappa)
		}
	}
}

// TestRunWithLimitedWork checks that only the error is measured for levels that take too much work, that the report and
// the figure say so, and that a last level wider than n is an error.
func TestRunWithLimitedWork(t *testing.T) {
	train := datasets.SyntheticRegression(200, 3, 0.1, 4)
	cfg := krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Solver: krrlab.PCG, Lambda: 0.05}
	lab := testkit.Must(krrlab.New(train, cfg))
	o := &multilevel.Options{Levels: levels("features:150,srht:20"), Work: 1e6}
	m := testkit.Must(lab.MultiLevel(t.Context(), o))
	testkit.Contains(t, m.String(), "no preconditioner: ")
	if m.Chain[0].Kappa != nil || m.Chain[0].SkipReason == "" || m.Chain[1].Kappa == nil ||
		len(m.Plot().Panels[0].Series[0].X) != 1 || len(m.Plot().Panels[2].Series[0].X) != 2 {
		t.Errorf("levels of 150 and 20 columns with 1e6 operations: %v", m)
	}
	m.Chain[1].Converged, m.Chain[1].Indefinite = false, true
	testkit.Contains(t, m.String(), "; the stored K+λI is indefinite, so its error exceeds λ")
	o.Levels = levels("features:900,srht:300")
	testkit.Fails(t, testkit.ErrOf(lab.MultiLevel(t.Context(), o)), "the last level has s = 300 for n = 200 points")
}

// levels parses the text of a chain.
func levels(spec string) feature.Levels { return testkit.Must(feature.ParseLevels(spec)) }

// checkLevel compares a level with dense eigenvalues, and with the iterations that the stage quality counts for the
// same map.
func checkLevel(t *testing.T, lab *krrlab.Lab, lambdaP float64, l multilevel.LevelResult, dist feature.Dist) {
	t.Helper()
	cfg := lab.Config()
	cfg.Precond = krrlab.Features{Map: dist, S: l.Width}
	q := testkit.Must(testkit.Must(krrlab.New(lab.Train(), cfg)).Quality(t.Context(), krrlab.QualityOptions{
		MaxExactN: -1}))
	if *q.Iterations != l.Iterations || q.Status != l.Status {
		t.Errorf("%v: %d iterations (%s), PCG takes %d (%v)", dist, l.Iterations, l.Status, *q.Iterations, q.Status)
	}
	m := testkit.Must(dist.Sample(lab.Train().Dim(), l.Width, rng.New(cfg.Seed).Sub("features", 0)))
	x := lab.Train().X
	norm, kappa := multilevel.DenseReference(t, multilevel.OuterProduct(m, x), testkit.KernelMatrix(cfg.Kernel, x),
		cfg.Lambda, lambdaP)
	if l.Error.Lo > norm*1.001 || l.Error.Hi < norm*0.999 || l.Kappa.Lo > kappa*1.001 || l.Kappa.Hi < kappa*0.999 {
		t.Errorf("%v: error %v, exactly %g; κ %v, exactly %g", dist, l.Error, norm, *l.Kappa, kappa)
	}
}
