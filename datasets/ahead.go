package datasets

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/krrlab/lab/krrlab/accel"
)

// ahead has goroutines work on what next gives, most of them at a time, and gives it back in order.
type ahead[T any] struct {
	next  func() (T, error)
	work  func(T)
	most  func() int
	queue []chan T // each has one
	err   error    // of next
}

// get returns the next that is done; after the last of them what next returned.
func (a *ahead[T]) get() (v T, err error) {
	for a.err == nil && len(a.queue) < a.most() {
		var v T
		if v, a.err = a.next(); a.err == nil {
			done := make(chan T, 1)
			a.queue = append(a.queue, done)
			go func() {
				a.work(v)
				done <- v
			}()
		}
	}
	if len(a.queue) == 0 {
		return v, a.err
	}
	v = <-a.queue[0]
	a.queue = a.queue[1:]
	return v, nil
}

// threadsAhead keeps all threads busy while what one of them has done is used.
func threadsAhead() int {
	if n := accel.Threads(); n > 1 {
		return n + 1
	}
	return 1
}

// block is a text of whole lines and what was read of it.
type block[T any] struct {
	text []byte
	line int   // the number of the first
	end  error // what ended the text after it; nil within it
	rows []T
}

// blockBytes is about how long a block is: no line of that length is too long, and what its rows take is not counted.
const blockBytes = 1 << 16

// blocks cuts the text from a line on into blocks, at the ends of lines where none is open, and has read make rows of
// them. After an error, which comes after the last block, the line that is cut is left out.
func blocks[T any](s *source, line int, open func(text []byte) bool, read func(b *block[T])) *ahead[*block[T]] {
	var end error
	next := func() (*block[T], error) {
		if end != nil {
			return nil, end
		}
		b := &block[T]{text: make([]byte, 0, blockBytes+1<<13), line: line}
		for end == nil && len(b.text) < blockBytes {
			var n int
			n, end = s.r.Read(b.text[len(b.text):blockBytes])
			b.text = b.text[:len(b.text)+n]
		}
		whole := bytes.LastIndexByte(b.text, '\n') + 1
		for end == nil && (!bytes.HasSuffix(b.text, []byte("\n")) || open(b.text)) {
			var more []byte
			if more, end = s.r.ReadSlice('\n'); errors.Is(end, bufio.ErrBufferFull) {
				end = nil
			}
			b.text = append(b.text, more...)
			if e := s.checkLine(line+bytes.Count(b.text[:whole], []byte("\n")), int64(len(b.text)-whole)); e != nil {
				end = e
			}
		}
		if end != nil && end != io.EOF {
			b.text = b.text[:bytes.LastIndexByte(b.text, '\n')+1]
		}
		n := bytes.Count(b.text, []byte("\n"))
		b.end, b.rows, line = end, make([]T, 0, n+1), line+n
		return b, nil
	}
	return &ahead[*block[T]]{next: next, work: read, most: threadsAhead}
}
