package experiments

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/kernel"
	"github.com/krrlab/lab/krrlab/kernel/gram"
)

// smallPlan returns a report with the given small cases on built-in data and without results.
func smallPlan(cases ...Case) *Report {
	r := &Report{ID: "toy", Title: "Small cases", Scale: Smoke}
	for _, c := range cases {
		r.Entries = append(r.Entries, Entry{Row: c.Data, Role: c.settings(), Case: c})
	}
	return r
}

// small returns a case with 400 points of five classes for the given solver.
func small(s krrlab.Solver) Case {
	return Case{
		Data: "synthetic-classes", N: 400, TestN: 300, Kernel: kernel.Spec{Name: "gaussian", Sigma: 0.5},
		Config: krrlab.Config{Solver: s, Lambda: 0.5, Tol: 1e-8, Seed: 1},
	}
}

// withFeatures returns a small case whose preconditioner has s random features.
func withFeatures(solver krrlab.Solver, s int) Case {
	c := small(solver)
	c.S = s
	return c
}

// competing returns a small case of a competing method with s features.
func competing(m Method, s int) Case {
	c := small(0)
	c.Method, c.S = m, s
	return c
}

// run runs a plan and returns its entries with results.
func run(t *testing.T, p *Report, o *Options) []Entry {
	t.Helper()
	if o == nil {
		o = &Options{}
	}
	o.Version = "test"
	reports := must(Run(t.Context(), []*Report{p}, o))
	return reports[0].Entries
}

// TestMethods compares the methods that solve the exact problem with the dense solver, and the objectives of ADMM and
// of random features with each other.
func TestMethods(t *testing.T) {
	square := competing(ADMM, 60)
	square.Loss, square.Tol, square.MaxIter = "square", 1e-6, 2000
	nystrom := withFeatures(krrlab.PCG, 60)
	nystrom.Name, nystrom.Tiles = "nystrom", gram.DenseTiles // cases have all options of krrlab.New
	es := run(t, smallPlan(small(krrlab.Direct), small(krrlab.CG), withFeatures(krrlab.PCG, 60), withFeatures(krrlab.BlockPCG, 60),
		nystrom, competing(RandomFeatures, 60), square), nil)
	exact, randomFeatures, admm := es[:5], es[5].Result, es[6].Result
	want := exact[0].Result.TestError // of the direct solver
	for _, e := range es {
		x := e.Result
		if !x.Ran() || !x.Converged || x.Date == "" || x.Commit != "test" || x.Machine.Threads == 0 {
			t.Fatalf("%v did not run, did not converge or lacks its origin: %+v", e.Case, x)
		}
	}
	for _, e := range exact {
		if x := e.Result; x.TestError == nil || *x.TestError != *want || x.TestN != 300 || x.TrueResidual == nil ||
			*x.TrueResidual > 1e-8 {
			t.Errorf("%v: error %v, want %v; residual %v", e.Case, x.TestError, want, x.TrueResidual)
		}
	}
	// ½‖ZW−Y‖²+(λ/2)‖W‖² is half the random features objective.
	if ratio := 2 * admm.Values["objective"] / randomFeatures.Values["objective"]; math.Abs(ratio-1) > 1e-4 ||
		admm.Values["rho"] <= 0 {
		t.Errorf("ADMM's objective %v, the direct one %v", admm.Values, randomFeatures.Values)
	}
	d := exact[0].Result.Data
	if d.N != 400 || d.TotalN != 4000 || d.TestN != 300 ||
		!strings.Contains(d.Note, "the first 400 of 4000 training rows") ||
		!strings.Contains(d.Note, "the first 300 of 2000 test rows") {
		t.Errorf("data %+v", d)
	}
}

// TestReached checks that the iterations to 10⁻² within a more accurate solve are those of a solve to 10⁻².
func TestReached(t *testing.T) {
	fine, coarse := withFeatures(krrlab.PCG, 30), withFeatures(krrlab.PCG, 30)
	fine.Tol, coarse.Tol = 1e-6, 1e-2
	entries := run(t, smallPlan(fine, coarse), nil)
	accurate, rough := entries[0].Result, entries[1].Result
	got, ok := accurate.iterationsTo(1e-2)
	if want := rough.Iterations; !ok || got != want || want >= accurate.Iterations {
		t.Errorf("%d iterations to 10⁻² of %d, %v; a solve takes %d", got, accurate.Iterations, ok, want)
	}
	if _, ok := rough.iterationsTo(1e-5); ok {
		t.Error("10⁻⁵ was reached by a solve to 10⁻²")
	}
	if h := accurate.History; len(h) != accurate.Iterations+1 || h[0] != 1 {
		t.Errorf("history of %d entries that begins with %g", len(h), h[0])
	}
	// The solve that runs second shares everything with the first one.
	if all := []string{"features", "factor", "kernel"}; !reflect.DeepEqual(rough.Shared, all) &&
		!reflect.DeepEqual(accurate.Shared, all) {
		t.Errorf("shared %q and %q", accurate.Shared, rough.Shared)
	}
}

// withoutMeasurements returns entries without the measurements that differ between runs: dates, seconds, bytes and shared stages.
func withoutMeasurements(es []Entry) []Entry {
	var out []Entry
	for _, e := range es {
		if e.Result != nil {
			x := *e.Result
			x.Date, x.Shared, x.Bytes, x.Seconds = "", nil, 0, krrlab.Seconds{}
			e.Result = &x
		}
		out = append(out, e)
	}
	return out
}

// TestResume interrupts a run after two cases and resumes it. The finished cases are not run again, and the results
// are those of an uninterrupted run.
func TestResume(t *testing.T) {
	cases := []Case{withFeatures(krrlab.PCG, 30), withFeatures(krrlab.PCG, 60), withFeatures(krrlab.BlockPCG, 60), small(krrlab.CG)}
	whole := run(t, smallPlan(cases...), nil)
	out := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	done := 0
	o := &Options{Out: out, Version: "test", CaseFinished: func(Case, *Result) {
		if done++; done == 2 {
			cancel()
		}
	}}
	reports, err := Run(ctx, []*Report{smallPlan(cases...)}, o)
	if !errors.Is(err, context.Canceled) || done != 2 {
		t.Fatalf("%d cases, %v", done, err)
	}
	ran := 0
	for _, e := range reports[0].Entries {
		if e.Result.Ran() {
			ran++
		}
	}
	if ran != 2 {
		t.Errorf("%d results in the report of an interrupted run", ran)
	}
	for _, want := range []int{2, 0} {
		var again []Case
		es := run(t, smallPlan(cases...), &Options{Out: out,
			CaseFinished: func(c Case, _ *Result) { again = append(again, c) }})
		if len(again) != want {
			t.Errorf("%d cases were run after the interruption: %v", len(again), again)
		}
		if !reflect.DeepEqual(withoutMeasurements(es), withoutMeasurements(whole)) {
			t.Error("resumed, the results are not those of one run")
		}
	}
	left, err := filepath.Glob(filepath.Join(out, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestFailures checks that a case that fails, or cannot be started, has a result with the reason, and that the other
// cases are run.
func TestFailures(t *testing.T) {
	unknownKernel := small(krrlab.PCG)
	unknownKernel.Kernel.Name = "none"
	tooManyFeatures := withFeatures(krrlab.PCG, 401)
	unknownData := small(krrlab.CG)
	unknownData.Data = "nothing"
	unknownMethod := small(krrlab.CG)
	unknownMethod.Method = "guess"
	missingFiles := small(krrlab.CG)
	missingFiles.Data, missingFiles.N = "adult", 100
	tooLarge := small(krrlab.CG)
	tooLarge.N = 4000
	es := run(t, smallPlan(unknownKernel, tooManyFeatures, unknownData, unknownMethod, missingFiles, tooLarge, small(krrlab.CG)),
		&Options{Out: t.TempDir(), Dirs: []string{t.TempDir()}, Memory: 20e6})
	last := es[6] // the only case that can run
	for i, want := range []struct {
		status Status
		reason string
	}{
		{Failed, "none"}, {Failed, "s = 401 features for n = 400 points"},
		{Failed, `unknown data set "nothing"`}, {Failed, `unknown method "guess"`},
		{NotRun, "adult/a9a is not at hand"}, {NotRun, "at least 4 ranks"},
	} {
		if x := es[i].Result; x.Ran() || x.Status != want.status || !strings.Contains(x.Reason, want.reason) ||
			strings.Contains(x.Reason, "\n") {
			t.Errorf("%v: %s: %s, want %q", es[i].Case, x.Status, x.Reason, want.reason)
		}
	}
	if x := last.Result; !x.Ran() || !x.Converged {
		t.Errorf("the case after those that failed: %+v", x)
	}
	r := &Report{Entries: es}
	if r.OK() {
		t.Error("a report with failures is OK")
	}
	if r = (&Report{Entries: es[4:]}); !r.OK() { // without the four cases that failed
		t.Error("a report whose cases could not begin or ran is not OK")
	}
	if n := len((&Report{Entries: es}).NotRun().Rows); n != 6 {
		t.Errorf("%d rows of what was not run", n)
	}
}

// TestReportJSON checks that a report is unchanged after it was saved and read, and the errors for malformed files.
func TestReportJSON(t *testing.T) {
	w := row{name: "built-in", data: "synthetic-classes", n: 300, testN: 100, seeds: 2}
	p := &Report{ID: "table1", Scale: Smoke, Entries: w.seedEntries(proposedRole, w.pcgCase(30, 1), "", "")}
	reports := must(Run(t.Context(), []*Report{p}, &Options{Out: t.TempDir()}))
	name := filepath.Join(t.TempDir(), reports[0].FileName())
	if err := reports[0].Save(name); err != nil {
		t.Fatal(err)
	}
	decoded := must(readReport(name))
	a, _ := json.Marshal(reports[0])
	b, _ := json.Marshal(decoded)
	if string(a) != string(b) || reports[0].String() != decoded.String() {
		t.Errorf("%s\n%s", a, b)
	}
	all, err := LoadReports(filepath.Dir(name))
	if err != nil || len(all) != 1 || all[0].ID != "table1" {
		t.Errorf("reports %v, %v, want table1 alone", all, err)
	}
	if all, err := LoadReports(filepath.Join(name, "none")); len(all) != 0 {
		t.Errorf("reports of a folder that does not exist: %v, %v", all, err)
	}
	for _, bad := range []string{`{"id":"table9","scale":"smoke"}`, `{"id":"table1","scale":"huge"}`, `{`,
		`{"id":"table1","scale":"smoke","entries":[{"case":{"method":"pcg","s":5}}]}`} {
		if err := os.WriteFile(name, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		fails(t, errOf(readReport(name)), name)
	}
	fails(t, errOf(Run(t.Context(), []*Report{p}, &Options{Out: filepath.Dir(name)})), name+": ")
	fails(t, errOf(Run(t.Context(), []*Report{p}, &Options{Out: filepath.Join(name, "below")})), name)
}
