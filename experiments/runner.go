package experiments

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/stage/cost"
)

// Options are the options of Run and Predict. A nil *Options, and zero values, select the defaults.
type Options struct {
	Dirs    []string    // folders to search for data; default: datasets.Dirs()
	Out     string      // folder of reports whose results are reused, and for new results; "" saves nothing
	Memory  int64       // memory budget of a case in bytes; 0 means no limit
	Rates   *cost.Rates // rates of the machine, for predictions; default: cost.Reference()
	Version string      // version of the program, which is stored in the results
	// Monitor, if not nil, is called with the progress of the run.
	Monitor func(Progress)
	// CaseFinished, if not nil, is called when a case has ended.
	CaseFinished func(c Case, r *Result)
}

// withDefaults returns a copy of the options with defaults in place of zero values. o is not changed.
func (o *Options) withDefaults() Options {
	opt := *cmp.Or(o, &Options{})
	if opt.Dirs == nil {
		opt.Dirs = datasets.Dirs()
	}
	if opt.Rates == nil {
		opt.Rates = new(cost.Reference())
	}
	if opt.Monitor == nil {
		opt.Monitor = func(Progress) {}
	}
	if opt.CaseFinished == nil {
		opt.CaseFinished = func(Case, *Result) {}
	}
	return opt
}

// Progress is the progress of a run.
type Progress struct {
	Case         Case
	Index, Total int           // number of the case, from 1, and number of cases
	Event        krrlab.Event  // progress of the case's current stage
	Remaining    time.Duration // predicted remaining time of the run, corrected by the times of the finished cases
}

// Run runs the plans and returns them with their results. Each case is run once, even if several plans contain it. A
// case is not run if a report in o.Out has its result. After each case the reports are saved in o.Out as
// <id>.<scale>.json, so that the same call continues an interrupted run. If a case fails or its data are missing, its
// result contains the reason, and the other cases are still run.
//
// If ctx ends, Run returns the error of ctx and the reports with the results so far. All other errors concern reading
// or writing the reports.
func Run(ctx context.Context, plans []*Report, o *Options) ([]*Report, error) {
	opt := o.withDefaults()
	jobs, err := loadJobs(plans, &opt)
	if err != nil {
		return nil, err
	}
	r := &runner{opt: &opt, jobs: jobs, reports: plans}
	return plans, r.runAll(ctx)
}

// loadResults sets the results of jobs from the reports in o.Out.
func loadResults(jobs []*job, plans []*Report, o *Options) error {
	if o.Out == "" {
		return nil
	}
	ids := IDs()
	for _, plan := range plans {
		ids = appendUnique(ids, plan.ID)
	}
	reports, err := loadReports(o.Out, ids)
	saved := map[string]*Result{}
	for _, report := range reports {
		for _, e := range report.Entries {
			if e.Result.Ran() {
				saved[e.Case.key()] = e.Result
			}
		}
	}
	for _, j := range jobs {
		if result := saved[j.testCase.key()]; result != nil {
			j.setResult(result)
		}
	}
	return err
}

// setResult sets the result of a job and of all its entries that are not skipped.
func (j *job) setResult(result *Result) {
	j.result = result
	for _, e := range j.entries {
		if e.SkipReason == "" {
			e.Result = result
		}
	}
}

// runner is the state of one run.
type runner struct {
	opt     *Options  // options of Run, with defaults
	jobs    []*job    // the cases to run, each once
	reports []*Report // the plans; their entries are the entries of the jobs

	index            int       // number of the current job, from 1
	started          time.Time // start of the current job
	secondsTaken     float64   // measured time of the jobs finished in this run
	secondsPredicted float64   // predicted time of the same jobs

	session    *session // data and matrices of the current group; nil before the first case
	group      group    // group of the session
	sessionErr error    // error of opening the session
}

// runAll runs the jobs that have no result yet and saves the reports.
func (r *runner) runAll(ctx context.Context) error {
	for i, j := range r.jobs {
		switch {
		case j.result != nil:
		case j.skipReason != "":
			j.setResult(&Result{Status: NotRun, Reason: j.skipReason, Data: Data{Name: j.testCase.Data}})
		default:
			r.index = i + 1
			if err := r.runJob(ctx, j); err != nil {
				return err
			}
		}
	}
	return r.save()
}

// save writes the reports into the folder Options.Out.
func (r *runner) save() error {
	if r.opt.Out == "" {
		return nil
	}
	for _, planReport := range r.reports {
		if err := planReport.Save(filepath.Join(r.opt.Out, planReport.FileName())); err != nil {
			return err
		}
	}
	return nil
}

// runJob runs a job, sets its result and saves the reports. It returns an error only if ctx ends or saving fails.
// Result.Bytes is the peak of the physical memory of this process so far, so it includes the earlier cases.
func (r *runner) runJob(ctx context.Context, j *job) error {
	r.started = time.Now()
	result, err := r.measure(ctx, j.testCase)
	if ctxErr := ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	r.secondsTaken += time.Since(r.started).Seconds()
	r.secondsPredicted += j.cost.Sum()
	if err != nil {
		result = &Result{Status: Failed, Reason: oneLine(err), Data: Data{Name: j.testCase.Data}}
	}
	result.Machine, result.Commit, result.Bytes = machine(), r.opt.Version, accel.PeakRSS()
	result.Date = time.Now().UTC().Format(time.RFC3339)
	j.setResult(result)
	r.opt.CaseFinished(j.testCase, result)
	return r.save()
}

// oneLine returns the first line of an error's message, without the package name.
func oneLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	for _, name := range []string{"experiments: ", "krrlab: "} {
		line = strings.TrimPrefix(line, name)
	}
	return line
}

// measure runs a case in the session of its group. A panic is returned as an error.
func (r *runner) measure(ctx context.Context, c Case) (res *Result, err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			err = fmt.Errorf("panic: %v", recovered)
		}
	}()
	if err := r.openSessionFor(ctx, c); err != nil {
		return nil, err
	}
	switch c.Method {
	case "":
		return r.session.solve(ctx, c)
	case RandomFeatures, ADMM:
		return r.session.baseline(ctx, c)
	}
	return nil, fmt.Errorf("unknown method %q", c.Method)
}

// openSessionFor makes the session of a case's group the current session, and frees matrices that the case does not
// use.
func (r *runner) openSessionFor(ctx context.Context, c Case) error {
	if g := groupOf(c); g != r.group || r.session == nil {
		r.session, r.group = nil, g
		debug.FreeOSMemory()
		r.session, r.sessionErr = openSession(ctx, g, r.opt, r.notifyMonitor)
	}
	if r.sessionErr != nil {
		return r.sessionErr
	}
	if !c.sharesK() && r.session.lab != nil {
		r.session.lab.Free()
		debug.FreeOSMemory()
	}
	return nil
}

// notifyMonitor passes the progress of the current job on to the monitor.
func (r *runner) notifyMonitor(e krrlab.Event) error {
	r.opt.Monitor(Progress{
		Case: r.jobs[r.index-1].testCase, Index: r.index, Total: len(r.jobs), Event: e,
		Remaining: r.remaining(),
	})
	return nil
}

// remaining predicts the remaining time of the run. It is the predicted time of the remaining jobs, multiplied by the
// ratio of the measured to the predicted time of the finished jobs. The ratio is limited to 0.1 … 10, and is 1 until
// jobs of more than 5 predicted seconds have finished.
func (r *runner) remaining() time.Duration {
	total, correction := 0.0, 1.0
	if r.secondsPredicted > 5 {
		correction = min(max(r.secondsTaken/r.secondsPredicted, 0.1), 10)
	}
	for i, j := range r.jobs {
		if j.result != nil || j.skipReason != "" {
			continue
		}
		seconds := correction * j.cost.Sum()
		if i == r.index-1 {
			seconds = max(0, seconds-time.Since(r.started).Seconds())
		}
		total += seconds
	}
	return time.Duration(total * float64(time.Second))
}

// machine returns the description of this machine.
func machine() Machine {
	limit, _ := accel.MemoryLimit()
	return Machine{CPU: accel.CPU().Model, Threads: accel.Threads(), Memory: limit,
		BLAS: accel.CurrentBLAS().Portable().String(),
		OS:   runtime.GOOS + "/" + runtime.GOARCH}
}
