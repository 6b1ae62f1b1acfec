package zmtp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Bits of a frame's first byte.
const (
	flagMore    = 1 // other frames of the message follow
	flagLong    = 2 // the size has eight bytes, not one
	flagCommand = 4
)

const (
	maxCommand    = 4 << 10  // bytes of a command
	frameOverhead = 64       // bytes that a frame counts beside its content
	firstPart     = 64 << 10 // memory that a frame gets before any of it has arrived
)

var (
	errLarge  = errors.New("zmtp: a message above the limit")
	errFrame  = errors.New("zmtp: a frame with unknown flags")
	errFrames = errors.New("zmtp: a message of too many frames")
)

// readFrame reads a frame whose content has at most room bytes; a command has at most maxCommand.
func readFrame(r *bufio.Reader, room int) (flags byte, body []byte, err error) {
	if flags, err = r.ReadByte(); err != nil {
		return 0, nil, err
	}
	if flags&^(flagMore|flagLong|flagCommand) != 0 || flags&flagCommand != 0 && flags&flagMore != 0 {
		return 0, nil, errFrame
	}
	var size uint64
	if flags&flagLong != 0 {
		var b [8]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return 0, nil, err
		}
		size = binary.BigEndian.Uint64(b[:])
	} else {
		b, err := r.ReadByte()
		if err != nil {
			return 0, nil, err
		}
		size = uint64(b)
	}
	if flags&flagCommand != 0 {
		room = maxCommand
	}
	if room < 0 || size > uint64(room) {
		return 0, nil, errLarge
	}
	body, err = readBody(r, int(size))
	return flags, body, err
}

// readBody reads n bytes into memory that grows with what arrives.
func readBody(r io.Reader, n int) ([]byte, error) {
	b := make([]byte, 0, min(n, firstPart))
	for len(b) < n {
		if len(b) == cap(b) {
			b = slices.Grow(b, min(len(b), n-len(b)))
		}
		part := b[len(b):min(cap(b), n)]
		if _, err := io.ReadFull(r, part); err != nil {
			return nil, err
		}
		b = b[:len(b)+len(part)]
	}
	return b, nil
}

// readMessage reads the frames of a message: limit bytes in all, frames of them at most. Commands
// that come before or between say nothing in version 3.0.
func readMessage(r *bufio.Reader, limit, frames int) (m [][]byte, err error) {
	for {
		flags, body, err := readFrame(r, limit-frameOverhead)
		if err != nil {
			return nil, err
		}
		if flags&flagCommand != 0 {
			if _, _, err := commandName(body); err != nil {
				return nil, err
			}
			continue
		}
		limit -= len(body) + frameOverhead
		if m = append(m, body); len(m) > frames {
			return nil, errFrames
		}
		if flags&flagMore == 0 {
			return m, nil
		}
	}
}

// commandName splits a command.
func commandName(body []byte) (name string, rest []byte, err error) {
	if len(body) == 0 || len(body) < 1+int(body[0]) {
		return "", nil, fmt.Errorf("zmtp: a command of %d bytes that is cut short", len(body))
	}
	n := 1 + int(body[0])
	return string(body[1:n]), body[n:], nil
}

// writeFrame writes a frame.
func writeFrame(w *bufio.Writer, flags byte, body []byte) {
	if len(body) <= 255 {
		w.Write([]byte{flags, byte(len(body))})
	} else {
		w.Write(binary.BigEndian.AppendUint64([]byte{flags | flagLong}, uint64(len(body))))
	}
	w.Write(body) // the writer keeps its first error until it is flushed
}

// writeCommand writes a command.
func writeCommand(w *bufio.Writer, name string, body []byte) {
	writeFrame(w, flagCommand, append(append([]byte{byte(len(name))}, name...), body...))
}

// size is what a message counts against limits.
func size(frames [][]byte) (n int) {
	for _, f := range frames {
		n += len(f) + frameOverhead
	}
	return n
}

// talksTo lists the socket types that each may be connected to.
var talksTo = map[string][]string{
	"ROUTER": {"DEALER", "REQ", "ROUTER"},
	"REP":    {"REQ", "DEALER"},
	"XPUB":   {"SUB", "XSUB"},
	"DEALER": {"ROUTER", "REP", "DEALER"},
	"REQ":    {"REP", "ROUTER"},
	"SUB":    {"PUB", "XPUB"},
}

// greeting is the first thing that both sides send: the signature, version 3.0, NULL.
var greeting = func() [64]byte {
	g := [64]byte{0: 0xff, 9: 0x7f, 10: 3}
	copy(g[12:], "NULL")
	return g
}()

var (
	errGreeting  = errors.New("zmtp: not a greeting of ZMTP 3")
	errMechanism = errors.New("zmtp: a security mechanism other than NULL")
	errReady     = errors.New("zmtp: a READY command with a property that is cut short")
)

// readGreeting reads the greeting of a peer; what is none is found out by its first bytes.
func readGreeting(r io.Reader) error {
	var g [64]byte
	for _, part := range []struct {
		from, to int
		ok       func() bool
		err      error
	}{
		{0, 1, func() bool { return g[0] == 0xff }, errGreeting},
		{1, 12, func() bool { return g[9]&1 == 1 && g[10] >= 3 }, errGreeting},
		{12, 64, func() bool { return bytes.Equal(g[12:32], greeting[12:32]) }, errMechanism},
	} {
		if _, err := io.ReadFull(r, g[part.from:part.to]); err != nil {
			return err
		}
		if !part.ok() {
			return part.err
		}
	}
	return nil
}

// ready is the content of a READY command.
type ready struct {
	typ      string // the type of the socket
	identity string
}

// parseReady reads the properties of a READY command: of each the length of the name in one byte,
// the name, the length of the value in four, the value. Names that are not known are skipped.
func parseReady(b []byte) (r ready, err error) {
	for len(b) > 0 {
		n := int(b[0])
		if b = b[1:]; n == 0 || len(b) < n+4 {
			return ready{}, errReady
		}
		name, size := string(b[:n]), binary.BigEndian.Uint32(b[n:])
		if b = b[n+4:]; uint64(size) > uint64(len(b)) {
			return ready{}, errReady
		}
		value := string(b[:size])
		b = b[size:]
		switch strings.ToLower(name) {
		case "socket-type":
			r.typ = value
		case "identity":
			if len(value) > 255 {
				return ready{}, fmt.Errorf("zmtp: an identity of %d bytes, want at most 255", len(value))
			}
			r.identity = value
		}
	}
	return r, nil
}

// bytes is the content of a READY command that says r.
func (r ready) bytes() (b []byte) {
	for _, p := range [][2]string{{"Socket-Type", r.typ}, {"Identity", r.identity}} {
		b = append(append(b, byte(len(p[0]))), p[0]...)
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(p[1]))), p[1]...)
	}
	return b
}

// handshake introduces the two sides to each other. It sets no deadline.
func (c *Conn) handshake(self ready) error {
	c.w.Write(greeting[:])
	if err := c.w.Flush(); err != nil {
		return err
	}
	if err := readGreeting(c.r); err != nil {
		return err
	}
	writeCommand(c.w, "READY", self.bytes())
	if err := c.w.Flush(); err != nil {
		return err
	}
	flags, body, err := readFrame(c.r, maxCommand)
	if err != nil {
		return err
	}
	name, rest, err := commandName(body)
	if err != nil || flags&flagCommand == 0 || name != "READY" {
		return fmt.Errorf("zmtp: %.40q instead of READY", body)
	}
	if c.peer, err = parseReady(rest); err != nil {
		return err
	}
	if !slices.Contains(talksTo[self.typ], c.peer.typ) {
		reason := "a " + self.typ + " socket does not talk to this type"
		writeCommand(c.w, "ERROR", append([]byte{byte(len(reason))}, reason...))
		c.w.Flush()
		return fmt.Errorf("zmtp: a socket of type %.20q, want one of %v", c.peer.typ, talksTo[self.typ])
	}
	return nil
}
