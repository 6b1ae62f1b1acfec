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

// lockName is the name of the lock file in the folder. The run that uses the folder has it locked, and the system
// releases the lock when the process ends for any reason. The content of the file identifies the run.
const lockName = ".lock"

// errLocked is the error if another run has locked the folder. Its text is the advice at the end of a message.
var errLocked = errors.New("wait for its end, or take another folder")

// lock locks the folder for this store. It returns nil without a lock if the file system does not support locks.
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
			holder, _ := os.ReadFile(name) // "process 12 on host since …"
			f.Close()
			if errors.Is(err, errLocked) {
				return fmt.Errorf("checkpoint folder %s is in use by %s: %w", s.dir,
					cmp.Or(strings.TrimSpace(string(holder)), "another run"), err)
			}
			return nil
		}
		if !isFile(f, name) { // the previous run removed it before it was locked here
			f.Close()
			continue
		}
		s.lockFile = f
		host, _ := os.Hostname()
		_ = f.Truncate(0)
		// Other runs quote this line in their errors.
		_, _ = fmt.Fprintf(f, "process %d on %s since %s\n", os.Getpid(), host, time.Now().Format(time.DateTime))
		return nil
	}
}

// isFile reports whether the open file f is still the file with the given name.
func isFile(f *os.File, name string) bool {
	openInfo, err := f.Stat()
	if err != nil {
		return false
	}
	namedInfo, err := os.Lstat(name)
	return err == nil && os.SameFile(openInfo, namedInfo)
}

// checkOwnership returns an error if the lock file was removed or replaced after the folder was locked.
func (s *Store) checkOwnership() error {
	name := filepath.Join(s.dir, lockName)
	if s.lockFile == nil || isFile(s.lockFile, name) {
		return nil
	}
	if _, err := os.Stat(name); err != nil {
		return err
	}
	return fmt.Errorf("%s was removed, and another run has taken its place", s.dir)
}

// Close unlocks the folder. Its checkpoints remain.
func (s *Store) Close() {
	if s.lockFile == nil {
		return
	}
	if name := filepath.Join(s.dir, lockName); isFile(s.lockFile, name) {
		_ = os.Remove(name)
	}
	s.lockFile.Close()
	s.lockFile = nil
}
