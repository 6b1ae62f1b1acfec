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

// benchProblems contains the problems of make bench-plan with their numbers of points: the twelve problems that auto
// is tuned on, a problem with near duplicates, and four more.
const benchProblems = "synthetic-regression:4000 synthetic-classes:4000 abalone:3341 usps:7291 mnist:5000 mnist:10000 " +
	"ijcnn1:20000 adult:20000 covtype-sample:20000 covtype7-sample:10000:0.3 cal-housing:16512 protein:20000 pairs:3600 " +
	"curve:10000 clusters:10000 cal-laplacian:10000 plane:20000"

// configuration is a configuration that a problem is solved with.
type configuration struct {
	name string
	krrlab.Config
}

// configurations returns auto and its candidates for n points.
func configurations(n int, lambda float64) []configuration {
	return []configuration{
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

// problem returns the problem that text describes: a name and a number of points, separated by a colon. For a data set
// that is not in the testbed, σ may follow after another colon.
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

// TestAuto compares the time of auto with the time of the best candidate. KRRLAB_PLAN contains the problems and their
// numbers of points, or "all" for benchProblems, which make bench-plan sets. The default is one problem with few
// points.
func TestAuto(t *testing.T) {
	problems := cmp.Or(os.Getenv("KRRLAB_PLAN"), "grid:300")
	if problems == "all" {
		problems = benchProblems
	}
	if problems == "refit" {
		t.Skip("TestRefit runs")
	}
	if lib, err := accel.OpenBLAS(); err == nil && problems != "grid:300" {
		accel.UseLibrary(lib)
		defer accel.UseLibrary(nil)
	} else {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
	}
	var times [2]ratios
	for _, text := range strings.Fields(problems) {
		testProblem, data := problem(t, text)
		for k, fastest := range solveAllConfigurations(t, &testProblem, data) {
			times[k].add(fastest)
		}
	}
	for k, unit := range []string{"seconds", "processor seconds"} {
		r := &times[k]
		slices.Sort(r.best)
		t.Logf("%s: auto ÷ best %.2f in the median, %.2f at worst, %.2f where the best takes more than %g s; "+
			"auto ÷ direct at most %.2f", unit, r.best[len(r.best)/2], r.best[len(r.best)-1], r.slow, slowSeconds, r.direct)
		if !(r.best[0] > 0 && r.direct > 0) {
			t.Errorf("%s: ratios must be positive: %+v", unit, r)
		}
	}
}

// slowSeconds is the smallest time of the best candidate, in seconds, for which a problem counts in ratios.slow.
const slowSeconds = 0.3

// ratios contains, for some problems, the time of auto divided by the times of others.
type ratios struct {
	best   []float64 // divided by the time of the best candidate, for each problem
	slow   float64   // the largest of best on problems whose best candidate takes more than slowSeconds
	direct float64   // the largest ratio to the time of the direct solver
}

// add adds a problem with the given times by the name of the configuration.
func (r *ratios) add(times map[string]float64) {
	best := math.Inf(1)
	for name, v := range times {
		if name != "auto" {
			best = min(best, v)
		}
	}
	if r.best = append(r.best, times["auto"]/best); best > slowSeconds {
		r.slow = max(r.slow, times["auto"]/best)
	}
	r.direct = max(r.direct, times["auto"]/times["direct"])
}

// These constants limit the number of solves with each configuration. A fast problem is solved more often, and a slow
// configuration only once.
const (
	minTurns      = 3   // smallest number of solves
	maxTurns      = 15  // largest number of solves
	enoughSeconds = 2   // after minTurns, a problem is repeated until auto has taken so many seconds
	slowRatio     = 1.5 // a configuration that takes so many times as long as the best one is not repeated
)

// solveAllConfigurations solves a problem with every configuration, in turns. It returns the smallest seconds and the
// smallest processor seconds of each configuration that reached the tolerance.
func solveAllConfigurations(t *testing.T, p *testbed.Problem, data *datasets.Dataset) (fastest [2]map[string]float64) {
	n := data.Len()
	fastest = [2]map[string]float64{{}, {}}
	rows := make([][]any, len(configurations(n, p.Lambda)))
	best, spent := math.Inf(1), 0.0
	for turn := 0; turn < minTurns || turn < maxTurns && spent < enoughSeconds; turn++ {
		for i, candidate := range configurations(n, p.Lambda) {
			if v, ok := fastest[0][candidate.name]; turn > 0 && candidate.name != "auto" &&
				!(ok && v < slowRatio*best) {
				continue
			}
			sol, times := solveTimed(t, p, data, candidate.Config)
			for k, v := range times {
				if earlier, ok := fastest[k][candidate.name]; sol.CriterionMet() && !(ok && earlier < v) {
					fastest[k][candidate.name] = v
				}
			}
			if sol.CriterionMet() && candidate.name != "auto" {
				best = min(best, times[0])
			}
			if candidate.name == "auto" {
				if spent += times[0]; turn == 0 {
					t.Log(sol)
				}
			}
			rows[i] = []any{candidate.name, sol.Method(), sol.Iterations, cmp.Or(fastest[0][candidate.name], times[0]),
				cmp.Or(fastest[1][candidate.name], times[1]), sol.Status.String()}
		}
	}
	table := &plots.Table{Columns: []plots.Column{{Name: p.Name + fmt.Sprintf(", n = %d", n)}, {Name: "method"},
		{Name: "iterations"}, {Name: "seconds", Format: "%.3f"}, {Name: "processor", Format: "%.3f"}, {Name: "status"}}}
	for _, row := range rows {
		table.Add(row...)
	}
	var now [2]ratios
	for k := range now {
		now[k].add(fastest[k])
	}
	t.Logf("\n%sauto ÷ best: %.2f in seconds, %.2f in processor seconds", table.Text(), now[0].best[0], now[1].best[0])
	return fastest
}

// solveTimed solves a problem with a configuration and returns the seconds and the processor seconds.
func solveTimed(t *testing.T, p *testbed.Problem, data *datasets.Dataset, cfg krrlab.Config) (*krrlab.Solution, [2]float64) {
	if cfg.Kernel, cfg.Lambda = p.Kernel, p.Lambda; p.Name == "pairs" {
		cfg.Tol = p.Lambda
	}
	if len(data.Labels) > 2 && cfg.Precond != nil {
		cfg.Solver = krrlab.BlockPCG
	}
	runtime.GC() // garbage of the previous solve must not count
	start, before := time.Now(), accel.ProcessorSeconds()
	lab := must(krrlab.New(data, cfg))
	defer lab.Free()
	sol := must(lab.Solve(t.Context()))
	return sol, [2]float64{time.Since(start).Seconds(), accel.ProcessorSeconds() - before}
}
