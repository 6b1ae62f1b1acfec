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

// The streams of a cell.
const (
	stdout = iota
	stderr
)

var streamNames = [2]string{"stdout", "stderr"}

const (
	maxOutput = 4 << 20               // bytes a cell may print
	batch     = 32 << 10              // bytes that are sent at once
	delay     = 20 * time.Millisecond // how long a byte waits for more
)

// capture collects what a cell prints, in the order it is printed, and sends it in whole
// characters. What the interpreter prints comes straight to write; what compiled code
// prints to os.Stdout and os.Stderr comes through pipes, which are emptied before
// anything else is taken, so that the order holds.
type capture struct {
	mu       sync.Mutex
	out      Output
	text     [2][]byte // not yet sent
	last     int       // stream that was written to last
	sent     int       // bytes of this cell
	dropped  int       // bytes of this cell beyond max
	timer    *time.Timer
	files    [2]*os.File // the writing ends: os.Stdout, os.Stderr
	ends     [2]*os.File
	original [2]*os.File
	closed   bool
}

// newCapture takes os.Stdout and os.Stderr.
func newCapture() (*capture, error) {
	c := &capture{original: [2]*os.File{os.Stdout, os.Stderr}}
	for i := range c.files {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("golang: cannot capture output: %w", err)
		}
		c.ends[i], c.files[i] = r, w
	}
	os.Stdout, os.Stderr = c.files[stdout], c.files[stderr]
	for i := range c.ends {
		go c.follow(i)
	}
	c.timer = time.AfterFunc(time.Hour, c.tick)
	return c, nil
}

// close gives the streams back.
func (c *capture) close() {
	c.mu.Lock()
	c.closed = true
	c.timer.Stop()
	os.Stdout, os.Stderr = c.original[stdout], c.original[stderr]
	c.mu.Unlock() // who follows a pipe takes the lock once more
	for i := range c.files {
		c.files[i].Close()
		c.ends[i].Close()
	}
}

// begin sends what follows to out, as the output of a new cell.
func (c *capture) begin(out Output) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drain()
	c.flush(true)
	c.out, c.sent, c.dropped = out, 0, 0
}

// end sends all that is left of a cell.
func (c *capture) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drain()
	c.flush(true)
	if c.dropped > 0 && c.out != nil {
		c.out.Stream(streamNames[stderr], fmt.Sprintf("[%d more bytes were printed and omitted]\n", c.dropped))
	}
	c.sent, c.dropped = 0, 0 // of what comes before the next cell
}

// write takes text from the interpreter.
func (c *capture) write(stream int, p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drain()
	c.add(stream, p)
}

// printf takes what the session itself says.
func (c *capture) printf(stream int, format string, a ...any) {
	c.write(stream, fmt.Appendf(nil, format, a...))
}

// ordered calls f, which shows something, after all that was printed before.
func (c *capture) ordered(f func(Output)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drain()
	c.flush(false)
	if c.out != nil {
		f(c.out)
	}
}

// output returns where the cell's output goes.
func (c *capture) output() Output {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drain()
	c.flush(true)
	return c.out
}

// add appends text to a stream; mu is held.
func (c *capture) add(stream int, p []byte) {
	if len(p) == 0 {
		return
	}
	if c.last != stream {
		c.flush(false)
		c.last = stream
	}
	if room := maxOutput - c.sent; len(p) > room {
		if c.dropped == 0 {
			c.text[stream] = append(c.text[stream], p[:room]...)
			c.sent += room
			c.flush(true)
			if c.out != nil {
				c.out.Stream(streamNames[stderr],
					fmt.Sprintf("\n[output cut after %d bytes; write what is longer to a file]\n", maxOutput))
			}
			p = p[room:]
		}
		c.dropped += len(p)
		return
	}
	c.sent += len(p)
	c.text[stream] = append(c.text[stream], p...)
	if len(c.text[stream]) >= batch {
		c.flush(false)
	} else {
		c.timer.Reset(delay)
	}
}

// tick sends what has waited long enough.
func (c *capture) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.flush(false)
	}
}

// flush sends what was printed: with all also the bytes of an unfinished character.
func (c *capture) flush(all bool) {
	for i := range c.text {
		p := c.text[i]
		n := len(p)
		if !all {
			n = whole(p)
		}
		if n == 0 {
			continue
		}
		if c.out != nil {
			c.out.Stream(streamNames[i], string(p[:n]))
		}
		c.text[i] = append(c.text[i][:0], p[n:]...)
	}
}

// whole returns the length of p without the first bytes of a character at its end that
// is not complete.
func whole(p []byte) int {
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

// writer is an io.Writer to one stream.
type writer struct {
	c      *capture
	stream int
}

func (w writer) Write(p []byte) (int, error) {
	w.c.write(w.stream, p)
	return len(p), nil
}

// show sends a value, in order.
func (c *capture) show(d display.Data) {
	d = carried(d)
	c.ordered(func(o Output) { o.Display(d) })
}

// update sends a value instead of that with the same display_id.
func (c *capture) update(d display.Data) {
	d = carried(d)
	c.ordered(func(o Output) { o.Update(d) })
}

// carried returns what JSON can carry of a value, as it is now, whatever a cell does with it later. Methods that it
// calls may print, so not while the output is locked.
func carried(d display.Data) display.Data {
	for _, m := range []*display.MIMEMap{&d.Data, &d.Metadata, &d.Transient} {
		out := display.MIMEMap{}
		for k, v := range *m {
			if _, isText := v.(string); !isText {
				b, err := json.Marshal(v)
				if err != nil {
					b, _ = json.Marshal(fmt.Sprintf("%v (%v)", v, err))
				}
				v = json.RawMessage(b)
			}
			out[k] = v
		}
		*m = out
	}
	return d
}
