package experiments

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/plots"
)

// NewPlan returns the report of an experiment of which nothing is run yet.
func NewPlan(e *Experiment, s Scale) *Report {
	return &Report{ID: e.ID, Scale: s, Title: e.Title, Section: e.Section, Entries: e.Plan(s)}
}

// job is a case that is run once, for all entries that ask for it.
type job struct {
	c       Case
	cost    caseCost
	skip    string // why it is not run; empty if it is
	entries []*Entry
	ids     []string // of the experiments
	result  *Result
}

// jobs returns what is to be run for the plans: each case once, in an order in which those that
// share data, K, Z and M follow each other. A case is skipped only where all that ask for it
// skip it.
func jobs(plans []*Report, o *Options) []*job {
	var out []*job
	byKey := map[string]*job{}
	for _, p := range plans {
		for i := range p.Entries {
			e := &p.Entries[i]
			j := byKey[e.Case.key()]
			if j == nil {
				j = &job{c: e.Case, skip: e.Skip, cost: costOf(o.Rates, e.Case, sizeOf(e.Case), e.Expect)}
				byKey[e.Case.key()] = j
				out = append(out, j)
			}
			if e.Skip == "" {
				j.skip = ""
			}
			j.entries, j.ids = append(j.entries, e), once(j.ids, p.ID)
		}
	}
	for _, j := range out {
		switch {
		case j.skip != "":
		case o.Memory > 0 && j.cost.Bytes > o.Memory:
			j.skip = fmt.Sprintf("needs about %s of memory, of which one machine such as this gives %s: at least %d "+
				"ranks on as many machines",
				accel.Bytes(j.cost.Bytes), accel.Bytes(o.Memory), (j.cost.Bytes+o.Memory-1)/o.Memory)
		default:
			j.skip = missing(j.c.Data, o.Dirs)
		}
	}
	sortJobs(out)
	share(out)
	return out
}

// noFile begins the reason of a case whose data are not at hand.
const noFile = "data file "

// missing says which file of a data set is not in the folders; empty if all are.
func missing(data string, dirs []string) string {
	info, err := datasets.Lookup(data)
	if err != nil { // it fails when it is run, and says why
		return ""
	}
	_, files := info.Find(dirs)
	if len(files) == 0 {
		return ""
	}
	return fmt.Sprintf(noFile+"%s is not at hand; krrlab data info %s says where to get it", files[0].Path,
		info.Name)
}

// sharesK reports whether a case uses the K of its session.
func (c Case) sharesK() bool {
	return c.Method == "" && c.Solver != krrlab.AutoSolver && c.Solver != krrlab.Direct
}

// order puts cases that use the K of the session first, and those of auto last.
func (c Case) order() int {
	switch {
	case c.sharesK():
		return int(c.Solver)
	case c.Method == "" && c.Solver == krrlab.AutoSolver:
		return 200
	}
	return 100
}

// sortJobs brings together the jobs of a group, and in it those of one Z and one M.
func sortJobs(list []*job) {
	first := map[group]int{} // its place among the groups, by first appearance
	for _, j := range list {
		if _, ok := first[groupOf(j.c)]; !ok {
			first[groupOf(j.c)] = len(first)
		}
	}
	slices.SortStableFunc(list, func(a, b *job) int {
		return cmp.Or(
			cmp.Compare(first[groupOf(a.c)], first[groupOf(b.c)]),
			cmp.Compare(a.c.order(), b.c.order()),
			cmp.Compare(a.c.method(), b.c.method()),
			cmp.Compare(a.c.Seed, b.c.Seed),
			cmp.Compare(a.c.S, b.c.S),
			cmp.Compare(a.c.LambdaP, b.c.LambdaP),
			cmp.Compare(a.c.Tol, b.c.Tol),
		)
	})
}

// share takes out of the costs what the job before, of the same K, Z and ZᵀZ, has formed.
func share(list []*job) {
	var last *job
	for _, j := range list {
		if j.skip != "" {
			continue
		}
		if last != nil && j.c.sharesK() && last.c.sharesK() && groupOf(j.c) == groupOf(last.c) {
			j.cost.Kernel = 0
			if j.c.S == last.c.S && j.c.Seed == last.c.Seed {
				j.cost.Features = 0
				if j.c.LambdaP == last.c.LambdaP {
					j.cost.Factor = 0
				}
			}
		}
		last = j
	}
}

// Spell writes seconds as a person would: "40 s", "12 min", "3.4 h".
func Spell(seconds float64) string {
	switch {
	case seconds < 100:
		return fmt.Sprintf("%.0f s", seconds)
	case seconds < 6000:
		return fmt.Sprintf("%.0f min", seconds/60)
	}
	return fmt.Sprintf("%.1f h", seconds/3600)
}

// Estimate is what a run of plans is predicted to take.
type Estimate struct {
	Seconds float64  // of what is not done yet
	Bytes   int64    // of the case that takes most
	Cases   int      // to run
	Done    int      // kept from before
	Skipped int      // not to be run
	Absent  []string // data sets that cases among them need and that are not at hand
	Table   *plots.Table
}

// Predict returns what Run would do with the plans: every case with its predicted seconds
// and memory, or why it is not run. Cases whose results are kept in o.Out count as done.
func Predict(ctx context.Context, plans []*Report, o *Options) (*Estimate, error) {
	opt := o.withDefaults()
	list := jobs(plans, &opt)
	est := &Estimate{Table: &plots.Table{Title: "What is to be run",
		Columns: plots.Heads("data", "n", "case", "for", "predicted :", "memory", "note")}}
	if err := recall(list, plans, &opt); err != nil {
		return nil, err
	}
	for _, j := range list {
		est.add(j)
	}
	est.Table.Caption = fmt.Sprintf("%d cases to run, %d done before, %d not to be run.", est.Cases, est.Done,
		est.Skipped)
	return est, nil
}

// add counts a job and gives it a row.
func (est *Estimate) add(j *job) {
	note := j.skip
	switch {
	case j.result != nil:
		est.Done++
		note = "done " + j.result.Date
	case j.skip != "":
		est.Skipped++
		if strings.HasPrefix(j.skip, noFile) {
			est.Absent = once(est.Absent, j.c.Data)
		}
	default:
		est.Cases++
		est.Seconds += j.cost.Sum()
		est.Bytes = max(est.Bytes, j.cost.Bytes)
	}
	size := sizeOf(j.c)
	est.Table.Add(j.c.Data, size.N, j.c.settings(), strings.Join(j.ids, " "), Spell(j.cost.Sum()),
		accel.Bytes(j.cost.Bytes), note)
}

// Scale says how large the cases of an experiment are.
type Scale string

const (
	// Smoke takes seconds an experiment: built-in data, or the first rows of real data that
	// is at hand. It shows that everything runs; its numbers say nothing of the paper's.
	Smoke Scale = "smoke"
	// Laptop takes about an hour an experiment, figure 1 up to an hour and a half, on two cores with 24 GiB: real data,
	// whole where n² numbers fit, named subsets and stand-ins elsewhere.
	Laptop Scale = "laptop"
	// Paper is the published n, s and λ_p. Its plan says what it takes.
	Paper Scale = "paper"
)

// scales are from the smallest.
var scales = []Scale{Smoke, Laptop, Paper}
