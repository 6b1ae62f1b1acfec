package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/checkpoint"
)

// checkpointFlags say where the state of a solve is kept.
type checkpointFlags struct {
	dir, every string
	resume     bool
}

func (f *checkpointFlags) add(p *pflag.FlagSet) {
	p.StringVar(&f.dir, "checkpoint", "", "keep the state of the solve in this folder")
	p.StringVar(&f.every, "checkpoint-every", "1m", "how often: a time such as 30s, or 10it for every tenth iteration")
	p.BoolVar(&f.resume, "resume", false, "continue from the newest checkpoint in --checkpoint, if there is one")
}

// settings returns what the flags ask for, nil for no checkpoints.
func (f *checkpointFlags) settings(set *pflag.FlagSet) (*krrlab.Checkpoint, error) {
	if f.dir == "" {
		for _, name := range []string{"checkpoint-every", "resume"} {
			if set.Changed(name) {
				return nil, usagef("--%s goes with --checkpoint DIR", name)
			}
		}
		return nil, nil
	}
	c := &krrlab.Checkpoint{Dir: f.dir, Resume: f.resume}
	var err error
	if n, ok := strings.CutSuffix(f.every, "it"); ok {
		c.EveryIter, err = strconv.Atoi(n)
	} else {
		c.Every, err = time.ParseDuration(f.every)
	}
	if err != nil || c.Every <= 0 && c.EveryIter <= 0 {
		return nil, usagef("--checkpoint-every %q: want a time such as 30s, or iterations such as 10it", f.every)
	}
	return c, nil
}

// keep puts the flags into a configuration. What is resumed or refused is said on stderr, unless --quiet.
func (a *app) keep(cfg *krrlab.Config, set *pflag.FlagSet, f *checkpointFlags, progress *progress) error {
	c, err := f.settings(set)
	if err != nil || c == nil {
		return err
	}
	c.Note = func(text string) {
		if a.first() && !a.quiet {
			progress.clear()
			fmt.Fprintf(a.env.Stderr, "krrlab: %s\n", text)
		}
	}
	cfg.Checkpoint, a.kept = c, c.Dir
	return nil
}

// hasCheckpoint reports whether the run has left a checkpoint.
func (a *app) hasCheckpoint() bool {
	if a.kept == "" {
		return false
	}
	empty, err := checkpoint.Empty(a.kept)
	return err == nil && !empty
}

// goOnText says how to go on from a checkpoint.
func (a *app) goOnText() string {
	return fmt.Sprintf("the checkpoint in %s is kept; --resume continues from it", a.kept)
}

// interruptedText says what is left of an interrupted command.
func (a *app) interruptedText() string {
	if a.hasCheckpoint() {
		return "interrupted" + a.reached + "; " + a.goOnText()
	}
	return "interrupted" + a.reached + "; nothing was written"
}
