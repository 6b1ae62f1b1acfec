package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/krrlab/lab/krrlab"
	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/krrlab/base/safe"
	"github.com/krrlab/lab/krrlab/base/schema"
	"github.com/krrlab/lab/krrlab/stage"
	"github.com/krrlab/lab/plots"
)

// namedFile is the path of a file and the flag, or other words for an error message, that names it.
type namedFile struct{ flag, path string }

// checkOptionFiles applies checkFiles to the files that the options name. It also returns an error if the name of a
// picture does not end in a supported format.
func checkOptionFiles(s *schema.Schema) error {
	var reads, writes []namedFile
	for _, option := range s.Fields {
		file := namedFile{"--" + option.Name, option.String()}
		if option.File == "picture" && file.path != "" {
			if err := plots.CheckFormat(file.path); err != nil {
				return errUsage{err}
			}
		}
		switch option.File {
		case "read":
			reads = append(reads, file)
		case "write", "picture":
			writes = append(writes, file)
		}
	}
	return checkFiles(reads, writes)
}

// checkFiles returns an error if one of the files to write cannot be written, is the standard stream "-", or is also
// read or written by another flag. checkFiles is called before any work is done. A path of "" stands for no file.
func checkFiles(reads, writes []namedFile) error {
	for i, write := range writes {
		if write.path == "" {
			continue
		}
		if write.path == "-" {
			return usagef("%s -: want the name of a file; the output stream is /dev/stdout, which --quiet leaves to it",
				write.flag)
		}
		for _, other := range append(reads[:len(reads):len(reads)], writes[:i]...) {
			if other.path != "" && sameFile(other.path, write.path) {
				return usagef("%s %s: that is the file of %s: give it another name", write.flag, write.path, other.flag)
			}
		}
		if err := atomicfile.CheckWritable(write.path); err != nil {
			return err
		}
	}
	return nil
}

// sameFile reports whether two paths name the same regular file. If neither file exists, it compares their names and
// folders. It returns false for devices and pipes, since writing to them overwrites nothing.
func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	switch {
	case errA == nil && errB == nil:
		return infoA.Mode().IsRegular() && os.SameFile(infoA, infoB)
	case errA == nil || errB == nil || filepath.Base(a) != filepath.Base(b):
		return false
	}
	infoA, errA = os.Stat(filepath.Dir(a))
	infoB, errB = os.Stat(filepath.Dir(b))
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// output is a writer that removes the progress line, passes everything on to w and remembers the first error.
type output struct {
	w        io.Writer
	progress *progress
	mu       sync.Mutex
	err      error
}

// Write removes the progress line and writes p to o.w.
func (o *output) Write(p []byte) (int, error) {
	o.progress.clear()
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.w.Write(p)
	o.err = cmp.Or(o.err, err)
	return n, err
}

// failure returns the first error of a write, or nil if all writes succeeded.
func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		return nil
	}
	err := o.err
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	return fmt.Errorf("cannot write the output: %w", err)
}

// progress is the progress line on the terminal, which is updated in place. Several goroutines may use it.
type progress struct {
	w          io.Writer  // the terminal
	columns    func() int // returns the number of columns of the terminal, or 0 if unknown; may be nil
	mu         sync.Mutex // guards the fields below
	lastUpdate time.Time
	lineWidth  int // number of characters on the line at present
}

// updateInterval is the minimum time between two updates of the progress line, so that drawing takes no noticeable
// time. The value was chosen by judgment.
const updateInterval = 100 * time.Millisecond

// show shows an event on the progress line. It is the Monitor of a krrlab.Config and always returns nil. The last event
// of a stage is always shown, others only after updateInterval.
func (a *app) show(e krrlab.Event) error {
	wait := updateInterval
	if e.Total > 0 && e.Done == e.Total {
		wait = 0
	}
	a.showText(e.String, wait)
	return nil
}

// showPredicted shows how many of the predictions are completed.
func (a *app) showPredicted(completed, total int) {
	a.show(krrlab.Event{Stage: stage.Predict, Done: completed, Total: total, Remaining: -1})
}

// showText shows a text on the progress line, unless another text was shown less than wait ago. Without a terminal, and
// with --quiet, it shows nothing.
func (a *app) showText(text func() string, wait time.Duration) {
	if a.Quiet || !a.env.Terminal {
		return
	}
	p := a.progress
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.lastUpdate) >= wait {
		p.lastUpdate = now
		p.draw(text())
	}
}

// clear removes the progress line, if there is one, so that other output starts on an empty line.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lineWidth > 0 {
		p.draw("")
		io.WriteString(p.w, "\r")
	}
}

// draw writes text over the previous line. It is cut to one character less than the width of the terminal, because a
// line that wraps could not be overwritten. p.mu must be held.
func (p *progress) draw(text string) {
	line := []rune(safe.Line(text))
	if p.columns != nil {
		if columns := p.columns() - 1; columns > 0 && len(line) > columns {
			line = append(line[:columns-1], '…')
		}
	}
	fmt.Fprintf(p.w, "\r%s%s", string(line), strings.Repeat(" ", max(0, p.lineWidth-len(line))))
	p.lineWidth = len(line)
}

// EndSignals returns the signals that end a command in an orderly way, so that finished results are saved: an
// interrupt, SIGTERM, and SIGHUP. SIGHUP is omitted if it is ignored, as for a process started by nohup, which is meant
// to outlive its terminal.
func EndSignals() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}
