package krrlab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/krrlab/precond/feature"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/krrlab/stage/sketchsize"
	_ "github.com/krrlab/lab/plots/draw"
)

// stageCases are the stages to run, each with a configuration and options that reach its code for ranks.
var stageCases = map[string]struct {
	cfg     Config
	stage   stage.Name
	options string
}{
	"statdim exact":      {Config{}, "statdim", `{"Lambdas": [0.01, 1]}`},
	"statdim slq":        {Config{Precond: Features{S: 40}}, "statdim", `{"Method": "slq", "MaxProbes": 16}`},
	"statdim hutchinson": {Config{Precond: Nystrom{S: 40}}, "statdim", `{"Method": "hutchinson", "MaxProbes": 16}`},
	"statdim free":       {Config{Precond: Features{S: 40}}, "statdim", `{"Method": "free"}`},
	"sketch size":        {Config{}, "sketch-size", `{"Target": 4, "First": 32, "Max": 128}`},
	"theorem 7": {Config{}, "sketch-size",
		`{"Test": "theorem7", "Constants": {"Theta": 0.36, "Alpha": 0.56, "Gamma": 0.54}, "First": 64, "Max": 128}`},
	"multilevel": {Config{Precond: Features{S: 40}}, "multilevel",
		`{"Levels": [{"Sketch": "features", "Width": 900}, {"Sketch": "srht", "Width": 128}, {"Sketch": "gaussian", "Width": 40}]}`},
	"multilevel, K recomputed": {Config{Precond: Features{S: 40}, Memory: 1_500_000, Storage: gram.Recompute},
		"multilevel",
		`{"Levels": [{"Sketch": "features", "Width": 256}, {"Sketch": "gaussian", "Width": 40}]}`},
	"lambda-p":          {Config{Precond: Features{S: 40}}, "lambda-p", `{"Points": 3, "Columns": 1}`},
	"lambda-p map":      {Config{Precond: RPCholesky{S: 40}}, "lambda-p", `{"Grid": [0.1, 1], "Sizes": [20, 40]}`},
	"quality":           {Config{Precond: Features{S: 40}}, "quality", `{}`},
	"quality unbounded": {Config{Precond: Features{S: 40}}, "quality", `{"Steps": 2}`},
	"quality nystrom":   {Config{Precond: Nystrom{S: 40}}, "quality", `{}`},
	"quality plain":     {Config{Solver: CG}, "quality", `{"NoSolve": true}`},
	"loo exact":         {Config{}, "loo", `{}`},
	"loo path":          {Config{Precond: RPCholesky{S: 60}}, "loo", `{"MaxExactN": -1, "Lambdas": [0.3, 3, 30]}`},
	"tune": {Config{Precond: Features{S: 40}, Tol: 1e-10}, stage.Tune,
		`{"Kernels": ["gaussian", "matern32"], "Rows": 200, "Distance": "full"}`},
	"compare":    {Config{}, "compare", `{"Steps": 20, "With": ["nystrom features=40"]}`},
	"tune exact": {Config{}, stage.Tune, `{"Kernels": ["gaussian"]}`},
}

// TestStages runs every stage without ranks on one and two threads, the latter after another stage, and on 1, 2 and 3
// ranks (2 in the short suite). All runs must give the same JSON apart from times, which can be read back, and a
// table, a picture and a page.
func TestStages(t *testing.T) {
	testkit.UseBLAS(t, nil)
	setThreads(t, 1)
	n := suite.Scale(400, 700, 700)
	for name, c := range stageCases {
		t.Run(name, func(t *testing.T) {
			c.cfg.Kernel, c.cfg.Lambda, c.cfg.Seed = gauss, 0.3, 5
			if c.cfg.Solver == AutoSolver {
				c.cfg.Solver = PCG
			}
			runStage := func(ranks comm.Comm, afterAnotherStage bool) any {
				cfg := c.cfg
				cfg.Comm = ranks
				lab, err := New(ranksProblem(n), cfg)
				if afterAnotherStage && err == nil {
					_, err = lab.StatDim(t.Context(), StatDimOptions{Method: SLQ, MaxProbes: 16})
				}
				var s Stage
				if err == nil {
					s, err = lab.RunNamed(t.Context(), c.stage, []byte(c.options))
				}
				if err != nil {
					t.Error(err)
					return nil
				}
				if ranks == nil {
					checkStage(t, s)
				}
				return testkit.JSONWithoutTimes(s, func(key string, object map[string]any) bool {
					// These values depend on the rows of a rank.
					return strings.HasSuffix(key, "bytes") || key == "s" && object["status"] == string(sketchsize.None)
				})
			}
			singleProcess := runStage(nil, false)
			accel.SetThreads(2)
			if s := runStage(nil, true); !reflect.DeepEqual(s, singleProcess) {
				t.Errorf("two threads, after another stage:\n%v\none thread:\n%v", s, singleProcess)
			}
			for _, rankCount := range [][]int{{2}, {1, 2, 3}}[suite.Scale(0, 1, 1)] {
				rankResults := make([]any, rankCount)
				onRanks(rankCount, func(c comm.Comm) { rankResults[c.Rank()] = runStage(c, false) })
				if t.Failed() {
					return
				}
				for rank, s := range rankResults {
					if !reflect.DeepEqual(s, singleProcess) {
						t.Errorf("rank %d of %d:\n%v\none process:\n%v", rank, rankCount, s, singleProcess)
					}
				}
			}
			accel.SetThreads(1)
		})
	}
}

// checkStage checks the promises of every stage: JSON that can be read back, lines of text, a table, a picture and a
// page.
func checkStage(t *testing.T, result Stage) {
	t.Helper()
	decoded := reflect.New(reflect.TypeOf(result).Elem())
	encoded, err := json.Marshal(result)
	if err == nil {
		err = json.Unmarshal(encoded, decoded.Interface())
	}
	reencoded, _ := json.Marshal(decoded.Interface())
	switch result.(type) {
	case *StatDim, *SketchSize, *MultiLevel, *LambdaP, *Quality: // all fields of these types are in the JSON
		if !reflect.DeepEqual(decoded.Interface(), result) {
			reencoded = nil
		}
	}
	if err != nil || string(reencoded) != string(encoded) {
		t.Errorf("a %T changes when it is written as JSON and read back (%v):\n%s\n%s", result, err, encoded, reencoded)
	}
	if err := result.Plot().Validate(); err != nil {
		t.Error(err)
	}
	if page := result.HTML(); len(result.Table().Rows) == 0 || !strings.Contains(page, "<svg") ||
		!strings.Contains(page, "<table") {
		t.Errorf("%T: no rows, or a page without a picture or a table:\n%s", result, page)
	}
	if lines := result.String(); lines == "" || strings.Contains(lines, "NaN") || strings.Contains(lines, "Inf") {
		t.Errorf("%T: want text without NaN and Inf, got %q", result, lines)
	}
}

// TestStageArguments checks that an invalid option of a stage is an error of one line that names the option.
// SketchSize must refuse it before K is formed.
func TestStageArguments(t *testing.T) {
	for name, cases := range map[stage.Name]map[string]string{
		"lambda-p": {
			`{"Grid": [0, 1]}`: "Grid 0", `{"Grid": [-2]}`: "Grid -2", `{"Sizes": [10, 51]}`: "s = 51",
			`{"Confidence": 1.5}`: "Confidence 1.5",
			`{"Points": -1}`:      "Points -1", `{"Width": -0.1}`: "Width -0.1",
			`{"Map": true, "Sizes": [3]}`: "exclude each other", `{"Columns": 2}`: "there are 1",
		},
		"quality": {`{"Confidence": 1}`: "Confidence 1", `{"Confidence": -0.5}`: "Confidence -0.5",
			`{"Width": -1}`: "Width -1", `{"Steps": -3}`: "Steps -3"},
		"statdim": {
			`{"Method": "nine"}`: `Method "nine": want one of`, `{"Confidence": 1}`: "Confidence 1",
			`{"Width": -1}`:    "Width -1",
			`{"MaxProbes": 3}`: "at least 16", `{"Lambdas": [1, 0]}`: "Lambdas 0",
		},
		"sketch-size": {
			`{"Max": 51}`: "s = 51", `{"First": 60}`: "s = 60", `{"Target": 0.5}`: "Target 0.5",
			`{"Test": "none"}`: `"none"`, `{"Confidence": 1}`: "Confidence 1",
			`{"Test": "theorem7"}`: "λ_p = 3",
		},
		"multilevel": {
			`{"Confidence": 1}`: "Confidence 1", `{"Work": -1}`: "want a positive number",
			`{"Levels": [{"Sketch": "features", "Width": 51}]}`: "s = 51 for n = 50",
		},
		"loo": {
			`{"Lambda": [1]}`: `unknown field "Lambda"`, `{"Lambdas": [1, 0]}`: "Lambdas 0",
			`{"Confidence": 1}`: "Confidence 1", `{"Probes": 3}`: "at least 4",
			`{"Rank": 51}`: "s = 51", `{"Precond": "features"}`: "want one of landmarks",
		},
	} {
		for options, want := range cases {
			lab := newLab(t, regression(pointsByFormat(50, 3, 1)["float64"]),
				Config{Kernel: gauss, Lambda: 0.1, Solver: PCG, Precond: Features{S: 20, LambdaP: 3}})
			if result, err := lab.RunNamed(t.Context(), name, []byte(options)); result != nil || err == nil ||
				!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s, %s: %v, want %q", name, options, err, want)
			}
			if name == "sketch-size" && lab.k.value != nil {
				t.Errorf("%s, %s: K was formed", name, options)
			}
		}
	}
	plain := newLab(t, regression(pointsByFormat(50, 3, 1)["float64"]), Config{Kernel: gauss, Lambda: 0.1, Solver: CG})
	for name, options := range map[stage.Name]string{"lambda-p": `{}`, "statdim": `{"Method": "free"}`} {
		testkit.Fails(t, testkit.ErrOf(plain.RunNamed(t.Context(), name, []byte(options))), "preconditioner")
	}
}

// TestStagesInterrupted checks that a stage whose context ends returns its partial result together with the error,
// and that the partial result can be printed and plotted.
func TestStagesInterrupted(t *testing.T) {
	thirdSteps := 0
	for _, c := range []struct {
		stage   stage.Name
		options string
		end     func(Event) bool
		check   func(Stage) bool
	}{
		{"quality", `{}`, func(e Event) bool { return e.Stage == stage.Lanczos && e.Done == 5 }, func(s Stage) bool {
			quality := s.(*Quality)
			return quality.Steps == 5 && quality.Iterations == nil && quality.Kappa.Lo > 1
		}},
		{"lambda-p", `{"Points": 5, "Sizes": [20, 40, 80]}`, func(e Event) bool { // ends in the second row of the map
			if e.Stage == stage.Lanczos && e.Done == 3 {
				thirdSteps++
			}
			return thirdSteps == 2
		}, func(s Stage) bool {
			sweeps := s.(*LambdaP)
			return len(sweeps.Sweeps) == 2 && sweeps.Sweeps[1].Points[0].Steps == 3 && sweeps.BestS != 0
		}},
		{"sketch-size", `{"First": 16, "Target": 1.01}`,
			func(e Event) bool { return e.Stage == "sketch-size" && e.Done == 1 }, func(s Stage) bool {
				sketch := s.(*SketchSize)
				return len(sketch.Rungs) == 1 && sketch.Status == sketchsize.Interrupted && sketch.S == 16
			}},
		{"multilevel",
			`{"Levels": [{"Sketch": "features", "Width": 100}, {"Sketch": "srht", "Width": 50}, {"Sketch": "gaussian", "Width": 20}]}`,
			func(e Event) bool { return strings.HasPrefix(e.Detail, "level 1, features:100") }, func(s Stage) bool {
				chain := s.(*MultiLevel)
				return len(chain.Chain) == 2 && len(chain.FeaturesAlone) == 2 && chain.Chain[0].Index == 2 &&
					strings.Contains(chain.String(), "level 3")
			}},
		{"statdim", `{"Method": "hutchinson", "Width": 1e-4}`, isSecondBatch, hasSixteenProbes},
		{"statdim", `{"Method": "slq", "Width": 1e-4}`, isSecondBatch, hasSixteenProbes},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cfg := Config{Kernel: gauss, Lambda: 1e-3, Solver: PCG, Precond: Features{S: 20}, Monitor: func(e Event) error {
			if c.end(e) {
				cancel()
			}
			return nil
		}}
		if c.stage == "statdim" {
			cfg.Lambda, cfg.Precond = 20, Features{S: 2}
		}
		lab := newLab(t, regression(pointsByFormat(250, 4, 3)["float64"]), cfg)
		s, err := lab.RunNamed(ctx, c.stage, []byte(c.options))
		if !errors.Is(err, context.Canceled) || s == nil || !c.check(s) || s.Plot().Validate() != nil {
			t.Errorf("%s, %s: %v, %v", c.stage, c.options, s, err)
		}
		cancel()
		if s, err := lab.RunNamed(ctx, c.stage, []byte(`{}`)); s != nil || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, %v from a context that has ended", c.stage, s, err)
		}
	}
}

// isSecondBatch reports whether the event is the first one of the second batch of probes.
func isSecondBatch(e Event) bool { return e.Stage == stage.Probes && e.Detail != "" }

// hasSixteenProbes reports whether the result has the interval of one batch of 16 probes and has not reached the width.
func hasSixteenProbes(s Stage) bool {
	statDim := s.(*StatDim)
	return statDim.Probes == 16 && !statDim.WidthReached && statDim.Estimate.Lo < statDim.Estimate.Hi
}

// TestMultiLevelMemory checks that all ranks skip a preconditioner if one rank has no memory for it.
func TestMultiLevelMemory(t *testing.T) {
	setThreads(t, 2)
	skipped := make([]string, 2)
	onRanks(2, func(ranks comm.Comm) {
		cfg := Config{Kernel: gauss, Lambda: 0.3, Precond: Features{S: 40}, Storage: gram.Recompute, Seed: 5,
			Comm: ranks}
		if ranks.Rank() == 1 {
			cfg.Memory = 790_000
		}
		result, err := newLab(t, ranksProblem(700), cfg).MultiLevel(t.Context(),
			&MultiLevelOptions{Levels: feature.Levels{{Sketch: "features", Width: 256},
				{Sketch: "gaussian", Width: 40}}})
		if err != nil {
			t.Errorf("rank %d: %v", ranks.Rank(), err)
			return
		}
		for _, level := range result.Chain {
			skipped[ranks.Rank()] += fmt.Sprintf("%d: %s; ", level.Width, level.SkipReason)
		}
	})
	if skipped[0] != skipped[1] || !strings.Contains(skipped[0], "GB") {
		t.Errorf("rank 0 leaves out %q, rank 1 %q", skipped[0], skipped[1])
	}
}

// TestStagesOnRanksMemory checks that a stage that does not fit into the memory of one rank is an error on all ranks.
func TestStagesOnRanksMemory(t *testing.T) {
	for want, run := range map[string]func(l *Lab) error{
		"K of 300 points as recompute would take": func(l *Lab) error {
			k, err := l.K(t.Context())
			if err != nil {
				return err
			}
			if l.comm.Rank() == 1 {
				l.cfg.Memory = k.Bytes() + l.memory().Used + 4*300*40 + 1
			}
			_, err = l.Quality(t.Context(), QualityOptions{})
			return err
		},
		"dense work on K of n = 300 points would take 720 kB": func(l *Lab) error {
			if l.comm.Rank() == 1 {
				l.cfg.Memory = 100_000
			}
			_, err := l.StatDim(t.Context(), StatDimOptions{Method: ExactStatDim})
			return err
		},
	} {
		onRanks(2, func(ranks comm.Comm) {
			testkit.Fails(t, run(newLab(t, ranksProblem(300), Config{Kernel: gauss, Lambda: 0.3,
				Precond: Features{S: 40}, Storage: gram.Recompute, Comm: ranks})), want)
		})
	}
}

// TestDecisionValues checks that a fit to the first rows with the configured method returns the decision values of the
// exact fit to these rows, for all rows.
func TestDecisionValues(t *testing.T) {
	train := datasets.SyntheticRegression(450, 3, 0.1, 5)
	for name, cfg := range map[string]Config{"fixed": {Storage: gram.Float32}, "named": {Precond: Nystrom{}}} {
		cfg.Kernel, cfg.Lambda, cfg.Tol = gauss, 0.1, 1e-6
		first := train.Head(300)
		decision := testkit.Must((&bench{Lab: newLab(t, train, cfg)}).DecisionValues(t.Context(), first, gauss, 0.2,
			train))
		want := newReference(t, gauss, first.X, 0.2, mat.NewDense(300, 1, first.Target)).predict(train.X)
		if difference := relativeDifference(decision, want); !(difference <= 1e-3) {
			t.Errorf("%s: decision values are off by %.3g", name, difference)
		}
	}
}

// TestDefaultTolerance checks that the default tolerance is the paper's for the task, 1e-5 for regression and 1e-3 for
// classes, also in a lab derived by With.
func TestDefaultTolerance(t *testing.T) {
	x := datasets.SyntheticRegression(20, 2, 0.1, 5).X
	for tol, train := range map[float64]*datasets.Dataset{1e-5: regression(x), 1e-3: classification(x, 2)} {
		lab := newLab(t, train, Config{Kernel: gauss, Lambda: 0.1})
		derived := testkit.Must(lab.With(func(c *Config) { c.Tol, c.Solver = 0, CG }))
		if lab.Config().Tol != tol || derived.Config().Tol != tol {
			t.Errorf("want τ = %g: %g, again %g", tol, lab.Config().Tol, derived.Config().Tol)
		}
	}
}
