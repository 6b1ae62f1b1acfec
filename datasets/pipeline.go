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

// pipeline processes items on several goroutines and returns them in the order in which they were produced. At most
// limit() items are in progress at a time.
type pipeline[T any] struct {
	produce func() (T, error) // returns the next item; an error ends the sequence
	process func(T)           // works on an item, in a goroutine of that item
	limit   func() int        // largest number of items in progress
	pending []chan T          // one channel for each item in progress, oldest first
	err     error             // error that produce returned
}

// get returns the next processed item. After the last item it returns the error of produce.
func (p *pipeline[T]) get() (processed T, err error) {
	for p.err == nil && len(p.pending) < p.limit() {
		var item T
		if item, p.err = p.produce(); p.err == nil {
			result := make(chan T, 1)
			p.pending = append(p.pending, result)
			go func() {
				p.process(item)
				result <- item
			}()
		}
	}
	if len(p.pending) == 0 {
		return processed, p.err
	}
	processed = <-p.pending[0]
	p.pending = p.pending[1:]
	return processed, nil
}

// pipelineDepth returns a limit for pipeline that keeps all threads busy while the caller uses a finished item.
func pipelineDepth() int {
	if n := accel.Threads(); n > 1 {
		return n + 1
	}
	return 1
}

// block is a piece of text that consists of complete lines, with the rows parsed from it.
type block struct {
	text   []byte
	line   int   // number of the first line
	endErr error // error or io.EOF if the text ends after this block, else nil
	rows   []textRow

	// cells, numbers and indices are the storage of the rows' fields of the same names, row after row.
	cells   []string
	numbers []float64
	indices []int32
}

// textRow is a record of a csv file or a line of a LIBSVM file.
type textRow struct {
	line, nextLine int // line of the record, and line after it
	// cells are the cells of a csv record, trimmed. For LIBSVM they are the answer alone, or nil for a line without
	// content.
	cells []string
	// numbers are the features of a csv record, NaN for categorical columns, or nil if they have not been parsed. For
	// LIBSVM they are the nonzeros.
	numbers  []float64
	indices  []int32 // LIBSVM: columns of the nonzeros, counted from 0
	maxIndex int     // LIBSVM: largest index, counted from 1
	err      error
}

// blockBytes is the approximate length of a block in bytes. It bounds the memory of a block: the limit on the length of
// a line is not below blockBytes, and the memory of the rows in a block is not counted against the memory budget.
// Larger blocks cost memory, smaller ones cost more synchronization.
const blockBytes = 1 << 16

// eachRow splits the text, which starts with the given line number, into blocks and calls addRow with the rows in
// order. A row is valid only during the call.
//
// A block ends at the end of a line at which inQuotes is false for the block's text. parseBlock parses the rows of a
// block; up to limit() blocks are parsed concurrently. eachRow returns the first error; io.EOF from addRow stops it
// without an error. A read error of the file is reported after the last complete block; the incomplete line at that
// position is dropped.
func (s *Source) eachRow(line int, inQuotes func(text []byte) bool, limit func() int, parseBlock func(b *block),
	addRow func(r *textRow) error) error {
	var freeBlocks []*block
	var endErr error
	readBlock := func() (*block, error) {
		if endErr != nil {
			return nil, endErr
		}
		b := &block{text: make([]byte, 0, blockBytes+1<<13)} // with space for the rest of the last line
		if k := len(freeBlocks) - 1; k >= 0 {
			b, freeBlocks = freeBlocks[k], freeBlocks[:k]
		}
		b.line = line
		b.text, endErr = s.readLines(b.text[:0], line, inQuotes)
		n := bytes.Count(b.text, []byte("\n"))
		b.endErr, line, b.rows = endErr, line+n, slices.Grow(b.rows[:0], n+1)
		b.cells, b.numbers, b.indices = b.cells[:0], b.numbers[:0], b.indices[:0]
		return b, nil
	}
	for blocks := (&pipeline[*block]{produce: readBlock, process: parseBlock, limit: limit}); ; {
		b, err := blocks.get()
		for k := 0; err == nil && k < len(b.rows); k++ {
			err = addRow(&b.rows[k])
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		freeBlocks = append(freeBlocks, b)
	}
}

// readLines appends about blockBytes of text to text, up to the end of a line, where inQuotes is false. line is the
// number of the first line, for errors. endErr is io.EOF or the error that ended the file.
func (s *Source) readLines(text []byte, line int, inQuotes func(text []byte) bool) (_ []byte, endErr error) {
	for endErr == nil && len(text) < blockBytes {
		var n int
		n, endErr = s.r.Read(text[len(text):blockBytes])
		text = text[:len(text)+n]
	}
	lineStart := bytes.LastIndexByte(text, '\n') + 1
	for endErr == nil && (!bytes.HasSuffix(text, []byte("\n")) || inQuotes(text)) {
		var piece []byte
		if piece, endErr = s.r.ReadSlice('\n'); errors.Is(endErr, bufio.ErrBufferFull) {
			endErr = nil
		}
		text = append(text, piece...)
		if lineErr := s.checkLine(line+bytes.Count(text[:lineStart], []byte("\n")),
			int64(len(text)-lineStart)); lineErr != nil {
			endErr = lineErr
		}
	}
	if endErr != nil && endErr != io.EOF {
		text = text[:bytes.LastIndexByte(text, '\n')+1]
	}
	return text, endErr
}

// chunkedSlice is a slice that grows by whole chunks, so that no element is copied until concat joins the chunks.
type chunkedSlice[T any] struct{ chunks [][]T } // chunkLength elements each, the last one fewer

// chunkLength is the number of elements of a chunk, a judgment: a larger value wastes more memory in the last chunk.
const chunkLength = 1 << 16

// appendAll appends the elements of values.
func (c *chunkedSlice[T]) appendAll(values []T) {
	for len(values) > 0 {
		k := len(c.chunks) - 1
		if k < 0 || len(c.chunks[k]) == chunkLength {
			c.chunks, k = append(c.chunks, make([]T, 0, chunkLength)), k+1
		}
		n := min(len(values), chunkLength-len(c.chunks[k]))
		c.chunks[k], values = append(c.chunks[k], values[:n]...), values[n:]
	}
}

// concat returns all elements as one slice. The chunks are copied on all threads.
func (c *chunkedSlice[T]) concat() []T {
	k := len(c.chunks)
	if k < 2 {
		return slices.Concat(c.chunks...)
	}
	joined := make([]T, (k-1)*chunkLength+len(c.chunks[k-1]))
	// ForEach returns an error only if its context ends, and this one does not.
	_ = accel.ForEach(context.Background(), k, func(_, i int) { copy(joined[i*chunkLength:], c.chunks[i]) })
	return joined
}
