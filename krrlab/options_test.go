package krrlab

import (
	"math"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/krylov/bound"
	"github.com/krrlab/lab/krrlab/precond"
)

// TestInvalidConfig checks that New rejects invalid values of fields, which flags could not produce, with an error that
// names the field.
func TestInvalidConfig(t *testing.T) {
	train := datasets.SyntheticRegression(40, 2, 0.1, 1)
	for want, change := range map[string]func(*Config){
		`Solver "unknown (6)": want one of auto, pcg`: func(c *Config) { c.Solver = 6 },
		`Solver "unknown (-1)"`:                       func(c *Config) { c.Solver = -1 },
		`Storage "unknown (9)": want one of auto`:     func(c *Config) { c.Storage = gram.Storage(9) },
		`Tiles "unknown (-2)"`:                        func(c *Config) { c.Tiles = gram.Tiles(-2) },
		`Exact "unknown (3)"`:                         func(c *Config) { c.Exact = 3 },
		`Stop "unknown (8)"`:                          func(c *Config) { c.Stop.Rule = 8 },
		"labels=NaN%: want a share": func(c *Config) {
			c.Stop = bound.Stop{Rule: bound.ByLabels,
				MaxUndecided: math.NaN()}
		},
		`preconditioner features: Form "unknown (5)"`: func(c *Config) { c.Precond = Features{Form: precond.Form(5)} },
		"rpcholesky: Residual NaN: want a positive":   func(c *Config) { c.Precond = RPCholesky{Residual: math.NaN()} },
		"rpcholesky: Residual -1: want a positive":    func(c *Config) { c.Precond = RPCholesky{Residual: -1} },
		"preconditioner auto: S -1: want at least 1":  func(c *Config) { c.Precond = Auto{S: -1} },
		"preconditioner auto: LambdaP NaN":            func(c *Config) { c.Precond = Auto{LambdaP: math.NaN()} },
		"vecchia: Neighbors -2: want at least -1":     func(c *Config) { c.Precond = Vecchia{Neighbors: -2} },
		"nystrom: S -7: want at least 1":              func(c *Config) { c.Precond = Nystrom{S: -7} },
	} {
		cfg := Config{Kernel: gauss, Lambda: 0.1}
		change(&cfg)
		data := train
		if cfg.Stop.Rule == bound.ByLabels { // this rule is for classes only
			data = classification(train.X, 2)
		}
		testkit.Fails(t, testkit.ErrOf(New(data, cfg)), want)
	}
}

// TestInvalidArguments checks that stages reject invalid options, data sets without points, and a Given without M.
func TestInvalidArguments(t *testing.T) {
	train := datasets.SyntheticRegression(40, 2, 0.1, 1)
	lab := newLab(t, train, Config{Kernel: gauss, Lambda: 0.1})
	testkit.Fails(t, testkit.ErrOf(lab.Compare(t.Context(), CompareOptions{}, RPCholesky{Residual: -1})), "Residual -1")
	testkit.Fails(t, testkit.ErrOf(lab.Plan(t.Context(), PlanOptions{Nodes: 2})), "which Run returns")
	testkit.Fails(t, testkit.ErrOf(lab.Append(t.Context(), solveLab(t, lab), nil)), "the data set is nil")
	given := newLab(t, train, Config{Kernel: gauss, Lambda: 0.1, Precond: Given{}})
	testkit.Fails(t, testkit.ErrOf(given.Solve(t.Context())), "Given without M")
	testkit.Fails(t, testkit.ErrOf(StartFrom(nil, train, given.cfg)), "coefficients 0×0")
	testkit.Fails(t, testkit.ErrOf(lab.Tune(t.Context(), TuneOptions{Valid: new(datasets.Dataset)})), "no points")
	m := solveLab(t, lab).Model
	testkit.Fails(t, testkit.ErrOf(Verify(t.Context(), m, VerifyOptions{Train: new(datasets.Dataset)})), "no points")
}

// TestMissingTargets checks that data sets with fewer targets than points are errors, rather than padded with zeros.
func TestMissingTargets(t *testing.T) {
	train := datasets.SyntheticRegression(40, 2, 0.1, 1)
	short, more := *train, *datasets.SyntheticRegression(5, 2, 0.1, 2)
	short.Target, more.Target = short.Target[:39], more.Target[:4]
	lab := newLab(t, train, Config{Kernel: gauss, Lambda: 0.1})
	testkit.Fails(t, testkit.ErrOf(New(&short, lab.cfg)), "39 numbers of target 0 for 40 points")
	sol := solveLab(t, lab)
	testkit.Fails(t, testkit.ErrOf(lab.Append(t.Context(), sol, &more)), "4 numbers of target 0 for 5 points")
	testkit.Fails(t, testkit.ErrOf(sol.Model.Evaluate(t.Context(), &more, nil)), "4 numbers of target 0 for 5 points")
	// Without classes, New must not silently treat a classification as a regression on Target.
	noClasses := *train
	noClasses.Task = datasets.Classification
	testkit.Fails(t, testkit.ErrOf(New(&noClasses, lab.cfg)), "Classification, in Class")
}
