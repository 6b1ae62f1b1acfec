package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/comm"
)

// rankFlags are flags of runs on ranks.
type rankFlags struct {
	limit time.Duration
}

func (f *rankFlags) add(p *pflag.FlagSet) {
	p.DurationVar(&f.limit, "rank-timeout", comm.DefaultLimit, "how long a rank waits for the others, when mpirun or srun started it")
}

func (f *rankFlags) check() error {
	if f.limit <= 0 {
		return usagef("--rank-timeout %v: want a positive time", f.limit)
	}
	return nil
}

// party is the ranks that this process is one of.
type party struct {
	world *comm.World
	node  comm.Node
}

// idle reports whether this process is a rank that a command has nothing for: fit runs on
// ranks, every other command on the first alone.
func (a *app) idle(cmd *cobra.Command) bool {
	return a.env.Launch != nil && a.env.Launch.Rank > 0 && cmd.Name() != "fit"
}

// join makes this process one of the ranks, if it was started as one, with its share of the
// machine's processors and memory. Ranks but the first print nothing.
func (a *app) join(ctx context.Context, set *pflag.FlagSet, f *rankFlags) error {
	if a.env.Launch == nil {
		return nil
	}
	w, err := comm.Open(*a.env.Launch, comm.Options{Limit: f.limit})
	if err != nil {
		return err
	}
	a.party = &party{world: w}
	if a.party.node, err = comm.Locate(ctx, w); err != nil {
		return err
	}
	if !set.Changed("threads") {
		a.threads = a.party.node.CPUs
		runtime.GOMAXPROCS(a.threads)
		accel.SetThreads(a.threads)
	}
	if limit, _ := accel.MemoryLimit(); limit > 0 {
		debug.SetMemoryLimit(limit / int64(a.party.node.Ranks))
	}
	a.quiet = a.quiet || w.Rank() > 0
	return nil
}

// first reports whether this process writes and prints: the only one, or the first rank.
func (a *app) first() bool { return a.env.Launch == nil || a.env.Launch.Rank == 0 }

// agree returns nil if err is nil on all ranks, and otherwise an error on all.
func (a *app) agree(ctx context.Context, err error) error {
	if a.party == nil {
		return err
	}
	return comm.Agree(ctx, a.party.world, err)
}

// sameData refuses ranks that have read other data than the first.
func (a *app) sameData(ctx context.Context, d *loaded) error {
	if a.party == nil {
		return nil
	}
	w := a.party.world
	sum := krrlab.Fingerprint(d.train)
	own := sum[:]
	if d.test != nil {
		sum = krrlab.Fingerprint(d.test)
		own = append(own, sum[:]...)
	}
	both := sha256.Sum256(own)
	first, err := comm.Share(ctx, w, both[:], 0)
	if err == nil && string(first) != string(both[:]) {
		err = errors.New("the data read here are not those of rank 0")
	}
	return a.agree(ctx, err)
}

// onRanks puts the ranks into a configuration.
func (a *app) onRanks(cfg *krrlab.Config) {
	if a.party != nil {
		cfg.Comm = a.party.world
	}
}

// describe adds to a report which ranks there were.
func (a *app) describe(r *krrlab.Report) {
	if a.party != nil && r.Ranks != nil {
		r.Ranks.OnNode, r.Ranks.Library = a.party.node.Ranks, a.party.world.Library()
	}
}

// courtesy is how long ranks but the first wait with an error that not all ranks know of: the
// first may have it as well, say it, and end all.
const courtesy = time.Second

// part ends this process's part in a run that ended with err, and reports whether it is the
// one to say so. If all ranks know of the end they end together; otherwise this rank ends the
// others.
func (a *app) part(ctx context.Context, err error, code int, say func()) {
	if a.env.Launch == nil {
		say()
		return
	}
	var status errStatus
	var known *comm.RankError
	together := err == nil || errors.As(err, &status) || errors.As(err, &known)
	switch {
	case a.first():
		say()
	case !together && ctx.Err() == nil:
		time.Sleep(courtesy)
		fmt.Fprintf(a.env.Stderr, "krrlab: rank %d: ", a.env.Launch.Rank)
		say()
	}
	if a.party == nil {
		return
	}
	if together {
		if err := a.party.world.Close(); err == nil {
			return
		}
	}
	a.party.world.Abort(code)
}
