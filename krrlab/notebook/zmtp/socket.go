package zmtp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// limits bound what a peer can cost.
type limits struct {
	handshake time.Duration // how long a handshake may take
	write     time.Duration // how long a peer may take nothing of what is sent
	message   int           // bytes of a message, each frame counting frameOverhead more
	trusted   int           // the same of a peer that is trusted
	queue     int           // bytes that wait for a peer
	peers     int           // connections, with those in handshake
}

// usual are those of a ROUTER.
var usual = limits{30 * time.Second, 30 * time.Second, 1 << 20, 64 << 20, 256 << 20, 128}

// maxTopics is how many topics a subscriber may have; front ends have one, the empty one.
const maxTopics = 64

// Options say what a Socket is and who hears from it.
type Options struct {
	Type  string // as peers are told: ROUTER, REP or XPUB
	Owner int    // of the users of this machine another that may connect; root and our own may

	// Receive takes the messages of a peer of a ROUTER, one after the other; those of several peers at a time. A REP
	// sends back what comes.
	Receive func(*Peer, [][]byte)
	// Connected is called for peers that have completed their handshake; nil for none.
	Connected func(*Peer)
	// Welcome is the first message for a subscriber of an XPUB.
	Welcome func(topic []byte) [][]byte

	limits *limits // nil for those of the type
}

// Socket listens.
type Socket struct {
	o        Options
	limits   limits
	listener net.Listener

	mu     sync.Mutex
	peers  []*Peer // the oldest first
	closed bool

	received atomic.Int64 // messages
}

// Listen opens a socket at an address tcp://HOST:PORT or ipc://FILE.
func Listen(address string, o Options) (*Socket, error) {
	s := &Socket{o: o, limits: usual}
	switch {
	case o.limits != nil:
		s.limits = *o.limits
	case o.Type == "REP": // heartbeats
		s.limits.queue = 16 * maxCommand
		fallthrough
	case o.Type == "XPUB":
		s.limits.message = maxCommand
	}
	var err error
	if s.listener, err = listen(split(address)); err != nil {
		return nil, fmt.Errorf("zmtp: %w", err)
	}
	go s.accept()
	return s, nil
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
func listen(network, addr string) (net.Listener, error) {
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

// Addr is where the socket listens.
func (s *Socket) Addr() net.Addr { return s.listener.Addr() }

// accept takes connections until the socket is closed, whatever becomes of one of them.
func (s *Socket) accept() {
	for {
		rw, err := s.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // no descriptor is left, or the connection is gone already
			time.Sleep(10 * time.Millisecond)
		case foreign(rw, s.o.Owner) || !s.admit(rw):
			rw.Close()
		}
	}
}

// admit makes room for a connection and serves it, and reports whether there is room.
func (s *Socket) admit(rw net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.peers) >= s.limits.peers {
		i := s.leastProven()
		if i < 0 {
			return false
		}
		s.peers[i].Close()
		s.peers = slices.Delete(s.peers, i, i+1)
	}
	if s.closed {
		return false
	}
	p := &Peer{socket: s, conn: newConn(rw, s.limits), written: make(chan struct{})}
	p.wake = sync.NewCond(&p.mu)
	s.peers = append(s.peers, p)
	go p.serve()
	go p.write()
	return true
}

// leastProven finds the peer that gives way to a new one, −1 for none: the oldest in its handshake, then the one that
// has been silent for longest. A trusted peer stays, and a subscriber.
func (s *Socket) leastProven() (least int) {
	for i, p := range s.peers {
		if p.proven.Load() < s.peers[least].proven.Load() {
			least = i
		}
	}
	if v := s.peers[least].proven.Load(); v == trusted || v > met && s.o.Type == "XPUB" {
		return -1
	}
	return least
}

// each calls f with every peer that has made its handshake.
func (s *Socket) each(f func(*Peer)) {
	s.mu.Lock()
	peers := slices.Clone(s.peers)
	s.mu.Unlock()
	for _, p := range peers {
		if p.proven.Load() >= met {
			f(p)
		}
	}
}

// SendTo sends to all peers with the identity; to none if it is empty.
func (s *Socket) SendTo(identity string, frames [][]byte) {
	s.each(func(p *Peer) {
		if identity != "" && p.Identity() == identity {
			p.Send(frames)
		}
	})
}

// Publish sends to all who subscribed to the topic, the first frame.
func (s *Socket) Publish(frames [][]byte) {
	s.each(func(p *Peer) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if slices.ContainsFunc(p.topics, func(t []byte) bool { return bytes.HasPrefix(frames[0], t) }) {
			p.send(frames)
		}
	})
}

// Close closes the socket, and its connections when what waits for each is written, at the latest at end.
func (s *Socket) Close(end time.Time) {
	s.mu.Lock()
	peers := s.peers
	s.closed, s.peers = true, nil
	s.mu.Unlock()
	s.listener.Close()
	late, stop := context.WithDeadline(context.Background(), end)
	defer stop()
	for _, p := range peers {
		p.mu.Lock()
		p.last = true
		p.wake.Broadcast()
		p.mu.Unlock()
		select {
		case <-p.written:
		case <-late.Done():
			p.Close()
		}
	}
}

// What a peer has proven, beside the number of the socket's messages that was its last, counted from met.
const (
	met     = 1 // it has made its handshake
	trusted = math.MaxInt64
)

// Peer is a connection of a Socket. What is sent to it waits in its own queue, so that one that
// does not read holds nobody up.
type Peer struct {
	socket  *Socket
	conn    *Conn
	proven  atomic.Int64
	written chan struct{} // closed when nothing more is written

	mu      sync.Mutex
	wake    *sync.Cond
	queue   [][][]byte // messages
	waiting int        // bytes of the queue, and of what is being written
	last    bool       // no other message is taken
	topics  [][]byte
}

// Identity is what the peer calls itself; others may call themselves the same.
func (p *Peer) Identity() string { return p.conn.peer.identity }

// Trust says that the peer, whose message is received, has proven who it is: it may send larger messages and does not
// give way.
func (p *Peer) Trust() {
	p.proven.Store(trusted)
	p.conn.limit = p.socket.limits.trusted
}

// serve makes the handshake and receives until the peer goes.
func (p *Peer) serve() {
	defer p.leave()
	o := &p.socket.o
	if p.conn.open(ready{typ: o.Type}, p.socket.limits.handshake) != nil {
		return
	}
	p.proven.Store(met)
	if o.Connected != nil {
		o.Connected(p)
	}
	for {
		m, err := p.conn.Recv()
		if err != nil {
			return
		}
		if p.proven.Load() != trusted {
			p.proven.Store(met + p.socket.received.Add(1))
		}
		switch o.Type {
		case "XPUB":
			p.subscribe(m)
		case "REP":
			p.Send(m)
		default:
			o.Receive(p, m)
		}
	}
}

// subscribe takes a message 1+topic or 0+topic. What is published later comes behind the welcome.
func (p *Peer) subscribe(frames [][]byte) {
	if len(frames) != 1 || len(frames[0]) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	topic := frames[0][1:]
	i := slices.IndexFunc(p.topics, func(t []byte) bool { return bytes.Equal(t, topic) })
	switch on := frames[0][0]; {
	case on == 1 && len(p.topics) == maxTopics:
		p.close()
	case on == 1:
		p.topics = append(p.topics, topic)
		p.send(p.socket.o.Welcome(topic))
	case on == 0 && i >= 0:
		p.topics = slices.Delete(p.topics, i, i+1)
	}
}

// leave takes the peer from its socket.
func (p *Peer) leave() {
	p.socket.mu.Lock()
	p.socket.peers = slices.DeleteFunc(p.socket.peers, func(q *Peer) bool { return q == p })
	p.socket.mu.Unlock()
	p.Close()
}

// Send queues a message. It reports whether the peer is there; a peer for which too much waits is
// dropped.
func (p *Peer) Send(frames [][]byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.send(frames)
}

func (p *Peer) send(frames [][]byte) bool {
	if p.waiting > p.socket.limits.queue {
		p.close()
	}
	if p.last || len(frames) == 0 {
		return false
	}
	p.queue = append(p.queue, frames)
	p.waiting += size(frames)
	p.wake.Broadcast()
	return true
}

// Reply sends to the peer or, if it is gone, to those of its identity that have come since.
func (p *Peer) Reply(frames [][]byte) {
	if !p.Send(frames) {
		p.socket.SendTo(p.Identity(), frames)
	}
}

// write writes the queue to the connection, and closes that behind the last message.
func (p *Peer) write() {
	defer close(p.written)
	defer p.Close()
	for {
		p.mu.Lock()
		for len(p.queue) == 0 && !p.last {
			p.wake.Wait()
		}
		if len(p.queue) == 0 {
			p.mu.Unlock()
			return
		}
		frames := p.queue[0]
		p.queue[0] = nil
		p.queue = p.queue[1:]
		p.mu.Unlock()
		if p.conn.Send(frames...) != nil {
			return
		}
		p.mu.Lock()
		p.waiting -= size(frames)
		p.mu.Unlock()
	}
}

// Close drops the peer and what waits for it.
func (p *Peer) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.close()
}

func (p *Peer) close() {
	p.last, p.queue = true, nil
	p.wake.Broadcast()
	p.conn.Close()
}
