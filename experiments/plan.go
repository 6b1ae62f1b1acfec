package experiments

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/plots"
)

// NewPlan returns a report with the entries of an experiment and without results.
func NewPlan(e *Experiment, s Scale) *Report {
	return &Report{ID: e.ID, Scale: s, Title: e.Title, Section: e.Section, Entries: e.Plan(s)}
}

// job is a case that is run once, for all entries with this case.
type job struct {
	testCase   Case     // the case
	cost       caseCost // predicted cost of running the case after the previous job
	skipReason string   // why the case is not run; empty if it is run
	entries    []*Entry // the entries with this case
	ids        []string // identifiers of their experiments
	result     *Result  // nil until the case was run or its result was loaded
}

// planJobs returns one job for each different case of the plans. Jobs that share data, the kernel matrix K, the random
// features Z and the preconditioner M = ZZᵀ + λ_p·I follow each other. A case is skipped only if all its entries skip
// it.
func planJobs(plans []*Report, o *Options) []*job {
	var jobs []*job
	byKey := map[string]*job{}
	for _, plan := range plans {
		for i := range plan.Entries {
			entry := &plan.Entries[i]
			j := byKey[entry.Case.key()]
			if j == nil {
				j = &job{testCase: entry.Case, skipReason: entry.SkipReason,
					cost: costOf(o.Rates, entry.Case, sizeOf(entry.Case), entry.ExpectedIterations)}
				byKey[entry.Case.key()] = j
				jobs = append(jobs, j)
			}
			if entry.SkipReason == "" {
				j.skipReason = ""
			}
			j.entries, j.ids = append(j.entries, entry), appendUnique(j.ids, plan.ID)
		}
	}
	for _, j := range jobs {
		if j.skipReason != "" {
			continue
		}
		ranks := (j.cost.Bytes + o.Memory - 1) / max(1, o.Memory)
		j.skipReason = missingFile(j.testCase.Data, o.Dirs)
		if err := (accel.Budget{Limit: o.Memory}).Check(j.cost.Bytes, "it", fmt.Sprintf("take at least %d ranks on as "+
			"many machines", ranks)); err != nil {
			j.skipReason = err.Error()
		}
	}
	sortJobs(jobs)
	return jobs
}

// loadJobs returns the jobs of the plans with the results that o.Out has for them. The costs are those of running the
// jobs without a result one after another.
func loadJobs(plans []*Report, o *Options) ([]*job, error) {
	jobs := planJobs(plans, o)
	err := loadResults(jobs, plans, o)
	removeSharedCosts(jobs)
	return jobs, err
}

// missingFilePrefix is the beginning of the reason for skipping a case whose data are not on this machine.
const missingFilePrefix = "data file "

// missingFile returns a message that names a file of the data set that is in none of the folders; empty if no file is
// missing.
func missingFile(data string, dirs []string) string {
	info, err := datasets.Lookup(data)
	if err != nil { // running the case reports the error
		return ""
	}
	_, files := info.Find(dirs)
	if len(files) == 0 {
		return ""
	}
	return fmt.Sprintf(missingFilePrefix+"%s is not at hand; krrlab data info %s says where to get it", files[0].Path,
		info.Name)
}

// sharesK reports whether a case uses the kernel matrix that its session shares.
func (c Case) sharesK() bool {
	return c.Method == "" && c.Solver != krrlab.AutoSolver && c.Solver != krrlab.Direct
}

// Sort orders of the cases that do not share K. They are larger than every krrlab.Solver.
const (
	methodOrder = 100 // direct solver and competing methods
	autoOrder   = 200 // solver auto
)

// sortOrder returns a number to sort by: cases that share K come first, and those with the solver auto last.
func (c Case) sortOrder() int {
	switch {
	case c.sharesK():
		return int(c.Solver)
	case c.Method == "" && c.Solver == krrlab.AutoSolver:
		return autoOrder
	}
	return methodOrder
}

// sortJobs sorts the jobs so that jobs of a group follow each other, and within a group jobs with the same Z and M.
func sortJobs(jobs []*job) {
	groupOrder := map[group]int{} // position of each group, in the order of first appearance
	for _, j := range jobs {
		if _, ok := groupOrder[groupOf(j.testCase)]; !ok {
			groupOrder[groupOf(j.testCase)] = len(groupOrder)
		}
	}
	slices.SortStableFunc(jobs, func(a, b *job) int {
		return cmp.Or(
			cmp.Compare(groupOrder[groupOf(a.testCase)], groupOrder[groupOf(b.testCase)]),
			cmp.Compare(a.testCase.sortOrder(), b.testCase.sortOrder()),
			cmp.Compare(a.testCase.method(), b.testCase.method()),
			cmp.Compare(a.testCase.Seed, b.testCase.Seed),
			cmp.Compare(a.testCase.S, b.testCase.S),
			cmp.Compare(a.testCase.LambdaP, b.testCase.LambdaP),
			cmp.Compare(a.testCase.Tol, b.testCase.Tol),
		)
	})
}

// removeSharedCosts sets the predicted cost of K, Z and the factorization of M to 0 for jobs that share them with the
// previous job that is run.
func removeSharedCosts(jobs []*job) {
	var previous *job
	for _, j := range jobs {
		if j.skipReason != "" || j.result != nil {
			continue
		}
		if previous != nil && j.testCase.sharesK() && previous.testCase.sharesK() &&
			groupOf(j.testCase) == groupOf(previous.testCase) {
			j.cost.Kernel = 0
			spec, previousSpec := j.testCase.PrecondSpec, previous.testCase.PrecondSpec
			spec.LambdaP, previousSpec.LambdaP = 0, 0
			if previous.testCase.Solver != krrlab.CG && j.testCase.Seed == previous.testCase.Seed &&
				reflect.DeepEqual(spec, previousSpec) {
				j.cost.Features = 0
				if j.testCase.LambdaP == previous.testCase.LambdaP {
					j.cost.Factor = 0
				}
			}
		}
		previous = j
	}
}

// FormatSeconds formats a time with a suitable unit, such as "40 s", "12 min" or "3.4 h".
func FormatSeconds(seconds float64) string {
	switch {
	case seconds < 100:
		return fmt.Sprintf("%.0f s", seconds)
	case seconds < 6000:
		return fmt.Sprintf("%.0f min", seconds/60)
	}
	return fmt.Sprintf("%.1f h", seconds/3600)
}

// Estimate is the predicted cost of running plans.
type Estimate struct {
	Seconds      float64      // total time of the cases to run
	Bytes        int64        // memory of the case that needs the most
	Cases        int          // number of cases to run
	CasesDone    int          // number of cases whose results are already in Options.Out
	CasesSkipped int          // number of cases that will not be run
	MissingData  []string     // missing data sets, because of which cases are skipped
	Table        *plots.Table // one row per case
}

// Predict returns the plan of Run without running it: every case with its predicted seconds and memory, or with the
// reason why it is not run. Cases with a result in o.Out count as done.
func Predict(ctx context.Context, plans []*Report, o *Options) (*Estimate, error) {
	opt := o.withDefaults()
	jobs, err := loadJobs(plans, &opt)
	if err != nil {
		return nil, err
	}
	estimate := &Estimate{Table: &plots.Table{Title: "What is to be run",
		Columns: plots.ParseColumns("data", "n", "case", "for", "predicted :", "memory", "note")}}
	for _, j := range jobs {
		estimate.addJob(j)
	}
	estimate.Table.Caption = fmt.Sprintf("%d cases to run, %d done before, %d not to be run.", estimate.Cases,
		estimate.CasesDone, estimate.CasesSkipped)
	return estimate, nil
}

// addJob counts a job and adds its row to the table.
func (estimate *Estimate) addJob(j *job) {
	note := j.skipReason
	switch {
	case j.result != nil:
		estimate.CasesDone++
		note = "done " + j.result.Date
	case j.skipReason != "":
		estimate.CasesSkipped++
		if strings.HasPrefix(j.skipReason, missingFilePrefix) {
			estimate.MissingData = appendUnique(estimate.MissingData, j.testCase.Data)
		}
	default:
		estimate.Cases++
		estimate.Seconds += j.cost.Sum()
		estimate.Bytes = max(estimate.Bytes, j.cost.Bytes)
	}
	size := sizeOf(j.testCase)
	estimate.Table.Add(j.testCase.Data, size.N, j.testCase.settings(), strings.Join(j.ids, " "),
		FormatSeconds(j.cost.Sum()), accel.FormatBytes(j.cost.Bytes), note)
}

// Scale is the size of the cases of an experiment.
type Scale string

const (
	// Smoke takes seconds per experiment. It uses built-in data, or the first rows of real data sets on this machine.
	// It tests that everything runs; its numbers cannot be compared with the paper's.
	Smoke Scale = "smoke"
	// Laptop takes about an hour per experiment, and up to an hour and a half for figure 1, on two cores with 24 GiB.
	// It uses complete real data sets if n² numbers fit into memory, and otherwise named subsets and stand-ins.
	Laptop Scale = "laptop"
	// Paper uses the published n, s and λ_p. Predict returns the time and the memory that it needs.
	Paper Scale = "paper"
)

// scales lists the scales from the smallest to the largest.
var scales = []Scale{Smoke, Laptop, Paper}
