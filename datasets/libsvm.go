package datasets

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/krrlab/lab/krrlab/points"
)

// maxColumn is the largest LIBSVM index accepted.
const maxColumn = math.MaxInt32 - 1

// libsvm reads lines "answer index:value …", indices from 1 and increasing; text after
// # is a comment. Points are sparse. The answers are dropped if o.Target is "none".
func (s *source) libsvm(o *ReadOptions) (*Dataset, error) {
	x := &points.CSR{Ptr: []int{0}}
	var answers []string
	var lines []int
	for line := 1; o.MaxRows == 0 || len(answers) < o.MaxRows; line++ {
		text, err := s.r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			text, err = s.longLine(text)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, s.failed(line, err)
		}
		end := err != nil
		if answer, ok, err := s.libsvmLine(x, text, line); err != nil {
			return nil, err
		} else if ok {
			answers, lines = append(answers, answer), append(lines, line)
			x.Ptr = append(x.Ptr, len(x.Col))
		}
		if end {
			break
		}
	}
	x.N = len(answers)
	if x.N == 0 {
		return nil, s.fail(0, 0, "the file is empty: no rows")
	}
	if o.Dim > x.D {
		x.D = o.Dim
	}
	if x.D == 0 {
		return nil, s.fail(0, 0, "no row has a feature")
	}
	d := &Dataset{X: x}
	if o.Target == "none" {
		return d, nil
	}
	return d, d.setAnswers(s, answers, lines, o.Task)
}

// libsvmLine appends the nonzeros of a line to x; ok is false for a line without
// content.
func (s *source) libsvmLine(x *points.CSR, text []byte, line int) (answer string, ok bool, err error) {
	if i := bytes.IndexByte(text, '#'); i >= 0 {
		text = text[:i]
	}
	word, text := cutWord(text)
	if len(word) == 0 {
		return "", false, nil
	}
	answer = string(word)
	last := 0
	for item := 2; ; item++ {
		if word, text = cutWord(text); len(word) == 0 {
			return answer, true, nil
		}
		colon := bytes.IndexByte(word, ':')
		if colon < 0 {
			return "", false, s.fail(line, item, "%q is not of the form index:value", word)
		}
		col, err := strconv.Atoi(string(word[:colon]))
		switch {
		case err != nil || col < 1 || col > maxColumn:
			return "", false, s.fail(line, item, "index %q: want a whole number from 1 to %d", word[:colon], maxColumn)
		case col <= last:
			return "", false, s.fail(line, item, "index %d after index %d: indices must increase", col, last)
		}
		v, err := number(string(word[colon+1:]))
		if err != nil {
			return "", false, s.fail(line, item, "value of index %d: %v", col, err)
		}
		if last = col; v != 0 {
			x.Col, x.Val = append(x.Col, int32(col-1)), append(x.Val, v)
		}
		x.D = max(x.D, col)
	}
}

// cutWord returns the first word of b and what follows it.
func cutWord(b []byte) (word, rest []byte) {
	i := 0
	for i < len(b) && b[i] <= ' ' {
		i++
	}
	j := i
	for j < len(b) && b[j] > ' ' {
		j++
	}
	return b[i:j], b[j:]
}

// longLine returns a line that does not fit the reader's buffer, the start of which
// has been read.
func (s *source) longLine(start []byte) ([]byte, error) {
	head := bytes.Clone(start)
	rest, err := s.r.ReadBytes('\n')
	return append(head, rest...), err
}
