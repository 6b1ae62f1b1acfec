package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/krrlab/lab/krrlab/internal/atomicfile"
	"github.com/krrlab/lab/plots"
)

// namedFile is a file and the flag that names it.
type namedFile struct{ flag, path string }

// checkFiles reports which of the files to write cannot be written, or is one that is read or
// another that is written, before any work is done. A path of "" is no file.
func checkFiles(reads, writes []namedFile) error {
	for i, w := range writes {
		if w.path == "" {
			continue
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

// makeRoom makes the folders of files to write, and reports which of them cannot be written, before
// any work is done.
func makeRoom(names ...string) error {
	for _, name := range names {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return fmt.Errorf("cannot write %s: %w", name, err)
		}
		if err := atomicfile.Check(name); err != nil {
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
	if err := plots.CheckFormat(name); err != nil {
		return errUsage{err}
	}
	return nil
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
	if o.err == nil {
		o.err = err
	}
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
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("cannot write the output: %w", err)
}
