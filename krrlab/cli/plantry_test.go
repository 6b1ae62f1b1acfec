package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/internal/testkit"
	"github.com/krrlab/lab/krrlab/plan"
	"github.com/krrlab/lab/plots"
)

// At most triedOfKind candidates of each solver, preconditioner and λ_p are tried: those that are predicted to take at
// most likelyFactor times the choice, or directFactor times without a preconditioner.
const (
	triedOfKind  = 2
	likelyFactor = 2
	directFactor = 6
)

// training returns the predicted seconds without those of the test points.
func training(c *plan.Candidate) float64 { return c.Seconds.Total - c.Seconds.Predict }

// TestPlanAgainstCandidates prints what was predicted of the candidates of a plan beside what krrlab fit took with
// each, and auto beside the best of them: of KRRLAB_PLAN, the flags of krrlab plan, which make bench-plan sets, or else
// of a few points.
func TestPlanAgainstCandidates(t *testing.T) {
	args := os.Getenv("KRRLAB_PLAN")
	if args == "" {
		args = "--data synthetic-regression --n 200"
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
	} else {
		args += " --data-dir " + os.Getenv("KRRLAB_DATA")
		if lib, err := accel.OpenBLAS(); err == nil {
			accel.Use(lib)
			defer accel.Use(nil)
		}
	}
	files(t, nil)
	var p plan.Plan
	decode := func(command string, into any) {
		script(t, "$ "+command+" --json r.json")
		if err := json.Unmarshal(read(t, "r.json"), into); err != nil {
			t.Fatal(err)
		}
	}
	fit := func(flags string) (s krrlab.Solution, seconds float64) {
		decode("fit "+args+" "+flags, &s)
		return s, s.Seconds.Total - s.Seconds.Load - s.Seconds.Predict
	}
	decode("plan "+args, &p)
	table := &plots.Table{}
	for _, c := range []string{"candidate", "predicted", "actual", "iterations predicted", "actual iterations"} {
		table.Columns = append(table.Columns, plots.Column{Name: c, Format: "%.2f"})
	}
	kinds, best := map[string]int{}, 0.0
	for _, c := range p.Candidates {
		kind, factor := fmt.Sprint(c.Solver, c.Precond, c.LambdaP), float64(likelyFactor)
		if c.Precond == plan.None {
			factor = directFactor
		}
		if kinds[kind]++; kinds[kind] > triedOfKind || c.Refused != "" || training(c) > factor*training(&p.Choice) {
			continue
		}
		s, took := fit(c.Flags())
		table.Add(c.String(), training(c), took, c.Iterations, s.Iterations)
		if best == 0 || took < best {
			best = took
		}
	}
	_, auto := fit("")
	text := table.Text() + fmt.Sprintf("auto took %.2f s, the best %.2f: auto ÷ best %.2f\n", auto, best, auto/best)
	testkit.Contains(t, text, "predicted", "auto ÷ best")
	t.Log("\n" + strings.TrimSpace(text))
}
