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

// terminationGrace is the time that ranks have to end after SIGTERM before they are killed.
const terminationGrace = 30 * time.Second

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
func (b *Backend) Run(ctx context.Context, lab *krrlab.Lab, name stage.Name, options, value any) (ok bool, err error) {
	dir, out, err := b.run(ctx, lab, name, options)
	if out == nil {
		return false, err
	}
	defer dir.removeTemporary()
	if decodeErr := out.decode(value, dir.path("")); decodeErr != nil {
		return false, errors.Join(err, fmt.Errorf("krrlab: the value of %s in %s: %w", name, dir.result(), decodeErr))
	}
	return true, err
}

// run sends a stage to ranks and waits for its outcome. A complete outcome is valid even if the launcher failed
// afterwards. If the ranks were stopped after they had a partial result, run returns both out and an error. If out is
// not nil, the caller must remove a temporary folder.
func (b *Backend) run(ctx context.Context, lab *krrlab.Lab, name stage.Name, options any) (dir *jobDir, out *outcome,
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
	lab.Notify(ctx, krrlab.Event{Stage: stage.Job, Remaining: -1})
	if err := b.writeJob(dir, lab, name, options); err != nil {
		return dir, nil, err
	}
	if err := os.Remove(dir.result()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return dir, nil, fmt.Errorf("krrlab: job: %w", err)
	}
	commandLine, err := b.command(ctx, dir.path(jobFile))
	if err != nil {
		return dir, nil, err
	}
	startErr := b.start(ctx, commandLine, lab, dir)
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
// killed after terminationGrace.
func (b *Backend) start(ctx context.Context, commandLine []string, lab *krrlab.Lab, dir *jobDir) error {
	cmd := exec.CommandContext(ctx, commandLine[0], commandLine[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = terminationGrace
	// Without this variable, Slurm may let a rank return from MPI_Init too early (docs/ranks.md).
	cmd.Env = append([]string{"SLURM_PMIX_DIRECT_CONN=false"}, cmd.Environ()...)
	// Signals from a terminal or Jupyter to the process group of this program then do not reach the launcher a second
	// time.
	group.Isolate(cmd)
	out := &output{ctx: ctx, lab: lab}
	cmd.Stdout, cmd.Stderr = out, out
	if _, err := cmd.StdinPipe(); err != nil { // keep standard input open until the end: see docs/ranks.md
		return err
	}
	err := cmd.Run()
	out.flush()
	log := dir.path("log.txt")
	_ = atomicfile.WriteFile(log, append(fmt.Appendf(nil, "$ %s\n", strings.Join(commandLine, " ")),
		out.log.Bytes()...))
	if err == nil {
		return nil
	}
	logHint := ""
	if !dir.temporary {
		logHint = fmt.Sprintf(" (their full output is in %s)", log)
	}
	return fmt.Errorf("the job on %d ranks failed: %w: %s%s", b.Ranks, err, out.reason(), logHint)
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
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.line = append(o.line, p...)
	for {
		i := bytes.IndexByte(o.line, '\n')
		if i < 0 {
			return len(p), nil
		}
		o.processLine(o.line[:i])
		o.line = o.line[i+1:]
	}
}

// flush processes a last line without a newline.
func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.line) > 0 {
		o.processLine(o.line)
	}
}

// processLine passes on a report, or logs any other line.
func (o *output) processLine(line []byte) {
	var parsed report
	if bytes.HasPrefix(line, []byte("{")) && json.Unmarshal(line,
		&parsed) == nil && (parsed.Event != nil || parsed.Note != "") {
		if parsed.Event != nil {
			o.lab.Notify(o.ctx, *parsed.Event)
		}
		if checkpoint := o.lab.Config().Checkpoint; parsed.Note != "" && checkpoint != nil && checkpoint.Note != nil {
			checkpoint.Note(parsed.Note)
		}
		return
	}
	o.log.Write(line)
	o.log.WriteByte('\n')
	if o.log.Len() > 2*maxLog {
		o.log.Next(o.log.Len() - maxLog)
	}
}

// reason returns the most informative line about the failure of the ranks: the first error message of krrlab, or else
// the last line that is not empty.
func (o *output) reason() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var lastLine string
	scanner := bufio.NewScanner(bytes.NewReader(o.log.Bytes()))
	scanner.Buffer(nil, maxLog)
	for scanner.Scan() {
		line := strings.TrimSpace(scanner.Text())
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
