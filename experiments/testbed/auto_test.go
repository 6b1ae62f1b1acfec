package testbed_test

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/experiments/testbed"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/gram"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/plots"
)

// tried are the twelve problems that auto is tuned on, pairs of near duplicates, and three more, and how many points.
const tried = "synthetic-regression:4000 synthetic-classes:4000 abalone:3341 usps:7291 mnist:5000 mnist:10000 " +
	"ijcnn1:20000 adult:20000 covtype-sample:20000 covtype7-sample:10000:0.3 cal-housing:16512 protein:20000 pairs:3600 " +
	"curve:10000 clusters:10000 cal-laplacian:10000"

// way is one to solve a problem.
type way struct {
	name string
	krrlab.Config
}

// ways are auto and its candidates, of n points.
func ways(n int, lambda float64) []way {
	return []way{
		{"direct", krrlab.Config{Solver: krrlab.Direct, Storage: gram.Float32}},
		{"pivots", krrlab.Config{Precond: krrlab.RPCholesky{S: n / 20, LambdaP: 10 * lambda}}},
		{"auto", krrlab.Config{}},
		{"sparse", krrlab.Config{Precond: krrlab.Vecchia{}}},
		{"both", krrlab.Config{Precond: krrlab.Vecchia{S: n / 40, Neighbors: 15}}},
		{"none", krrlab.Config{Solver: krrlab.CG}},
	}
}

// problem returns that of a name, a number of points and, for a data set, σ, with colons between.
func problem(t *testing.T, text string) (p testbed.Problem, data *datasets.Dataset) {
	parts := strings.Split(text, ":")
	n, err := strconv.Atoi(parts[1])
	ok(t, err)
	dirs := []string{os.Getenv("KRRLAB_DATA")}
	all := testbed.Problems()
	if i := slices.IndexFunc(all, func(p testbed.Problem) bool { return p.Name == parts[0] }); i >= 0 && len(parts) == 2 {
		data, err = all[i].Data(t.Context(), n, dirs)
		ok(t, err)
		return all[i], data
	}
	pair, err := datasets.Load(t.Context(), parts[0], &datasets.LoadOptions{N: n, Dirs: dirs})
	ok(t, err)
	sigma := pair.Info.Sigma
	if len(parts) > 2 {
		sigma, err = strconv.ParseFloat(parts[2], 64)
		ok(t, err)
	}
	return testbed.Problem{Name: parts[0], Kernel: kernel.Gaussian{Sigma: sigma}, Lambda: pair.Info.Lambda}, pair.Train
}

// TestAuto compares what auto takes with the best of the candidates, one run each: of KRRLAB_PLAN, problems of the
// testbed and how many points, "all" for those above, which make bench-plan sets, or else of a few points.
func TestAuto(t *testing.T) {
	which := cmp.Or(os.Getenv("KRRLAB_PLAN"), "grid:300")
	if which == "all" {
		which = tried
	}
	if lib, err := accel.OpenBLAS(); err == nil && which != "grid:300" {
		accel.Use(lib)
		defer accel.Use(nil)
	} else {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
	}
	var wall, own []float64
	for _, text := range strings.Fields(which) {
		p, data := problem(t, text)
		a, b := try(t, &p, data)
		wall, own = append(wall, a), append(own, b)
	}
	for what, v := range map[string][]float64{"seconds": wall, "processor seconds": own} {
		slices.Sort(v)
		t.Logf("auto ÷ best, %s: %.2f in the median, %.2f at worst", what, v[len(v)/2], v[len(v)-1])
		if !(v[0] > 0) {
			t.Errorf("%s: %v", what, v)
		}
	}
}

// try solves a problem in every way, and returns what auto takes over what the best takes.
func try(t *testing.T, p *testbed.Problem, data *datasets.Dataset) (wall, own float64) {
	n := data.Len()
	best := [2]float64{math.Inf(1), math.Inf(1)}
	var auto [2]float64
	table := &plots.Table{Columns: []plots.Column{{Name: p.Name + fmt.Sprintf(", n = %d", n)}, {Name: "method"},
		{Name: "iterations"}, {Name: "seconds", Format: "%.2f"}, {Name: "processor", Format: "%.2f"}, {Name: "status"}}}
	for _, w := range ways(n, p.Lambda) {
		cfg := w.Config
		if cfg.Kernel, cfg.Lambda = p.Kernel, p.Lambda; p.Name == "pairs" {
			cfg.Tol = p.Lambda
		}
		if len(data.Labels) > 2 && cfg.Precond != nil {
			cfg.Solver = krrlab.BlockPCG
		}
		start, before := time.Now(), accel.ProcessorSeconds()
		lab, err := krrlab.New(data, cfg)
		ok(t, err)
		sol, err := lab.Solve(t.Context())
		ok(t, err)
		took := [2]float64{time.Since(start).Seconds(), accel.ProcessorSeconds() - before}
		for k := range took {
			if w.name == "auto" {
				auto[k] = took[k]
			} else if sol.Reached() {
				best[k] = min(best[k], took[k])
			}
		}
		table.Add(w.name, sol.Method(), sol.Iterations, took[0], took[1], sol.Status.String())
		if w.name == "auto" {
			t.Log(sol)
		}
		lab.Free()
	}
	wall, own = auto[0]/best[0], auto[1]/best[1]
	t.Logf("\n%sauto ÷ best: %.2f in seconds, %.2f in processor seconds", table.Text(), wall, own)
	return wall, own
}
