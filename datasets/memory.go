package datasets

import (
	"bytes"
	"errors"
	"io"
	"math"

	"github.com/krrlab/lab/krrlab/accel"
)

// What an item takes while a slice of them grows: itself, the spare room of a quarter, and the copy
// that is grown from.
const (
	float64Growth = 8 * 9 / 4
	int32Growth   = 4 * 9 / 4
	intGrowth     = 8 * 9 / 4
	byteGrowth    = 3
	textGrowth    = (16 + 8) * 9 / 4 // a string and its line
)

// lineShare is the part of the memory that one line may take as text; its cells take some
// fifteen times as much.
const lineShare = 32

// vectorsHeld is the number of dense vectors, as long as a point has features, that are held beside
// sparse points: their mean, a scaling, rows that are read.
const vectorsHeld = 6

// small is how many bytes are always there; the machine is not asked about fewer.
const small = 1 << 24

// memory returns how many bytes the content may take: those of the options, or half of what the
// machine has, as garbage and the solve want some; 0 if that is not known.
func (s *Source) memory() int64 {
	if !s.asked && s.limit == 0 {
		if s.limit = (accel.MemoryAvailable() + 1) / 2; s.limit > 0 { // upwards: 0 is unknown, not used up
			s.limit += s.held
		}
	}
	s.asked = true
	return s.limit
}

// Free returns how many bytes more may be held; at least 16 MiB.
func (s *Source) Free() int64 {
	if limit := s.memory(); limit > 0 {
		return max(small, limit-s.held)
	}
	return math.MaxInt64
}

// take counts bytes that are held, of which rows were read before, and returns an error if they
// are more than the limit.
func (s *Source) take(bytes, rows int) error {
	if s.held += int64(bytes); s.held <= s.limit || s.limit == 0 && s.held <= small {
		return nil
	}
	if limit := s.memory(); limit == 0 || s.held <= limit {
		return nil
	}
	return s.refuse("reading more than %d rows takes more than %s, the memory there is for it: read fewer by --n, or allow "+
		"more by --memory",
		rows, accel.Bytes(s.limit))
}

// checkLine returns an error if a line of that length is too long: if it takes more than a part of
// the memory.
func (s *Source) checkLine(line int, bytes int64) error {
	if bytes <= small/lineShare {
		return nil
	}
	limit := int64(1 << 30)
	if m := s.memory(); m > 0 {
		limit = m / lineShare
	}
	if bytes <= limit {
		return nil
	}
	return s.Fault(line, 0, "the line is longer than %s, more than there is memory for: is it a file of this format?",
		accel.Bytes(limit))
}

// upTo reads most bytes, or fewer to the end. Memory grows with what is read, not with what a header claims: growth
// bytes for each.
func (s *Source) upTo(most int64, growth int) ([]byte, error) {
	const chunk = 1 << 20
	var all bytes.Buffer
	for {
		n, err := io.CopyN(&all, s.r, min(chunk, most-int64(all.Len())))
		switch {
		case errors.Is(err, io.EOF) || err == nil && n == 0:
			return all.Bytes(), nil
		case err == nil:
			err = s.take(growth*int(n), 0)
		}
		if err != nil {
			return nil, s.failed(0, err)
		}
	}
}
