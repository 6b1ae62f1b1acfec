package testbed_test

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/krrlab/lab/experiments/testbed"
)

// noError ends the test if there is an error.
func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must returns v, and panics if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestResume checks that a run continues where an earlier one ended, with the same results, and does not repeat runs.
// The page must show the lines.
func TestResume(t *testing.T) {
	name := filepath.Join(t.TempDir(), "runs.jsonl")
	groups := 0
	o := testbed.Options{Problems: []string{"grid", "pairs"}, N: 150, Seeds: 2, Shares: []int{30, 5}, MaxIter: 60,
		Notify: func(string) { groups++ }}
	f := must(testbed.Open(name))
	noError(t, testbed.Run(t.Context(), f, o))
	// The first group of a problem and a λ also has the run without a preconditioner, and those without a rank.
	names, withoutRank := testbed.Preconditioners(), 0
	for _, name := range names {
		if strings.HasSuffix(name, " alone") {
			withoutRank++
		}
	}
	firstGroup, otherGroup := 1+2*len(names), 2*(len(names)-withoutRank)
	if groups != 8 || len(f.Lines) != 4*(firstGroup+otherGroup) {
		t.Fatalf("%d groups of %d lines in all, want 8 of %d", groups, len(f.Lines), 4*(firstGroup+otherGroup))
	}
	for _, line := range f.Lines {
		isASkotch := line.Preconditioner == "field.askotch" // a solver without M
		if line.FailureReason != "" || line.Preconditioner != "none" &&
			(line.ApplyFlops == 0 || (line.BuildFlops == 0 || line.Bytes == 0) != isASkotch) {
			t.Errorf("failed, or its work and memory are unknown: %+v", line)
		}
	}
	again := must(testbed.Open(name))
	if !reflect.DeepEqual(again.Lines, f.Lines) {
		t.Fatal("lines differ after they were read")
	}
	for _, other := range []testbed.Options{{Seeds: 3, MaxIter: 60}, {Seeds: 2, MaxIter: 61}} {
		other.Problems, other.N, other.Shares = o.Problems, o.N, o.Shares
		if err := testbed.Run(t.Context(), again, other); err == nil || !strings.Contains(err.Error(), "name another file") {
			t.Errorf("%d draws, %d iterations: %v", other.Seeds, other.MaxIter, err)
		}
	}
	foreign, end := again.Lines[len(again.Lines)-1], len(again.Lines)-otherGroup // a run of ours is not replaced by it
	foreign.Preconditioner = "mine"
	again.Lines = append(again.Lines[:end], foreign) // the state of a run that was killed before the last group
	groups = 0
	noError(t, testbed.Run(t.Context(), again, o))
	if groups != 1 {
		t.Errorf("%d groups were run again, want 1", groups)
	}
	again.Lines = slices.Delete(again.Lines, end, end+1)
	for i, line := range again.Lines {
		if original := f.Lines[i]; !reflect.DeepEqual(line.Reached, original.Reached) ||
			line.Kappa != original.Kappa || line.Rank != original.Rank ||
			line.Preconditioner != original.Preconditioner || line.Draw != original.Draw {
			t.Errorf("line %d: %+v, was %+v", i, line, original)
		}
	}
	page := filepath.Join(t.TempDir(), "page.html")
	noError(t, f.WritePage(page))
	text := must(os.ReadFile(page))
	_, js, _ := strings.Cut(string(text), "const lines = ")
	js, script, _ := strings.Cut(js, "; //")
	var shown []map[string]any
	noError(t, json.Unmarshal([]byte(js), &shown))
	used := regexp.MustCompile(`\bl\.([a-z_]+)`).FindAllStringSubmatch(script, -1)
	if len(shown) != len(f.Lines) || len(used) < 20 {
		t.Fatalf("the page has %d lines and uses %d fields", len(shown), len(used))
	}
	for i, line := range f.Lines {
		if i > 0 { // the script of the page fills in unchanged fields in the same way
			fields := maps.Clone(shown[i-1])
			maps.Copy(fields, shown[i])
			shown[i] = fields
		}
		js := must(json.Marshal(line))
		var want map[string]any
		noError(t, json.Unmarshal(js, &want))
		for _, name := range used {
			if got := shown[i][name[1]]; !reflect.DeepEqual(got, want[name[1]]) &&
				(name[1] != "kappa" || line.Exact != nil) {
				t.Errorf("line %d of the page has %s %v, want %v", i, name[1], got, want[name[1]])
			}
		}
	}
}

// TestForeign checks that lines of other files are added, each run once and without an incomplete last line. The error
// for any other text names its line and the reason.
func TestForeign(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "mine.jsonl")
	line := `{"schema":1,"problem":"grid","n":100,"lambda":0.001,"preconditioner":"mine","rank":10,"iterations_to":[3,5]}`
	noError(t, os.WriteFile(mine, []byte(line+"\n"), 0o600))
	f := must(testbed.Open(filepath.Join(dir, "runs.jsonl")))
	noError(t, f.Add(mine))
	if len(f.Lines) != 1 || f.Lines[0].Preconditioner != "mine" || !reflect.DeepEqual(f.Lines[0].Reached, []int{3, 5}) {
		t.Errorf("lines %+v, want the one of the preconditioner mine", f.Lines)
	}
	noError(t, os.WriteFile(mine, []byte(line+"\n\n"+line+"\n"+line[:40]), 0o600))
	noError(t, f.Add(mine))
	if want := []string{mine + ":4: the last line is cut short, and is left out",
		mine + ": 2 runs are already there, and left out"}; len(f.Lines) != 1 || !slices.Equal(f.Notes, want) {
		t.Errorf("%d lines, notes %q", len(f.Lines), f.Notes)
	}
	for _, c := range []struct{ old, new, want string }{
		{line, "{", "does not end on the line"}, {line, "[" + line + "]", "JSON array: want JSON lines, one object a line"},
		{line, `"x"`, "a JSON string"}, {line, line + "{}", "goes on after its object"}, {line, "nan", "not JSON"},
		{`"schema":1`, `"schema":2`, "want schema 1"}, {"0.001", "0", "want schema 1"}, {`"grid"`, `""`, "problem"},
		{"_to", "", `"iterations" is unknown; did you mean "iterations_to"?`}, {`,"iterations_to":[3,5]`, "", "want iterations_to"},
		{"rank", "quux", "there are schema, problem"}, {"[3,5]", "3", `"iterations_to" is a JSON number: want a list`},
		{"[3,5]", "[5,3]", "that rise"}, {"[3,5]", "[-3]", "from 0 on"}, {"[3,5]", `[3],"max_iter":2`, "max_iter 2"},
		{"[3,5]", `[],"build_flops":-1`, "build_flops is -1"}, {`"rank":10`, `"rank":-10`, "rank is -10"}, {"[3,5]", "[3.5]", "whole number"},
		{"[3,5]", `[],"kappa":[3,2]`, "lower end first"}, {"[3,5]", `[],"kappa":[-3,0]`, "kappa is -3"},
		{"[3,5]", `[],"exact":{"lambda_min":2,"lambda_max":1}`, "lambda_max 1"}, {"[3,5]", "[3,6]", "other numbers"},
	} {
		noError(t, os.WriteFile(mine, []byte(line+"\n"+strings.Replace(line, c.old, c.new, 1)+"\n"), 0o600))
		if err := f.Add(mine); err == nil || !strings.Contains(err.Error(), "mine.jsonl:2: ") ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s for %s: %v, want %s", c.new, c.old, err, c.want)
		}
	}
	if err := testbed.Run(t.Context(), f, testbed.Options{Problems: []string{"nope"}}); err == nil || !strings.Contains(err.Error(), "want one of mnist, ") {
		t.Error(err)
	}
	err := testbed.Run(t.Context(), f, testbed.Options{Problems: []string{"grid"}, Only: []string{"field.afn", "nope"}})
	if err == nil || !strings.Contains(err.Error(), `no preconditioner "nope": want one of features, `) {
		t.Error(err)
	}
}

// TestResultsAreCurrent checks that the kept page is made from the kept lines.
func TestResultsAreCurrent(t *testing.T) {
	f := must(testbed.Open("../results/testbed.jsonl"))
	page := filepath.Join(t.TempDir(), "testbed.html")
	noError(t, f.WritePage(page))
	made := must(os.ReadFile(page))
	kept := must(os.ReadFile("../results/testbed.html"))
	if len(f.Lines) < 1000 || string(made) != string(kept) {
		t.Errorf("results/testbed.html is not of the %d lines: krrlab testbed --add with --page writes it", len(f.Lines))
	}
}

// TestExact compares the properties of A that are computed from its eigenvalues with a dense factorization. The
// estimated intervals of κ must contain the exact value.
func TestExact(t *testing.T) {
	f := must(testbed.Open(filepath.Join(t.TempDir(), "runs.jsonl")))
	o := testbed.Options{Problems: []string{"noise", "pairs"}, N: 120, Seeds: 1, Shares: []int{10}}
	noError(t, testbed.Run(t.Context(), f, o))
	count := 0
	for _, line := range f.Lines {
		if line.Preconditioner != "none" {
			if line.Exact != nil {
				t.Errorf("%s has eigenvalues of A", line.Preconditioner)
			}
			continue
		}
		count++
		problem := testbed.Problems()[slices.IndexFunc(testbed.Problems(),
			func(problem testbed.Problem) bool { return problem.Name == line.Problem })]
		data := must(problem.Data(t.Context(), 120, nil))
		a := mat.NewSymDense(120, nil)
		x, z := make([]float64, line.D), make([]float64, line.D)
		for i := range 120 {
			data.X.RowTo(x, i)
			for j := range i + 1 {
				data.X.RowTo(z, j)
				a.SetSym(i, j, problem.Kernel.Eval(x, z))
			}
			a.SetSym(i, i, a.At(i, i)+line.Lambda)
		}
		var factor mat.Cholesky
		if !factor.Factorize(a) {
			t.Fatalf("%s: A is not definite", line.Problem)
		}
		var inverse mat.SymDense
		noError(t, factor.InverseTo(&inverse))
		var eigen mat.EigenSym
		if !eigen.Factorize(a, false) {
			t.Fatal("no eigenvalues")
		}
		mu, exact := eigen.Values(nil), line.Exact
		for name, v := range map[string][2]float64{"log det": {exact.LogDet, factor.LogDet()},
			"s_λ": {exact.Degree, 120 - line.Lambda*mat.Trace(&inverse)}, "λ_max": {exact.Max, mu[119]},
			"λ_min": {exact.Min, mu[0]}} {
			if math.Abs(v[0]-v[1]) > 1e-6*math.Abs(v[1]) {
				t.Errorf("%s: %s = %g, want %g", line.Problem, name, v[0], v[1])
			}
		}
		if k := exact.Max / exact.Min; line.Kappa[0] > k*1.000001 || line.Kappa[1] > 0 && line.Kappa[1] < k*0.999999 {
			t.Errorf("%s: κ = %g outside %v", line.Problem, k, line.Kappa)
		}
	}
	if count != 4 {
		t.Errorf("%d runs without a preconditioner, want 4", count)
	}
}
