package krrlab

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/model"
)

// TestVerify checks the verification of a saved model against dense references, for every kernel and format of
// points. It compares the residual and κ, and checks that predictions are within the bound around those of the exact
// answer.
func TestVerify(t *testing.T) {
	for _, k := range kernels {
		for format, x := range pointsByFormat(140, 4, 3) {
			for _, classCount := range []int{0, 2, 3} {
				train := regression(x)
				if classCount > 0 {
					train = classification(x, classCount)
				}
				sol := mustSolve(t, train, Config{Kernel: k, Lambda: 0.1, Solver: PCG, Precond: Features{S: 40},
					Tol: 0.02, Seed: 2})
				file := filepath.Join(t.TempDir(), "m.krr")
				testkit.OK(t, sol.Model.Save(file))
				loaded := testkit.Must(model.Load(file))
				testPoints := pointsByFormat(80, 4, 9)[format]
				test := regression(testPoints)
				if classCount > 0 {
					test = classification(testPoints, classCount)
				}
				verified := mustVerify(t, loaded, VerifyOptions{Train: train, Test: test})
				lab := newLab(t, train, Config{Kernel: k, Lambda: 0.1})
				checkVerified(t, k, verified, loaded, newReference(t, k, x, 0.1, lab.y), lab.y, test)
			}
		}
	}
}

// checkVerified compares the verification of model m with the dense reference of the same problem with targets y.
func checkVerified(t *testing.T, k kernel.Kernel, verified *Verification, m *model.Model, ref *reference, y *mat.Dense,
	test *datasets.Dataset) {
	t.Helper()
	want := largestOrNaN(ref.residuals(m.C, y))
	if !verified.Residual.Known() || math.Abs(float64(verified.Residual)-want) > float64(verified.Rounding)+1e-12 ||
		float64(verified.Rounding) > 1e-8 {
		t.Errorf("%v: residual %v ± %v, want %.6g", k, verified.Residual, verified.Rounding, want)
		return
	}
	var largestDiagonal float64 // max k(x, x)
	for _, x := range ref.x {
		largestDiagonal = max(largestDiagonal, k.Eval(x, x))
	}
	wantBound := math.Sqrt(largestDiagonal) * float64(verified.Norm) / (2 * math.Sqrt(0.1))
	if !verified.PredictionBound.Known() ||
		math.Abs(float64(verified.PredictionBound)-wantBound) > 1e-12*wantBound {
		t.Errorf("%v: predictions are off by at most %v, want %g", k, verified.PredictionBound, wantBound)
	}
	eigenvalues := testkit.Eigenvalues(t, ref.a)
	if kappa := eigenvalues[len(eigenvalues)-1] / eigenvalues[0]; !(verified.Cond.Lo <= kappa*(1+1e-9) &&
		kappa <= verified.Cond.Hi*(1+1e-9)) || verified.Cond.Hi > verified.SimpleBound*(1+1e-9) {
		t.Errorf("%v: κ = %g not in %v, simple bound %g", k, kappa, verified.Cond, verified.SimpleBound)
	}
	exact := ref.predict(test.X)
	approximate := testkit.Must(m.Decision(t.Context(), test.X, &model.Options{Float64: true}))
	for row, point := range rows(test.X) {
		bound := math.Sqrt(k.Eval(point, point)) * float64(verified.Norm) / (2 * math.Sqrt(0.1))
		for j := range verified.T {
			if difference := math.Abs(exact.At(row, j) - approximate.At(row, j)); difference > bound+1e-9 {
				t.Errorf("%v: f̃ has an error of %.3g, bound %.3g", k, difference, bound)
			}
		}
	}
	if verified.TestN != test.Len() || !verified.TestError.Known() || verified.OpenShare.Known() != (m.Labels != nil) {
		t.Errorf("%v: test %d, error %v, open %v", k, verified.TestN, verified.TestError, verified.OpenShare)
		return
	}
	score := testkit.Must(m.Evaluate(t.Context(), test, &model.Options{Float64: true}))
	if m.Labels == nil {
		testkit.Near(t, float64(verified.TestError), score.RMSE, 1e-9*score.RMSE, k)
		return
	}
	if float64(verified.TestError) != score.ErrorRate || score.ErrorRate == 0 {
		t.Errorf("%v: error rate %g, want %g", k, float64(verified.TestError), score.ErrorRate)
	}
}

// TestVerifyTargets checks whether Verify takes the targets from the data, recovers them from the answer or calls
// them unknown, and that it refuses data that are not those of the model.
func TestVerifyTargets(t *testing.T) {
	x := pointsByFormat(100, 4, 3)["float64"]
	for _, c := range []struct {
		train *datasets.Dataset
		want  string
	}{{classification(x, 2), "recovered from the answer"}, {classification(x, 4), "recovered from the answer"},
		{regression(x), "unknown"}} {
		sol := mustSolve(t, c.train, Config{Kernel: gauss, Lambda: 0.1, Tol: 1e-3})
		without := mustVerify(t, sol.Model, VerifyOptions{})
		if without.Targets != c.want || (!without.Residual.Known()) != (c.want == "unknown") {
			t.Errorf("targets %s, residual %v: want %s", without.Targets, without.Residual, c.want)
		}
		given := mustVerify(t, sol.Model, VerifyOptions{Train: c.train})
		if given.Targets != "given" || without.Residual.Known() &&
			float64(without.Residual) != float64(given.Residual) {
			t.Errorf("%s, residual %v with the data, %v without", given.Targets, float64(given.Residual),
				float64(without.Residual))
		}
		other := regression(pointsByFormat(100, 4, 4)["float64"])
		if c.train.Task == datasets.Classification {
			other = classification(pointsByFormat(100, 4, 4)["float64"], len(c.train.Labels))
		}
		testkit.Fails(t, testkit.ErrOf(Verify(t.Context(), sol.Model, VerifyOptions{Train: other})),
			"row 0 of the training data is not the model's")
		testkit.Fails(t, testkit.ErrOf(Verify(t.Context(), sol.Model, VerifyOptions{Train: c.train.Head(50)})),
			"the training data have 50 rows, the model was fitted on 100")
	}
	regressionSol := mustSolve(t, regression(x), Config{Kernel: gauss, Lambda: 0.1})
	for want, options := range map[string]VerifyOptions{
		"the training data are for classification, the model for regression": {Train: classification(x, 2)},
		"the test data are for classification, the model for regression":     {Test: classification(x, 2)},
		"Passes -1": {Passes: -1},
		"Memory -1": {Memory: -1},
	} {
		testkit.Fails(t, testkit.ErrOf(Verify(t.Context(), regressionSol.Model, options)), want)
	}
}

// TestVerifyTampered checks that Verify detects a changed coefficient.
func TestVerifyTampered(t *testing.T) {
	train := classification(pointsByFormat(100, 4, 3)["float64"], 2)
	sol := mustSolve(t, train, Config{Kernel: gauss, Lambda: 0.1, Tol: 1e-3})
	sol.Model.C.Set(7, 0, sol.Model.C.At(7, 0)*1.5+0.1)
	verified := mustVerify(t, sol.Model, VerifyOptions{Train: train})
	if float64(verified.Residual) < 2e-3 || !strings.Contains(verified.String(), "NOT met") {
		t.Errorf("a changed coefficient is not detected:\n%s", verified)
	}
}

// TestVerifyView checks the text, JSON and pages of verifications with and without test data, targets and enough
// memory.
func TestVerifyView(t *testing.T) {
	x := pointsByFormat(100, 4, 3)["float64"]
	sol := mustSolve(t, classification(x, 3), Config{Kernel: gauss, Lambda: 0.1})
	regressionSol := mustSolve(t, regression(x), Config{Kernel: gauss, Lambda: 0.1})
	for _, c := range []struct {
		model   *model.Model
		options VerifyOptions
	}{{sol.Model, VerifyOptions{}}, {sol.Model, VerifyOptions{Test: classification(x, 3)}},
		{regressionSol.Model, VerifyOptions{}}, {sol.Model, VerifyOptions{Memory: 1, Passes: 1}}} {
		verified := mustVerify(t, c.model, c.options)
		checkStage(t, verified)
		if !strings.Contains(verified.String(), "κ(K+λI)") {
			t.Error(verified)
		}
	}
}
