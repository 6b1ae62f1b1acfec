// Package atomicfile writes files that are either whole or absent: the content
// goes to a temporary file in the same folder, is synced, and then takes the
// final name in one step. A reader never sees a part of it, and a failure leaves
// what was there before.
package atomicfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
)

// Write calls write with a buffered writer and gives the file its name when
// write has succeeded. The file's folder must exist. A link stays, and what it points to
// is replaced. A file that is replaced keeps its mode, a new one has what umask leaves of
// 0666. A name that is a device, a pipe, or where the process's own output goes, is
// written to as it is.
func Write(name string, write func(io.Writer) error) error {
	return failed(name, put(name, write))
}

func put(name string, write func(io.Writer) error) (err error) {
	st, err := os.Stat(name)
	if err == nil {
		if st.IsDir() {
			return errFolder
		}
		if f := stream(st); f != nil {
			return writeTo(f, write)
		}
		if !st.Mode().IsRegular() {
			f, err := os.OpenFile(name, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close() // the content went through a device or a pipe: the writes say what failed
			return writeTo(f, write)
		}
	}
	to := target(name)
	f, err := temporary(to)
	if err != nil {
		return err
	}
	unfinished.Store(f.Name(), nil)
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
		unfinished.Delete(f.Name())
	}()
	if err := writeTo(f, write); err != nil {
		return err
	}
	if st != nil {
		if err := f.Chmod(st.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), to)
}

// unfinished has the names of the temporary files that are being written.
var unfinished sync.Map

// Abandon removes the temporary files of all calls of Write that have not returned, which then fail. A program calls it
// before it exits without waiting for them.
func Abandon() {
	unfinished.Range(func(name, _ any) bool { _ = os.Remove(name.(string)); return true })
}

// writeTo writes to a file, a device, a pipe or an output.
func writeTo(f *os.File, write func(io.Writer) error) error {
	w := bufio.NewWriterSize(f, 1<<20)
	if err := write(w); err != nil {
		return err
	}
	return w.Flush()
}

var errFolder = errors.New("it is a folder")

// failed says what could not be written, without the temporary name.
func failed(name string, err error) error {
	switch e := err.(type) {
	case nil:
		return nil
	case *os.PathError:
		err = e.Err
	case *os.LinkError:
		err = e.Err
	}
	return fmt.Errorf("cannot write %s: %w", name, err)
}

// Put is Write of what there is already.
func Put[T string | []byte](name string, content T) error {
	return Write(name, func(w io.Writer) error { _, err := w.Write([]byte(content)); return err })
}

// Streams are the process's own outputs, which main sets: a file that one of them goes to is written
// through it.
var Streams []*os.File

// stream returns which of Streams goes to the file of st, nil if none does.
func stream(st fs.FileInfo) *os.File {
	for _, f := range Streams {
		if own, err := f.Stat(); err == nil && os.SameFile(own, st) {
			return f
		}
	}
	return nil
}

// mostLinks is how many links are followed, as many as Linux follows.
const mostLinks = 40

// target returns where name points to: itself if it is no link. The target need not exist.
func target(name string) string {
	for range mostLinks {
		to, err := os.Readlink(name)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) { // not cleaned: the folder may be a link, and .. its parent
			to = filepath.Dir(name) + string(filepath.Separator) + to
		}
		name = to
	}
	return name
}

// temporary creates a file in the folder of name, of a name that none there has.
func temporary(name string) (*os.File, error) {
	dir, base := filepath.Split(name)
	for {
		f, err := os.OpenFile(fmt.Sprintf("%s.%s.%08x.part", dir, base, rand.Uint32()), os.O_RDWR|os.O_CREATE|os.O_EXCL,
			0o666)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

// Check reports whether Write could create name, before hours of work are spent
// on its content.
func Check(name string) error { return failed(name, check(name)) }

func check(name string) error {
	if st, err := os.Stat(name); err == nil {
		switch {
		case st.IsDir():
			return errFolder
		case !st.Mode().IsRegular() || stream(st) != nil:
			return nil
		}
	}
	f, err := temporary(target(name))
	if err != nil {
		return err
	}
	f.Close()
	return os.Remove(f.Name())
}
