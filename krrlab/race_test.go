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

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab/comm"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/pcg"
	"github.com/krrlab/lab/krrlab/race"
	"github.com/krrlab/lab/krrlab/solve"
	"github.com/krrlab/lab/krrlab/stage"
)

// soon are runners that a race builds at once, and so hopeful of them that it runs them.
func soon(names ...string) (o RaceOptions) {
	for _, name := range names {
		o.Runners = append(o.Runners, RaceRunner{PrecondSpec{Name: name, S: 60}, 1, 1e-9})
	}
	return o
}

// TestRaceFreed: a stage that frees K or M for others of its own frees those too that a race would go on with.
func TestRaceFreed(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"K": func(c *Config) { c.Storage = gram.Float64 },
		"Z": func(c *Config) { c.Precond = Nystrom{S: 30} },
		"M": func(c *Config) { c.Precond = Nystrom{S: 60, LambdaP: 7} },
	} {
		lab := sketchLab(t, Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.3, Seed: 4, Solver: PCG, Tol: 1e-8, Storage: gram.Float32})
		if _, err := lab.Race(t.Context(), soon("nystrom")); err != nil {
			t.Fatal(err)
		}
		if lab.begun == nil { // it was over at once
			lab.begun = &solve.Begun{A: lab.k.a, M: lab.m.Woodbury, State: []byte{1}}
		}
		other, err := lab.With(change)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Solve(t.Context()); err != nil {
			t.Fatal(err)
		}
		if lab.begun != nil {
			t.Errorf("another %s: that of the race is held beside it", name)
		}
	}
}

// TestRace: a solve with the winner goes on from where the race ended, with the K and M that are held, to the
// coefficients that it has without a race, bit for bit, and they are those of dense linear algebra.
func TestRace(t *testing.T) {
	k := kernel.Gaussian{Sigma: 1}
	for name, o := range map[string]RaceOptions{
		"defaults": {}, "landmarks": soon("nystrom", "rpcholesky"), "features": soon("features"), "sparse": soon("vecchia"), "hopeless": {Runners: []RaceRunner{{PrecondSpec{Name: "nystrom", S: 60}, 1, 1e9}}},
	} {
		cfg := Config{Kernel: k, Lambda: 0.3, Seed: 4, Solver: PCG, Tol: 1e-8}
		lab := sketchLab(t, cfg)
		r, err := lab.Race(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		w := &r.Racers[r.Kept]
		if len(r.Racers) < 2 || r.Racers[0].Name != "none" || w.Iterations < 1 || r.Columns < r.Steps {
			t.Fatalf("%s: %+v", name, r)
		}
		if name == "hopeless" && (w.Name != "none" || r.Racers[1].Phase != race.Waiting) {
			t.Errorf("%s was built: %v", name, r)
		}
		spec := PrecondSpec{Name: w.Name, S: w.S}
		if cfg.Precond, err = spec.Preconditioner(k); err != nil {
			t.Fatal(err)
		}
		again, err := lab.With(func(c *Config) { c.Precond = cfg.Precond })
		if err != nil {
			t.Fatal(err)
		}
		sol := solveLab(t, again)
		alone, err := sketchLab(t, cfg).Solve(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !sol.Converged() || !mat.Equal(sol.Model.C, alone.Model.C) || sol.Iterations != alone.Iterations {
			t.Errorf("%s, %s: %d iterations, %d without a race, or other coefficients", name, w.Name, sol.Iterations, alone.Iterations)
		}
		want := []string{"features", "factor", "kernel", "race"}
		switch {
		case w.Name == "vecchia":
			want = []string{"kernel", "factor", "race"}
		case w.S == 0:
			want = want[2:]
		}
		if w.Phase != race.Done && !slices.Equal(sol.Shared, want) {
			t.Errorf("%s, %s: shared %v, want %v", name, w.Name, sol.Shared, want)
		}
		for j, v := range w.Residuals {
			if v != alone.History[j].Residual {
				t.Fatalf("%s, %s: residual %v after %d iterations, %v alone", name, w.Name, v, j, alone.History[j].Residual)
			}
		}
		ref := newReference(t, k, lab.train.X, 0.3, lab.y)
		var off mat.Dense
		off.Sub(&ref.c, sol.Model.C)
		if d := mat.Norm(&off, 2); !(d <= 1e-8*mat.Norm(lab.y, 2)/0.3) {
			t.Errorf("%s, %s: off the dense answer by %g", name, w.Name, d)
		}
		lab.Free()
		if sol, err = again.Solve(t.Context()); err != nil || len(sol.Shared) > 0 || !mat.Equal(sol.Model.C, alone.Model.C) {
			t.Errorf("%s, %s: freed, but shared %v, or other coefficients: %v", name, w.Name, sol.Shared, err)
		}
	}
}

// TestRaceFinish: who reaches τ has what a solve has.
func TestRaceFinish(t *testing.T) {
	o := soon("nystrom")
	o.Finish = true
	r, err := sketchLab(t, Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.3, Tol: 1e-6}).Race(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if w := &r.Racers[r.Kept]; w.Phase != race.Done || !(slices.Min(w.Residuals) <= 1e-6) || float64(w.Predicted) != float64(w.Iterations) {
		t.Errorf("%v, %v", r, err)
	}
}

// TestRaceColumns: several right-hand sides, of which nothing but K and M is left for a solve.
func TestRaceColumns(t *testing.T) {
	data, err := datasets.Load(t.Context(), "synthetic-classes", &datasets.LoadOptions{N: 300})
	if err != nil {
		t.Fatal(err)
	}
	lab := newLab(t, data.Train, Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.1, Solver: PCG, Precond: Nystrom{S: 60}})
	r, err := lab.Race(t.Context(), soon("nystrom"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Product == 0 || r.T < 2 || r.Best() == nil {
		t.Errorf("%+v", r)
	}
	sol, err := lab.Solve(t.Context())
	if err != nil || !sol.Converged() || slices.Contains(sol.Shared, "race") || !slices.Contains(sol.Shared, "kernel") {
		t.Errorf("%v, %v", sol.Shared, err)
	}
}

// TestRaceOnRanks: all ranks come to the same race, and to the same answer of the winner.
func TestRaceOnRanks(t *testing.T) {
	setThreads(t, 2)
	for _, size := range []int{2, 3} {
		reports, answers := make([]*race.Report, size), make([]*mat.Dense, size)
		var wg sync.WaitGroup
		for rank, c := range comm.Local(size, comm.Options{}) {
			wg.Go(func() {
				lab, err := New(ranksProblem(700), Config{Kernel: gauss, Lambda: 0.3, Seed: 5, Solver: PCG, Tol: 1e-6, Comm: c})
				if err != nil {
					t.Error(err)
					return
				}
				r, err := lab.Race(t.Context(), soon("features", "nystrom", "rpcholesky"))
				if err != nil {
					t.Error(err)
					return
				}
				w := &r.Racers[r.Kept]
				p, err := PrecondSpec{Name: w.Name, S: w.S}.Preconditioner(gauss)
				if err != nil {
					t.Error(err)
					return
				}
				won, err := lab.With(func(c *Config) { c.Precond = p })
				if err != nil {
					t.Error(err)
					return
				}
				sol, err := won.Solve(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				reports[rank], answers[rank] = r, sol.Model.C
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		for rank, r := range reports[1:] {
			if !reflect.DeepEqual(testkit.Timeless(r, nil), testkit.Timeless(reports[0], nil)) || !mat.Equal(answers[rank+1], answers[0]) {
				t.Errorf("rank %d of %d:\n%v\nrank 0:\n%v", rank+1, size, r, reports[0])
			}
		}
	}
}

// TestRaceLimits: what has no room, or is no preconditioner for the kernel.
func TestRaceLimits(t *testing.T) {
	lab := sketchLab(t, Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.3})
	k, err := lab.K(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lab.cfg.Memory = lab.vectors() + k.Bytes() + 8*500*60 + 24*60*60
	recipes, err := lab.racers(&RaceOptions{Runners: soon("nystrom").Runners})
	if err != nil {
		t.Fatal(err)
	}
	e := &entrants{lab: lab, a: k, built: map[pcg.Preconditioner]func(){}}
	if _, _, err := e.make(t.Context(), recipes[0]); err != nil || e.held == 0 {
		t.Errorf("%v, %d bytes", err, e.held)
	}
	if _, _, err := e.make(t.Context(), recipes[0]); err == nil || !strings.Contains(err.Error(), "the limit is") {
		t.Errorf("a second one: %v", err)
	}
	lab.cfg.Memory = 0
	for name, o := range map[string]RaceOptions{"magic": soon("magic"), "takes part in every race": soon("none")} {
		testkit.Fails(t, testkit.ErrOf(lab.Race(t.Context(), o)), name)
	}
	if r, err := sketchLab(t, Config{Kernel: eval{}, Lambda: 0.3}).Race(t.Context(), RaceOptions{}); err != nil || len(r.Racers) != 4 {
		t.Errorf("a kernel without features: %v, %v", r, err)
	}
}

// eval is a kernel of which only values are known.
type eval struct{}

func (eval) String() string { return "eval" }

func (eval) Eval(x, z []float64) float64 { return kernel.Gaussian{Sigma: 1}.Eval(x, z) }

// TestRaceEnded: ctx, and the Monitor, which sees a curve of each runner.
func TestRaceEnded(t *testing.T) {
	for name, stop := range map[string]error{"canceled": context.Canceled, "stopped": pcg.ErrStop} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		seen := map[string]int{}
		lab := sketchLab(t, Config{Kernel: kernel.Gaussian{Sigma: 0.5}, Lambda: 1e-3, Tol: 1e-12, Monitor: func(e stage.Event) error {
			if e.Stage != stage.Race {
				return nil
			}
			if seen[e.Detail]++; e.Iteration != seen[e.Detail] || !(e.Residual > 0) {
				t.Errorf("%s: %+v, number %d", name, e, seen[e.Detail])
			}
			if e.Detail != "none" && e.Iteration == 2 {
				if stop == pcg.ErrStop {
					return stop
				}
				cancel()
			}
			return nil
		}})
		r, err := lab.Race(ctx, soon("nystrom"))
		if stop == pcg.ErrStop {
			stop = nil
		}
		if !errors.Is(err, stop) || r == nil || r.Best() != nil || r.Racers[1].Iterations != 2 || !strings.Contains(r.String(), "winner") {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
}

// TestRaceShown: the report's lines, table, picture and JSON.
func TestRaceShown(t *testing.T) {
	lab := sketchLab(t, Config{Kernel: kernel.Gaussian{Sigma: 1}, Lambda: 0.3, Tol: 1e-6})
	r, err := lab.Race(t.Context(), soon("nystrom", "features"))
	if err != nil {
		t.Fatal(err)
	}
	js, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back race.Report
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
	if len(f.Panels) != 2 || len(f.Panels[0].Series) < 2 || f.Panels[0].Series[0].Name != "M = I" || f.Panels[0].Series[0].X[0] != 0 {
		t.Errorf("%+v", f)
	}
	if !strings.Contains(r.HTML(), "winner") {
		t.Error("no winner in HTML")
	}
}
