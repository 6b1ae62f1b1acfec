package zmtp

import (
	"bufio"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// Limits bound what a peer can cost. Zero means the default.
type Limits struct {
	Handshake time.Duration // how long a handshake may take; default 30 s
	Write     time.Duration // how long a peer may take nothing of what is sent; default 30 s
	Message   int           // bytes of a message, each frame counting 64 more; default 1 MiB
	Trusted   int           // the same of a peer that is trusted; default 64 MiB
	Frames    int           // of a message; default 256
	Queue     int           // bytes that wait for a peer; default 256 MiB
	Peers     int           // connections, with those in handshake; default 128
}

func (l Limits) complete() Limits {
	for _, d := range []*time.Duration{&l.Handshake, &l.Write} {
		if *d == 0 {
			*d = 30 * time.Second
		}
	}
	for _, x := range []struct {
		n   *int
		def int
	}{{&l.Message, 1 << 20}, {&l.Trusted, 64 << 20}, {&l.Frames, 256}, {&l.Queue, 256 << 20}, {&l.Peers, 128}} {
		if *x.n == 0 {
			*x.n = x.def
		}
	}
	return l
}

// Conn is one connection after its handshake. One goroutine may receive while another sends.
type Conn struct {
	rw      net.Conn
	r       *bufio.Reader
	w       *bufio.Writer
	limits  Limits
	message atomic.Int64 // limit of a message
	peer    ready
}

func newConn(rw net.Conn, l Limits) *Conn {
	c := &Conn{rw: rw, r: bufio.NewReader(rw), w: bufio.NewWriter(&deadlineWriter{rw, l.Write}), limits: l}
	c.message.Store(int64(l.Message))
	return c
}

// open makes the handshake within its time.
func (c *Conn) open(self ready) error {
	if err := c.rw.SetReadDeadline(time.Now().Add(c.limits.Handshake)); err != nil {
		return err
	}
	if err := c.handshake(self); err != nil {
		return err
	}
	return c.rw.SetReadDeadline(time.Time{})
}

// Dial connects to a socket as one of the type, DEALER, REQ or SUB. The front end of a kernel has
// its own; this one is for tests. What it receives is trusted.
func Dial(address, typ, identity string, limits Limits) (*Conn, error) {
	network, addr := split(address)
	rw, err := net.Dial(network, addr)
	if err != nil {
		return nil, fmt.Errorf("zmtp: %w", err)
	}
	limits = limits.complete()
	c := newConn(rw, limits)
	c.message.Store(int64(limits.Trusted))
	if err := c.open(ready{typ, identity}); err != nil {
		rw.Close()
		return nil, err
	}
	return c, nil
}

// Send sends a message.
func (c *Conn) Send(frames ...[]byte) error {
	for i, f := range frames {
		flags := byte(flagMore)
		if i == len(frames)-1 {
			flags = 0
		}
		writeFrame(c.w, flags, f)
	}
	return c.w.Flush()
}

// Recv returns the next message.
func (c *Conn) Recv() ([][]byte, error) {
	return readMessage(c.r, int(c.message.Load()), c.limits.Frames)
}

// Close closes the connection.
func (c *Conn) Close() error { return c.rw.Close() }

// deadlineWriter writes as long as the other side takes some of it in time.
type deadlineWriter struct {
	rw    net.Conn
	limit time.Duration
}

func (p *deadlineWriter) Write(b []byte) (n int, err error) {
	for n < len(b) {
		if err := p.rw.SetWriteDeadline(time.Now().Add(p.limit)); err != nil {
			return n, err
		}
		m, err := p.rw.Write(b[n:min(len(b), n+firstPart)])
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// split turns a ZeroMQ address into what package net takes.
func split(address string) (network, addr string) {
	network, addr, _ = strings.Cut(address, "://")
	if network == "ipc" {
		network = "unix"
	}
	return network, addr
}

// listen opens a listener. The file of an ipc socket is for its owner alone; one that a kernel left
// behind when it was killed is replaced.
func listen(address string) (net.Listener, error) {
	network, addr := split(address)
	if network != "unix" {
		return net.Listen(network, addr)
	}
	if st, err := os.Lstat(addr); err == nil && st.Mode().Type() == fs.ModeSocket {
		if c, err := net.Dial(network, addr); err == nil {
			c.Close()
		} else {
			os.Remove(addr)
		}
	}
	l, err := net.Listen(network, addr)
	if err == nil {
		err = os.Chmod(addr, 0o600)
	}
	return l, err
}
