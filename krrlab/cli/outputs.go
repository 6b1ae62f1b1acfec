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
	"github.com/krrlab/lab/plots"
)

// namedFile is a file and the flag that names it.
type namedFile struct{ flag, path string }

// filesOf returns the files that options name.
func filesOf(s *schema.Schema) (reads, writes []namedFile) {
	for _, o := range s.Fields {
		switch f := (namedFile{"--" + o.Name, o.String()}); o.File {
		case "read":
			reads = append(reads, f)
		case "write":
			writes = append(writes, f)
		}
	}
	return reads, writes
}

// checkFiles reports which of the files to write cannot be written, or is one that is read or
// another that is written, before any work is done. A path of "" is no file.
func checkFiles(reads, writes []namedFile) error {
	for i, w := range writes {
		if w.path == "" {
			continue
		}
		if w.path == "-" {
			return usagef("%s -: want the name of a file; the output stream is /dev/stdout, which --quiet leaves to it",
				w.flag)
		}
		for _, o := range append(reads[:len(reads):len(reads)], writes[:i]...) {
			if o.path != "" && sameFile(o.path, w.path) {
				return usagef("%s %s: that is the file of %s: give it another name", w.flag, w.path, o.flag)
			}
		}
		if err := atomicfile.Check(w.path); err != nil {
			return err
		}
	}
	return nil
}

// sameFile reports whether two paths name one file, be it there or not. Devices and pipes, which
// keep nothing, are never the same.
func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	switch {
	case errX == nil && errY == nil:
		return x.Mode().IsRegular() && os.SameFile(x, y)
	case errX == nil || errY == nil || filepath.Base(a) != filepath.Base(b):
		return false
	}
	x, errX = os.Stat(filepath.Dir(a))
	y, errY = os.Stat(filepath.Dir(b))
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// checkPlot refuses a figure of a format that there is not.
func checkPlot(name string) error {
	if name == "" {
		return nil
	}
	return usage(plots.CheckFormat(name))
}

// output passes on what is written and keeps the first error.
type output struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.w.Write(p)
	o.err = cmp.Or(o.err, err)
	return n, err
}

// failure returns what went wrong with the output, nil if nothing did.
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

// progress shows one line that updates in place: stage, iteration or share,
// residual, time left.
type progress struct {
	w    io.Writer  // nil shows nothing
	room func() int // columns of the terminal; nil or 0: not known
	mu   sync.Mutex
	last time.Time
	wide int // characters on the line now
}

// every is the least time between two updates.
const every = 100 * time.Millisecond

func (a *app) newProgress() *progress {
	if a.Quiet || !a.env.Terminal {
		return &progress{}
	}
	return &progress{w: a.env.Stderr, room: a.env.Width}
}

// show is a krrlab.Config's Monitor.
func (p *progress) show(e krrlab.Event) error {
	p.say(e.String, e.Total > 0 && e.Done == e.Total)
	return nil
}

// say shows a text, unless another was shown just before; a last one is shown in any case.
func (p *progress) say(text func() string, last bool) {
	if p.w == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.last) >= every || last {
		p.last = now
		p.put(text())
	}
}

func (p *progress) clear() {
	if p.w == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.put("")
	if p.wide == 0 {
		io.WriteString(p.w, "\r")
	}
}

// put writes the line, cut to one less than the terminal has columns: a line that is broken would not be overwritten.
func (p *progress) put(s string) {
	text := []rune(safe.Line(s))
	if p.room != nil {
		if room := p.room() - 1; room > 0 && len(text) > room {
			text = append(text[:room-1], '…')
		}
	}
	s, n := string(text), len(text)
	fmt.Fprintf(p.w, "\r%s%s", s, strings.Repeat(" ", max(0, p.wide-n)))
	p.wide = n
}

// EndSignals returns the signals that end a command in good order, with what was done kept: an
// interrupt, SIGTERM, and SIGHUP unless the process was started to outlive its terminal, as by nohup.
func EndSignals() []os.Signal {
	s := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		s = append(s, syscall.SIGHUP)
	}
	return s
}
