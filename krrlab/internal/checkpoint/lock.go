package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// lockName is the file in a folder that its run holds locked. The system lets go of the lock when
// the process ends, however it ends, and the file says who it is.
const lockName = ".lock"

// errHeld is the error where another run has the folder.
var errHeld = errors.New("wait for its end, or take another folder")

// lock makes the folder this store's. Where the file system knows no locks there is none.
func (s *Store) lock() error {
	name := filepath.Join(s.dir, lockName)
	for {
		if f, err := os.Lstat(name); err == nil && !f.Mode().IsRegular() {
			return fmt.Errorf("checkpoint folder: %s is no regular file, and a link would be followed: remove it, or "+
				"take another folder", name)
		}
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return fmt.Errorf("checkpoint folder: %w", err)
		}
		if err := flock(f); err != nil {
			by, _ := os.ReadFile(name) // "process 12 on host since …"
			f.Close()
			if errors.Is(err, errHeld) {
				return fmt.Errorf("checkpoint folder %s is in use by %s: %w", s.dir,
					cmp.Or(strings.TrimSpace(string(by)), "another run"), err)
			}
			return nil
		}
		if !same(f, name) { // its last owner has removed it
			f.Close()
			continue
		}
		s.held = f
		host, _ := os.Hostname()
		_ = f.Truncate(0)
		// for others' errors
		_, _ = fmt.Fprintf(f, "process %d on %s since %s\n", os.Getpid(), host, time.Now().Format(time.DateTime))
		return nil
	}
}

// same reports whether the open file is the one of that name.
func same(f *os.File, name string) bool {
	own, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(name)
	return err == nil && os.SameFile(own, there)
}

// mine returns an error if the folder has been taken away since it was locked.
func (s *Store) mine() error {
	name := filepath.Join(s.dir, lockName)
	if s.held == nil || same(s.held, name) {
		return nil
	}
	if _, err := os.Stat(name); err != nil {
		return err
	}
	return fmt.Errorf("%s was removed, and another run has taken its place", s.dir)
}

// Close lets go of the folder. What is in it stays.
func (s *Store) Close() {
	if s.held == nil {
		return
	}
	if name := filepath.Join(s.dir, lockName); same(s.held, name) {
		_ = os.Remove(name)
	}
	s.held.Close()
	s.held = nil
}
