package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
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

// rankFlags are the flags of commands that run on MPI ranks.
type rankFlags struct {
	Limit time.Duration `flag:"rank-timeout" check:"positive"`
}

func (rankFlags) Help() map[string]string {
	return map[string]string{
		"rank-timeout": "how long ranks started by mpirun or srun wait for one another",
	}
}

// rankGroup is the group of ranks to which this process belongs.
type rankGroup struct {
	world *comm.World
	node  comm.Node // this process's machine: its number of ranks and processors
}

// onRanks is the annotation of commands that run on all ranks together. Other commands run on the first rank only.
var onRanks = map[string]string{"ranks": "all"}

// isIdleRank reports whether the command has no work for this process: whether it is a rank other than the first, and
// the command runs only on the first rank.
func (a *app) isIdleRank(cmd *cobra.Command) bool {
	return a.env.Launch != nil && a.env.Launch.Rank > 0 && cmd.Annotations["ranks"] == ""
}

// joinRanks connects this process to the other ranks if an MPI launcher started it, and sets a.ranks. It limits the
// process to its share of the machine's processors, unless --threads is set, and memory. On all ranks except the first
// it sets --quiet. It returns an error if the ranks run different versions of krrlab.
func (a *app) joinRanks(ctx context.Context, f *rankFlags) error {
	if a.env.Launch == nil {
		return nil
	}
	w, err := comm.Open(*a.env.Launch, f.Limit)
	if err != nil {
		return err
	}
	a.ranks = &rankGroup{world: w}
	version := a.versionText()
	if err = a.requireSame(ctx, []byte(version), "this is "+version+", and rank 0 another"); err != nil {
		return err
	}
	if a.ranks.node, err = comm.LocateNode(ctx, w); err != nil {
		return err
	}
	if n := a.ranks.node; !a.flags.IsSet("threads") {
		a.setThreads(n.CPUs)
		if n.BoundCPUs < n.LauncherCPUs && !a.env.Launch.RequestedCPUs {
			a.notef("note: the launcher has bound the ranks of this machine to %d of %d processors: mpirun --bind-to "+
				"none or srun --cpus-per-task gives more, --threads %d is silent (docs/ranks.md)", n.BoundCPUs,
				n.LauncherCPUs, n.CPUs)
		}
	}
	if share, _ := accel.MemoryShare(a.ranks.node.Ranks); share > 0 {
		debug.SetMemoryLimit(share)
	}
	a.Quiet = a.Quiet || w.Rank() > 0
	severalHosts := a.ranks.node.Ranks < w.Size()
	if timeout := a.env.Launch.LostHostTimeout; timeout > f.Limit && severalHosts {
		a.notef("note: %s takes %v to notice that a host is lost, longer than --rank-timeout %v: it may outlive the "+
			"ranks by minutes (docs/ranks.md)", a.env.Launch.Launcher, timeout, f.Limit)
	}
	return nil
}

// isFirstRank reports whether this process prints and writes the results: it is the first rank or the only process.
func (a *app) isFirstRank() bool { return a.env.Launch == nil || a.env.Launch.Rank == 0 }

// agree returns nil if err is nil on all ranks, and otherwise an error on all ranks. All ranks must call it. An error
// that all ranks have already agreed on stays as it is.
func (a *app) agree(ctx context.Context, err error) error {
	if _, isAgreed := errors.AsType[*comm.RankError](err); isAgreed {
		return err
	}
	return comm.Agree(ctx, comm.OrAlone(a.comm()), err)
}

// startRun joins the ranks, returns an error if they do not have the same options, and checks, on the first rank, the
// files that the options name. All ranks call it before any work is done.
func (a *app) startRun(ctx context.Context, f *rankFlags, s *schema.Schema) error {
	err := a.joinRanks(ctx, f)
	if err == nil {
		err = a.requireSameOptions(ctx, s)
	}
	if err == nil && a.isFirstRank() {
		err = checkOptionFiles(s)
	}
	return a.agree(ctx, err)
}

// requireSameData returns an error if this rank's data sets differ from those of the first rank. A data set may be nil,
// if there is none. All ranks must call it.
func (a *app) requireSameData(ctx context.Context, data ...*datasets.Dataset) error {
	var fingerprints []byte
	for _, d := range data {
		if d != nil && a.ranks != nil {
			sum := d.Fingerprint()
			fingerprints = append(fingerprints, sum[:]...)
		}
	}
	return a.requireSame(ctx, fingerprints, "the data read here are not those of rank 0")
}

// requireSameOptions returns an error if this rank's options differ from those of the first rank. Ranks with other
// options would exchange messages that do not belong together, or compute other numbers. All ranks must call it.
func (a *app) requireSameOptions(ctx context.Context, s *schema.Schema) error {
	return a.requireSame(ctx, []byte(sharedOptions(s)),
		"the options here, or the files that they name, are not those of rank 0")
}

// sharedOptions returns the options that all ranks must have, with their values, as text. The limits of one process may
// differ between ranks, and so may the names of files, but not which files are named.
func sharedOptions(s *schema.Schema) string {
	var text strings.Builder
	for _, o := range s.Fields {
		switch {
		case o.Name == "memory" || o.Name == "rank-timeout":
		case o.File == "":
			fmt.Fprintf(&text, "%s=%q\n", o.Name, o.String())
		case o.String() != "":
			fmt.Fprintln(&text, o.Name)
		}
	}
	return text.String()
}

// requireSame returns an error with this text if value differs from that on the first rank. All ranks must call it.
func (a *app) requireSame(ctx context.Context, value []byte, text string) error {
	return comm.CheckEqual(ctx, comm.OrAlone(a.comm()), value, errors.New(text))
}

// comm returns the communicator of the ranks, or nil for a single process.
func (a *app) comm() comm.Comm {
	if a.ranks == nil {
		return nil
	}
	return a.ranks.world
}

// processesHere returns the number of ranks on this machine, which share its memory; 1 without ranks.
func (a *app) processesHere() int {
	if a.ranks == nil {
		return 1
	}
	return a.ranks.node.Ranks
}

// ranksText returns a line with the number of ranks and their communication, or "" for a single process.
func (a *app) ranksText() string {
	if a.ranks == nil {
		return ""
	}
	w := a.ranks.world
	t := w.Traffic()
	return fmt.Sprintf("%-*s %d (%d on this machine); %s sent by each, %.1f s in collectives\n", stageLabelWidth,
		"ranks", w.Size(), a.ranks.node.Ranks, accel.FormatBytes(t.Bytes), t.Seconds)
}

// addRanks adds the number of ranks on this machine and the MPI library to a report.
func (a *app) addRanks(r *krrlab.Solution) {
	if a.ranks != nil && r.Ranks != nil {
		r.Ranks.OnNode, r.Ranks.Library = a.ranks.node.Ranks, a.ranks.world.Library()
	}
}

// reportDelay is the time that rank 1 waits before it reports an error that not all ranks know of. Rank r waits r times
// as long, at most maxDelays times. During this time a lower rank with the same error may report it and end all ranks,
// which takes the launchers some seconds. A shorter delay risks that several ranks print the same error. It is a
// variable because tests shorten it.
var reportDelay = 4 * time.Second

// maxDelays is the largest multiple of reportDelay that a rank waits.
const maxDelays = 5

// endRank ends this process's part in a run that ended with err: it prints text as its message, unless that is "",
// leaves the other ranks and returns the exit code, which is code unless a rank was lost at the end.
//
// If all ranks know how the run ended, they end together and the first rank prints the message. A rank that has not
// joined the others prints it too if the launcher does not end this rank in time. If not all ranks know how the run
// ended, the rank that prints its message first aborts the others.
func (a *app) endRank(ctx context.Context, err error, code int, text string) int {
	printMessage := func(prefix string) {
		if text != "" {
			fmt.Fprintf(a.env.Stderr, "krrlab: %s%s\n", prefix, text)
		}
	}
	if a.env.Launch == nil {
		printMessage("")
		return code
	}
	_, isStatus := errors.AsType[errStatus](err)
	_, isAgreed := errors.AsType[*comm.RankError](err)
	_, isUsage := errors.AsType[errUsage](err) // all ranks have the same command line
	endTogether := err == nil || ctx.Err() == nil && (isStatus || isAgreed || isUsage)
	switch {
	case a.isFirstRank():
		printMessage("")
	case endTogether && a.ranks == nil && code != exitOK: // the first rank prints it, and the launcher ends this one
		select {
		case <-ctx.Done():
		case <-time.After(maxDelays * reportDelay):
			// Other launchers than MPICH would have ended this rank if the first rank had failed too.
			if a.env.Launch.Launcher != "MPICH" {
				printMessage(fmt.Sprintf("rank %d: ", a.env.Launch.Rank))
			}
		}
	case !endTogether && ctx.Err() == nil:
		select {
		case <-ctx.Done(): // the launcher ends this rank: a lower rank has printed its message
			return code
		case <-time.After(time.Duration(min(a.env.Launch.Rank, maxDelays)) * reportDelay):
		}
		prefix := fmt.Sprintf("rank %d: ", a.env.Launch.Rank)
		if _, lostRank := errors.AsType[*comm.Error](err); lostRank { // the message names the rank
			prefix = ""
		}
		printMessage(prefix)
	}
	if a.ranks == nil {
		return code
	}
	if endTogether {
		err := a.ranks.world.Close() // waits for the other ranks
		if err == nil {
			return code
		}
		a.warnf("everything is done and written, but not all ranks ended: %s", a.failureText(err))
		code = max(code, exitError)
	}
	a.ranks.world.Abort(code)
	return code
}

// jobCommand returns the hidden command that a remote.Backend starts on its ranks.
func (a *app) jobCommand() *cobra.Command {
	f := &rankFlags{comm.DefaultLimit}
	return withOptions(&cobra.Command{
		Use:   "job FILE",
		Short: "Run a job file written by a notebook (started on ranks by mpirun)",
		Long: `Job runs the stage that a job file names, on its data and configuration, and writes the
result as result.json into the folder of the job file. A Backend of package
krrlab/ranks/remote starts it by mpirun or srun. The first rank writes its progress to the
output stream as lines of JSON.`,
		Hidden:      true,
		Annotations: onRanks,
		Args:        oneArg("want one job: krrlab job FILE"),
	}, schema.Of(f), func(ctx context.Context, args []string) error { return a.job(ctx, f, args[0]) })
}

// job runs the job file on all ranks together. The first rank reports the progress.
func (a *app) job(ctx context.Context, f *rankFlags, file string) error {
	if err := a.joinRanks(ctx, f); err != nil {
		return err
	}
	o := remote.Options{Comm: a.comm(), Memory: a.memoryLimit(0)}
	if a.isFirstRank() && !a.Quiet {
		t := &jobProgress{a: a}
		o.Monitor, o.Note = t.event, t.note
	}
	return remote.RunJob(ctx, file, o)
}

// jobProgress writes the progress of a job to the output stream, as lines of JSON.
type jobProgress struct {
	a         *app
	mu        sync.Mutex // guards the fields below
	stage     stage.Name // of the last event that was written
	lastWrite time.Time
}

// event writes an event, unless the previous event of the same stage was written less than updateInterval ago. The last
// event of a stage is always written if e.Total, the number of steps, is known.
func (t *jobProgress) event(e krrlab.Event) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if e.Stage == t.stage && now.Sub(t.lastWrite) < updateInterval && (e.Total == 0 || e.Done < e.Total) {
		return nil
	}
	t.stage, t.lastWrite = e.Stage, now
	t.writeLine("event", e)
	return nil
}

func (t *jobProgress) note(text string) { t.writeLine("note", text) }

// writeLine writes a line of JSON, an object with one key. It skips a value that JSON cannot represent, such as an
// event with a residual that is not finite.
func (t *jobProgress) writeLine(key string, v any) {
	if b, err := json.Marshal(map[string]any{key: v}); err == nil {
		fmt.Fprintf(t.a.env.Stdout, "%s\n", b)
	}
}
