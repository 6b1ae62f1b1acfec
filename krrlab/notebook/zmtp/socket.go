package zmtp

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Options say what a Socket is and who hears from it.
type Options struct {
	Type   string // as peers are told: ROUTER, REP or XPUB
	Owner  int    // of the users of this machine another that may connect; root and our own may
	Limits Limits

	// Receive takes the messages of a peer, one after the other; those of several peers at a time.
	Receive func(*Peer, [][]byte)
	// Connected and Gone are called for peers that have completed their handshake; nil for none.
	Connected, Gone func(*Peer)
	// Replaceable says that a peer which is not trusted may be dropped in favor of a new one although it has sent
	// messages. Without it a socket whose peers have all sent some is full.
	Replaceable bool
}

// Socket listens.
type Socket struct {
	o        Options
	listener net.Listener

	mu     sync.Mutex
	peers  []*Peer // the oldest first
	closed bool

	received atomic.Int64 // messages
}

// Listen opens a socket at an address tcp://HOST:PORT or ipc://FILE.
func Listen(address string, o Options) (*Socket, error) {
	l, err := listen(address)
	if err != nil {
		return nil, fmt.Errorf("zmtp: %w", err)
	}
	o.Limits = o.Limits.complete()
	for _, f := range []*func(*Peer){&o.Connected, &o.Gone} {
		if *f == nil {
			*f = func(*Peer) {}
		}
	}
	s := &Socket{o: o, listener: l}
	go s.accept()
	return s, nil
}

// Addr is where the socket listens.
func (s *Socket) Addr() net.Addr { return s.listener.Addr() }

// accept takes connections until the socket is closed, whatever becomes of one of them.
func (s *Socket) accept() {
	for {
		rw, err := s.listener.Accept()
		s.mu.Lock()
		closed := s.closed
		s.mu.Unlock()
		switch {
		case closed && err == nil:
			rw.Close()
			return
		case closed:
			return
		case err != nil: // no descriptor is left, or the connection is gone already
			time.Sleep(10 * time.Millisecond)
		case foreign(rw, s.o.Owner):
			rw.Close()
		default:
			if p := s.admit(rw); p != nil {
				go p.serve()
			}
		}
	}
}

// admit makes room for a connection and returns its peer, or closes it and returns nil.
func (s *Socket) admit(rw net.Conn) *Peer {
	s.mu.Lock()
	var out *Peer
	if !s.closed && len(s.peers) >= s.o.Limits.Peers {
		out = s.leastProven()
	}
	if s.closed || len(s.peers) >= s.o.Limits.Peers && out == nil {
		s.mu.Unlock()
		rw.Close()
		return nil
	}
	p := newPeer(s, rw)
	s.peers = append(slices.DeleteFunc(s.peers, func(q *Peer) bool { return q == out }), p)
	s.mu.Unlock()
	if out != nil {
		out.Close()
	}
	return p
}

// leastProven returns the peer that gives way to a new one: the oldest in its handshake, else of those that are not
// trusted, and have sent nothing unless peers may be replaced, the one that has been silent for longest; nil where
// there is none.
func (s *Socket) leastProven() (least *Peer) {
	for _, p := range s.peers {
		heard := p.heard.Load()
		switch {
		case !p.met.Load():
			return p
		case p.trusted.Load() || heard > 0 && !s.o.Replaceable:
		case least == nil || heard < least.heard.Load():
			least = p
		}
	}
	return least
}

// each calls f with every peer that has made its handshake.
func (s *Socket) each(f func(*Peer)) {
	s.mu.Lock()
	peers := slices.Clone(s.peers)
	s.mu.Unlock()
	for _, p := range peers {
		if p.met.Load() {
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

// Flush waits until all that was sent is written, at most until end: a peer that does not read gets no
// more.
func (s *Socket) Flush(end time.Time) {
	s.each(func(p *Peer) { p.flush(end) })
}

// Close closes the socket and its connections.
func (s *Socket) Close() {
	s.mu.Lock()
	peers := s.peers
	s.closed, s.peers = true, nil
	s.mu.Unlock()
	s.listener.Close()
	for _, p := range peers {
		p.Close()
	}
}

// Peer is a connection of a Socket. What is sent to it waits in its own queue, so that one that
// does not read holds nobody up.
type Peer struct {
	socket  *Socket
	conn    *Conn
	met     atomic.Bool // the handshake is made
	trusted atomic.Bool
	heard   atomic.Int64 // which of the socket's messages was its last; 0: it has sent none

	mu      sync.Mutex
	wake    *sync.Cond
	queue   [][][]byte // messages
	waiting int        // bytes of the queue, and of what is being written
	closed  bool
}

func newPeer(s *Socket, rw net.Conn) *Peer {
	p := &Peer{socket: s, conn: newConn(rw, s.o.Limits)}
	p.wake = sync.NewCond(&p.mu)
	return p
}

// Identity is what the peer calls itself; others may call themselves the same.
func (p *Peer) Identity() string { return p.conn.peer.identity }

// Trust says that the peer has proven who it is: it may send larger messages and is not replaced.
func (p *Peer) Trust() {
	p.trusted.Store(true)
	p.conn.message.Store(int64(p.conn.limits.Trusted))
}

// serve makes the handshake and receives until the peer goes.
func (p *Peer) serve() {
	defer p.leave()
	if p.conn.open(ready{typ: p.socket.o.Type}) != nil {
		return
	}
	p.met.Store(true)
	go p.write()
	p.socket.o.Connected(p)
	defer p.socket.o.Gone(p)
	for {
		m, err := p.conn.Recv()
		if err != nil {
			return
		}
		p.heard.Store(p.socket.received.Add(1))
		p.socket.o.Receive(p, m)
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
	if p.closed || len(frames) == 0 {
		p.mu.Unlock()
		return false
	}
	if p.waiting > p.conn.limits.Queue {
		p.mu.Unlock()
		p.Close()
		return false
	}
	p.queue = append(p.queue, frames)
	p.waiting += size(frames)
	p.wake.Broadcast()
	p.mu.Unlock()
	return true
}

// Reply sends to the peer or, if it is gone, to those of its identity that have come since.
func (p *Peer) Reply(frames [][]byte) {
	if !p.Send(frames) {
		p.socket.SendTo(p.Identity(), frames)
	}
}

// write writes the queue to the connection.
func (p *Peer) write() {
	defer p.Close()
	for {
		p.mu.Lock()
		for len(p.queue) == 0 && !p.closed {
			p.wake.Wait()
		}
		if p.closed {
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
		p.wake.Broadcast()
		p.mu.Unlock()
	}
}

// flush waits until nothing waits, at most until end.
func (p *Peer) flush(end time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer time.AfterFunc(time.Until(end), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.wake.Broadcast()
	}).Stop()
	for p.waiting > 0 && !p.closed && time.Now().Before(end) {
		p.wake.Wait()
	}
}

// Close drops the peer and what waits for it.
func (p *Peer) Close() {
	p.mu.Lock()
	p.closed, p.queue, p.waiting = true, nil, 0
	p.wake.Broadcast()
	p.mu.Unlock()
	p.conn.Close()
}
