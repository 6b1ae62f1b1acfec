package datasets

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"

	"github.com/krrlab/lab/krrlab/accel"
	"github.com/krrlab/lab/krrlab/points"
)

// maxColumn is the largest LIBSVM index accepted.
const maxColumn = math.MaxInt32 - 1

// libsvm reads lines "answer index:value …", indices from 1 and increasing; text after
// # is a comment. Points are sparse. The answers are dropped if o.Target is "none".
func (s *source) libsvm(o *ReadOptions) (*Dataset, error) {
	x := &points.CSR{Ptr: []int{0}}
	var a answers
	widest := 0 // the line of the last feature
	for line := 1; o.MaxRows == 0 || len(a.text) < o.MaxRows; line++ {
		text, err := s.r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			text, err = s.longLine(text, line)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, s.failed(line, err)
		}
		end, nonzeros, d := err != nil, len(x.Col), x.D
		answer, ok, err := s.libsvmLine(x, text, line)
		if err != nil {
			return nil, err
		}
		if x.D > d {
			widest = line
		}
		if ok {
			x.Ptr = append(x.Ptr, len(x.Col))
			if err := s.take((float64Growth+int32Growth)*(len(x.Col)-nonzeros)+intGrowth, len(a.text)); err != nil {
				return nil, err
			}
			if err := a.add(s, answer, line); err != nil {
				return nil, err
			}
		}
		if end {
			break
		}
	}
	if x.N = len(a.text); x.N == 0 {
		return nil, s.fail(0, 0, "the file is empty: no rows")
	}
	if o.Dim > 0 && x.D > o.Dim {
		return nil, s.fail(widest, 0, "%s", o.wrongDim(x.D))
	}
	if o.Dim > x.D {
		x.D, widest = o.Dim, 0
	}
	if need := vectorsHeld * 8 * float64(x.D); need > small && s.memory() > 0 && need > float64(s.memory()) {
		return nil, s.fail(widest, 0, "index %d: the vectors of so many numbers that a solve holds take %s, and there are %s of memory: number the features without gaps",
			x.D, accel.Bytes(int64(need)), accel.Bytes(s.memory()))
	}
	if x.D == 0 {
		return nil, s.fail(0, 0, "no row has a feature")
	}
	d := &Dataset{X: x}
	if o.Target == "none" {
		return d, nil
	}
	return d, d.setAnswers(s, &a, o.Task)
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
			return "", false, s.fail(line, item, "%s is not of the form index:value", quote(word))
		}
		col, err := strconv.Atoi(string(word[:colon]))
		switch {
		case err != nil || col < 1 || col > maxColumn:
			return "", false, s.fail(line, item, "index %s: want a whole number from 1 to %d", quote(word[:colon]), maxColumn)
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
func (s *source) longLine(start []byte, line int) ([]byte, error) {
	text := bytes.Clone(start)
	for {
		more, err := s.r.ReadSlice('\n')
		text = append(text, more...)
		if e := s.checkLine(line, int64(len(text))); e != nil {
			return nil, e
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, err
		}
	}
}
