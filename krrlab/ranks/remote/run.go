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

// grace is the time that ranks have to end after SIGTERM before they are killed.
const grace = 30 * time.Second

// jobDir is the folder of a job, in a folder that other jobs may share.
type jobDir struct {
	root      string // folder with the job folders and the data that they share
	temporary bool   // root is a temporary folder of this job
	name      string // name of the job folder in root
}

// path returns the path of the file of the job with the given name.
func (d *jobDir) path(name string) string { return filepath.Join(d.root, d.name, name) }

// result returns the path of the result file.
func (d *jobDir) result() string { return d.path(resultFile) }

// removeTemporary removes the folder if it is temporary.
func (d *jobDir) removeTemporary() {
	if d.temporary {
		os.RemoveAll(d.root)
	}
}

// Run implements krrlab.Backend. ok reports whether value was set, possibly to a partial result with an error.
func (b *Backend) Run(ctx context.Context, l *krrlab.Lab, name stage.Name, options, value any) (ok bool, err error) {
	dir, out, err := b.run(ctx, l, name, options)
	if out == nil {
		return false, err
	}
	defer dir.removeTemporary()
	if e := out.decode(value, dir.path("")); e != nil {
		return false, errors.Join(err, fmt.Errorf("krrlab: the value of %s in %s: %w", name, dir.result(), e))
	}
	return true, err
}

// run sends a stage to ranks and waits for its outcome. A complete outcome is valid even if the launcher failed
// afterwards. If the ranks were stopped after they had a partial result, run returns both out and an error. If out is
// not nil, the caller must remove a temporary folder.
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
			dir.removeTemporary()
		}
	}()
	l.Notify(ctx, krrlab.Event{Stage: stage.Job, Remaining: -1})
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
	startErr := b.start(ctx, words, l, dir)
	out, err = readOutcome(dir)
	switch {
	case err == nil && !out.Interrupted: // complete, even if the ranks or the launcher failed afterwards
		return dir, out, nil
	case ctx.Err() != nil:
		return dir, out, ctx.Err()
	case err != nil:
		return dir, nil, cmp.Or(startErr, err)
	}
	err = errors.New("krrlab: the ranks were interrupted; this is what they had measured until then")
	if startErr != nil {
		err = fmt.Errorf("%w: %w", err, startErr)
	}
	return dir, out, err
}

// start runs the ranks until they end and passes on their reports. If ctx ends, the launcher gets SIGTERM, and is
// killed after grace.
func (b *Backend) start(ctx context.Context, words []string, l *krrlab.Lab, dir *jobDir) error {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = grace
	// without this, Slurm may let a rank return from MPI_Init too early: docs/ranks.md
	cmd.Env = append([]string{"SLURM_PMIX_DIRECT_CONN=false"}, cmd.Environ()...)
	group.Isolate(cmd) // signals from a terminal or Jupyter to our process group do not reach the launcher a second time
	h := &output{ctx: ctx, lab: l}
	cmd.Stdout, cmd.Stderr = h, h
	if _, err := cmd.StdinPipe(); err != nil { // keep standard input open until the end: see docs/ranks.md
		return err
	}
	err := cmd.Run()
	h.flush()
	log := dir.path("log.txt")
	_ = atomicfile.WriteFile(log, append(fmt.Appendf(nil, "$ %s\n", strings.Join(words, " ")), h.log.Bytes()...))
	if err == nil {
		return nil
	}
	logHint := ""
	if !dir.temporary {
		logHint = fmt.Sprintf(" (their full output is in %s)", log)
	}
	return fmt.Errorf("the job on %d ranks failed: %w: %s%s", b.Ranks, err, h.reason(), logHint)
}

// report is the JSON form of a line in which rank 0 of a job reports progress or a note.
type report struct {
	Event *krrlab.Event `json:"event,omitempty"`
	Note  string        `json:"note,omitempty"`
}

// output receives the output of the ranks. It passes on reports and logs all other lines.
type output struct {
	ctx  context.Context // context of the stage
	lab  *krrlab.Lab
	mu   sync.Mutex
	line []byte       // incomplete last line
	log  bytes.Buffer // lines that are not reports; only the end if there are many
}

// maxLog is the number of bytes at the end of the log that are guaranteed to be retained.
const maxLog = 1 << 20

// Write implements io.Writer for both output streams of the launcher.
func (h *output) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.line = append(h.line, p...)
	for {
		i := bytes.IndexByte(h.line, '\n')
		if i < 0 {
			return len(p), nil
		}
		h.processLine(h.line[:i])
		h.line = h.line[i+1:]
	}
}

// flush processes a last line without a newline.
func (h *output) flush() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.line) > 0 {
		h.processLine(h.line)
	}
}

// processLine passes on a report, or logs any other line.
func (h *output) processLine(line []byte) {
	var r report
	if bytes.HasPrefix(line, []byte("{")) && json.Unmarshal(line, &r) == nil && (r.Event != nil || r.Note != "") {
		if r.Event != nil {
			h.lab.Notify(h.ctx, *r.Event)
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

// reason returns the most informative line about the failure of the ranks: the first error message of krrlab, or else
// the last line that is not empty.
func (h *output) reason() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var lastLine string
	s := bufio.NewScanner(bytes.NewReader(h.log.Bytes()))
	s.Buffer(nil, maxLog)
	for s.Scan() {
		line := strings.TrimSpace(s.Text())
		if text, ok := strings.CutPrefix(line, "krrlab: "); ok && !strings.HasPrefix(text, "note: ") {
			return text
		}
		if line != "" {
			lastLine = line
		}
	}
	if lastLine == "" {
		return "no output"
	}
	return lastLine
}
