package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/internal/checkpoint"
)

// checkpointFlags say where the state of a solve is kept.
type checkpointFlags struct {
	Dir    string   `flag:"checkpoint" not:"solver=direct" help:"keep the state of the solve in this folder"`
	Every  howOften `flag:"checkpoint-every" default:"1m" with:"checkpoint"`
	Resume bool     `flag:"resume" with:"checkpoint"`
}

func (checkpointFlags) Help() map[string]string {
	return map[string]string{
		"checkpoint-every": "how often to write a checkpoint: a time such as 30s, or 10it for every tenth iteration",
		"resume":           "continue from the newest checkpoint in --checkpoint, if there is one",
	}
}

// howOften is a time such as 30s, or a number of iterations such as 10it.
type howOften struct {
	time       time.Duration
	iterations int
}

func (h *howOften) String() string {
	if h.iterations > 0 {
		return fmt.Sprintf("%dit", h.iterations)
	}
	return strings.TrimSuffix(h.time.String(), "0s")
}

func (h *howOften) Set(text string) (err error) {
	*h = howOften{}
	if n, ok := strings.CutSuffix(text, "it"); ok {
		h.iterations, err = strconv.Atoi(n)
	} else {
		h.time, err = time.ParseDuration(text)
	}
	if err != nil || h.time <= 0 && h.iterations <= 0 {
		return errors.New("want a time such as 30s, or iterations such as 10it")
	}
	return nil
}

// keep puts the flags into a configuration. What is resumed or refused is reported on stderr, unless --quiet.
func (a *app) keep(cfg *krrlab.Config, f *checkpointFlags, progress *progress) {
	if f.Dir == "" {
		return
	}
	a.kept.Store(f.Dir)
	cfg.Checkpoint = &krrlab.Checkpoint{Dir: f.Dir, Resume: f.Resume, Every: f.Every.time,
		EveryIter: f.Every.iterations}
	cfg.Checkpoint.Note = func(text string) {
		progress.clear()
		a.note("%s", text)
	}
}

// goOnText says how to go on from the checkpoint that the run has left; "" if it has none.
func (a *app) goOnText() string {
	dir, _ := a.kept.Load().(string)
	if !checkpoint.Kept(dir) {
		return ""
	}
	return fmt.Sprintf("; the checkpoint in %s is kept; --resume continues from it", dir)
}
