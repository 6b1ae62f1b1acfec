package krrlab

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// TestCenteredTargets checks fits to centered targets. The coefficients and the residual must equal those of a fit to y
// minus its mean, predictions must add the mean again, and the error bounds must cover the prediction of an exact
// solution. A constant target is predicted exactPrediction, and classes are not centered.
func TestCenteredTargets(t *testing.T) {
	all := datasets.SyntheticRegression(360, 3, 0.1, 5)
	const offset = 1000
	for i := range all.Target {
		all.Target[i] += offset
	}
	train, test := all.Slice(0, 300), all.Slice(300, 360)
	centered := train.Center()
	mean := centered.Mean[0]
	subtracted := *train
	subtracted.Target = slices.Clone(train.Target)
	floats.AddConst(-mean, subtracted.Target)
	if train.Mean != nil || math.Abs(mean-offset) > 10 || centered.Fingerprint() == train.Fingerprint() {
		t.Fatalf("the mean is %v, of the centered set %v; or both have the same fingerprint", train.Mean, centered.Mean)
	}
	gaussian := kernel.Gaussian{Sigma: 1.5}
	exact := mustSolve(t, centered, Config{Kernel: gaussian, Lambda: 0.1, Solver: Direct, Tol: 1e-12})
	for _, cfg := range []Config{{Solver: Direct}, {Solver: CG, Tol: 1e-6},
		{Solver: PCG, Precond: Nystrom{S: 40}, Tol: 1e-6, Stop: bound.Stop{Rule: bound.ByANorm}}} {
		cfg.Kernel, cfg.Lambda = gaussian, 0.1
		got, want := mustSolve(t, centered, cfg), mustSolve(t, &subtracted, cfg)
		if !mat.Equal(got.Model.C, want.Model.C) || got.TrueResidual != want.TrueResidual {
			t.Errorf("%v: other coefficients or residuals than those of y minus its mean", got.Solver)
		}
		float64Options := &model.Options{Float64: true}
		predicted := testkit.Must(got.Model.Predict(t.Context(), test, float64Options))
		exactPrediction := testkit.Must(exact.Model.Predict(t.Context(), test, float64Options))
		bounds := testkit.Must(got.Model.DecisionBounds(test))
		for i, value := range predicted.Value {
			if predictionError := math.Abs(value - exactPrediction.Value[i]); predictionError > bounds.At(i, 0)+1e-8 ||
				math.Abs(value-offset) > 10 {
				t.Errorf("%v: row %d is predicted %g, by the exact solution %g, bound %g", got.Solver, i, value,
					exactPrediction.Value[i], bounds.At(i, 0))
			}
		}
		verified, err := Verify(t.Context(), got.Model, VerifyOptions{Train: train, Test: test})
		if err != nil || verified.Mean[0] != mean ||
			math.Abs(float64(verified.Residual)-float64(got.TrueResidual)) > float64(verified.Rounding+got.Rounding) ||
			math.Abs(float64(verified.TestError)-predicted.Score(test).RMSE) > 1e-9 {
			t.Errorf("%v: Verify finds another mean, residual or test error: %v, error %v", got.Solver, verified, err)
		}
	}
	constant := *train
	constant.Target = slices.Repeat([]float64{0.1}, train.Len())
	testkit.Equal(t, constant.Center().Mean[0], 0.1)
	sol := mustSolve(t, constant.Center(), Config{Kernel: gaussian, Lambda: 0.1})
	if predicted, err := sol.Model.Predict(t.Context(), test, nil); err != nil || predicted.Value[7] != 0.1 {
		t.Errorf("a constant is predicted %v, %v", predicted, err)
	}
	if classes := datasets.SyntheticClasses(20, 3, 2, 0, 1); classes.Center() != classes {
		t.Error("classes are centered")
	}
}

// scaleBoth fits the scaling of the given kind on the training set and returns both sets scaled by it.
func scaleBoth(t *testing.T, kind string, train, test *datasets.Dataset) (scaledTrain, scaledTest *datasets.Dataset) {
	t.Helper()
	scaledTrain, scaledTest, err := datasets.Scale(kind, train, test)
	testkit.OK(t, err)
	return scaledTrain, scaledTest
}

// TestModelScalesPoints checks that a model fitted on scaled data predicts raw and scaled points with the same bits and
// without help of its user. This holds for the solved model, the saved and loaded model and on ranks, for every
// scaling and format of points.
func TestModelScalesPoints(t *testing.T) {
	for _, kind := range datasets.Scalings {
		for format, x := range pointsByFormat(120, 4, 3) {
			t.Run(kind+" "+format, func(t *testing.T) {
				train, test := classification(x, 3), classification(pointsByFormat(40, 4, 9)[format], 3)
				scaledTrain, scaledTest := scaleBoth(t, kind, train, test)
				cfg := Config{Kernel: gauss, Lambda: 0.1, Solver: PCG, Precond: Nystrom{S: 30}, Tol: 1e-6}
				sol := mustSolve(t, scaledTrain, cfg)
				file := filepath.Join(t.TempDir(), "m.krr")
				testkit.OK(t, sol.Model.Save(file))
				loaded := testkit.Must(model.Load(file))
				for _, m := range []*model.Model{sol.Model, loaded} {
					checkSamePredictions(t, m, sol.PredictOptions(), test, scaledTest)
				}
				onRanks(2, func(ranks comm.Comm) {
					if rankSol := solveOn(t, ranks, scaledTrain, cfg); rankSol != nil {
						checkSamePredictions(t, rankSol.Model, rankSol.PredictOptions(), test, scaledTest)
					}
				})
			})
		}
	}
}

// checkSamePredictions checks that the model gives the same decision values for raw points, alone or in a data set,
// as for scaled points.
func checkSamePredictions(t *testing.T, m *model.Model, options *model.Options, raw, scaled *datasets.Dataset) {
	unscaled := *m
	unscaled.Scaling = nil
	want, err := unscaled.Decision(t.Context(), scaled.X, options)
	if err != nil {
		t.Error(err)
		return
	}
	for _, data := range []*datasets.Dataset{raw, scaled} {
		if predicted, err := m.Predict(t.Context(), data, options); err != nil || !mat.Equal(predicted.Decision, want) {
			t.Errorf("%v: %v, or other predictions", data, err)
		}
	}
	if decision, err := m.Decision(t.Context(), raw.X, options); err != nil || !mat.Equal(decision, want) {
		t.Errorf("bare points: %v, or other predictions", err)
	}
}

// TestVerifyScaled checks that Verify proves the same of raw data as of scaled data, and refuses data that were
// scaled in another way.
func TestVerifyScaled(t *testing.T) {
	train, test := regression(pointsByFormat(90, 4, 3)["float64"]), regression(pointsByFormat(30, 4, 9)["float64"])
	scaledTrain, scaledTest := scaleBoth(t, "standard", train, test)
	m := mustSolve(t, scaledTrain, Config{Kernel: gauss, Lambda: 0.1}).Model
	var first string
	for i, options := range []VerifyOptions{{Train: train, Test: test}, {Train: scaledTrain, Test: scaledTest},
		{Train: scaledTrain, Test: test}} {
		verified := mustVerify(t, m, options)
		if text := fmt.Sprint(verified.Residual, verified.Rounding, verified.TestError,
			verified.PredictionBound); i == 0 {
			first = text
		} else if text != first {
			t.Errorf("residual, rounding error, test error and bound are %s, of raw data %s", text, first)
		}
	}
	unitTrain, unitTest := scaleBoth(t, "unit", train, test)
	for _, options := range []VerifyOptions{{Train: unitTrain}, {Test: unitTest}} {
		testkit.Fails(t, testkit.ErrOf(Verify(t.Context(), m, options)), "scaled already (unit)")
	}
}

// TestConstantTarget checks that every solver returns a certain error of 0 if a constant target is centered, because
// the exact answer is then 0.
func TestConstantTarget(t *testing.T) {
	train := regression(testkit.RandomPoints(5, 40, 2))
	for i := range train.Target {
		train.Target[i] = 3
	}
	for _, solver := range []Solver{Direct, CG, PCG, BlockPCG} {
		sol := mustSolve(t, train.Center(), Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Solver: solver,
			Exact: ExactResidual})
		if bounds := sol.Model.ErrorBounds; bounds == nil || !bounds.Certain || bounds.ANorm[0] != 0 {
			t.Errorf("%v: error bounds %+v, want a certain error of 0", solver, bounds)
		}
	}
}

// TestNumberRanges checks that New refuses a target, a weight, a λ or a λ_p that is too large or too small, with a
// message of one line, and accepts the extreme values that are allowed.
func TestNumberRanges(t *testing.T) {
	for _, c := range []struct {
		target, weight, lambda, lambdaP float64
		want                            string
	}{
		{1, 1, 1e-99, 1e-99, ""}, {1, 1, 1e99, 1e99, ""}, {1e99, 1, 1, 1, ""}, {1e-99, 1, 1, 1, ""}, {0, 1, 1, 1, ""},
		{1, 1, 1e-101, 1, "λ = 1e-101: want"}, {1, 1, 1e101, 1, "λ = 1e+101: want"}, {1, 1, 0, 1, "λ = 0: want"},
		{1, 1, 1, 1e-320, "λ_p = 1e-320: want"},
		{1e-101, 1, 1, 1, "targets of size 1e-101"}, {1e101, 1, 1, 1, "the target of row 0"},
		{1e60, 1e100, 1, 1, "targets of size 1e+110"},
		{1e60, 1, 1e-60, 1, "want both and y/λ from 1e-100 to 1e100"}, {1e-60, 1, 1e60, 1, "in another unit"},
	} {
		train := regression(pointsByFormat(20, 3, 1)["float64"])
		for i := range train.Target {
			train.Target[i] = c.target
		}
		if c.weight != 1 {
			train.Weights = slices.Repeat([]float64{c.weight}, 20)
		}
		_, err := New(train, Config{Kernel: gauss, Lambda: c.lambda, Precond: Nystrom{S: 5, LambdaP: c.lambdaP}})
		if c.want == "" && err != nil || c.want != "" &&
			(err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestUnitOfTargets checks that targets multiplied by a power of two have the coefficients multiplied by it and the
// same residuals, to the bit.
func TestUnitOfTargets(t *testing.T) {
	for _, solver := range []Solver{PCG, BlockPCG, CG, Direct} {
		cfg := Config{Kernel: gauss, Lambda: 0.1, Solver: solver, Precond: precondFor(solver, Features{S: 30}),
			Tol: 1e-6}
		train := regression(pointsByFormat(90, 4, 3)["float64"])
		want := mustSolve(t, train, cfg)
		for _, unit := range []float64{0x1p-300, 0x1p300} {
			scaled := *train
			scaled.Target = floats.ScaleTo(make([]float64, train.Len()), unit, train.Target)
			got := mustSolve(t, &scaled, cfg)
			var scaledC mat.Dense
			if scaledC.Scale(unit, want.Model.C); !mat.Equal(&scaledC, got.Model.C) ||
				!slices.Equal(got.ColumnTrueResiduals, want.ColumnTrueResiduals) ||
				!slices.Equal(got.ColumnRoundings, want.ColumnRoundings) {
				t.Errorf("%v, targets times %g: other coefficients, or residuals %v, want %v", solver, unit,
					got.ColumnTrueResiduals, want.ColumnTrueResiduals)
			}
		}
	}
}
