package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/krrlab/lab/krrlab/stage"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/remote"
)

// jobCommand makes krrlab job, which the ranks of a remote.Backend run.
func (a *app) jobCommand() *cobra.Command {
	f := &rankFlags{}
	cmd := &cobra.Command{
		Use:   "job FILE",
		Short: "Run a job that a notebook wrote: what mpirun starts on ranks",
		Long: `Job runs the stage that a job file names, on its data and configuration, and writes the
value beside it as result.json. It is what a Backend of package krrlab/remote starts by mpirun,
srun or sbatch; the first rank writes progress as lines of JSON.`,
		Hidden:      true,
		Annotations: onRanks,
		Args:        oneArg("want one job: krrlab job FILE"),
		RunE:        func(cmd *cobra.Command, args []string) error { return a.job(cmd.Context(), cmd.Flags(), f, args[0]) },
	}
	f.add(cmd.Flags())
	return cmd
}

// job runs krrlab job.
func (a *app) job(ctx context.Context, set *pflag.FlagSet, f *rankFlags, file string) error {
	if err := a.join(ctx, set, f); err != nil {
		return err
	}
	memory, err := memoryLimit("")
	if err != nil {
		return err
	}
	o := remote.Options{Comm: a.group(), Dirs: a.dirs(), Memory: memory}
	if a.party != nil {
		o.Memory /= int64(a.party.node.Ranks)
	}
	if a.first() && !a.quiet {
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
	t.line(struct {
		Event krrlab.Event `json:"event"`
	}{e})
	return nil
}

func (t *teller) note(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line(struct {
		Note string `json:"note"`
	}{text})
}

func (t *teller) line(v any) {
	if b, err := json.Marshal(v); err == nil { // a residual that is not finite has no JSON
		fmt.Fprintf(t.a.env.Stdout, "%s\n", b)
	}
}
