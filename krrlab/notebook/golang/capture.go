package golang

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/krrlab/lab/krrlab/notebook/display"
)

// Indices of the output streams of a cell.
const (
	stdout = iota
	stderr
)

var streamNames = [2]string{"stdout", "stderr"}

const (
	maxOutput  = 4 << 20               // bytes that a cell may print before its output is cut
	batchSize  = 32 << 10              // bytes after which output is sent immediately
	flushDelay = 20 * time.Millisecond // time without further output after which output is sent
)

// capture collects the printed output of a cell in the order of printing, and sends it in whole characters. Output of
// interpreted code arrives through write. Output of compiled code to os.Stdout and os.Stderr arrives through pipes. The
// pipes are drained before other output is added, which preserves the order.
type capture struct {
	mu            sync.Mutex  // guards the fields below
	out           Output      // of the current or last cell; nil before the first one
	pending       [2][]byte   // bytes not sent yet, by stream
	lastStream    int         // stream that was written to most recently
	acceptedBytes int         // bytes of this cell that were not dropped
	droppedBytes  int         // bytes of this cell beyond maxOutput
	timer         *time.Timer // calls flushPending, flushDelay after the last output
	writeEnds     [2]*os.File // pipe ends that serve as os.Stdout and os.Stderr
	readEnds      [2]*os.File // pipe ends from which the output is read
	originalFiles [2]*os.File // os.Stdout and os.Stderr of the process
	isClosed      bool        // close was called
}

// newCapture redirects os.Stdout and os.Stderr to pipes.
func newCapture() (*capture, error) {
	c := &capture{originalFiles: [2]*os.File{os.Stdout, os.Stderr}}
	for i := range c.writeEnds {
		readEnd, writeEnd, err := os.Pipe()
		if err != nil {
			c.closePipes()
			return nil, fmt.Errorf("golang: cannot capture output: %w", err)
		}
		c.readEnds[i], c.writeEnds[i] = readEnd, writeEnd
	}
	os.Stdout, os.Stderr = c.writeEnds[stdout], c.writeEnds[stderr]
	for i := range c.readEnds {
		go c.followPipe(i)
	}
	c.timer = time.AfterFunc(time.Hour, c.flushPending) // add resets it to flushDelay
	return c, nil
}

// close restores os.Stdout and os.Stderr.
func (c *capture) close() {
	c.mu.Lock()
	c.isClosed = true
	c.timer.Stop()
	os.Stdout, os.Stderr = c.originalFiles[stdout], c.originalFiles[stderr]
	c.mu.Unlock() // followPipe locks once more when its pipe is closed
	c.closePipes()
}

// closePipes closes the pipes that were opened.
func (c *capture) closePipes() {
	for i := range c.writeEnds {
		c.writeEnds[i].Close() // an error if it is nil
		c.readEnds[i].Close()
	}
}

// startCell directs all further output to out, as the output of a new cell.
func (c *capture) startCell(out Output) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drain()
	c.flushAll()
	c.out, c.acceptedBytes, c.droppedBytes = out, 0, 0
}

// endCell sends all remaining output of a cell.
func (c *capture) endCell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drain()
	c.flushAll()
	if c.droppedBytes > 0 && c.out != nil {
		c.out.Stream(streamNames[stderr], fmt.Sprintf("[%d more bytes were printed and omitted]\n", c.droppedBytes))
	}
	c.acceptedBytes, c.droppedBytes = 0, 0 // for output between two cells
}

// write adds text that interpreted code prints.
func (c *capture) write(stream int, p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drain()
	c.add(stream, p)
}

// printf adds a message of the session.
func (c *capture) printf(stream int, format string, args ...any) {
	c.write(stream, fmt.Appendf(nil, format, args...))
}

// afterText sends the text printed so far and then calls f with the Output of the cell, if there is one. c.mu is locked
// while f runs, so f must not print.
func (c *capture) afterText(f func(Output)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drain()
	c.flushCharacters()
	if c.out != nil {
		f(c.out)
	}
}

// output sends the text printed so far and returns the Output of the cell, or nil.
func (c *capture) output() Output {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drain()
	c.flushAll()
	return c.out
}

// add appends bytes to a stream. If the cell exceeds maxOutput, it sends what fits, in whole characters, with a note,
// and only counts further bytes. The caller holds c.mu, as for the functions below.
func (c *capture) add(stream int, p []byte) {
	if len(p) == 0 {
		return
	}
	if c.lastStream != stream {
		c.flushCharacters()
		c.lastStream = stream
	}
	if remaining := maxOutput - c.acceptedBytes; len(p) > remaining {
		if c.droppedBytes == 0 { // the limit is exceeded for the first time
			pending := append(c.pending[stream], p[:remaining]...)
			n := wholeLength(pending)
			c.pending[stream], c.droppedBytes = pending[:n], len(pending)-n
			c.acceptedBytes += remaining
			c.flushAll()
			if c.out != nil {
				c.out.Stream(streamNames[stderr],
					fmt.Sprintf("\n[output cut after %d bytes; write what is longer to a file]\n", maxOutput))
			}
			p = p[remaining:]
		}
		c.droppedBytes += len(p)
		return
	}
	c.acceptedBytes += len(p)
	c.pending[stream] = append(c.pending[stream], p...)
	if len(c.pending[stream]) >= batchSize {
		c.flushCharacters()
	} else {
		c.timer.Reset(flushDelay)
	}
}

// flushPending sends the pending text. The timer calls it when flushDelay has passed without further output.
func (c *capture) flushPending() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isClosed {
		c.flushCharacters()
	}
}

// flushAll sends all pending bytes.
func (c *capture) flushAll() {
	for i, p := range c.pending {
		c.send(i, len(p))
	}
}

// flushCharacters sends the pending bytes, except those of an incomplete character.
func (c *capture) flushCharacters() {
	for i, p := range c.pending {
		c.send(i, wholeLength(p))
	}
}

// send sends the first n pending bytes of a stream.
func (c *capture) send(stream, n int) {
	if n == 0 {
		return
	}
	pending := c.pending[stream]
	if c.out != nil {
		c.out.Stream(streamNames[stream], string(pending[:n]))
	}
	c.pending[stream] = append(pending[:0], pending[n:]...)
}

// wholeLength returns the length of p without an incomplete character at its end.
func wholeLength(p []byte) int {
	for i := len(p) - 1; i >= 0 && i >= len(p)-utf8.UTFMax; i-- {
		if utf8.RuneStart(p[i]) {
			if utf8.FullRune(p[i:]) {
				return len(p)
			}
			return i
		}
	}
	return len(p)
}

// streamWriter is an io.Writer for one stream.
type streamWriter struct {
	capture *capture
	stream  int
}

func (w streamWriter) Write(p []byte) (int, error) {
	w.capture.write(w.stream, p)
	return len(p), nil
}

// show displays a value, after the text printed before.
func (c *capture) show(d display.Data) {
	d = encode(d)
	c.afterText(func(out Output) { out.Display(d) })
}

// update replaces the value with the same display_id, after the text printed before.
func (c *capture) update(d display.Data) {
	d = encode(d)
	c.afterText(func(out Output) { out.Update(d) })
}

// encode replaces the values in display data by their JSON encodings, so that later changes by a cell have no effect.
// It may call methods of cells, which may print; therefore c.mu must not be held.
func encode(d display.Data) display.Data {
	for _, values := range []*display.MIMEMap{&d.Data, &d.Metadata, &d.Transient} {
		encoded := display.MIMEMap{}
		for key, v := range *values {
			encoded[key] = encodeValue(v)
		}
		*values = encoded
	}
	return d
}

// encodeValue returns the JSON encoding of a value, or the value itself if it is a string. If the value has no
// encoding, its text and the error are encoded instead.
func encodeValue(v any) any {
	if _, isText := v.(string); isText {
		return v
	}
	encoded, err := json.Marshal(v)
	if err != nil {
		encoded, _ = json.Marshal(fmt.Sprintf("%v (%v)", v, err))
	}
	return json.RawMessage(encoded)
}
