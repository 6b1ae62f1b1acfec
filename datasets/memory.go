package datasets

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/krrlab/lab/krrlab/accel"
)

// Memory in bytes that one element of a slice takes while the slice grows by append: the element itself, spare capacity
// of a quarter, and the old copy from which the elements are copied.
const (
	float64Growth = 8 * 9 / 4
	int32Growth   = 4 * 9 / 4
	intGrowth     = 8 * 9 / 4
	byteGrowth    = 3                // a bytes.Buffer doubles: twice the content, and the old copy
	textGrowth    = (16 + 8) * 9 / 4 // a string and the number of its line
)

// lineFraction limits the text of one line to the fraction 1/lineFraction of the memory budget. The cells of a line
// take about fifteen times the memory of its text; a smaller value admits lines whose cells exceed the budget.
const lineFraction = 32

// denseVectors is the number of dense vectors of length d that are allocated in addition to sparse points in R^d: their
// mean, the scaling and rows that are read.
const denseVectors = 6

// minMemory is the number of bytes that reading may always use. The available memory of the machine is determined only
// if more is needed.
const minMemory = 1 << 24

// memoryBudget returns the memory budget of the content: that of the options, or half of the available memory of the
// machine, as the other half is needed for garbage and by the solver. The machine is asked once.
func (s *Source) memoryBudget() accel.Budget {
	if !s.askedMachine && s.memory.Limit == 0 {
		if available := accel.AvailableMemory(0, 2).Limit; available > 0 {
			s.memory.Limit = available + s.memory.Used
		}
	}
	s.askedMachine = true
	return s.memory
}

// emptyBudget returns the memory budget of the content as if no memory were in use.
func (s *Source) emptyBudget() accel.Budget { return accel.Budget{Limit: s.memoryBudget().Limit} }

// Memory returns the memory budget of the content. At least 16 MiB of it are free.
func (s *Source) Memory() accel.Budget {
	budget := s.memoryBudget()
	if budget.Limit > 0 {
		budget.Limit = max(budget.Limit, budget.Used+minMemory)
	}
	return budget
}

// reserve adds size bytes to the memory in use. rows is the number of rows that have been read, for the error. It
// returns an error if the budget is exceeded.
func (s *Source) reserve(size, rows int) error {
	s.memory = s.memory.Reserve(int64(size))
	if used := s.memory.Used; used > s.memory.Limit && (s.memory.Limit > 0 || used > minMemory) {
		if budget := s.emptyBudget(); !budget.Fits(used) {
			return s.fileFault("%v", budget.Check(used, fmt.Sprintf("more than %d rows", rows),
				"read fewer rows by --n, or allow more by --memory"))
		}
	}
	return nil
}

// checkLine returns an error if a line of this length, in bytes, exceeds its share of the memory budget (lineFraction),
// or 1 GiB if the budget is unknown.
func (s *Source) checkLine(line int, length int64) error {
	if length <= minMemory/lineFraction {
		return nil
	}
	limit := int64(1 << 30)
	if budget := s.memoryBudget().Limit; budget > 0 {
		limit = budget / lineFraction
	}
	if length <= limit {
		return nil
	}
	return s.Fault(line, 0, "the line is longer than %s, the memory for a line: is it a file of this format?",
		accel.FormatBytes(limit))
}

// readToEnd reads the rest of r, the content of s or an array of an archive, because checksums are verified at the end.
func (s *Source) readToEnd(r io.Reader) error {
	if _, err := io.Copy(io.Discard, r); err != nil {
		return s.readError(0, err)
	}
	return nil
}

// readUpTo reads maxBytes bytes, or fewer at the end of the content, and reserves memory for them. Memory grows with
// the data that are read, and does not depend on a length that a header claims.
func (s *Source) readUpTo(maxBytes int64) ([]byte, error) {
	const chunk = 1 << 20
	var content bytes.Buffer
	for {
		n, err := io.CopyN(&content, s.r, min(chunk, maxBytes-int64(content.Len())))
		switch {
		case errors.Is(err, io.EOF) || err == nil && n == 0:
			return content.Bytes(), nil
		case err == nil:
			err = s.reserve(byteGrowth*int(n), 0)
		}
		if err != nil {
			return nil, s.readError(0, err)
		}
	}
}
