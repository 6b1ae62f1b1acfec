package remote

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/krrlab/internal/group"
	"github.com/krrlab/lab/krrlab/stage"
)

// grace is how long ranks that were told to end may take before they are killed.
const grace = 30 * time.Second

// jobDir is where a job and its files lie.
type jobDir struct {
	root      string // with data, which jobs share
	temporary bool
	name      string // of the job's folder
}

func (d *jobDir) path(name string) string { return filepath.Join(d.root, d.name, name) }
func (d *jobDir) result() string          { return d.path(resultFile) }
func (d *jobDir) forget() {
	if d.temporary {
		os.RemoveAll(d.root)
	}
}

// Run implements krrlab.Backend.
func (b *Backend) Run(ctx context.Context, l *krrlab.Lab, name stage.Name, options, value any) (some bool, err error) {
	dir, out, err := b.run(ctx, l, name, options)
	if out == nil {
		return false, err
	}
	defer dir.forget()
	if e := out.decode(value, dir.path("")); e != nil {
		return false, errors.Join(err, fmt.Errorf("krrlab: the value of %s in %s: %w", name, dir.result(), e))
	}
	return true, err
}

// run sends a stage to ranks and waits for its outcome, which is good once it is written; out is
// not nil beside an error where the ranks had something when they were ended. A temporary folder
// is left to the caller where there is an outcome.
func (b *Backend) run(ctx context.Context, l *krrlab.Lab, name stage.Name, options any) (dir *jobDir, out *outcome,
	err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	dir = &jobDir{root: b.Dir}
	if dir.root == "" {
		if dir.root, err = os.MkdirTemp("", "krrlab-job-"); err != nil {
			return nil, nil, fmt.Errorf("krrlab: job: %w", err)
		}
		dir.temporary = true
	}
	defer func() {
		if out == nil {
			dir.forget()
		}
	}()
	l.Tell(ctx, krrlab.Event{Stage: stage.Job, Remaining: -1})
	if err := b.writeJob(dir, l, name, options); err != nil {
		return dir, nil, err
	}
	if err := os.Remove(dir.result()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return dir, nil, fmt.Errorf("krrlab: job: %w", err)
	}
	words, err := b.command(ctx, dir.path(jobFile))
	if err != nil {
		return dir, nil, err
	}
	failed := b.start(ctx, words, l, dir)
	out, err = readOutcome(dir)
	switch {
	case err == nil && !out.Interrupted: // all is done, however the ranks and the launcher ended
		return dir, out, nil
	case ctx.Err() != nil:
		return dir, out, ctx.Err()
	case err != nil:
		return dir, nil, cmp.Or(failed, err)
	}
	err = errors.New("krrlab: the ranks were interrupted; this is what they had measured until then")
	if failed != nil {
		err = fmt.Errorf("%w: %w", err, failed)
	}
	return dir, out, err
}

// start runs the ranks to their end and passes on what they report. When ctx ends they are
// told to end, and killed if they do not.
func (b *Backend) start(ctx context.Context, words []string, l *krrlab.Lab, dir *jobDir) error {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	// else Slurm may let a rank out of MPI_Init too soon: docs/ranks.md
	cmd.Env = append([]string{"SLURM_PMIX_DIRECT_CONN=false"}, cmd.Environ()...)
	group.Own(cmd) // what a terminal, or Jupyter, sends to ours is for us, and the launcher hears of it once
	h := &output{ctx: ctx, lab: l}
	cmd.Stdout, cmd.Stderr = h, h
	if _, err := cmd.StdinPipe(); err != nil { // open until the end: see docs/ranks.md
		return err
	}
	err := cmd.Run()
	h.end()
	log := dir.path("log.txt")
	_ = atomicfile.Put(log, append(fmt.Appendf(nil, "$ %s\n", strings.Join(words, " ")), h.log.Bytes()...))
	if err == nil {
		return nil
	}
	where := ""
	if !dir.temporary {
		where = fmt.Sprintf(" (their full output is in %s)", log)
	}
	return fmt.Errorf("the job on %d ranks failed: %w: %s%s", b.Ranks, err, h.reason(), where)
}

// report is a line that the first rank of a job writes.
type report struct {
	Event *krrlab.Event `json:"event,omitempty"`
	Note  string        `json:"note,omitempty"`
}

// output takes in what ranks write.
type output struct {
	ctx  context.Context // of the stage
	lab  *krrlab.Lab
	mu   sync.Mutex
	line []byte
	log  bytes.Buffer // what is no report; its end, if it is long
}

// maxLog is how much of the ranks' other output is kept.
const maxLog = 1 << 20

// Write implements io.Writer, for both streams.
func (h *output) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.line = append(h.line, p...)
	for {
		i := bytes.IndexByte(h.line, '\n')
		if i < 0 {
			return len(p), nil
		}
		h.take(h.line[:i])
		h.line = h.line[i+1:]
	}
}

// end takes in a last line that has no end.
func (h *output) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.line) > 0 {
		h.take(h.line)
	}
}

func (h *output) take(line []byte) {
	var r report
	if bytes.HasPrefix(line, []byte("{")) && json.Unmarshal(line, &r) == nil && (r.Event != nil || r.Note != "") {
		if r.Event != nil {
			h.lab.Tell(h.ctx, *r.Event)
		}
		if c := h.lab.Config().Checkpoint; r.Note != "" && c != nil && c.Note != nil {
			c.Note(r.Note)
		}
		return
	}
	h.log.Write(line)
	h.log.WriteByte('\n')
	if h.log.Len() > 2*maxLog {
		h.log.Next(h.log.Len() - maxLog)
	}
}

// reason returns the line that says best why the ranks ended: krrlab's own, or the last.
func (h *output) reason() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var last string
	s := bufio.NewScanner(bytes.NewReader(h.log.Bytes()))
	s.Buffer(nil, maxLog)
	for s.Scan() {
		line := strings.TrimSpace(s.Text())
		if text, ok := strings.CutPrefix(line, "krrlab: "); ok && !strings.HasPrefix(text, "note: ") {
			return text
		}
		if line != "" {
			last = line
		}
	}
	if last == "" {
		return "no output"
	}
	return last
}
