package krrlab

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/race"
	"github.com/krrlab/lab/krrlab/stage"
)

// TestRace: each runner has the residuals that a solve by its name has, the winner reaches τ, several right-hand
// sides race too, and K is left for what follows.
func TestRace(t *testing.T) {
	k := kernel.Gaussian{Sigma: 1}
	cfg := Config{Kernel: k, Lambda: 0.3, Seed: 4, Solver: PCG, Precond: Nystrom{S: 60}, Tol: 1e-8,
		Exact: StoredResidual}
	lab := sketchLab(t, cfg)
	r, err := lab.Race(t.Context(), RaceOptions{})
	if err != nil || len(r.Racers) != 5 || r.Racers[0].Name != "none" || r.Best() == nil ||
		r.Best().Phase != race.Done || r.Columns < r.Steps {
		t.Fatalf("%+v, %v", r, err)
	}
	if w := r.Best(); !(slices.Min(w.Residuals) <= 1e-8) || float64(w.Predicted) != float64(w.Iterations) {
		t.Errorf("%v", r)
	}
	for _, w := range r.Racers {
		p, err := PrecondSpec{Name: w.Name, S: w.S}.Preconditioner(k)
		if err != nil {
			t.Fatal(err)
		}
		named, err := lab.With(func(c *Config) {
			if c.Precond = p; p == nil {
				c.Solver = CG
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		alone := solveLab(t, named)
		if !slices.Contains(alone.Shared, "kernel") {
			t.Errorf("%s: K is formed again", w.Name)
		}
		for j, v := range w.Residuals {
			if v != alone.History[j].Residual {
				t.Fatalf("%s: residual %v after %d iterations, %v alone", w.Name, v, j, alone.History[j].Residual)
			}
		}
	}
	data, err := datasets.Load(t.Context(), "synthetic-classes", &datasets.LoadOptions{N: 300})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Lambda = 0.1
	if r, err = newLab(t, data.Train, cfg).Race(t.Context(), RaceOptions{Runners: []string{"nystrom"}}); err != nil ||
		r.T < 2 || r.Best() == nil || r.Product == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestRaceOnRanks: all ranks come to the same race.
func TestRaceOnRanks(t *testing.T) {
	setThreads(t, 2)
	const size = 2
	reports := make([]*Race, size)
	var wg sync.WaitGroup
	for rank, c := range comm.Local(size, comm.Options{}) {
		wg.Go(func() {
			lab, err := New(ranksProblem(700), Config{Kernel: gauss, Lambda: 0.3, Seed: 5, Solver: PCG, Tol: 1e-6,
				Comm: c})
			if err == nil {
				reports[rank], err = lab.Race(t.Context(), RaceOptions{})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if !t.Failed() && !reflect.DeepEqual(testkit.Timeless(reports[1], nil), testkit.Timeless(reports[0], nil)) {
		t.Errorf("rank 1:\n%v\nrank 0:\n%v", reports[1], reports[0])
	}
}

// TestRaceLimits: what has no room is out, and what is no preconditioner for the kernel is refused or left out.
func TestRaceLimits(t *testing.T) {
	lab := sketchLab(t, Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.3, Solver: PCG, Precond: Nystrom{S: 60}})
	k, err := lab.K(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lab.cfg.Memory = lab.vectors() + k.Bytes() + 4*500*60 + 24*60*60 // for one of them
	r, err := lab.Race(t.Context(), RaceOptions{Runners: []string{"nystrom", "rpcholesky"}})
	if err != nil || r.Racers[1].Phase == race.Out || r.Racers[2].Phase != race.Out ||
		!strings.Contains(r.String(), "more than the limit") {
		t.Errorf("%v, %v", r, err)
	}
	lab.cfg.Memory = 0
	testkit.Fails(t, testkit.ErrOf(lab.Race(t.Context(), RaceOptions{Runners: []string{"magic"}})), "magic")
	testkit.Fails(t, testkit.ErrOf(sketchLab(t, Config{Kernel: gauss, Lambda: 1, Solver: CG}).Race(t.Context(),
		RaceOptions{})), "no rank that all could have")
	eval := kernel.Func{Name: "eval", F: kernel.Gaussian{Sigma: 1}.Eval}
	if r, err := sketchLab(t, Config{Kernel: eval, Lambda: 0.3, Solver: PCG, Precond: RPCholesky{}}).Race(t.Context(),
		RaceOptions{}); err != nil || len(r.Racers) != 4 {
		t.Errorf("a kernel without features: %v, %v", r, err)
	}
}

// TestRaceEnded: the Monitor sees a curve of each runner, and ends the race.
func TestRaceEnded(t *testing.T) {
	seen := map[string]int{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg := Config{Kernel: kernel.Gaussian{Sigma: 0.5}, Lambda: 1e-3, Tol: 1e-12, Solver: PCG, Precond: Nystrom{S: 60}}
	cfg.Monitor = func(e stage.Event) error {
		if e.Stage != stage.Race {
			return nil
		}
		if seen[e.Detail]++; e.Iteration > 0 && !(e.Residual > 0) {
			t.Errorf("%+v, number %d", e, seen[e.Detail])
		}
		if e.Iteration == 4 {
			cancel()
		}
		return nil
	}
	r, err := sketchLab(t, cfg).Race(ctx, RaceOptions{Runners: []string{"nystrom"}})
	if !errors.Is(err, context.Canceled) || r == nil || r.Best() != nil || len(seen) != 2 ||
		!strings.Contains(r.String(), "nobody") {
		t.Errorf("%v, %v, seen %v", r, err, seen)
	}
}

// TestRaceShown: the report's lines, table, picture and JSON.
func TestRaceShown(t *testing.T) {
	lab := sketchLab(t, Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.3, Tol: 1e-6, Solver: PCG,
		Precond: Features{S: 60}})
	r, err := lab.Race(t.Context(), RaceOptions{Runners: []string{"nystrom", "features"}})
	if err != nil {
		t.Fatal(err)
	}
	js, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Race
	if err := json.Unmarshal(js, &back); err != nil {
		t.Fatal(err)
	}
	if again, _ := json.Marshal(&back); string(again) != string(js) {
		t.Errorf("JSON:\n%s\nread and written:\n%s", js, again)
	}
	if rows := len(r.Table().Rows); rows != 3 {
		t.Errorf("%d rows", rows)
	}
	f := r.Plot()
	if len(f.Series) < 2 || f.Series[0].Name != "M = I" || f.Series[0].X[0] != 0 || len(f.Marks) != 1 {
		t.Errorf("%+v", f)
	}
	if !strings.Contains(r.HTML(), "winner") {
		t.Error("no winner in HTML")
	}
}
