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

// planOf returns a report with the given small cases on built-in data and without results.
func planOf(cases ...Case) *Report {
	r := &Report{ID: "toy", Title: "Small cases", Scale: Smoke}
	for _, c := range cases {
		r.Entries = append(r.Entries, Entry{Row: c.Data, Role: c.settings(), Case: c})
	}
	return r
}

// smallCase returns a case with 400 points of five classes for the given solver.
func smallCase(s krrlab.Solver) Case {
	return Case{
		Data: "synthetic-classes", N: 400, TestN: 300, Kernel: kernel.Spec{Name: "gaussian", Sigma: 0.5},
		Config: krrlab.Config{Solver: s, Lambda: 0.5, Tol: 1e-8, Seed: 1},
	}
}

// caseWithFeatures returns a small case whose preconditioner has s random features.
func caseWithFeatures(solver krrlab.Solver, s int) Case {
	c := smallCase(solver)
	c.S = s
	return c
}

// competingCase returns a small case of a competing method with s features.
func competingCase(m Method, s int) Case {
	c := smallCase(0)
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
	square := competingCase(ADMM, 60)
	square.Loss, square.Tol, square.MaxIter = "square", 1e-6, 2000
	nystrom := caseWithFeatures(krrlab.PCG, 60)
	nystrom.Name, nystrom.Tiles = "nystrom", gram.DenseTiles // cases have all options of krrlab.New
	entries := run(t, planOf(smallCase(krrlab.Direct), smallCase(krrlab.CG), caseWithFeatures(krrlab.PCG, 60),
		caseWithFeatures(krrlab.BlockPCG, 60),
		nystrom, competingCase(RandomFeatures, 60), square), nil)
	exact, randomFeatures, admm := entries[:5], entries[5].Result, entries[6].Result
	want := exact[0].Result.TestError // of the direct solver
	for _, e := range entries {
		result := e.Result
		if !result.Ran() || !result.Converged || result.Date == "" || result.Commit != "test" ||
			result.Machine.Threads == 0 {
			t.Fatalf("%v did not run, did not converge or lacks its origin: %+v", e.Case, result)
		}
	}
	for _, e := range exact {
		if result := e.Result; result.TestError == nil || *result.TestError != *want || result.TestN != 300 ||
			result.TrueResidual == nil ||
			*result.TrueResidual > 1e-8 {
			t.Errorf("%v: error %v, want %v; residual %v", e.Case, result.TestError, want, result.TrueResidual)
		}
	}
	// ½‖ZW−Y‖²+(λ/2)‖W‖² is half the random features objective.
	if ratio := 2 * admm.Values["objective"] / randomFeatures.Values["objective"]; math.Abs(ratio-1) > 1e-4 ||
		admm.Values["rho"] <= 0 {
		t.Errorf("ADMM's objective %v, the direct one %v", admm.Values, randomFeatures.Values)
	}
	data := exact[0].Result.Data
	if data.N != 400 || data.TotalN != 4000 || data.TestN != 300 ||
		!strings.Contains(data.Note, "the first 400 of 4000 training rows") ||
		!strings.Contains(data.Note, "the first 300 of 2000 test rows") {
		t.Errorf("data %+v", data)
	}
}

// TestReached checks that the iterations to 10⁻² within a more accurate solve are those of a solve to 10⁻².
func TestReached(t *testing.T) {
	fine, coarse := caseWithFeatures(krrlab.PCG, 30), caseWithFeatures(krrlab.PCG, 30)
	fine.Tol, coarse.Tol = 1e-6, 1e-2
	entries := run(t, planOf(fine, coarse), nil)
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
func withoutMeasurements(entries []Entry) []Entry {
	var out []Entry
	for _, e := range entries {
		if e.Result != nil {
			result := *e.Result
			result.Date, result.Shared, result.Bytes, result.Seconds = "", nil, 0, krrlab.Seconds{}
			e.Result = &result
		}
		out = append(out, e)
	}
	return out
}

// TestResume interrupts a run after two cases and resumes it. The finished cases are not run again, and the results are
// those of an uninterrupted run.
func TestResume(t *testing.T) {
	cases := []Case{caseWithFeatures(krrlab.PCG, 30), caseWithFeatures(krrlab.PCG, 60),
		caseWithFeatures(krrlab.BlockPCG, 60), smallCase(krrlab.CG)}
	whole := run(t, planOf(cases...), nil)
	out := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	done := 0
	o := &Options{Out: out, Version: "test", CaseFinished: func(Case, *Result) {
		if done++; done == 2 {
			cancel()
		}
	}}
	reports, err := Run(ctx, []*Report{planOf(cases...)}, o)
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
		var ranAgain []Case
		entries := run(t, planOf(cases...), &Options{Out: out,
			CaseFinished: func(c Case, _ *Result) { ranAgain = append(ranAgain, c) }})
		if len(ranAgain) != want {
			t.Errorf("%d cases were run after the interruption: %v", len(ranAgain), ranAgain)
		}
		if !reflect.DeepEqual(withoutMeasurements(entries), withoutMeasurements(whole)) {
			t.Error("resumed, the results are not those of one run")
		}
	}
	leftover, err := filepath.Glob(filepath.Join(out, ".*"))
	if err != nil || len(leftover) > 0 {
		t.Errorf("left behind: %v, %v", leftover, err)
	}
}

// TestFailures checks that a case that fails, or cannot be started, has a result with the reason, and that the other
// cases are run.
func TestFailures(t *testing.T) {
	unknownKernel := smallCase(krrlab.PCG)
	unknownKernel.Kernel.Name = "none"
	tooManyFeatures := caseWithFeatures(krrlab.PCG, 401)
	unknownData := smallCase(krrlab.CG)
	unknownData.Data = "nothing"
	unknownMethod := smallCase(krrlab.CG)
	unknownMethod.Method = "guess"
	missingFiles := smallCase(krrlab.CG)
	missingFiles.Data, missingFiles.N = "adult", 100
	tooLarge := smallCase(krrlab.CG)
	tooLarge.N = 4000
	entries := run(t, planOf(unknownKernel, tooManyFeatures, unknownData, unknownMethod, missingFiles, tooLarge,
		smallCase(krrlab.CG)),
		&Options{Out: t.TempDir(), Dirs: []string{t.TempDir()}, Memory: 20e6})
	last := entries[6] // the only case that can run
	for i, want := range []struct {
		status Status
		reason string
	}{
		{Failed, "none"}, {Failed, "s = 401 features for n = 400 points"},
		{Failed, `unknown data set "nothing"`}, {Failed, `unknown method "guess"`},
		{NotRun, "adult/a9a is not at hand"}, {NotRun, "at least 4 ranks"},
	} {
		if result := entries[i].Result; result.Ran() || result.Status != want.status ||
			!strings.Contains(result.Reason, want.reason) ||
			strings.Contains(result.Reason, "\n") {
			t.Errorf("%v: %s: %s, want %q", entries[i].Case, result.Status, result.Reason, want.reason)
		}
	}
	if result := last.Result; !result.Ran() || !result.Converged {
		t.Errorf("the case after those that failed: %+v", result)
	}
	r := &Report{Entries: entries}
	if r.OK() {
		t.Error("a report with failures is OK")
	}
	if r = (&Report{Entries: entries[4:]}); !r.OK() { // without the four cases that failed
		t.Error("a report whose cases could not begin or ran is not OK")
	}
	if n := len((&Report{Entries: entries}).NotRun().Rows); n != 6 {
		t.Errorf("%d rows of what was not run", n)
	}
}

// TestReportJSON checks that a report is unchanged after it was saved and read, and the errors for malformed files.
func TestReportJSON(t *testing.T) {
	r := row{name: "built-in", data: "synthetic-classes", n: 300, testN: 100, seeds: 2}
	plan := &Report{ID: "table1", Scale: Smoke, Entries: r.seedEntries(proposedRole, r.pcgCase(30, 1), "", "")}
	reports := must(Run(t.Context(), []*Report{plan}, &Options{Out: t.TempDir()}))
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
		expectError(t, errorOf(readReport(name)), name)
	}
	expectError(t, errorOf(Run(t.Context(), []*Report{plan}, &Options{Out: filepath.Dir(name)})), name+": ")
	expectError(t, errorOf(Run(t.Context(), []*Report{plan}, &Options{Out: filepath.Join(name, "below")})), name)
}
