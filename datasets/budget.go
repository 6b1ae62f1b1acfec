package datasets

import (
	"fmt"
	"io"

	"github.com/krrlab/lab/krrlab/accel"
)

// What an item takes while a slice of them grows: itself, the spare room of a quarter, and the copy
// that is grown from.
const (
	float64Growth = 8 * 9 / 4
	int32Growth   = 4 * 9 / 4
	intGrowth     = 8 * 9 / 4
	byteGrowth    = 3
	answerGrowth  = (16 + 8) * 9 / 4 // a string and its line
)

// lineShare is the part of the memory that one line may take as text; its cells take some
// fifteen times as much.
const lineShare = 32

// setLimit sets how many bytes the content may take: those given, or what the machine has.
func (s *source) setLimit(bytes int64) {
	if s.limit = bytes; bytes == 0 {
		s.limit = accel.MemoryAvailable()
	}
}

// take counts bytes that are held, of which rows were read before, and returns an error if they
// are more than the limit.
func (s *source) take(bytes, rows int) error {
	if s.held += int64(bytes); s.limit == 0 || s.held <= s.limit {
		return nil
	}
	return s.fail(0, 0, "reading more than %d rows takes more than %s, the memory there is for it: read fewer by --n, or on a machine with more",
		rows, gigabytes(s.limit))
}

// lineLimit is the most bytes of a line.
func (s *source) lineLimit() int64 {
	if s.limit == 0 {
		return 1 << 30
	}
	return max(s.limit/lineShare, 1<<16)
}

// tooLong is the error for a line that goes on.
func (s *source) tooLong(line int) error {
	return s.fail(line, 0, "the line is longer than %s, more than there is memory for: is it a file of this format?", gigabytes(s.lineLimit()))
}

func gigabytes(b int64) string { return fmt.Sprintf("%.3g GB", float64(b)/1e9) }

// lineGuard ends a reader that gives too much without a line's end.
type lineGuard struct {
	s    *source
	r    io.Reader
	left int64
}

func (g *lineGuard) reset() { g.left = g.s.lineLimit() }

func (g *lineGuard) Read(p []byte) (int, error) {
	n, err := g.r.Read(p)
	if g.left -= int64(n); g.left < 0 {
		return 0, g.s.tooLong(0)
	}
	return n, err
}
