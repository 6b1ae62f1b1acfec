package experiments

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
)

// plansAt returns the plans of all experiments at a scale.
func plansAt(s Scale) []*Report {
	var plans []*Report
	for _, e := range registry {
		plans = append(plans, NewPlan(&e, s))
	}
	return plans
}

// jobsWithAllData returns the jobs of the plans as if no data set were missing.
func jobsWithAllData(plans []*Report) []*job {
	jobs := planJobs(plans, new((*Options)(nil).withDefaults()))
	for _, j := range jobs {
		if strings.HasPrefix(j.skipReason, "data file") {
			j.skipReason = ""
		}
	}
	removeSharedCosts(jobs)
	return jobs
}

// TestLaptopBudget checks that no experiment at scale Laptop is predicted to take more than an hour and a half, and no
// case more than 20 GiB.
func TestLaptopBudget(t *testing.T) {
	for _, e := range registry {
		var total float64
		for _, j := range jobsWithAllData([]*Report{NewPlan(&e, Laptop)}) {
			if files := must(datasets.Lookup(j.testCase.Data)).Files; j.skipReason != "" || len(files) > 0 &&
				!budgetedData[j.testCase.Data] {
				continue // the data set is not counted in the budget
			}
			total += j.cost.Sum()
			if j.cost.Bytes > 20<<30 {
				t.Errorf("%s: %v takes %d bytes", e.ID, j.testCase, j.cost.Bytes)
			}
		}
		t.Logf("%s: %.0f s", e.ID, total)
		if total > 5400 {
			t.Errorf("%s is predicted to take %.0f s", e.ID, total)
		}
	}
}

// budgetedData contains the data sets in files that are counted in the budget of the laptop scale.
var budgetedData = map[string]bool{
	"adult": true, "ijcnn1": true, "mnist": true, "covtype-sample": true, "covtype7-sample": true, "cal-housing": true,
	"protein": true,
}

// TestSharedCases checks that a case of several tables is run once.
func TestSharedCases(t *testing.T) {
	jobs := jobsWithAllData(plansAt(Laptop))
	seen := map[string]bool{}
	shared := 0
	for _, j := range jobs {
		if seen[j.testCase.key()] {
			t.Errorf("%v is there twice", j.testCase)
		}
		seen[j.testCase.key()] = true
		if len(j.entries) > 1 {
			shared++
		}
	}
	if shared == 0 {
		t.Error("no case is shared")
	}
	mnist := row{data: "mnist"}
	i := slices.IndexFunc(jobs, func(j *job) bool { return j.testCase.key() == mnist.pcgCase(10000, 1).key() })
	if i < 0 {
		t.Fatal("MNIST with s = 10,000, λ_p = λ, τ = 10⁻³ is not planned")
	}
	if got := strings.Join(jobs[i].ids, " "); got != "table1 table2 table3 table4 table5" {
		t.Errorf("MNIST with s = 10,000 is for %q", got)
	}
}

// TestOrder checks that the jobs of one group follow each other, and that only the first of them has the cost of what
// they share.
func TestOrder(t *testing.T) {
	jobs := jobsWithAllData(plansAt(Laptop))
	closed := map[group]bool{}
	for i, j := range jobs {
		if i > 0 && groupOf(jobs[i-1].testCase) != groupOf(j.testCase) {
			closed[groupOf(jobs[i-1].testCase)] = true
		}
		if closed[groupOf(j.testCase)] {
			t.Errorf("%v is away from its group", j.testCase)
		}
	}
	var charged int
	for _, j := range jobs {
		if j.testCase.Data == "mnist" && j.testCase.N == 0 && j.testCase.sharesK() && j.cost.Kernel > 0 {
			charged++
		}
	}
	if charged != 1 {
		t.Errorf("K of MNIST is charged %d times", charged)
	}
}

// TestSharedCosts checks that a job whose predecessor is done has the cost of all that it computes, and that solvers
// share Z only with the same preconditioner.
func TestSharedCosts(t *testing.T) {
	costs := func(done int, cases ...Case) (charged string) {
		jobs := planJobs([]*Report{planOf(cases...)}, new((*Options)(nil).withDefaults()))
		for i := range done {
			jobs[i].result = &Result{}
		}
		removeSharedCosts(jobs)
		for _, j := range jobs[done:] {
			charged += fmt.Sprintf("%v %v; ", j.cost.Kernel > 0, j.cost.Features > 0)
		}
		return charged
	}
	pcg, block, other := caseWithFeatures(krrlab.PCG, 60), caseWithFeatures(krrlab.BlockPCG, 60),
		caseWithFeatures(krrlab.BlockPCG, 60)
	other.Name = "rpcholesky"
	if got := costs(0, pcg, block); got != "true true; false false; " {
		t.Error("two jobs:", got)
	}
	if got := costs(1, pcg, block); got != "true true; " {
		t.Error("the first job is done:", got)
	}
	if got := costs(0, pcg, other); got != "true true; false true; " {
		t.Error("another preconditioner:", got)
	}
}

// TestTableSettings compares s, σ, λ, τ and λ_p of rows with complete data sets with the printed values.
func TestTableSettings(t *testing.T) {
	for _, c := range []struct {
		table, row, role   string
		s                  int
		sigma, lambda, tol float64
		lambdaP            float64
	}{
		{"table1", "ADULT", proposedRole, 5000, 8, 0.01, 1e-3, 0.01},
		{"table1", "IJCNN1", proposedRole, 12500, 0.3, 0.01, 1e-3, 0.01},
		{"table1", "MNIST", proposedRole, 10000, 8.5, 0.01, 1e-3, 0.01},
		{"table2", "IJCNN1", tenLambdaRole, 10000, 0.3, 0.01, 1e-3, 0.1},
		{"table3", "MNIST", admmRole, 15000, 8.5, 0.01, 1e-3, 0},
		{"table4", "IJCNN1", proposedRole, 10000, 0.3, 0.01, 1e-3, 0.01},
		{"table4", "MNIST", plainRole, 0, 8.5, 0.01, 1e-3, 0},
		{"table5", "IJCNN1", coarseRole, 12500, 0.3, 0.01, 1e-2, 0.01},
	} {
		e := must(Find(c.table))
		r := NewPlan(e, Laptop)
		got := r.Find(c.row, c.role)
		if len(got) == 0 {
			t.Errorf("%s has no %s, %s", c.table, c.row, c.role)
			continue
		}
		planned := got[0].Case
		if planned.S != c.s || planned.Kernel.Sigma != c.sigma || planned.Lambda != c.lambda || planned.Tol != c.tol ||
			planned.LambdaP != c.lambdaP || planned.N != 0 || planned.CountOnly {
			t.Errorf("%s, %s, %s: %+v, want the parameters of %+v", c.table, c.row, c.role, planned, c)
		}
		if !got[0].sameProblem() {
			t.Errorf("%s, %s is the paper's problem", c.table, c.row)
		}
		for k, e := range got {
			if e.Case.Seed != uint64(k+1) || e.Case.CountOnly != (k > 0) {
				t.Errorf("%s, %s, %s: seed %d of entry %d", c.table, c.row, c.role, e.Case.Seed, k)
			}
		}
	}
	e, _ := Find("table2")
	if planned := NewPlan(e, Laptop).Find("COVTYPE, 40,000 rows of a subset",
		printedRole)[0]; planned.Case.LambdaP != 0.2 || planned.Case.S != 3442 || planned.sameProblem() {
		t.Errorf("COVTYPE: %+v", planned.Case)
	}
}

// TestPaperScale checks that every printed row is planned at scale Paper, with the published n.
func TestPaperScale(t *testing.T) {
	for _, id := range []string{"table1", "table2", "table3", "table4", "table5"} {
		e := must(Find(id))
		r := NewPlan(e, Paper)
		published := must(Published(id))
		for _, row := range published.Rows {
			entries := r.Find(row[0].String(), r.Entries[0].Role)
			if len(entries) == 0 || entries[0].SkipReason != "" || !entries[0].sameProblem() {
				t.Errorf("%s: %v is not planned", id, row[0])
			}
		}
	}
}

// TestCaseKey checks the key that identifies a kept result. If it changes, all kept results are run again.
func TestCaseKey(t *testing.T) {
	c := row{data: "adult"}.pcgCase(5000, 10)
	if got, want := c.key(), `{"data":"adult","kernel":{"name":"gaussian","sigma":8},"features":5000,"lambda_p":0.1,`+
		`"lambda":0.01,"solver":"pcg","tol":0.001,"seed":1}`; got != want {
		t.Errorf("key %s, want %s", got, want)
	}
}
