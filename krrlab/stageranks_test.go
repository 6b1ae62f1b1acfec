package krrlab

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/adapt"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/feature"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/suite"
	"github.com/krrlab/lab/krrlab/tune"
)

// rankStages are the stages, each with the configuration that its path through ranks asks for.
var rankStages = map[string]struct {
	cfg Config
	run func(ctx context.Context, l *Lab) (Stage, error)
}{
	"statdim exact": {Config{}, func(ctx context.Context, l *Lab) (Stage, error) { return l.StatDim(ctx, StatDimOptions{}) }},
	"statdim slq": {Config{Precond: Features{S: 40}}, func(ctx context.Context, l *Lab) (Stage, error) {
		return l.StatDim(ctx, StatDimOptions{Method: SLQ, MaxProbes: 16})
	}},
	"statdim hutchinson": {Config{Precond: Nystrom{S: 40}}, func(ctx context.Context, l *Lab) (Stage, error) {
		return l.StatDim(ctx, StatDimOptions{Method: Hutchinson, MaxProbes: 16})
	}},
	"statdim free": {Config{Precond: Features{S: 40}}, func(ctx context.Context, l *Lab) (Stage, error) {
		return l.StatDim(ctx, StatDimOptions{Method: FreeStatDim, Measure: true})
	}},
	"sketch size": {Config{}, func(ctx context.Context, l *Lab) (Stage, error) {
		return l.SketchSize(ctx, SketchSizeOptions{Target: 4, First: 32, Max: 128})
	}},
	"theorem 7": {Config{}, func(ctx context.Context, l *Lab) (Stage, error) {
		return l.SketchSize(ctx, SketchSizeOptions{Test: adapt.Theorem7, Constants: adapt.Kappa10, First: 64, Max: 128})
	}},
	"theorem 7 product-free": {Config{}, func(ctx context.Context, l *Lab) (Stage, error) {
		return l.SketchSize(ctx, SketchSizeOptions{Test: adapt.Theorem7, Constants: adapt.Kappa10, First: 64, Max: 64, Sketched: true})
	}},
	"multilevel": {Config{Precond: Features{S: 40}}, func(ctx context.Context, l *Lab) (Stage, error) {
		return l.MultiLevel(ctx, &MultiLevelOptions{Levels: feature.Levels{{Sketch: "features", Width: 900}, {Sketch: "srht", Width: 128}, {Sketch: "gaussian", Width: 40}}})
	}},
	"multilevel without room": {Config{Precond: Features{S: 40}, Memory: 700_000, Storage: gram.Recompute}, func(ctx context.Context, l *Lab) (Stage, error) {
		return l.MultiLevel(ctx, &MultiLevelOptions{Levels: feature.Levels{{Sketch: "features", Width: 256}, {Sketch: "gaussian", Width: 40}}})
	}},
	"lambda-p": {Config{Precond: Features{S: 40}}, func(ctx context.Context, l *Lab) (Stage, error) {
		return l.LambdaP(ctx, LambdaPOptions{Points: 3, Columns: 1})
	}},
	"lambda-p map": {Config{Precond: RPCholesky{S: 40}}, func(ctx context.Context, l *Lab) (Stage, error) {
		return l.LambdaP(ctx, LambdaPOptions{Grid: []float64{0.1, 1}, Sizes: []int{20, 40}})
	}},
	"quality":         {Config{Precond: Features{S: 40}}, func(ctx context.Context, l *Lab) (Stage, error) { return l.Quality(ctx, QualityOptions{}) }},
	"quality nystrom": {Config{Precond: Nystrom{S: 40}}, func(ctx context.Context, l *Lab) (Stage, error) { return l.Quality(ctx, QualityOptions{}) }},
	"loo exact":       {Config{}, func(ctx context.Context, l *Lab) (Stage, error) { return l.LeaveOneOut(ctx, LeaveOneOutOptions{}) }},
	"loo path": {Config{Precond: RPCholesky{S: 60}}, func(ctx context.Context, l *Lab) (Stage, error) {
		return l.LeaveOneOut(ctx, LeaveOneOutOptions{ExactBelow: -1, Lambdas: []float64{0.3, 3, 30}})
	}},
	"tune": {Config{Precond: Features{S: 40}, Tol: 1e-10}, func(ctx context.Context, l *Lab) (Stage, error) {
		return l.Tune(ctx, tune.Options{Kernels: []string{"gaussian", "matern32"}, Rows: 200, ARD: true})
	}},
	"tune exact": {Config{}, func(ctx context.Context, l *Lab) (Stage, error) {
		return l.Tune(ctx, tune.Options{Kernels: []string{"gaussian"}})
	}},
	"quality plain": {Config{Solver: CG}, func(ctx context.Context, l *Lab) (Stage, error) { return l.Quality(ctx, QualityOptions{NoSolve: true}) }},
}

// TestStagesOnRanks runs every stage without ranks and on 1, 2 and 3 (make test: on 2): the same JSON, times
// aside.
func TestStagesOnRanks(t *testing.T) {
	accel.Use(nil)
	setThreads(t, 2)
	n := suite.Scale(520, 700, 700)
	for name, c := range rankStages {
		t.Run(name, func(t *testing.T) {
			c.cfg.Kernel, c.cfg.Lambda, c.cfg.Seed = gauss, 0.3, 5
			if c.cfg.Solver == AutoSolver {
				c.cfg.Solver = PCG
			}
			one := func(group comm.Comm) any {
				cfg := c.cfg
				cfg.Comm = group
				lab, err := New(ranksProblem(n), cfg)
				if err != nil {
					t.Error(err)
					return nil
				}
				s, err := c.run(t.Context(), lab)
				if err != nil {
					t.Error(err)
					return nil
				}
				return testkit.Timeless(s, func(key string, of map[string]any) bool { return key == "s" && of["status"] == string(adapt.None) })
			}
			lone := one(nil)
			for _, p := range [][]int{{2}, {1, 2, 3}}[suite.Scale(0, 1, 1)] {
				all := make([]any, p)
				var wg sync.WaitGroup
				for r, group := range comm.Local(p, comm.Options{}) {
					wg.Go(func() { all[r] = one(group) })
				}
				wg.Wait()
				if t.Failed() {
					return
				}
				for r, s := range all {
					if !reflect.DeepEqual(s, lone) {
						t.Errorf("rank %d of %d:\n%v\none process:\n%v", r, p, s, lone)
					}
				}
			}
		})
	}
}

// TestMultiLevelMemory: where one rank alone has no room for a preconditioner, all do without.
func TestMultiLevelMemory(t *testing.T) {
	setThreads(t, 2)
	left := make([]string, 2)
	var wg sync.WaitGroup
	for r, c := range comm.Local(2, comm.Options{Limit: 10 * time.Second}) {
		wg.Go(func() {
			cfg := Config{Kernel: gauss, Lambda: 0.3, Precond: Features{S: 40}, Storage: gram.Recompute, Seed: 5, Comm: c}
			if r == 1 {
				cfg.Memory = 700_000
			}
			lab, err := New(ranksProblem(700), cfg)
			if err != nil {
				t.Error(err)
				return
			}
			m, err := lab.MultiLevel(t.Context(), &MultiLevelOptions{Levels: feature.Levels{{Sketch: "features", Width: 256}, {Sketch: "gaussian", Width: 40}}})
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
				return
			}
			for _, l := range m.Chain {
				left[r] += fmt.Sprintf("%d: %s; ", l.Width, l.Left)
			}
		})
	}
	wg.Wait()
	if left[0] != left[1] || !strings.Contains(left[0], "GB") {
		t.Errorf("rank 0 leaves out %q, rank 1 %q", left[0], left[1])
	}
}

// TestStagesOnRanksMemory: what does not fit one rank's memory is an error on all of them.
func TestStagesOnRanksMemory(t *testing.T) {
	for name, run := range map[string]func(l *Lab) error{
		"is allowed": func(l *Lab) error {
			k, err := l.K(t.Context())
			if err != nil {
				return err
			}
			if l.comm.Rank() == 1 {
				l.cfg.Memory = k.Bytes() + l.vectors() + 1
			}
			_, err = l.Quality(t.Context(), QualityOptions{})
			return err
		},
		"the limit is 100 kB: take another method": func(l *Lab) error {
			if l.comm.Rank() == 1 {
				l.cfg.Memory = 100_000
			}
			_, err := l.StatDim(t.Context(), StatDimOptions{Method: ExactStatDim})
			return err
		},
	} {
		var wg sync.WaitGroup
		for r, c := range comm.Local(2, comm.Options{Limit: 2 * time.Second}) {
			wg.Go(func() {
				lab, err := New(ranksProblem(300), Config{Kernel: gauss, Lambda: 0.3, Precond: Features{S: 40}, Storage: gram.Recompute, Comm: c})
				if err == nil {
					err = run(lab)
				}
				if err == nil || !strings.Contains(err.Error(), name) {
					t.Errorf("rank %d: %v, want %q", r, err, name)
				}
			})
		}
		wg.Wait()
	}
}
