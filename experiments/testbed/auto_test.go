package testbed_test

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/experiments/testbed"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
	"github.com/krrlab/lab/plots"
)

// tried are the twelve problems that auto is tuned on, pairs of near duplicates, and four more, and how many points.
const tried = "synthetic-regression:4000 synthetic-classes:4000 abalone:3341 usps:7291 mnist:5000 mnist:10000 " +
	"ijcnn1:20000 adult:20000 covtype-sample:20000 covtype7-sample:10000:0.3 cal-housing:16512 protein:20000 pairs:3600 " +
	"curve:10000 clusters:10000 cal-laplacian:10000 plane:20000"

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
		{"pivots, λ_p = λ", krrlab.Config{Precond: krrlab.RPCholesky{S: n / 20}}},
		{"pivots, spectral", krrlab.Config{Precond: krrlab.RPCholesky{S: n / 20, Spectral: true}}},
		{"sparse", krrlab.Config{Precond: krrlab.Vecchia{}}},
		{"both", krrlab.Config{Precond: krrlab.Vecchia{S: n / 40, Neighbors: 15}}},
		{"none", krrlab.Config{Solver: krrlab.CG}},
	}
}

// problem returns that of a name, a number of points and, for a data set, σ, with colons between.
func problem(t *testing.T, text string) (p testbed.Problem, data *datasets.Dataset) {
	parts := strings.Split(text, ":")
	n := must(strconv.Atoi(parts[1]))
	dirs := []string{os.Getenv("KRRLAB_DATA")}
	all := testbed.Problems()
	if i := slices.IndexFunc(all, func(p testbed.Problem) bool { return p.Name == parts[0] }); i >= 0 && len(parts) == 2 {
		data = must(all[i].Data(t.Context(), n, dirs))
		return all[i], data
	}
	pair := must(datasets.Load(t.Context(), parts[0], &datasets.LoadOptions{N: n, Dirs: dirs}))
	sigma := pair.Info.Sigma
	if len(parts) > 2 {
		sigma = must(strconv.ParseFloat(parts[2], 64))
	}
	return testbed.Problem{Name: parts[0], Kernel: kernel.Gaussian{Sigma: sigma}, Lambda: pair.Info.Lambda}, pair.Train
}

// TestAuto compares what auto takes with the best of the candidates: of KRRLAB_PLAN, problems of the testbed and how
// many points, "all" for those above, which make bench-plan sets, or else of a few points.
func TestAuto(t *testing.T) {
	which := cmp.Or(os.Getenv("KRRLAB_PLAN"), "grid:300")
	if which == "all" {
		which = tried
	}
	if which == "refit" {
		t.Skip("TestRefit runs")
	}
	if lib, err := accel.OpenBLAS(); err == nil && which != "grid:300" {
		accel.Use(lib)
		defer accel.Use(nil)
	} else {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
	}
	var all [2]ratios
	for _, text := range strings.Fields(which) {
		p, data := problem(t, text)
		for k, took := range try(t, &p, data) {
			all[k].add(took)
		}
	}
	for k, what := range []string{"seconds", "processor seconds"} {
		r := &all[k]
		slices.Sort(r.best)
		t.Logf("%s: auto ÷ best %.2f in the median, %.2f at worst, %.2f where the best takes more than %g s; "+
			"auto ÷ direct at most %.2f", what, r.best[len(r.best)/2], r.best[len(r.best)-1], r.slow, counts, r.direct)
		if !(r.best[0] > 0 && r.direct > 0) {
			t.Errorf("%s: %+v", what, r)
		}
	}
}

// counts is the least seconds of the best that the ratio at worst counts of.
const counts = 0.3

// ratios are what auto takes over what others take, of some problems.
type ratios struct {
	best         []float64
	slow, direct float64 // the largest
}

func (r *ratios) add(took map[string]float64) {
	best := math.Inf(1)
	for name, v := range took {
		if name != "auto" {
			best = min(best, v)
		}
	}
	if r.best = append(r.best, took["auto"]/best); best > counts {
		r.slow = max(r.slow, took["auto"]/best)
	}
	r.direct = max(r.direct, took["auto"]/took["direct"])
}

// How often a way is tried: more often where it is quick, and no more where it takes twice as long as another.
const (
	turns, most = 3, 15
	enough      = 2 // seconds of a problem's best
	far         = 1.5
)

// try solves a problem in every way, in turns, and returns the least seconds and processor seconds of each that reached
// the tolerance.
func try(t *testing.T, p *testbed.Problem, data *datasets.Dataset) (least [2]map[string]float64) {
	n := data.Len()
	least = [2]map[string]float64{{}, {}}
	rows := make([][]any, len(ways(n, p.Lambda)))
	best, spent := math.Inf(1), 0.0
	for turn := 0; turn < turns || turn < most && spent < enough; turn++ {
		for i, w := range ways(n, p.Lambda) {
			if v, ok := least[0][w.name]; turn > 0 && w.name != "auto" && !(ok && v < far*best) {
				continue
			}
			sol, took := solved(t, p, data, w.Config)
			for k, v := range took {
				if before, ok := least[k][w.name]; sol.Reached() && !(ok && before < v) {
					least[k][w.name] = v
				}
			}
			if sol.Reached() && w.name != "auto" {
				best = min(best, took[0])
			}
			if w.name == "auto" {
				if spent += took[0]; turn == 0 {
					t.Log(sol)
				}
			}
			rows[i] = []any{w.name, sol.Method(), sol.Iterations, cmp.Or(least[0][w.name], took[0]),
				cmp.Or(least[1][w.name], took[1]), sol.Status.String()}
		}
	}
	table := &plots.Table{Columns: []plots.Column{{Name: p.Name + fmt.Sprintf(", n = %d", n)}, {Name: "method"},
		{Name: "iterations"}, {Name: "seconds", Format: "%.3f"}, {Name: "processor", Format: "%.3f"}, {Name: "status"}}}
	for _, row := range rows {
		table.Add(row...)
	}
	var now [2]ratios
	for k := range now {
		now[k].add(least[k])
	}
	t.Logf("\n%sauto ÷ best: %.2f in seconds, %.2f in processor seconds", table.Text(), now[0].best[0], now[1].best[0])
	return least
}

// solved solves a problem in one way, and returns the seconds and processor seconds it took.
func solved(t *testing.T, p *testbed.Problem, data *datasets.Dataset, cfg krrlab.Config) (*krrlab.Solution, [2]float64) {
	if cfg.Kernel, cfg.Lambda = p.Kernel, p.Lambda; p.Name == "pairs" {
		cfg.Tol = p.Lambda
	}
	if len(data.Labels) > 2 && cfg.Precond != nil {
		cfg.Solver = krrlab.BlockPCG
	}
	runtime.GC() // what the one before left is not this one's
	start, before := time.Now(), accel.ProcessorSeconds()
	lab := must(krrlab.New(data, cfg))
	defer lab.Free()
	sol := must(lab.Solve(t.Context()))
	return sol, [2]float64{time.Since(start).Seconds(), accel.ProcessorSeconds() - before}
}
