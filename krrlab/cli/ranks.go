package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/krrlab/lab/datasets"
	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/ranks/comm"
	"github.com/krrlab/lab/krrlab/ranks/remote"
	"github.com/krrlab/lab/krrlab/stage"
)

// rankFlags are flags of runs on ranks.
type rankFlags struct {
	Limit time.Duration `flag:"rank-timeout" check:"positive"`
}

func (rankFlags) Help() map[string]string {
	return map[string]string{
		"rank-timeout": "how long a rank waits for the others, when mpirun or srun started it",
	}
}

// party is the ranks that this process is one of.
type party struct {
	world *comm.World
	node  comm.Node
}

// onRanks marks the commands that run on all ranks together.
var onRanks = map[string]string{"ranks": "all"}

// idle reports whether this process is a rank that a command has nothing for: those that are
// not marked run on the first alone.
func (a *app) idle(cmd *cobra.Command) bool {
	return a.env.Launch != nil && a.env.Launch.Rank > 0 && cmd.Annotations["ranks"] == ""
}

// join makes this process one of the ranks, if it was started as one, with its share of the
// machine's processors and memory. Ranks but the first print nothing.
func (a *app) join(ctx context.Context, f *rankFlags) error {
	if a.env.Launch == nil {
		return nil
	}
	w, err := comm.Open(*a.env.Launch, comm.Options{Limit: f.Limit})
	if err != nil {
		return err
	}
	a.party = &party{world: w}
	version := a.versionText()
	if err = a.same(ctx, []byte(version), "this is "+version+", and rank 0 another"); err != nil {
		return err
	}
	if a.party.node, err = comm.Locate(ctx, w); err != nil {
		return err
	}
	if n := a.party.node; !a.flags.Given("threads") {
		a.setThreads(n.CPUs)
		if n.Bound < n.Given && !a.env.Launch.Asked {
			a.note("note: the launcher has bound the ranks of this machine to %d of %d processors: mpirun --bind-to "+
				"none or srun --cpus-per-task gives more, --threads %d is silent (docs/ranks.md)", n.Bound, n.Given,
				n.CPUs)
		}
	}
	if share, _ := accel.MemoryShare(a.party.node.Ranks); share > 0 {
		debug.SetMemoryLimit(share)
	}
	a.Quiet = a.Quiet || w.Rank() > 0
	if l := a.env.Launch.Lost; l > f.Limit && a.party.node.Ranks < w.Size() {
		a.note("note: %s takes %v to notice that a host is lost, longer than --rank-timeout %v: it may outlive the "+
			"ranks by minutes (docs/ranks.md)",
			a.env.Launch.Launcher, l, f.Limit)
	}
	return nil
}

// first reports whether this process writes and prints: the only one, or the first rank.
func (a *app) first() bool { return a.env.Launch == nil || a.env.Launch.Rank == 0 }

// agree returns nil if err is nil on all ranks, and otherwise an error on all.
func (a *app) agree(ctx context.Context, err error) error {
	return comm.Agree(ctx, comm.OrAlone(a.group()), err)
}

// start joins the ranks and checks the files, before any work is done.
func (a *app) start(ctx context.Context, f *rankFlags, s *schema.Schema) error {
	err := a.join(ctx, f)
	if err == nil && a.first() {
		err = checkFiles(filesOf(s))
	}
	return a.agree(ctx, err)
}

// loadSame reads the data the flags name, the same on all ranks.
func (a *app) loadSame(ctx context.Context, f *labFlags, progress *progress) (*loaded, error) {
	progress.show(krrlab.Event{Stage: stage.Load})
	data, err := a.load(ctx, f)
	if err = a.agree(ctx, err); err != nil {
		return nil, err
	}
	return data, a.sameData(ctx, data.train, data.test)
}

// sameData refuses ranks that have read other data than the first.
func (a *app) sameData(ctx context.Context, data ...*datasets.Dataset) error {
	var own []byte
	for _, d := range data {
		if d != nil && a.party != nil {
			sum := d.Fingerprint()
			own = append(own, sum[:]...)
		}
	}
	return a.same(ctx, own, "the data read here are not those of rank 0")
}

// same is the error of that text where what a rank has is not what the first has.
func (a *app) same(ctx context.Context, own []byte, text string) error {
	return comm.Same(ctx, comm.OrAlone(a.group()), own, errors.New(text))
}

// group returns the ranks, nil if there are none.
func (a *app) group() comm.Comm {
	if a.party == nil {
		return nil
	}
	return a.party.world
}

// ranksText says who shared the work of a stage; "" without ranks.
func (a *app) ranksText() string {
	if a.party == nil {
		return ""
	}
	w := a.party.world
	t := w.Traffic()
	return fmt.Sprintf("%-14s %d (%d on this machine); %s sent by each, %.1f s in collectives\n", "ranks", w.Size(),
		a.party.node.Ranks,
		accel.Bytes(t.Bytes), t.Seconds)
}

// describe adds to a report which ranks there were.
func (a *app) describe(r *krrlab.Solution) {
	if a.party != nil && r.Ranks != nil {
		r.Ranks.OnNode, r.Ranks.Library = a.party.node.Ranks, a.party.world.Library()
	}
}

// sayDelay is how long the second rank waits with an error that not all ranks know of, the
// third twice as long, and so on for the first maxDelays ones: an earlier one may have it as
// well, say it, and end all, which takes launchers some seconds.
var sayDelay = 4 * time.Second

const maxDelays = 5

// part ends this process's part in a run that ended with err, of which text is what is to be
// said, and returns the exit code. If all ranks know of the end they end together, and the
// first says it; otherwise the first to say it ends the others.
func (a *app) part(ctx context.Context, err error, code int, text string) int {
	say := func(who string) {
		if text != "" {
			fmt.Fprintf(a.env.Stderr, "krrlab: %s%s\n", who, text)
		}
	}
	if a.env.Launch == nil {
		say("")
		return code
	}
	_, status := errors.AsType[errStatus](err)
	_, known := errors.AsType[*comm.RankError](err)
	_, usage := errors.AsType[errUsage](err) // of the command line, which all have
	together := err == nil || ctx.Err() == nil && (status || known || usage)
	switch {
	case a.first():
		say("")
	case together && a.party == nil && code != exitOK: // the first says it, and the launcher ends this rank
		select {
		case <-ctx.Done():
		case <-time.After(maxDelays * sayDelay):
			if a.env.Launch.Launcher != "MPICH" { // which ends none: the first has had nothing to say
				say(fmt.Sprintf("rank %d: ", a.env.Launch.Rank))
			}
		}
	case !together && ctx.Err() == nil:
		select {
		case <-ctx.Done(): // the launcher ends this rank: an earlier one has spoken
			return code
		case <-time.After(time.Duration(min(a.env.Launch.Rank, maxDelays)) * sayDelay):
		}
		who := fmt.Sprintf("rank %d: ", a.env.Launch.Rank)
		if _, lost := errors.AsType[*comm.Error](err); lost { // it says so itself
			who = ""
		}
		say(who)
	}
	if a.party == nil {
		return code
	}
	if together {
		err := a.party.world.Close()
		if err == nil {
			return code
		}
		a.say("everything is done and written, but not all ranks ended: %s", a.failureText(err))
		code = max(code, exitError)
	}
	a.party.world.Abort(code)
	return code
}

// jobCommand makes what the ranks of a remote.Backend run.
func (a *app) jobCommand() *cobra.Command {
	f := &rankFlags{comm.DefaultLimit}
	return withOptions(&cobra.Command{
		Use:   "job FILE",
		Short: "Run a job that a notebook wrote: what mpirun starts on ranks",
		Long: `Job runs the stage that a job file names, on its data and configuration, and writes the
value beside it as result.json. It is what a Backend of package krrlab/ranks/remote starts by mpirun
or srun; the first rank writes progress as lines of JSON.`,
		Hidden:      true,
		Annotations: onRanks,
		Args:        oneArg("want one job: krrlab job FILE"),
	}, schema.Of(f), func(ctx context.Context, args []string) error { return a.job(ctx, f, args[0]) })
}

func (a *app) job(ctx context.Context, f *rankFlags, file string) error {
	if err := a.join(ctx, f); err != nil {
		return err
	}
	o := remote.Options{Comm: a.group(), Memory: a.memory(0)}
	if a.first() && !a.Quiet {
		t := &teller{a: a}
		o.Monitor, o.Note = t.event, t.note
	}
	return remote.RunJob(ctx, file, o)
}

// teller writes the progress of a job as lines of JSON.
type teller struct {
	a     *app
	mu    sync.Mutex
	stage stage.Name
	last  time.Time
}

// event writes an event if it is of another stage than the one before, or the last of its
// stage, or some time after it.
func (t *teller) event(e krrlab.Event) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if e.Stage == t.stage && now.Sub(t.last) < every && (e.Total == 0 || e.Done < e.Total) {
		return nil
	}
	t.stage, t.last = e.Stage, now
	t.line("event", e)
	return nil
}

func (t *teller) note(text string) { t.line("note", text) }

func (t *teller) line(key string, v any) {
	if b, err := json.Marshal(map[string]any{key: v}); err == nil { // a residual that is not finite has no JSON
		fmt.Fprintf(t.a.env.Stdout, "%s\n", b)
	}
}
