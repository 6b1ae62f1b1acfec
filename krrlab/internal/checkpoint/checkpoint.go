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

// A file is
//
//	magic    8 bytes "krrlabCP"
//	version  uint32, little-endian as all numbers
//	owner    32 bytes, the fingerprint of the computation
//	length   uint64, of the state
//	state
//	sum      sha256 of all before
const (
	magic   = "krrlabCP"
	version = 3
	head    = len(magic) + 4 + sha256.Size + 8
	prefix  = "checkpoint-"
	suffix  = ".krrc"
	kept    = 2
)

// Store is a folder of checkpoints of one computation.
type Store struct {
	dir   string
	owner [sha256.Size]byte
	next  int      // number of the next file
	held  *os.File // the lock; nil without
}

// Open returns the store in dir, which it makes if it is not there, of the computation with
// that fingerprint, and keeps others out until Close. If another run has it that is an error.
func Open(dir string, owner [sha256.Size]byte) (*Store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("checkpoint folder: %w", err)
	}
	s := &Store{dir: dir, owner: owner}
	if err := s.lock(); err != nil {
		return nil, err
	}
	all, err := s.files()
	if err != nil {
		s.Close()
		return nil, err
	}
	if len(all) > 0 {
		s.next = all[len(all)-1] + 1
	}
	return s, nil
}

// Begin opens the store in dir, and returns the newest state to resume, nil where there is none. Without resume
// the folder must have none. note receives which files are refused, and that there is none.
func Begin(dir string, owner [sha256.Size]byte, resume bool, note func(string)) (s *Store, found []byte, err error) {
	if s, err = Open(dir, owner); err != nil {
		return nil, nil, err
	}
	if resume {
		var refused []error
		found, refused, err = s.Load()
		for _, r := range refused {
			note(fmt.Sprintf("refused %v", r))
		}
		if err == nil && found == nil {
			note(fmt.Sprintf("no checkpoint in %s; beginning", dir))
		}
	} else if s.next > 0 {
		err = fmt.Errorf("%s has a checkpoint: resume from it (--resume), or take another folder", dir)
	}
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	return s, found, nil
}

// files returns the numbers of the checkpoints in the folder, ascending.
func (s *Store) files() (all []int, err error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("checkpoint folder: %w", err)
	}
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), prefix)
		if name, ok = strings.CutSuffix(name, suffix); !ok {
			continue
		}
		if k, err := strconv.Atoi(name); err == nil && k >= 0 {
			all = append(all, k)
		}
	}
	slices.Sort(all)
	return all, nil
}

func (s *Store) path(k int) string {
	return filepath.Join(s.dir, fmt.Sprintf("%s%08d%s", prefix, k, suffix))
}

// Kept reports whether the folder has checkpoints, of any computation.
func Kept(dir string) bool {
	all, err := (&Store{dir: dir}).files()
	return err == nil && len(all) > 0
}

// SaveError says that a state could not be written. Those before it are as they were.
type SaveError struct{ Err error }

func (e *SaveError) Error() string { return fmt.Sprintf("checkpoint: %v", e.Err) }

// Unwrap returns what happened.
func (e *SaveError) Unwrap() error { return e.Err }

// Save writes a state and then removes all but the newest two, and what an interrupted Save has
// left. A state that cannot be written is a *SaveError.
func (s *Store) Save(state []byte) error {
	if err := s.mine(); err != nil {
		return &SaveError{err}
	}
	if err := write(s.path(s.next), s.owner, state); err != nil {
		return &SaveError{err}
	}
	s.next++
	syncFolder(s.dir)
	all, err := s.files()
	if err != nil {
		return err
	}
	return s.remove(all[:max(0, len(all)-kept)])
}

// write writes the state of the computation with that fingerprint to a file, whole or not at all.
func write(name string, owner [sha256.Size]byte, state []byte) error {
	return atomicfile.Write(name, func(w io.Writer) error {
		sum := sha256.New()
		both := io.MultiWriter(w, sum)
		h := append([]byte(magic), binary.LittleEndian.AppendUint32(nil, version)...)
		h = append(h, owner[:]...)
		h = binary.LittleEndian.AppendUint64(h, uint64(len(state)))
		for _, b := range [][]byte{h, state} {
			if _, err := both.Write(b); err != nil {
				return err
			}
		}
		_, err := w.Write(sum.Sum(nil))
		return err
	})
}

// syncFolder makes the names in a folder durable, where the system can.
func syncFolder(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		d.Close()
	}
}

func (s *Store) remove(list []int) error {
	for _, k := range list {
		if err := os.Remove(s.path(k)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("checkpoint: %w", err)
		}
	}
	entries, _ := os.ReadDir(s.dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "."+prefix) && strings.HasSuffix(e.Name(), ".part") {
			_ = os.Remove(filepath.Join(s.dir, e.Name()))
		}
	}
	return nil
}

// Clear removes all checkpoints, and the files of these names beside them, when the computation has ended. After Close
// it leaves those of a run that has gone on from them since.
func (s *Store) Clear(beside ...string) error {
	if s.held == nil {
		switch err := s.lock(); {
		case errors.Is(err, errHeld), errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
		defer s.Close()
	}
	all, err := s.files()
	if err != nil {
		return err
	}
	for _, name := range beside {
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("checkpoint: %w", err)
		}
	}
	return s.remove(all)
}

// Load returns the newest state that is whole and of this computation, and for each newer file
// that is not, why. Without any file state and refused are nil. If there are files and none can
// be used, it is an error.
func (s *Store) Load() (state []byte, refused []error, err error) {
	all, err := s.files()
	if err != nil {
		return nil, nil, err
	}
	slices.Reverse(all)
	for _, k := range all {
		state, err := Read(s.path(k), s.owner)
		if err == nil {
			return state, refused, nil
		}
		refused = append(refused, err)
	}
	if len(refused) == 0 {
		return nil, nil, nil
	}
	var why []string
	for _, err := range refused {
		why = append(why, err.Error())
	}
	return nil, nil, fmt.Errorf("no checkpoint can be used; continue with the data and options that they are of, or "+
		"take another folder: %s", strings.Join(why, "; "))
}

// Read returns the state in a file of Write, if it is whole and of the computation with that fingerprint.
func Read(name string, owner [sha256.Size]byte) ([]byte, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	bad := func(format string, args ...any) ([]byte, error) {
		return nil, fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...))
	}
	if len(b) < head+sha256.Size {
		return bad("cut off after %s", plural.Count(len(b), "byte"))
	}
	if !bytes.HasPrefix(b, []byte(magic)) {
		return bad("no checkpoint")
	}
	if v := binary.LittleEndian.Uint32(b[len(magic):]); v != version {
		return bad("format version %d, want %d", v, version)
	}
	body := b[:len(b)-sha256.Size]
	if n := binary.LittleEndian.Uint64(b[head-8:]); n != uint64(len(body)-head) {
		return bad("%d bytes of state, want %d", len(body)-head, n)
	}
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], b[len(body):]) {
		return bad("damaged, the checksum is wrong")
	}
	if !bytes.Equal(b[len(magic)+4:][:sha256.Size], owner[:]) {
		return bad("of other data or another configuration")
	}
	return body[head:], nil
}
