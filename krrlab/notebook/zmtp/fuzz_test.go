package zmtp

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/krrlab/lab/krrlab/internal/testkit"
)

// replayedConn is a connection that reads from a Reader and discards all written bytes.
type replayedConn struct {
	net.Conn
	io.Reader
}

func (c *replayedConn) Read(b []byte) (int, error)     { return c.Reader.Read(b) }
func (*replayedConn) Write(b []byte) (int, error)      { return len(b), nil }
func (*replayedConn) SetReadDeadline(time.Time) error  { return nil }
func (*replayedConn) SetWriteDeadline(time.Time) error { return nil }

// frameWithSize returns a frame with any declared size, followed by content.
func frameWithSize(flags byte, size uint64, content string) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{flags | flagLong}, size), content...)
}

// readyShort is a READY command whose only property ends after its name.
var readyShort = []byte("\x04\x09\x05READY\x01A\x00")

// FuzzHandshake sends arbitrary bytes to a listening socket. The handshake must return an error, or a peer of a type
// that a ROUTER may talk to.
func FuzzHandshake(f *testing.F) {
	f.Add(append(append(bytes.Clone(greeting[:]), 4, 42), properties{"DEALER", "me"}.command()...))
	f.Add(append(bytes.Clone(greeting[:]), readyShort...))
	f.Add(append(bytes.Clone(greeting[:]), frameWithSize(flagCommand, 1<<62, "")...))
	f.Add(append(bytes.Clone(greeting[:]), "\x04\x0c\x05READY\x01A\xff\xff\xff\xff"...))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, received []byte) {
		c := newConn(&replayedConn{Reader: bytes.NewReader(received)}, routerLimits)
		if err := c.handshake(properties{socketType: "ROUTER"}, time.Hour); err == nil &&
			!slices.Contains(peerTypes["ROUTER"], c.peer.socketType) {
			t.Errorf("a router accepts the peer %+v", c.peer)
		}
	})
}

// FuzzFrames passes arbitrary bytes to Recv. A message that Recv accepts must be within the limits, and must be the
// same after it is written and read again.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x01\x02ab\x00\x00"), 1000)
	f.Add(frameWithSize(0, 1<<62, "a"), 1000)
	f.Add(frameWithSize(flagMore, 1<<36, "a"), 1<<20)
	f.Add(frameWithSize(flagMore, 1<<63, ""), -1)
	f.Add([]byte("\x04\x07\x04PING\x00\x00\x00\x01a"), 100)
	f.Add([]byte("\x00\x00"), 28)
	f.Add([]byte("\x04\x02\x09A\x00\x01a"), 100)
	f.Fuzz(func(t *testing.T, received []byte, limit int) {
		c := Conn{reader: bufio.NewReader(bytes.NewReader(received)), maxMessage: min(limit, 1<<20)}
		for {
			frames, err := c.Recv()
			if err != nil {
				return
			}
			if len(frames) > maxFrames || messageSize(frames) > limit {
				t.Fatalf("%d frames, %d bytes, limit %d", len(frames), messageSize(frames), limit)
			}
			var buffer bytes.Buffer
			copyConn := Conn{reader: bufio.NewReader(&buffer), writer: bufio.NewWriter(&buffer),
				maxMessage: c.maxMessage}
			testkit.OK(t, copyConn.Send(frames...))
			if got, err := copyConn.Recv(); err != nil || !slices.EqualFunc(got, frames, bytes.Equal) {
				t.Fatalf("%q, %v, want %q", got, err, frames)
			}
		}
	})
}
