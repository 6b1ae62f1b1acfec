package datasets

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"

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
type block struct {
	text []byte
	line int   // the number of the first
	end  error // what ended the text after it; nil within it
	rows []textRow

	cells []string // of the rows, one after the other, as nums and cols
	nums  []float64
	cols  []int32
}

// textRow is a record of a csv file, or a line of LIBSVM.
type textRow struct {
	line, next int       // its own, and the one after it
	cells      []string  // without blanks at their ends; of LIBSVM the answer, nil without content
	nums       []float64 // the features, NaN where they are none, nil where they are not known; of LIBSVM the nonzeros
	cols       []int32   // of LIBSVM
	d          int       // the largest index of LIBSVM
	err        error
}

// blockBytes is about how long a block is: no line of that length is too long, and what its rows take is not counted.
const blockBytes = 1 << 16

// eachRow cuts the text from a line on into blocks, at the ends of lines where none is open, has read make rows of
// them, on most threads at a time, and calls take with the rows in order, which are gone when it has returned. It ends
// with the first error; io.EOF of take is none. After an error of the file, which comes after the last block, the line
// that is cut is left out.
func (s *Source) eachRow(line int, open func(text []byte) bool, most func() int, read func(b *block),
	take func(r *textRow) error) error {
	var free []*block
	var end error
	next := func() (*block, error) {
		if end != nil {
			return nil, end
		}
		b := &block{text: make([]byte, 0, blockBytes+1<<13)}
		if k := len(free) - 1; k >= 0 {
			b, free = free[k], free[:k]
		}
		b.line = line
		b.text, end = s.lines(b.text[:0], line, open)
		n := bytes.Count(b.text, []byte("\n"))
		b.end, line, b.rows = end, line+n, slices.Grow(b.rows[:0], n+1)
		b.cells, b.nums, b.cols = b.cells[:0], b.nums[:0], b.cols[:0]
		return b, nil
	}
	for blocks := (&ahead[*block]{next: next, work: read, most: most}); ; {
		b, err := blocks.get()
		for k := 0; err == nil && k < len(b.rows); k++ {
			err = take(&b.rows[k])
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		free = append(free, b)
	}
}

// lines appends the next blockBytes to text, to the end of a line, from a line on.
func (s *Source) lines(text []byte, line int, open func(text []byte) bool) (_ []byte, end error) {
	for end == nil && len(text) < blockBytes {
		var n int
		n, end = s.r.Read(text[len(text):blockBytes])
		text = text[:len(text)+n]
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	for end == nil && (!bytes.HasSuffix(text, []byte("\n")) || open(text)) {
		var more []byte
		if more, end = s.r.ReadSlice('\n'); errors.Is(end, bufio.ErrBufferFull) {
			end = nil
		}
		text = append(text, more...)
		if e := s.checkLine(line+bytes.Count(text[:whole], []byte("\n")), int64(len(text)-whole)); e != nil {
			end = e
		}
	}
	if end != nil && end != io.EOF {
		text = text[:bytes.LastIndexByte(text, '\n')+1]
	}
	return text, end
}

// grown is a slice that grows by parts, so that nothing is copied before all of it is known.
type grown[T any] struct{ parts [][]T } // of partLength, but the last

const partLength = 1 << 16

func (g *grown[T]) add(v []T) {
	for len(v) > 0 {
		k := len(g.parts) - 1
		if k < 0 || len(g.parts[k]) == partLength {
			g.parts, k = append(g.parts, make([]T, 0, partLength)), k+1
		}
		n := min(len(v), partLength-len(g.parts[k]))
		g.parts[k], v = append(g.parts[k], v[:n]...), v[n:]
	}
}

// all returns the slice.
func (g *grown[T]) all() []T {
	k := len(g.parts)
	if k < 2 {
		return slices.Concat(g.parts...)
	}
	v := make([]T, (k-1)*partLength+len(g.parts[k-1]))
	// The context is never done, so ForEach gives no error.
	_ = accel.ForEach(context.Background(), k, func(_, i int) { copy(v[i*partLength:], g.parts[i]) })
	return v
}
