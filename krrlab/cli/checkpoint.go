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

// checkpointFlags are the flags for saving the state of a solve and for resuming from it. Package schema describes the
// tags. The tag not excludes another flag, and with requires one. The tag in lets the interval be written after the
// folder, as in --checkpoint "run1 every=30s".
type checkpointFlags struct {
	Dir    string             `flag:"checkpoint" not:"solver=direct"`
	Every  checkpointInterval `flag:"checkpoint-every" in:"checkpoint every" default:"1m" with:"checkpoint"`
	Resume bool               `flag:"resume" with:"checkpoint"`
}

// Help returns the help texts of flags whose tags have none.
func (checkpointFlags) Help() map[string]string {
	return map[string]string{
		"checkpoint": "save the state of the solve in this folder, once a minute, or every=30s or every=10it " +
			"(iterations) after its name",
		"resume": "continue from the newest checkpoint in --checkpoint, if there is one",
	}
}

// checkpointInterval is the interval between two checkpoints: a time such as 30s, or a number of iterations such as
// 10it. The field that is not used is 0.
type checkpointInterval struct {
	time       time.Duration
	iterations int
}

// String returns the text that Set accepts, such as 30s, 1m or 10it.
func (c *checkpointInterval) String() string {
	if c.iterations > 0 {
		return fmt.Sprintf("%dit", c.iterations)
	}
	text := c.time.String()
	if minutes, ok := strings.CutSuffix(text, "m0s"); ok {
		return minutes + "m"
	}
	return text
}

// Set parses a time such as 30s, or a number of iterations such as 10it. Either must be positive.
func (c *checkpointInterval) Set(text string) (err error) {
	*c = checkpointInterval{}
	if n, ok := strings.CutSuffix(text, "it"); ok {
		c.iterations, err = strconv.Atoi(n)
	} else {
		c.time, err = time.ParseDuration(text)
	}
	if err != nil || c.time <= 0 && c.iterations <= 0 {
		return errors.New("want a time such as 30s, or iterations such as 10it")
	}
	return nil
}

// setCheckpoint sets cfg.Checkpoint from the flags, and remembers the folder for resumeHint. It does nothing without
// --checkpoint. Unless --quiet is set, the solve reports on stderr whether it resumed from a checkpoint or refused one.
func (a *app) setCheckpoint(cfg *krrlab.Config, f *checkpointFlags) {
	if f.Dir == "" {
		return
	}
	a.checkpointDir.Store(f.Dir)
	cfg.Checkpoint = &krrlab.Checkpoint{
		Dir:       f.Dir,
		Resume:    f.Resume,
		Every:     f.Every.time,
		EveryIter: f.Every.iterations,
		Note:      func(text string) { a.notef("%s", text) },
	}
}

// resumeHint returns the end of an error message that says how to continue from the checkpoint of this run, or "" if
// there is no checkpoint.
func (a *app) resumeHint() string {
	dir, _ := a.checkpointDir.Load().(string)
	if !checkpoint.Exists(dir) {
		return ""
	}
	return fmt.Sprintf("; the checkpoint in %s is kept; --resume continues from it", dir)
}
