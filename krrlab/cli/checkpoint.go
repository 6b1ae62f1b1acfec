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

// checkpointFlags are the flags for saving the state of a solve and for resuming from it.
type checkpointFlags struct {
	Dir    string             `flag:"checkpoint" not:"solver=direct"`
	Every  checkpointInterval `flag:"checkpoint-every" in:"checkpoint every" default:"1m" with:"checkpoint"`
	Resume bool               `flag:"resume" with:"checkpoint"`
}

func (checkpointFlags) Help() map[string]string {
	return map[string]string{
		"checkpoint": "save the state of the solve in this folder, once a minute, or every=30s or every=10it (iterations) " +
			"after its name",
		"resume": "continue from the newest checkpoint in --checkpoint, if there is one",
	}
}

// checkpointInterval is the interval between two checkpoints: a time such as 30s, or a number of iterations such as
// 10it.
type checkpointInterval struct {
	time       time.Duration
	iterations int
}

func (h *checkpointInterval) String() string {
	if h.iterations > 0 {
		return fmt.Sprintf("%dit", h.iterations)
	}
	text := h.time.String()
	if minutes, ok := strings.CutSuffix(text, "m0s"); ok {
		return minutes + "m"
	}
	return text
}

func (h *checkpointInterval) Set(text string) (err error) {
	*h = checkpointInterval{}
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

// setCheckpoint sets cfg.Checkpoint from the flags. Unless --quiet is set, the solve reports on stderr whether it
// resumed from a checkpoint or refused one.
func (a *app) setCheckpoint(cfg *krrlab.Config, f *checkpointFlags, progress *progress) {
	if f.Dir == "" {
		return
	}
	a.checkpointDir.Store(f.Dir)
	cfg.Checkpoint = &krrlab.Checkpoint{Dir: f.Dir, Resume: f.Resume, Every: f.Every.time,
		EveryIter: f.Every.iterations}
	cfg.Checkpoint.Note = func(text string) {
		progress.clear()
		a.notef("%s", text)
	}
}

// resumeHint returns a note on how to continue from the checkpoint of this run, or "" if there is no checkpoint.
func (a *app) resumeHint() string {
	dir, _ := a.checkpointDir.Load().(string)
	if !checkpoint.Kept(dir) {
		return ""
	}
	return fmt.Sprintf("; the checkpoint in %s is kept; --resume continues from it", dir)
}
