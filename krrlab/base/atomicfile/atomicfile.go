// Package atomicfile writes files atomically. The content is written to a temporary file in the same folder, which is
// synced and then renamed to the final name. A reader never sees a partial file, and after a failure the previous
// file is unchanged.
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

// Write calls write with a buffered writer for a temporary file, and renames that file to name if write succeeds. The
// folder of name must exist. If name is a symbolic link, the link remains and its target is replaced. A file that is
// replaced keeps its mode; a new one has mode 0666 before umask.
//
// If name is a device, a pipe, or the file of one of StandardStreams, Write writes to it directly.
func Write(name string, write func(io.Writer) error) error {
	return writeError(name, writeReplacing(name, write))
}

// writeReplacing does what Write documents. Its errors may contain the name of the temporary file.
func writeReplacing(name string, write func(io.Writer) error) (err error) {
	info, err := os.Stat(name)
	if err == nil {
		if info.IsDir() {
			return errFolder
		}
		if f := streamOf(info); f != nil {
			return writeTo(f, write)
		}
		if !info.Mode().IsRegular() {
			f, err := os.OpenFile(name, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close() // errors of writes to a device or pipe have been reported
			return writeTo(f, write)
		}
	}
	targetName := followLinks(name)
	f, err := createTemporary(targetName)
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
	if info != nil {
		if err := f.Chmod(info.Mode().Perm()); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), targetName)
}

// unfinished is the set of names of temporary files that are being written.
var unfinished sync.Map

// RemoveUnfinished removes the temporary files of all calls of Write that have not returned; these calls then fail. A
// program calls it before it exits without waiting for them.
func RemoveUnfinished() {
	unfinished.Range(func(name, _ any) bool { _ = os.Remove(name.(string)); return true })
}

// writeTo calls write with a buffered writer for f, and flushes it.
func writeTo(f *os.File, write func(io.Writer) error) error {
	const bufferSize = 1 << 20 // bytes
	w := bufio.NewWriterSize(f, bufferSize)
	if err := write(w); err != nil {
		return err
	}
	return w.Flush()
}

// errFolder is the reason why a folder cannot be written to as a file.
var errFolder = errors.New("it is a folder")

// writeError returns err with the name of the file, in place of the temporary name that it may contain.
func writeError(name string, err error) error {
	switch fileErr := err.(type) {
	case nil:
		return nil
	case *os.PathError:
		err = fileErr.Err
	case *os.LinkError:
		err = fileErr.Err
	}
	return fmt.Errorf("cannot write %s: %w", name, err)
}

// WriteFile writes content to a file in the same way as Write.
func WriteFile[T string | []byte](name string, content T) error {
	return Write(name, func(w io.Writer) error { _, err := w.Write([]byte(content)); return err })
}

// StandardStreams are the standard outputs of the process; main sets them. If a stream is redirected to the file to
// write, Write writes through the stream.
var StandardStreams []*os.File

// streamOf returns the element of StandardStreams that writes to the target file, or nil.
func streamOf(target fs.FileInfo) *os.File {
	for _, f := range StandardStreams {
		if info, err := f.Stat(); err == nil && os.SameFile(info, target) {
			return f
		}
	}
	return nil
}

// maxLinks is the largest number of symbolic links that are followed, as in Linux.
const maxLinks = 40

// followLinks follows symbolic links from name to a file that is not a link, which need not exist. After maxLinks links
// it gives up and returns a link.
func followLinks(name string) string {
	for range maxLinks {
		link, err := os.Readlink(name)
		if err != nil {
			break
		}
		if !filepath.IsAbs(link) {
			// filepath.Join would remove .. from the path, but if the folder is a link, .. is the parent of its target.
			link = filepath.Dir(name) + string(filepath.Separator) + link
		}
		name = link
	}
	return name
}

// createTemporary creates a temporary file with a new name, .NAME.RANDOM.part, in the folder of name.
func createTemporary(name string) (*os.File, error) {
	dir, base := filepath.Split(name)
	for {
		f, err := os.OpenFile(fmt.Sprintf("%s.%s.%08x.part", dir, base, rand.Uint32()), os.O_RDWR|os.O_CREATE|os.O_EXCL,
			0o666)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
}

// CheckWritable returns an error if Write could not create name. Call it before a long computation whose result goes
// there. A device, a pipe and the file of one of StandardStreams are not checked: the result for them is nil.
func CheckWritable(name string) error { return writeError(name, checkWritable(name)) }

// checkWritable does what CheckWritable documents. Its errors may contain the name of the temporary file.
func checkWritable(name string) error {
	if info, err := os.Stat(name); err == nil {
		switch {
		case info.IsDir():
			return errFolder
		case !info.Mode().IsRegular() || streamOf(info) != nil:
			return nil
		}
	}
	f, err := createTemporary(followLinks(name))
	if err != nil {
		return err
	}
	f.Close()
	return os.Remove(f.Name())
}
