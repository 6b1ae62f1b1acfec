package zmtp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"
)

// Bits of a frame's first byte.
const (
	flagMore    = 1 // other frames of the message follow
	flagLong    = 2 // the size has eight bytes, not one
	flagCommand = 4
)

const (
	maxCommand    = 4 << 10  // bytes of a command
	maxFrames     = 256      // of a message
	frameOverhead = 64       // bytes that a frame counts beside its content
	writePart     = 64 << 10 // bytes of which a peer must take some in time
)

var (
	errFrame    = errors.New("zmtp: a frame with unknown flags, or above the limits")
	errCommand  = errors.New("zmtp: a command that is cut short")
	errGreeting = errors.New("zmtp: not a greeting of ZMTP 3 without a security mechanism")
)

// Conn is one connection after its handshake. One goroutine may receive while another sends.
type Conn struct {
	rw    net.Conn
	r     *bufio.Reader
	w     *bufio.Writer
	limit int // bytes of a message
	peer  ready
}

func newConn(rw net.Conn, l limits) *Conn {
	return &Conn{rw: rw, r: bufio.NewReader(rw), w: bufio.NewWriter(&patient{rw, l.write}), limit: l.message}
}

// Dial connects to a socket as one of the type, DEALER, REQ or SUB. The front end of a kernel has
// its own; this one is for tests. What it receives is trusted.
func Dial(address, typ, identity string) (*Conn, error) {
	rw, err := net.Dial(split(address))
	if err != nil {
		return nil, fmt.Errorf("zmtp: %w", err)
	}
	c := newConn(rw, usual)
	c.limit = usual.trusted
	if err := c.open(ready{typ, identity}, usual.handshake); err != nil {
		rw.Close()
		return nil, err
	}
	return c, nil
}

// Close closes the connection.
func (c *Conn) Close() error { return c.rw.Close() }

// Send sends a message.
func (c *Conn) Send(frames ...[]byte) error {
	for i, f := range frames {
		flags := byte(flagMore)
		if i == len(frames)-1 {
			flags = 0
		}
		c.frame(flags, f)
	}
	return c.w.Flush()
}

// frame writes a frame; the writer keeps its first error until it is flushed.
func (c *Conn) frame(flags byte, body []byte) {
	if len(body) <= 255 {
		c.w.Write([]byte{flags, byte(len(body))})
	} else {
		c.w.Write(binary.BigEndian.AppendUint64([]byte{flags | flagLong}, uint64(len(body))))
	}
	c.w.Write(body)
}

// patient writes as long as the other side takes some of it in time.
type patient struct {
	rw    net.Conn
	limit time.Duration
}

func (p *patient) Write(b []byte) (n int, err error) {
	for part := range slices.Chunk(b, writePart) {
		if err := p.rw.SetWriteDeadline(time.Now().Add(p.limit)); err != nil {
			return n, err
		}
		m, err := p.rw.Write(part)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// Recv returns the next message, within the limits. Commands that come before or between its frames say nothing in
// version 3.0.
func (c *Conn) Recv() (m [][]byte, err error) {
	for room := c.limit; ; {
		flags, body, err := c.next(room - frameOverhead)
		if err != nil {
			return nil, err
		}
		if flags&flagCommand != 0 {
			if _, _, err := command(body); err != nil {
				return nil, err
			}
			continue
		}
		room -= len(body) + frameOverhead
		if m = append(m, body); len(m) > maxFrames {
			return nil, errFrame
		}
		if flags&flagMore == 0 {
			return m, nil
		}
	}
}

// next reads a frame whose content has at most room bytes; a command has at most maxCommand. Memory grows with what
// arrives.
func (c *Conn) next(room int) (flags byte, body []byte, err error) {
	var head [9]byte
	if _, err := io.ReadFull(c.r, head[7:]); err != nil {
		return 0, nil, err
	}
	flags = head[7]
	size := uint64(head[8])
	if flags&flagLong != 0 {
		head[0] = head[8]
		if _, err := io.ReadFull(c.r, head[1:8]); err != nil {
			return 0, nil, err
		}
		size = binary.BigEndian.Uint64(head[:])
	}
	if flags&flagCommand != 0 {
		room = maxCommand
	}
	if flags > flagMore|flagLong|flagCommand || flags&flagCommand != 0 && flags&flagMore != 0 || room < 0 ||
		size > uint64(room) {
		return 0, nil, errFrame
	}
	var b bytes.Buffer
	_, err = io.CopyN(&b, c.r, int64(size))
	return flags, b.Bytes(), err
}

// command splits the content of one.
func command(body []byte) (name string, rest []byte, err error) {
	if len(body) == 0 || len(body) < 1+int(body[0]) {
		return "", nil, errCommand
	}
	n := 1 + int(body[0])
	return string(body[1:n]), body[n:], nil
}

// size is what a message counts against limits.
func size(frames [][]byte) (n int) {
	for _, f := range frames {
		n += len(f) + frameOverhead
	}
	return n
}

// talksTo lists the types of peers that each may be connected to.
var talksTo = map[string][]string{
	"ROUTER": {"DEALER", "REQ", "ROUTER"}, "REP": {"REQ", "DEALER"}, "XPUB": {"SUB", "XSUB"},
	"DEALER": {"ROUTER", "REP"}, "REQ": {"REP", "ROUTER"}, "SUB": {"PUB", "XPUB"},
}

// greeting is the first thing that both sides send: the signature, version 3.0, NULL.
var greeting = func() [64]byte {
	g := [64]byte{0: 0xff, 9: 0x7f, 10: 3}
	copy(g[12:], "NULL")
	return g
}()

// ready is the content of a READY command.
type ready struct {
	typ      string // the type of the socket
	identity string
}

// parseReady reads the properties of a READY command: of each the length of the name in one byte,
// the name, the length of the value in four, the value. Names that are not known are skipped.
func parseReady(b []byte) (r ready, err error) {
	for len(b) > 0 {
		name, rest, err := command(b)
		if err != nil || name == "" || len(rest) < 4 {
			return ready{}, errCommand
		}
		n := binary.BigEndian.Uint32(rest)
		if b = rest[4:]; uint64(n) > uint64(len(b)) {
			return ready{}, errCommand
		}
		switch strings.ToLower(name) {
		case "socket-type":
			r.typ = string(b[:n])
		case "identity":
			r.identity = string(b[:n])
		}
		b = b[n:]
	}
	return r, nil
}

// bytes is a READY command that says r.
func (r ready) bytes() []byte {
	b := []byte("\x05READY")
	for _, p := range [][2]string{{"Socket-Type", r.typ}, {"Identity", r.identity}} {
		b = append(append(b, byte(len(p[0]))), p[0]...)
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(p[1]))), p[1]...)
	}
	return b
}

// open introduces the two sides to each other, within a time.
func (c *Conn) open(self ready, limit time.Duration) error {
	if err := c.rw.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	c.w.Write(greeting[:])
	if err := c.w.Flush(); err != nil {
		return err
	}
	if first, err := c.r.Peek(1); err != nil || first[0] != greeting[0] { // what is no greeting may be short
		return errGreeting
	}
	var g [64]byte
	if _, err := io.ReadFull(c.r, g[:]); err != nil {
		return err
	}
	if g[9]&1 != 1 || g[10] < 3 || !bytes.Equal(g[12:32], greeting[12:32]) {
		return errGreeting
	}
	c.frame(flagCommand, self.bytes())
	if err := c.w.Flush(); err != nil {
		return err
	}
	flags, body, err := c.next(maxCommand)
	if err != nil {
		return err
	}
	name, rest, err := command(body)
	if err != nil || flags&flagCommand == 0 || name != "READY" {
		return fmt.Errorf("zmtp: %.40q instead of READY", body)
	}
	if c.peer, err = parseReady(rest); err != nil {
		return err
	}
	if !slices.Contains(talksTo[self.typ], c.peer.typ) {
		return fmt.Errorf("zmtp: a socket of type %.20q, want one of %v", c.peer.typ, talksTo[self.typ])
	}
	return c.rw.SetReadDeadline(time.Time{})
}
