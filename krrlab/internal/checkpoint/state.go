package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
)

// Begin opens the store in dir, and returns the newest state to resume, nil where there is none. Without resume
// the folder must have none. note is told which files are refused, and that there is none.
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
	} else {
		var empty bool
		if empty, err = s.Empty(); err == nil && !empty {
			err = fmt.Errorf("%s has a checkpoint: resume from it (--resume), or take another folder", dir)
		}
	}
	if err != nil {
		s.Close()
		return nil, nil, err
	}
	return s, found, nil
}

// Join returns a state of two parts: the length of the first in 8 bytes, little-endian, the first by encoding/gob, and what the second writes.
func Join(first any, second io.WriterTo) ([]byte, error) {
	var head, b bytes.Buffer
	if err := gob.NewEncoder(&head).Encode(first); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	b.Write(binary.LittleEndian.AppendUint64(nil, uint64(head.Len())))
	b.Write(head.Bytes())
	_, err := second.WriteTo(&b)
	return b.Bytes(), err
}

// Split decodes the first part of a state of Join, and returns the second. Its errors follow "the checkpoint in DIR".
func Split(state []byte, first any) (second []byte, err error) {
	n := uint64(0)
	if len(state) >= 8 {
		n = binary.LittleEndian.Uint64(state)
		state = state[8:]
	}
	if n == 0 || n > uint64(len(state)) {
		return nil, errors.New("is cut off")
	}
	if err := gob.NewDecoder(bytes.NewReader(state[:n])).Decode(first); err != nil {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	return state[n:], nil
}
