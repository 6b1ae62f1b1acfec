package krrlab

import (
	"fmt"
	"path/filepath"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/model"
	"github.com/krrlab/lab/krrlab/ranks/comm"
)

// scale scales both by what is fitted on the first.
func scale(t *testing.T, kind string, train, test *datasets.Dataset) [2]*datasets.Dataset {
	t.Helper()
	train, test, err := datasets.Scale(kind, train, test)
	testkit.OK(t, err)
	return [2]*datasets.Dataset{train, test}
}

// TestScalingTravels: a model fitted on scaled data predicts raw points and scaled ones alike, to the bit,
// with no help of its user: as it is solved, saved and loaded, and on ranks, for every kind of points.
func TestScalingTravels(t *testing.T) {
	for _, kind := range datasets.Scalings {
		for form, x := range kinds(120, 4, 3) {
			t.Run(kind+" "+form, func(t *testing.T) {
				train, test := classes(x, 3), classes(kinds(40, 4, 9)[form], 3)
				both := scale(t, kind, train, test)
				cfg := Config{Kernel: gauss, Lambda: 0.1, Solver: PCG, Precond: Nystrom{S: 30}, Tol: 1e-6}
				sol := mustSolve(t, both[0], cfg)
				name := filepath.Join(t.TempDir(), "m.krr")
				testkit.OK(t, sol.Model.Save(name))
				saved := testkit.Must(model.Load(name))
				for _, m := range []*model.Model{sol.Model, saved} {
					alike(t, m, sol.PredictOptions(), test, both[1])
				}
				onRanks(2, func(c comm.Comm) {
					if s := solveOn(t, c, both[0], cfg); s != nil {
						alike(t, s.Model, s.PredictOptions(), test, both[1])
					}
				})
			})
		}
	}
}

// alike: the decision values of raw points, bare or in a data set, are those of the scaled ones.
func alike(t *testing.T, m *model.Model, o *model.Options, raw, scaled *datasets.Dataset) {
	bare := *m
	bare.Scaling = nil
	want, err := bare.Decision(t.Context(), scaled.X, o)
	if err != nil {
		t.Error(err)
		return
	}
	for _, d := range []*datasets.Dataset{raw, scaled} {
		if p, err := m.Predict(t.Context(), d, o); err != nil || !mat.Equal(p.Decision, want) {
			t.Errorf("%v: %v, or other predictions", d, err)
		}
	}
	if f, err := m.Decision(t.Context(), raw.X, o); err != nil || !mat.Equal(f, want) {
		t.Errorf("bare points: %v, or other predictions", err)
	}
}

// TestVerifyScaled: what is proved of a model is the same of raw and of scaled data, and data that were
// scaled otherwise are refused.
func TestVerifyScaled(t *testing.T) {
	train, test := regression(kinds(90, 4, 3)["float64"]), regression(kinds(30, 4, 9)["float64"])
	both := scale(t, "standard", train, test)
	m := mustSolve(t, both[0], Config{Kernel: gauss, Lambda: 0.1}).Model
	var first string
	for i, o := range []VerifyOptions{{Train: train, Test: test}, {Train: both[0], Test: both[1]},
		{Train: both[0], Test: test}} {
		v := verified(t, m, o)
		if text := fmt.Sprint(v.Residual, v.Rounding, v.TestError, v.Bound); i == 0 {
			first = text
		} else if text != first {
			t.Errorf("%s, of raw data %s", text, first)
		}
	}
	other := scale(t, "unit", train, test)
	for _, o := range []VerifyOptions{{Train: other[0]}, {Test: other[1]}} {
		testkit.Fails(t, testkit.ErrOf(Verify(t.Context(), m, o)), "scaled already (unit)")
	}
}
