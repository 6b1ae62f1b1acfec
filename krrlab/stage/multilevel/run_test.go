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
	for _, kern := range []kernel.Kernel{kernel.Gaussian{Sigma: 1.5},
		kernel.Polynomial{Gamma: 0.2, Coef0: 1, Degree: 3}} {
		const spec = "features:600,countsketch:200,srht:100,gaussian:40"
		lab := testkit.Must(krrlab.New(train, krrlab.Config{Kernel: kern, Solver: krrlab.PCG, Lambda: 0.05, Seed: 3}))
		result := testkit.Must(lab.MultiLevel(t.Context(), &multilevel.Options{Levels: parseLevels(spec)}))
		if len(result.Chain) != 4 || len(result.FeaturesAlone) != 3 || result.N != 400 || result.Confidence != 0.95 ||
			result.Levels.String() != spec {
			t.Fatalf("%v: %+v", kern, result)
		}
		for i, level := range result.Chain {
			if level.Index != i+1 || level.ChainLevel != result.Levels[i] || !level.Converged || level.Kappa == nil {
				t.Errorf("%v, level %d: %+v", kern, i+1, level)
			}
		}
		checkLevel(t, lab, result.LambdaP, result.Chain[3], testkit.Must(feature.ChainFor(kern, result.Levels)))
		alone := testkit.Must(feature.For(kern))
		for i, level := range result.FeaturesAlone {
			if level.Index != i+2 || level.Width != result.Levels[i+1].Width || level.Sketch != "features" {
				t.Errorf("%v, features alone: %+v", kern, level)
			}
			checkLevel(t, lab, result.LambdaP, level, alone)
		}
		testkit.Contains(t, result.String(), "chain", spec, "level 4", "one level", "confidence")
		rows, figure := result.Table().Rows, result.Plot()
		if len(rows) != 7 || len(figure.Panels) != 4 || len(figure.Panels[0].Series) != 2 ||
			len(figure.Panels[3].Series[1].X) != 4 {
			t.Errorf("%v: %d rows, picture %+v", kern, len(rows), figure)
		}
		if v, ok := rows[3][6].Float(); !ok || v != result.Chain[3].Kappa.Value {
			t.Errorf("%v: κ of level 4 is %v in the table, want %v", kern, v, result.Chain[3].Kappa)
		}
	}
}

// TestRunWithLimitedWork checks that only the error is measured for levels that take too much work, that the report and
// the figure say so, and that a last level wider than n is an error.
func TestRunWithLimitedWork(t *testing.T) {
	train := datasets.SyntheticRegression(200, 3, 0.1, 4)
	cfg := krrlab.Config{Kernel: kernel.Gaussian{Sigma: 1}, Solver: krrlab.PCG, Lambda: 0.05}
	lab := testkit.Must(krrlab.New(train, cfg))
	options := &multilevel.Options{Levels: parseLevels("features:150,srht:20"), Work: 1e6}
	result := testkit.Must(lab.MultiLevel(t.Context(), options))
	testkit.Contains(t, result.String(), "no preconditioner: ")
	if result.Chain[0].Kappa != nil || result.Chain[0].SkipReason == "" || result.Chain[1].Kappa == nil ||
		len(result.Plot().Panels[0].Series[0].X) != 1 || len(result.Plot().Panels[2].Series[0].X) != 2 {
		t.Errorf("levels of 150 and 20 columns with 1e6 operations: %v", result)
	}
	result.Chain[1].Converged, result.Chain[1].Indefinite = false, true
	testkit.Contains(t, result.String(), "; the stored K+λI is indefinite, so its error exceeds λ")
	options.Levels = parseLevels("features:900,srht:300")
	testkit.Fails(t, testkit.ErrOf(lab.MultiLevel(t.Context(), options)),
		"the last level has s = 300 for n = 200 points")
}

// parseLevels parses the text of a chain.
func parseLevels(spec string) feature.Levels { return testkit.Must(feature.ParseLevels(spec)) }

// checkLevel compares a level with dense eigenvalues, and with the iterations that the stage quality counts for the
// same map.
func checkLevel(t *testing.T, lab *krrlab.Lab, lambdaP float64, level multilevel.LevelResult, dist feature.Dist) {
	t.Helper()
	cfg := lab.Config()
	cfg.Precond = krrlab.Features{Map: dist, S: level.Width}
	quality := testkit.Must(testkit.Must(krrlab.New(lab.Train(), cfg)).Quality(t.Context(), krrlab.QualityOptions{
		MaxExactN: -1}))
	if *quality.Iterations != level.Iterations || quality.Status != level.Status {
		t.Errorf("%v: %d iterations (%s), PCG takes %d (%v)", dist, level.Iterations, level.Status, *quality.Iterations,
			quality.Status)
	}
	featureMap := testkit.Must(dist.Sample(lab.Train().Dim(), level.Width, rng.New(cfg.Seed).Sub("features", 0)))
	x := lab.Train().X
	norm, kappa := multilevel.DenseReference(t, multilevel.OuterProduct(featureMap, x),
		testkit.KernelMatrix(cfg.Kernel, x), cfg.Lambda, lambdaP)
	if level.Error.Lo > norm*1.001 || level.Error.Hi < norm*0.999 || level.Kappa.Lo > kappa*1.001 ||
		level.Kappa.Hi < kappa*0.999 {
		t.Errorf("%v: error %v, exactly %g; κ %v, exactly %g", dist, level.Error, norm, *level.Kappa, kappa)
	}
}
