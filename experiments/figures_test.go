package experiments

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/base/suite"
	"github.com/krrlab/lab/plots"
)

// TestProfiles checks the numbers of features of the three profiles. They meet at n = 100,000 of MNIST, as in the
// paper, and the constant is the paper's if the largest n is the paper's.
func TestProfiles(t *testing.T) {
	if s := profile(constantRole, 1000, 780, 450000); s != 20000 {
		t.Errorf("the constant s is %d", s)
	}
	if s := profile(rootRole, 100000, 780, 450000); s != 19960 {
		t.Errorf("2.26√(nd) is %d", s)
	}
	if s := profile(shareRole, 100000, 780, 450000); s != 20000 {
		t.Errorf("0.2n is %d", s)
	}
	if s := profile(constantRole, 50000, 784, 50000); s != 2222 {
		t.Errorf("the constant s at laptop scale is %d", s)
	}
	r := NewPlan(must(Find("figure2")), Paper)
	for _, row := range r.Rows() {
		if c := r.Find(row, constantRole)[0].Case; c.S != 20000 {
			t.Errorf("%s: s = %d", row, c.S)
		}
	}
}

// TestCurve checks the medians, the ends and the counts of seeds at the positions of a curve. A position without a
// seed that converged is no point of the series.
func TestCurve(t *testing.T) {
	r := &Report{ID: "figure1", Scale: Laptop}
	add := func(s int, seed uint64, result *Result) {
		r.Entries = append(r.Entries, Entry{Row: "a", Role: exactRole, Case: Case{
			PrecondSpec: krrlab.PrecondSpec{S: s}, Config: krrlab.Config{Seed: seed}}, Result: result})
	}
	for seed, testError := range []float64{0.03, 0.01, 0.02, 0.05} {
		add(10, uint64(seed), convergedResult(10*(seed+1), testError))
	}
	add(10, 9, stoppedResult(2000, 1000))
	add(20, 1, nil)
	add(20, 2, &Result{Status: Failed, Reason: "for a test"})
	curve := r.curve("a", exactRole)
	if len(curve) != 2 {
		t.Fatalf("%d places", len(curve))
	}
	first, second := curve[0], curve[1]
	if !slices.Equal(first.errors, []float64{0.01, 0.02, 0.03, 0.05}) || median(first.errors) != 0.025 ||
		first.ranSeeds != 5 ||
		first.complete() {
		t.Errorf("4 of 5 seeds: %+v", first)
	}
	if got := spreadCell(errorPercents(first), "%.1f", ""); got != plots.Spread(2.5, 1, 5, "2.5 (1.0–5.0)") {
		t.Errorf("spread %+v", got)
	}
	if got := first.seedsCell().String(); got != "4 of 5 converged" {
		t.Errorf("seeds %q", got)
	}
	if !math.IsNaN(median(second.errors)) || spreadCell(second.errors, "%g", "").String() != "" ||
		second.seedsCell().String() != "0 of 2 run" {
		t.Errorf("no seed with an answer: %+v", second)
	}
	lines := series("x", curve, positionOf, errorPercents)
	if len(lines) != 1 {
		t.Fatalf("%d lines", len(lines))
	}
	if line := lines[0]; len(line.Y) != 1 || line.Y[0] != 2.5 || line.Lo[0] != 1 || line.Hi[0] != 5 {
		t.Errorf("the line is %+v, want one point with the median 2.5 %% and the ends 1 and 5", line)
	}
	if len(series("x", curve[1:], positionOf, errorPercents)) > 0 {
		t.Error("a line of nothing")
	}
}

// figure1Result returns a function that makes up results of figure 1. The exact error is 2 %, plus exactSpread
// ten-thousandths for each seed. The error of random features is 2 % + gap·n/s, plus a ten-thousandth for each seed,
// and their factorization takes 50·s/n seconds.
func figure1Result(gap, exactSpread float64) func(e *Entry) *Result {
	return func(e *Entry) *Result {
		jitter := 1e-4 * float64(e.Case.Seed)
		if e.Role == exactRole {
			result := convergedResult(50, 0.02+exactSpread*jitter)
			result.Seconds.Solve = 4 + 1e4/float64(e.Case.S)
			return result
		}
		n := float64(e.Case.N)
		result := convergedResult(1, 0.02+gap*n/float64(e.Case.S)+jitter)
		result.Seconds.Factor = 50 * float64(e.Case.S) / n
		return result
	}
}

// TestFigure1Verdicts checks results for which each claim of figure 1 holds, fails, or is open.
func TestFigure1Verdicts(t *testing.T) {
	const gap, flat, slow = "the gap", "s does not change", "random features take longer"
	changed := func(edit func(e *Entry, result *Result) *Result) func(e *Entry) *Result {
		return func(e *Entry) *Result { return edit(e, figure1Result(0.004, 1)(e)) }
	}
	r := madeUpReport(t, "figure1", figure1Result(0.004, 1))
	for _, c := range []struct {
		name, claims, want string // claims lists keys of the claims; want is their outcome
		result             func(e *Entry) *Result
	}{
		{"all", "gap s random", Holds, figure1Result(0.004, 1)},
		{"a seed within the exact ones", "gap", Fails, figure1Result(0.0002, 1)},
		{"an exact error that moves by 0.12 %", "s", Fails, figure1Result(0.004, 30)},
		{"random features that are near with few", "random", Fails, figure1Result(0.00002, 1)},
		{"without s = n", "gap s random", Open, changed(func(e *Entry, result *Result) *Result {
			if e.Role == featuresRole && e.Case.S == e.Case.N {
				return nil
			}
			return result
		})},
		{"with a seed that did not converge", "gap s random", Open, changed(func(e *Entry, result *Result) *Result {
			result.Converged = e.Case.Seed != 2
			return result
		})},
	} {
		for _, key := range strings.Fields(c.claims) {
			claim := map[string]string{"gap": gap, "s": flat, "random": slow}[key]
			t.Run(c.name, func(t *testing.T) { expectOutcome(t, madeUpReport(t, "figure1", c.result), claim, c.want) })
		}
	}
	r.Scale = Smoke
	expectOutcome(t, r, gap, Open)
}

// figure2Result returns a function that makes up results of figure 2. The errors decrease as 1/√n. The error of random
// features is that of the exact method times factor, and their time is the share of its time.
func figure2Result(factor, share float64) func(e *Entry) *Result {
	return func(e *Entry) *Result {
		n := float64(e.Case.N)
		result := convergedResult(50, 2/math.Sqrt(n)+1e-5*float64(e.Case.Seed))
		result.Seconds.Solve = 1e-7 * n * n
		if e.Role != exactRole {
			*result.TestError *= factor
			result.Seconds.Solve *= share
		}
		return result
	}
}

// TestFigure2 checks results for which each claim of figure 2 holds, fails, or is open, and the number of seeds.
func TestFigure2(t *testing.T) {
	const below, falls, faster = "the exact method's error is below", "the exact method's error keeps",
		"in the time that"
	r := madeUpReport(t, "figure2", figure2Result(1.2, 0.5))
	for _, claim := range []string{below, falls, faster} {
		expectOutcome(t, r, claim, Holds)
	}
	for _, claim := range []string{below, faster} { // random features are better and faster
		expectOutcome(t, madeUpReport(t, "figure2", figure2Result(0.9, 0.5)), claim, Fails)
	}
	expectOutcome(t, madeUpReport(t, "figure2", figure2Result(0.9, 2)), faster, Holds) // better in twice the time
	// Cases that were not run leave the claims open that they would decide, and no others.
	for name, c := range map[string]struct {
		without func(e *Entry) bool
		open    []string
	}{
		"the largest n": {func(e *Entry) bool { return e.Case.N == 50000 }, []string{below, falls, faster}},
		"a seed": {func(e *Entry) bool {
			return e.Case.N == 50000 && e.Role == exactRole &&
				e.Case.Seed == 2
		}, []string{below, falls, faster}},
		"random features":  {func(e *Entry) bool { return e.Role != exactRole }, []string{below, faster}},
		"the exact method": {func(e *Entry) bool { return e.Role == exactRole }, []string{below, falls, faster}},
		"a profile at one n": {func(e *Entry) bool { return e.Role == shareRole && e.Case.N == 10000 },
			[]string{faster}},
		"the n before the last": {func(e *Entry) bool { return e.Role == exactRole && e.Case.N == 20000 },
			[]string{falls}},
		"a profile at the end": {func(e *Entry) bool { return e.Role == rootRole && e.Case.N == 50000 },
			[]string{below, faster}},
		"nothing that was asked": {func(e *Entry) bool { return false }, nil},
	} {
		r := madeUpReport(t, "figure2", func(e *Entry) *Result {
			if c.without(e) {
				return nil
			}
			return figure2Result(1.2, 0.5)(e)
		})
		for _, claim := range []string{below, falls, faster} {
			want := Holds
			if slices.Contains(c.open, claim) {
				want = Open
			}
			t.Run("without "+name, func(t *testing.T) { expectOutcome(t, r, claim, want) })
		}
	}
	flat := madeUpReport(t, "figure2", func(e *Entry) *Result { return convergedResult(50, 0.02) })
	expectOutcome(t, flat, falls, Fails)
	for _, row := range r.Rows() {
		for _, p := range r.curve(row, exactRole) {
			want := 5
			if p.position > 20000 {
				want = 3
			}
			if p.plannedSeeds != want {
				t.Errorf("%s, n = %g: %d seeds, want %d", row, p.position, p.plannedSeeds, want)
			}
		}
	}
}

// TestFiguresSmoke runs both figures at smoke scale and draws them.
func TestFiguresSmoke(t *testing.T) {
	suite.RequireLong(t, "two figures, whole")
	reports, err := Run(context.Background(), []*Report{NewPlan(must(Find("figure1")), Smoke),
		NewPlan(must(Find("figure2")), Smoke)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range reports {
		for _, e := range r.Entries {
			if !e.Result.Ran() || !e.Result.Converged || math.IsNaN(e.Result.Error()) {
				t.Errorf("%s: %v: %s %s", r.ID, e.Case, e.Result.Status, e.Result.Reason)
			}
		}
		f := r.Plot()
		if err := f.Validate(); err != nil {
			t.Error(err)
		}
		if first, second := f.SVG(), f.SVG(); first != second || !strings.Contains(first, exactRole) {
			t.Errorf("%s is not the same twice", r.ID)
		}
	}
	// The exact method solves the same problem with every s, so its errors differ only by the tolerance.
	for _, row := range reports[0].Rows() {
		all := allErrors(reports[0].curve(row, exactRole))
		if lo, hi := minMax(all); hi-lo > 0.011 {
			t.Errorf("%s: errors from %g to %g", row, lo, hi)
		}
	}
}
