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

// Options of Run and Predict. Nil means the defaults.
type Options struct {
	Dirs    []string    // folders to look for data in; default: datasets.Dirs()
	Out     string      // folder of reports, whose results are taken and which are written; empty keeps nothing
	Memory  int64       // bytes a case may take; 0: no limit
	Rates   *cost.Rates // of the machine, for predictions; nil: cost.Reference
	Version string      // of the program, for the results
	// Monitor is called with the progress, Finished with each case that ended; nil is silent.
	Monitor  func(Progress)
	Finished func(c Case, r *Result)
}

// withDefaults returns the options with their defaults; the caller's are left alone.
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
	if opt.Finished == nil {
		opt.Finished = func(Case, *Result) {}
	}
	return opt
}

// Progress says how far a run is.
type Progress struct {
	Case         Case
	Index, Total int           // of the case, from 1
	Event        krrlab.Event  // of its stage
	Remaining    time.Duration // of the run, by the costs predicted and what the cases done took
}

// Run runs the plans, and returns them with their results. Each case is run once, whichever plans ask for it, and not
// at all if a report in o.Out has its result. The reports of the plans are in o.Out, as <id>.<scale>.json, from the
// first result on, so that a run that was interrupted is continued by the same call. A case that fails, or whose data
// are missing, has the reason in its result, and the others go on.
//
// If the context ends, Run returns its error with the reports as far as they are. Any other error is of the files.
func Run(ctx context.Context, plans []*Report, o *Options) ([]*Report, error) {
	opt := o.withDefaults()
	r := &runner{opt: &opt, jobs: jobs(plans, &opt), reports: plans}
	if err := recall(r.jobs, plans, &opt); err != nil {
		return nil, err
	}
	return plans, r.all(ctx)
}

// recall takes the results of cases that the reports in o.Out have.
func recall(list []*job, plans []*Report, o *Options) error {
	if o.Out == "" {
		return nil
	}
	ids := IDs()
	for _, p := range plans {
		ids = once(ids, p.ID)
	}
	reports, err := loadReports(o.Out, ids)
	kept := map[string]*Result{}
	for _, r := range reports {
		for _, e := range r.Entries {
			if e.Result.Ran() {
				kept[e.Case.key()] = e.Result
			}
		}
	}
	for _, j := range list {
		if x := kept[j.c.key()]; x != nil {
			j.settle(x)
		}
	}
	return err
}

// settle gives a job its result, and so the entries that ask for it.
func (j *job) settle(x *Result) {
	j.result = x
	for _, e := range j.entries {
		if e.Skip == "" {
			e.Result = x
		}
	}
}

// runner is one run.
type runner struct {
	opt     *Options
	jobs    []*job
	reports []*Report // whose entries are those of the jobs

	index      int       // of the job under way, from 1
	began      time.Time // when it did
	took, cost float64   // seconds of the jobs done in this run, and those predicted

	session *session
	group   group
	failed  error // why there is no session of the group
}

func (r *runner) all(ctx context.Context) error {
	for i, j := range r.jobs {
		switch {
		case j.result != nil:
		case j.skip != "":
			j.settle(&Result{Status: NotRun, Reason: j.skip, Data: Data{Name: j.c.Data}})
		default:
			r.index = i + 1
			if err := r.run(ctx, j); err != nil {
				return err
			}
		}
	}
	return r.save()
}

// save writes the reports.
func (r *runner) save() error {
	if r.opt.Out == "" {
		return nil
	}
	for _, rep := range r.reports {
		if err := rep.Save(filepath.Join(r.opt.Out, rep.FileName())); err != nil {
			return err
		}
	}
	return nil
}

// run runs a job and keeps its result.
func (r *runner) run(ctx context.Context, j *job) error {
	r.began = time.Now()
	res, err := r.measure(ctx, j.c)
	if e := ctx.Err(); e != nil {
		return e
	}
	r.took += time.Since(r.began).Seconds()
	r.cost += j.cost.Sum()
	if err != nil {
		res = &Result{Status: Failed, Reason: oneLine(err), Data: Data{Name: j.c.Data}}
	}
	res.Machine, res.Commit, res.Bytes = machine(), r.opt.Version, accel.PeakRSS()
	res.Date = time.Now().UTC().Format(time.RFC3339)
	j.settle(res)
	r.opt.Finished(j.c, res)
	return r.save()
}

// oneLine is the first line of an error, without the package's name.
func oneLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	for _, name := range []string{"experiments: ", "krrlab: "} {
		line = strings.TrimPrefix(line, name)
	}
	return line
}

// measure runs a case in its group's session. A panic in it is an error of the case.
func (r *runner) measure(ctx context.Context, c Case) (res *Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if err := r.open(ctx, c); err != nil {
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

// open makes the session of a case's group the current one, and lets go of what this case
// has no use for.
func (r *runner) open(ctx context.Context, c Case) error {
	if g := groupOf(c); g != r.group || r.session == nil {
		r.session, r.group = nil, g
		debug.FreeOSMemory()
		r.session, r.failed = openSession(ctx, g, r.opt, r.watch)
	}
	if r.failed != nil {
		return r.failed
	}
	if !c.sharesK() && r.session.lab != nil {
		r.session.lab.Free()
		debug.FreeOSMemory()
	}
	return nil
}

// watch reports a stage of the job under way.
func (r *runner) watch(e krrlab.Event) error {
	r.opt.Monitor(Progress{
		Case: r.jobs[r.index-1].c, Index: r.index, Total: len(r.jobs), Event: e,
		Remaining: r.remaining(),
	})
	return nil
}

// remaining predicts the time left: the costs of what is to come, corrected by how much longer
// than predicted the cases done took.
func (r *runner) remaining() time.Duration {
	left, slow := 0.0, 1.0
	if r.cost > 5 {
		slow = min(max(r.took/r.cost, 0.1), 10)
	}
	for i, j := range r.jobs {
		if j.result != nil || j.skip != "" {
			continue
		}
		s := slow * j.cost.Sum()
		if i == r.index-1 {
			s = max(0, s-time.Since(r.began).Seconds())
		}
		left += s
	}
	return time.Duration(left * float64(time.Second))
}

func machine() Machine {
	limit, _ := accel.MemoryLimit()
	blas := accel.InUse()
	if blas.Path != "" {
		blas.Path = filepath.Base(blas.Path)
	}
	return Machine{CPU: accel.CPU().Model, Threads: accel.Threads(), Memory: limit, BLAS: blas.String(),
		OS: runtime.GOOS + "/" + runtime.GOARCH}
}
