package experiments

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
)

// Options of Run and Predict. Nil means the defaults.
type Options struct {
	Dirs   []string // folders to look for data in; default: datasets.Dirs()
	Out    string   // folder that keeps cases and reports; empty keeps nothing
	Resume bool     // take the results of cases that Out has
	Memory int64    // bytes a case may take; 0: no limit
	// Time is how long a run may take; 0: no limit. A case that is predicted to end after it is
	// not begun, and its result says so.
	Time    time.Duration
	Rates   *Rates // of the machine; nil: measured
	Version string // of the program, for the results
	// Monitor is told how it goes on, Finished each case that ended; nil is silent.
	Monitor  func(Progress)
	Finished func(c Case, r *Result)
}

// withDefaults returns the options with their defaults; the caller's are left alone.
func (o *Options) withDefaults(ctx context.Context) Options {
	var opt Options
	if o != nil {
		opt = *o
	}
	if opt.Dirs == nil {
		opt.Dirs = datasets.Dirs()
	}
	if opt.Rates == nil {
		r := MeasureRates(ctx)
		opt.Rates = &r
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
	Elapsed      time.Duration // of the run
	Remaining    time.Duration // of the run, by the costs predicted and what the cases done took
}

// Run runs the plans and returns their reports. Each case is run once, whichever plans ask for
// it, and its result is kept in o.Out as soon as it is there; without Resume those that o.Out has
// of the same cases are renamed first, to <name>.old. A case that fails, or whose
// data are missing, has the reason in its result, and the others go on.
//
// If the context ends, Run returns its error with the reports as far as they are; the cases
// done are kept, and a run with Resume goes on after them. Only complete reports are
// written, as <id>.<scale>.json in o.Out. Any other error is of keeping results.
func Run(ctx context.Context, plans []*Plan, o *Options) ([]*Report, error) {
	opt := o.withDefaults(ctx)
	r := &runner{opt: &opt, jobs: jobs(plans, &opt), start: time.Now()}
	if opt.Out != "" {
		var err error
		if r.store, err = openStore(opt.Out); err != nil {
			return nil, err
		}
	}
	if err := recall(r.jobs, &opt); err != nil {
		return nil, err
	}
	if r.store != nil && !opt.Resume {
		for _, j := range r.jobs {
			if err := r.store.retire(j.c); err != nil {
				return nil, err
			}
		}
	}
	err := r.all(ctx)
	for _, j := range r.jobs {
		for _, e := range j.entries {
			if e.Skip == "" {
				e.Result = j.result
			}
		}
	}
	var reports []*Report
	for _, p := range plans {
		reports = append(reports, newReport(p))
	}
	if err != nil || opt.Out == "" {
		return reports, err
	}
	for _, rep := range reports {
		if err := rep.Save(filepath.Join(opt.Out, rep.FileName())); err != nil {
			return reports, err
		}
	}
	return reports, nil
}

// recall fills in the results that are kept.
func recall(list []*job, o *Options) error {
	if !o.Resume || o.Out == "" {
		return nil
	}
	s := &store{filepath.Join(o.Out, casesDir)}
	for _, j := range list {
		var err error
		if j.result, err = s.load(j.c); err != nil {
			return err
		}
	}
	return nil
}

// runner is one run.
type runner struct {
	opt   *Options
	store *store // nil keeps nothing
	jobs  []*job
	start time.Time

	index      int       // of the job under way, from 1
	began      time.Time // when it did
	took, cost float64   // seconds of the jobs done in this run, and those predicted

	session *session
	group   group
	failed  error // why there is no session of the group
}

// all runs the jobs in their order.
func (r *runner) all(ctx context.Context) error {
	for i := 0; i < len(r.jobs); {
		batch := batchAt(r.jobs, i)
		i += len(batch)
		var due []*job
		for _, j := range batch {
			switch {
			case j.result != nil:
			case j.skip != "":
				j.result = &Result{Status: NotRun, Reason: j.skip}
				j.result.Data.Name = j.c.Data
			default:
				due = append(due, j)
			}
		}
		if len(due) == 0 || r.late(due) {
			continue
		}
		r.index = i
		if err := r.run(ctx, due); err != nil {
			return err
		}
	}
	return nil
}

// late reports whether jobs are predicted to end after the time allowed; if so they have a result
// that says it.
func (r *runner) late(batch []*job) bool {
	end := time.Since(r.start)
	for _, j := range batch {
		end += time.Duration(r.slow() * j.cost.Seconds() * float64(time.Second))
	}
	if r.opt.Time == 0 || end <= r.opt.Time {
		return false
	}
	for _, j := range batch {
		j.result = &Result{Status: NotRun, Reason: fmt.Sprintf("this case was predicted to end after the allowed %v", r.opt.Time)}
		j.result.Data.Name = j.c.Data
	}
	return true
}

// slow is how much longer than predicted the cases done took.
func (r *runner) slow() float64 {
	if r.cost <= 5 {
		return 1
	}
	return min(max(r.took/r.cost, 0.1), 10)
}

// batchAt returns the jobs from i on that are run together: nested cases of one draw, else one.
func batchAt(list []*job, i int) []*job {
	j := i + 1
	for ; j < len(list) && list[i].c.Nested && sameButS(list[i].c, list[j].c); j++ {
	}
	return list[i:j]
}

// sameButS reports whether cases differ in S only.
func sameButS(a, b Case) bool {
	a.S = b.S
	return a == b
}

// run runs jobs of one batch and keeps their results.
func (r *runner) run(ctx context.Context, batch []*job) error {
	r.began = time.Now()
	c := batch[0].c
	results, err := r.measure(ctx, batch)
	if e := ctx.Err(); e != nil {
		return e
	}
	took := time.Since(r.began).Seconds()
	for i, j := range batch {
		r.cost += j.cost.Seconds()
		if j.result = resultOf(results, i, err); j.result.Data.Name == "" {
			j.result.Data.Name = c.Data
		}
		j.result.Machine, j.result.Commit = machine(), r.opt.Version
		j.result.Date = time.Now().UTC().Format(time.RFC3339)
		if r.store != nil && j.result.Ran() {
			err := r.store.save(j.c, j.result)
			var not *json.UnsupportedValueError
			if errors.As(err, &not) { // a number that is not finite
				j.result = &Result{Status: Failed, Reason: oneLine(err), Data: j.result.Data}
			} else if err != nil {
				return err
			}
		}
		r.opt.Finished(j.c, j.result)
	}
	r.took += took
	return nil
}

// resultOf returns result i, or one that says why there is none: a result with an error is none.
func resultOf(results []*Result, i int, err error) *Result {
	var r *Result
	if i < len(results) {
		r = results[i]
	}
	switch {
	case r != nil && err == nil:
		return r
	case err == nil:
		err = errors.New("no result")
	}
	failed := &Result{Status: Failed, Reason: oneLine(err)}
	if r != nil {
		failed.Data = r.Data
	}
	return failed
}

// oneLine is the first line of an error, without the package's name.
func oneLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	for _, name := range []string{"experiments: ", "krrlab: "} {
		line = strings.TrimPrefix(line, name)
	}
	return line
}

// measure runs a batch in its group's session. A panic in it is an error of the case.
func (r *runner) measure(ctx context.Context, batch []*job) (results []*Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if err := r.open(ctx, batch[0].c); err != nil {
		return nil, err
	}
	s, c := r.session, batch[0].c
	one := func(res *Result, err error) ([]*Result, error) { return []*Result{res}, err }
	if _, ok := solvers[c.Method]; ok {
		return one(s.solve(ctx, c))
	}
	switch c.Method {
	case RandomFeatures:
		if c.Nested {
			return s.nestedFeatures(ctx, batch)
		}
		return one(s.randomFeatures(ctx, c))
	case ADMM:
		return one(s.admm(ctx, c))
	case PrecondForm:
		return one(s.precondForm(ctx, c))
	}
	return nil, fmt.Errorf("unknown method %q", c.Method)
}

// open makes the session of a case's group the current one, and lets go of what this case
// has no use for.
func (r *runner) open(ctx context.Context, c Case) error {
	if r.session != nil && r.group == groupOf(c) {
		if m := c.Method; m != PCG && m != BlockPCG && m != CG {
			if r.session.lab != nil {
				r.session.lab.Free()
			}
			debug.FreeOSMemory()
		}
		return nil
	}
	if r.failed != nil && r.group == groupOf(c) {
		return r.failed
	}
	r.session = nil
	debug.FreeOSMemory()
	r.group = groupOf(c)
	r.session, r.failed = openSession(ctx, r.group, r.opt, r.watch)
	if r.failed != nil {
		r.session = nil
	}
	return r.failed
}

// watch reports a stage of the job under way.
func (r *runner) watch(e krrlab.Event) error {
	r.opt.Monitor(Progress{
		Case: r.jobs[r.index-1].c, Index: r.index, Total: len(r.jobs), Event: e,
		Elapsed: time.Since(r.start), Remaining: r.remaining(),
	})
	return nil
}

// remaining predicts the time left: the costs of what is to come, corrected by how much longer
// than predicted the cases done took.
func (r *runner) remaining() time.Duration {
	var left float64
	for i, j := range r.jobs {
		if j.result != nil || j.skip != "" {
			continue
		}
		s := r.slow() * j.cost.Seconds()
		if i == r.index-1 {
			s = max(0, s-time.Since(r.began).Seconds())
		}
		left += s
	}
	return time.Duration(left * float64(time.Second))
}

// machine describes what the process runs on.
func machine() Machine {
	limit, _ := accel.MemoryLimit()
	blas := accel.InUse()
	if blas.Path != "" {
		blas.Path = filepath.Base(blas.Path)
	}
	return Machine{CPU: accel.CPU().Model, Threads: accel.Threads(), Memory: limit, BLAS: blas.String(), OS: runtime.GOOS + "/" + runtime.GOARCH}
}
