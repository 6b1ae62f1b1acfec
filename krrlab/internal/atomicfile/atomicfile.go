// Package atomicfile writes files that are either whole or absent: the content
// goes to a temporary file in the same folder, is synced, and then takes the
// final name in one step. A reader never sees a part of it, and a failure leaves
// what was there before.
package atomicfile

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Write calls write with a buffered writer and gives the file its name when
// write has succeeded. The file's folder must exist. A name that is a device or a
// pipe is written to as it is.
func Write(name string, write func(io.Writer) error) (err error) {
	if special(name) {
		return writeTo(name, write)
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*.part")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", name, cause(err))
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = fmt.Errorf("cannot write %s: %w", name, cause(err))
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// special reports whether name exists and is neither a file nor a folder.
func special(name string) bool {
	st, err := os.Stat(name)
	return err == nil && !st.Mode().IsRegular() && !st.IsDir()
}

// writeTo writes to a device or a pipe.
func writeTo(name string, write func(io.Writer) error) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", name, cause(err))
	}
	w := bufio.NewWriter(f)
	err = write(w)
	if err == nil {
		err = w.Flush()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", name, cause(err))
	}
	return nil
}

// Check reports whether Write could create name, before hours of work are spent
// on its content.
func Check(name string) error {
	if special(name) {
		return nil
	}
	if st, err := os.Stat(name); err == nil && st.IsDir() {
		return fmt.Errorf("cannot write %s: it is a folder", name)
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*.part")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", name, cause(err))
	}
	f.Close()
	return os.Remove(f.Name())
}

// cause drops the temporary name from an error.
func cause(err error) error {
	if pe, ok := err.(*os.PathError); ok {
		return pe.Err
	}
	return err
}
