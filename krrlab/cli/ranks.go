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

// Help returns the help texts of flags whose tags have none.
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
// process to its share of the machine's memory and, unless --threads is set, of its processors. On all ranks except the
// first it sets --quiet. It returns an error if the ranks run different versions of krrlab.
func (a *app) joinRanks(ctx context.Context, f *rankFlags) error {
	if a.env.Launch == nil {
		return nil
	}
	world, err := comm.Open(*a.env.Launch, f.Limit)
	if err != nil {
		return err
	}
	a.ranks = &rankGroup{world: world}
	version := a.versionText()
	if err = a.requireSame(ctx, []byte(version), "this is "+version+", and rank 0 another"); err != nil {
		return err
	}
	if a.ranks.node, err = comm.LocateNode(ctx, world); err != nil {
		return err
	}
	if node := a.ranks.node; !a.flags.IsSet("threads") {
		a.setThreads(node.CPUs)
		if node.BoundCPUs < node.LauncherCPUs && !a.env.Launch.RequestedCPUs {
			a.notef("note: the launcher has bound the ranks of this machine to %d of %d processors: mpirun --bind-to "+
				"none or srun --cpus-per-task gives more, --threads %d is silent (docs/ranks.md)", node.BoundCPUs,
				node.LauncherCPUs, node.CPUs)
		}
	}
	if share, _ := accel.MemoryShare(a.ranks.node.Ranks); share > 0 {
		debug.SetMemoryLimit(share)
	}
	a.Quiet = a.Quiet || world.Rank() > 0
	severalHosts := a.ranks.node.Ranks < world.Size()
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
	for _, option := range s.Fields {
		switch {
		case option.Name == "memory" || option.Name == "rank-timeout":
		case option.File == "":
			fmt.Fprintf(&text, "%s=%q\n", option.Name, option.String())
		case option.String() != "":
			fmt.Fprintln(&text, option.Name)
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
	world := a.ranks.world
	traffic := world.Traffic()
	return fmt.Sprintf("%-*s %d (%d on this machine); %s sent by each, %.1f s in collectives\n", stageLabelWidth,
		"ranks", world.Size(), a.ranks.node.Ranks, accel.FormatBytes(traffic.Bytes), traffic.Seconds)
}

// addRanks adds the number of ranks on this machine and the MPI library to a report.
func (a *app) addRanks(sol *krrlab.Solution) {
	if a.ranks != nil && sol.Ranks != nil {
		sol.Ranks.OnNode, sol.Ranks.Library = a.ranks.node.Ranks, a.ranks.world.Library()
	}
}

// reportDelay is the time that rank 1 waits before it reports an error that not all ranks know of. Rank r waits r times
// as long, at most maxDelays times. During this time a lower rank with the same error may report it and end all ranks,
// which takes the launchers some seconds. A shorter delay risks that several ranks print the same error. It is a
// variable because tests shorten it.
var reportDelay = 4 * time.Second

// maxDelays is the largest multiple of reportDelay that a rank waits.
const maxDelays = 5

// endRank ends the part of this process in a run that ended with err. It prints the message text, unless text is "",
// leaves the other ranks and returns the exit code, which is code unless a rank was lost at the end.
//
// If all ranks know how the run ended, they end together and the first rank prints the message. A rank that has not
// joined the others prints its message too if the launcher does not end this rank in time. If not all ranks know how
// the run ended, the rank that prints its message first aborts the others.
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
	// The first rank prints the message, and the launcher ends this rank.
	case endTogether && a.ranks == nil && code != exitOK:
		select {
		case <-ctx.Done():
		case <-time.After(maxDelays * reportDelay):
			// A launcher other than MPICH would have ended this rank if the first rank had failed too.
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
	options := remote.Options{Comm: a.comm(), Memory: a.memoryLimit(0)}
	if a.isFirstRank() && !a.Quiet {
		progress := &jobProgress{a: a}
		options.Monitor, options.Note = progress.event, progress.note
	}
	return remote.RunJob(ctx, file, options)
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
func (p *jobProgress) event(event krrlab.Event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if event.Stage == p.stage && now.Sub(p.lastWrite) < updateInterval &&
		(event.Total == 0 || event.Done < event.Total) {
		return nil
	}
	p.stage, p.lastWrite = event.Stage, now
	p.writeLine("event", event)
	return nil
}

// note writes a note to the user.
func (p *jobProgress) note(text string) { p.writeLine("note", text) }

// writeLine writes a line of JSON, an object with one key. It skips a value that JSON cannot represent, such as an
// event with a residual that is not finite.
func (p *jobProgress) writeLine(key string, v any) {
	if line, err := json.Marshal(map[string]any{key: v}); err == nil {
		fmt.Fprintf(p.a.env.Stdout, "%s\n", line)
	}
}
