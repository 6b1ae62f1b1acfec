package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/krrlab/lab/krrlab/base/atomicfile"
	"github.com/krrlab/lab/krrlab/internal/plural"
)

// A file has this layout:
//
//	magic    8 bytes "krrlabCP"
//	version  uint32; all numbers are little-endian
//	owner    32 bytes, the fingerprint of the computation
//	length   uint64, number of bytes of the state
//	state
//	sum      sha256 of everything before
const (
	magic      = "krrlabCP"
	version    = 4
	headerSize = len(magic) + 4 + sha256.Size + 8 // bytes before the state
	prefix     = "checkpoint-"
	suffix     = ".krrc"

	maxFiles = 2 // number of files that remain after Save
)

// Store is a folder with the checkpoints of one computation.
type Store struct {
	dir        string
	owner      [sha256.Size]byte // fingerprint of the computation
	nextNumber int               // number in the name of the next file
	lockFile   *os.File          // locked while the store is open; nil if the file system does not support locks
}

// Open creates the folder dir if needed and returns its store, for the computation with the fingerprint owner. The
// folder is locked until Close if the file system supports locks. Open returns an error if another run has locked it.
func Open(dir string, owner [sha256.Size]byte) (*Store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("checkpoint folder: %w", err)
	}
	s := &Store{dir: dir, owner: owner}
	if err := s.lock(); err != nil {
		return nil, err
	}
	numbers, err := s.files()
	if err != nil {
		s.Close()
		return nil, err
	}
	if len(numbers) > 0 {
		s.nextNumber = numbers[len(numbers)-1] + 1
	}
	return s, nil
}

// Begin opens the store in dir. If resume is true, it returns the newest state, or nil if there is none, and note
// receives a line for each newer file that cannot be used and a line if there is no checkpoint. If there are files and
// none can be used, Begin returns an error with the reasons, and note receives nothing. If resume is false, a folder
// with checkpoints is an error.
func Begin(dir string, owner [sha256.Size]byte, resume bool, note func(string)) (s *Store, state []byte, err error) {
	if s, err = Open(dir, owner); err != nil {
		return nil, nil, err
	}
	if resume {
		var refused []error
		state, refused, err = s.Load()
		for _, refusal := range refused {
			note(fmt.Sprintf("refused %v", refusal))
		}
		if err == nil && state == nil {
			note(fmt.Sprintf("no checkpoint in %s; beginning", dir))
		}
	} else if s.nextNumber > 0 {
		err = fmt.Errorf("%s has a checkpoint: resume from it (--resume), or take another folder", dir)
	}
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	return s, state, nil
}

// files returns the numbers of the checkpoints in the folder, in ascending order.
func (s *Store) files() (numbers []int, err error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("checkpoint folder: %w", err)
	}
	for _, entry := range entries {
		digits, hasPrefix := strings.CutPrefix(entry.Name(), prefix)
		digits, hasSuffix := strings.CutSuffix(digits, suffix)
		if number, err := strconv.Atoi(digits); hasPrefix && hasSuffix && err == nil && number >= 0 {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// path returns the path of the checkpoint file with the given number.
func (s *Store) path(number int) string {
	return filepath.Join(s.dir, fmt.Sprintf("%s%08d%s", prefix, number, suffix))
}

// Exists reports whether the folder has checkpoints of any computation.
func Exists(dir string) bool {
	numbers, err := (&Store{dir: dir}).files()
	return err == nil && len(numbers) > 0
}

// SaveError is a failure to write a state. Earlier states are unchanged.
type SaveError struct{ Err error }

// Error returns the cause, and says that it is about a checkpoint.
func (e *SaveError) Error() string { return fmt.Sprintf("checkpoint: %v", e.Err) }

// Unwrap returns the cause.
func (e *SaveError) Unwrap() error { return e.Err }

// Save writes a state. It then removes all but the two newest states, and the temporary files of an interrupted Save.
// It returns a *SaveError if the state cannot be written. Any other error means that the state was written, but that
// old files could not be listed or removed.
func (s *Store) Save(state []byte) error {
	if err := s.checkOwnership(); err != nil {
		return &SaveError{err}
	}
	if err := write(s.path(s.nextNumber), s.owner, state); err != nil {
		return &SaveError{err}
	}
	s.nextNumber++
	syncFolder(s.dir)
	numbers, err := s.files()
	if err != nil {
		return err
	}
	return s.remove(numbers[:max(0, len(numbers)-maxFiles)])
}

// write atomically writes a file with a state of the computation with the given fingerprint.
func write(name string, owner [sha256.Size]byte, state []byte) error {
	return atomicfile.Write(name, func(w io.Writer) error {
		sum := sha256.New()
		fileAndSum := io.MultiWriter(w, sum)
		header := append([]byte(magic), binary.LittleEndian.AppendUint32(nil, version)...)
		header = append(header, owner[:]...)
		header = binary.LittleEndian.AppendUint64(header, uint64(len(state)))
		for _, part := range [][]byte{header, state} {
			if _, err := fileAndSum.Write(part); err != nil {
				return err
			}
		}
		_, err := w.Write(sum.Sum(nil))
		return err
	})
}

// syncFolder makes the entries of a folder durable, if the system supports this.
func syncFolder(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		d.Close()
	}
}

// remove removes the files with the given numbers, and all temporary files.
func (s *Store) remove(numbers []int) error {
	for _, number := range numbers {
		if err := os.Remove(s.path(number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("checkpoint: %w", err)
		}
	}
	entries, _ := os.ReadDir(s.dir)
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), "."+prefix) && strings.HasSuffix(entry.Name(), ".part") {
			_ = os.Remove(filepath.Join(s.dir, entry.Name()))
		}
	}
	return nil
}

// Clear removes all checkpoints, and the files with the given names in the same folder, after the computation has
// ended. It may be called after Close; if another run has locked the folder since then, Clear removes nothing.
func (s *Store) Clear(extraFiles ...string) error {
	if s.lockFile == nil {
		switch err := s.lock(); {
		case errors.Is(err, errLocked), errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
		defer s.Close()
	}
	numbers, err := s.files()
	if err != nil {
		return err
	}
	for _, name := range extraFiles {
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("checkpoint: %w", err)
		}
	}
	return s.remove(numbers)
}

// Load returns the newest state that is undamaged and belongs to this computation, and an error in refused for each
// newer file. If there are no files, state and refused are nil. If there are files and none can be used, err is not
// nil.
func (s *Store) Load() (state []byte, refused []error, err error) {
	numbers, err := s.files()
	if err != nil {
		return nil, nil, err
	}
	slices.Reverse(numbers)
	for _, number := range numbers {
		state, err := readState(s.path(number), s.owner)
		if err == nil {
			return state, refused, nil
		}
		refused = append(refused, err)
	}
	if len(refused) == 0 {
		return nil, nil, nil
	}
	var reasons []string
	for _, err := range refused {
		reasons = append(reasons, err.Error())
	}
	return nil, nil, fmt.Errorf("no checkpoint can be used; continue with the data and options that they are of, or "+
		"take another folder: %s", strings.Join(reasons, "; "))
}

// readState returns the state in a file that Save has written. It returns an error if the file is damaged or belongs to
// a computation with another fingerprint.
func readState(name string, owner [sha256.Size]byte) ([]byte, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() { // a pipe or a device may never end
		return nil, fmt.Errorf("%s: no regular file", name)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	fileError := func(format string, args ...any) ([]byte, error) {
		// The format describes the problem; the name of the file precedes it.
		return nil, fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...))
	}
	if len(content) < headerSize+sha256.Size {
		return fileError("cut off after %s", plural.Count(len(content), "byte"))
	}
	if !bytes.HasPrefix(content, []byte(magic)) {
		return fileError("no checkpoint")
	}
	if fileVersion := binary.LittleEndian.Uint32(content[len(magic):]); fileVersion != version {
		return fileError("format version %d, want %d", fileVersion, version)
	}
	body := content[:len(content)-sha256.Size]
	if length := binary.LittleEndian.Uint64(content[headerSize-8:]); length != uint64(len(body)-headerSize) {
		return fileError("%d bytes of state, want %d", len(body)-headerSize, length)
	}
	if checksum := sha256.Sum256(body); !bytes.Equal(checksum[:], content[len(body):]) {
		return fileError("damaged, the checksum is wrong")
	}
	if !bytes.Equal(content[len(magic)+4:][:sha256.Size], owner[:]) {
		return fileError("of other data or another configuration")
	}
	return body[headerSize:], nil
}
