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

// Bits of the first byte of a frame.
const (
	flagMore    = 1 // more frames of the message follow
	flagLong    = 2 // the size has eight bytes instead of one
	flagCommand = 4 // the frame is a command
)

const (
	maxCommand    = 4 << 10  // largest size of a command, in bytes
	maxFrames     = 256      // largest number of frames of a message
	frameOverhead = 64       // bytes that each frame counts in addition to its content
	writeChunk    = 64 << 10 // bytes per write; the peer must accept some of them within the time limit
)

var (
	errFrame    = errors.New("zmtp: a frame with unknown flags, or above the limits")
	errCommand  = errors.New("zmtp: a command that is cut short")
	errGreeting = errors.New("zmtp: not a greeting of ZMTP 3 without a security mechanism")
)

// Conn is a connection after its handshake. One goroutine can receive while another one sends.
type Conn struct {
	netConn    net.Conn
	reader     *bufio.Reader
	writer     *bufio.Writer
	maxMessage int        // largest size of a received message, in bytes
	peer       properties // properties that the peer has sent
}

// newConn returns a connection before its handshake.
func newConn(netConn net.Conn, l limits) *Conn {
	writer := bufio.NewWriter(&deadlineWriter{netConn, l.writeTime})
	return &Conn{netConn: netConn, reader: bufio.NewReader(netConn), writer: writer, maxMessage: l.messageBytes}
}

// Dial connects to a socket at address as a socket of the given type (DEALER, REQ or SUB) with the given identity. It
// is intended for tests; real front ends have their own implementation. Received messages can be as large as those of
// trusted peers.
func Dial(address, socketType, identity string) (*Conn, error) {
	netConn, err := net.Dial(splitAddress(address))
	if err != nil {
		return nil, fmt.Errorf("zmtp: %w", err)
	}
	c := newConn(netConn, routerLimits)
	c.maxMessage = routerLimits.trustedBytes
	if err := c.handshake(properties{socketType, identity}, routerLimits.handshakeTime); err != nil {
		netConn.Close()
		return nil, err
	}
	return c, nil
}

// Close closes the connection.
func (c *Conn) Close() error { return c.netConn.Close() }

// Send sends a message, one frame per argument.
func (c *Conn) Send(frames ...[]byte) error {
	for i, frame := range frames {
		flags := byte(flagMore)
		if i == len(frames)-1 {
			flags = 0
		}
		c.writeFrame(flags, frame)
	}
	return c.writer.Flush()
}

// writeFrame writes a frame to the buffer, which keeps the first error until it is flushed.
func (c *Conn) writeFrame(flags byte, body []byte) {
	if len(body) <= 255 {
		c.writer.Write([]byte{flags, byte(len(body))})
	} else {
		c.writer.Write(binary.BigEndian.AppendUint64([]byte{flags | flagLong}, uint64(len(body))))
	}
	c.writer.Write(body)
}

// deadlineWriter writes to a connection. It fails if the peer accepts no data within the time limit.
type deadlineWriter struct {
	netConn net.Conn
	timeout time.Duration
}

// Write implements io.Writer.
func (w *deadlineWriter) Write(b []byte) (n int, err error) {
	for chunk := range slices.Chunk(b, writeChunk) {
		if err := w.netConn.SetWriteDeadline(time.Now().Add(w.timeout)); err != nil {
			return n, err
		}
		m, err := w.netConn.Write(chunk)
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// Recv returns the next message. It returns an error if the message exceeds the limits. Commands before or between the
// frames are ignored, since they have no meaning in version 3.0.
func (c *Conn) Recv() (frames [][]byte, err error) {
	for remaining := c.maxMessage; ; { // bytes left for further frames
		flags, body, err := c.readFrame(remaining - frameOverhead)
		if err != nil {
			return nil, err
		}
		if flags&flagCommand != 0 {
			if _, _, err := splitName(body); err != nil {
				return nil, err
			}
			continue
		}
		remaining -= len(body) + frameOverhead
		if frames = append(frames, body); len(frames) > maxFrames {
			return nil, errFrame
		}
		if flags&flagMore == 0 {
			return frames, nil
		}
	}
}

// readFrame reads a frame with at most maxSize bytes of content, or maxCommand bytes for a command. Memory grows with
// the bytes that arrive.
func (c *Conn) readFrame(maxSize int) (flags byte, body []byte, err error) {
	var head [9]byte // flags and a short size are read to the end of head, a long size to its start
	if _, err := io.ReadFull(c.reader, head[7:]); err != nil {
		return 0, nil, err
	}
	flags = head[7]
	size := uint64(head[8])
	if flags&flagLong != 0 {
		head[0] = head[8]
		if _, err := io.ReadFull(c.reader, head[1:8]); err != nil {
			return 0, nil, err
		}
		size = binary.BigEndian.Uint64(head[:])
	}
	if flags&flagCommand != 0 {
		maxSize = maxCommand
	}
	if flags > flagMore|flagLong|flagCommand || flags&flagCommand != 0 && flags&flagMore != 0 || maxSize < 0 ||
		size > uint64(maxSize) {
		return 0, nil, errFrame
	}
	var content bytes.Buffer
	_, err = io.CopyN(&content, c.reader, int64(size))
	return flags, content.Bytes(), err
}

// splitName splits the content of a command, or a property of a READY command, into the name and the remaining bytes.
// The name is preceded by its length in one byte.
func splitName(body []byte) (name string, value []byte, err error) {
	if len(body) == 0 || len(body) < 1+int(body[0]) {
		return "", nil, errCommand
	}
	n := 1 + int(body[0])
	return string(body[1:n]), body[n:], nil
}

// messageSize returns the number of bytes that a message counts against the limits.
func messageSize(frames [][]byte) (total int) {
	for _, frame := range frames {
		total += len(frame) + frameOverhead
	}
	return total
}

// peerTypes lists, for each socket type, the types of peers that it can be connected to.
var peerTypes = map[string][]string{
	"ROUTER": {"DEALER", "REQ", "ROUTER"}, "REP": {"REQ", "DEALER"}, "XPUB": {"SUB", "XSUB"},
	"DEALER": {"ROUTER", "REP"}, "REQ": {"REP", "ROUTER"}, "SUB": {"PUB", "XPUB"},
}

// greeting is sent first by both sides: the signature, version 3.0 and the mechanism NULL.
var greeting = func() [64]byte {
	g := [64]byte{0: 0xff, 9: 0x7f, 10: 3}
	copy(g[12:], "NULL")
	return g
}()

// properties is the content of a READY command.
type properties struct {
	socketType string // type of the socket
	identity   string // name that the peer claims; can be ""
}

// parseReady reads the properties in a READY command. Each consists of the length of the name in one byte, the name,
// the length of the value in four bytes, and the value. Unknown names are skipped.
func parseReady(remaining []byte) (props properties, err error) {
	for len(remaining) > 0 {
		name, value, err := splitName(remaining)
		if err != nil || name == "" || len(value) < 4 {
			return properties{}, errCommand
		}
		length := binary.BigEndian.Uint32(value)
		if remaining = value[4:]; uint64(length) > uint64(len(remaining)) {
			return properties{}, errCommand
		}
		switch strings.ToLower(name) {
		case "socket-type":
			props.socketType = string(remaining[:length])
		case "identity":
			props.identity = string(remaining[:length])
		}
		remaining = remaining[length:]
	}
	return props, nil
}

// command returns the READY command with the properties.
func (p properties) command() []byte {
	encoded := []byte("\x05READY")
	for _, property := range [][2]string{{"Socket-Type", p.socketType}, {"Identity", p.identity}} {
		encoded = append(append(encoded, byte(len(property[0]))), property[0]...)
		encoded = append(binary.BigEndian.AppendUint32(encoded, uint32(len(property[1]))), property[1]...)
	}
	return encoded
}

// handshake exchanges greetings and READY commands with the peer. It fails if the types of the sockets do not match or
// if the peer needs longer than limit.
func (c *Conn) handshake(self properties, limit time.Duration) error {
	if err := c.netConn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	c.writer.Write(greeting[:])
	if err := c.writer.Flush(); err != nil {
		return err
	}
	// The first byte is checked separately, because other data may be shorter than a greeting.
	if start, err := c.reader.Peek(1); err != nil || start[0] != greeting[0] {
		return errGreeting
	}
	var received [64]byte
	if _, err := io.ReadFull(c.reader, received[:]); err != nil {
		return err
	}
	// Byte 9 ends the signature, byte 10 is the version, and bytes 12 to 31 are the name of the mechanism.
	if received[9]&1 != 1 || received[10] < 3 || !bytes.Equal(received[12:32], greeting[12:32]) {
		return errGreeting
	}
	c.writeFrame(flagCommand, self.command())
	if err := c.writer.Flush(); err != nil {
		return err
	}
	flags, body, err := c.readFrame(maxCommand)
	if err != nil {
		return err
	}
	name, content, err := splitName(body)
	if err != nil || flags&flagCommand == 0 || name != "READY" {
		return fmt.Errorf("zmtp: %.40q instead of READY", body)
	}
	if c.peer, err = parseReady(content); err != nil {
		return err
	}
	if !slices.Contains(peerTypes[self.socketType], c.peer.socketType) {
		return fmt.Errorf("zmtp: a socket of type %.20q, want one of %v", c.peer.socketType, peerTypes[self.socketType])
	}
	return c.netConn.SetReadDeadline(time.Time{})
}
