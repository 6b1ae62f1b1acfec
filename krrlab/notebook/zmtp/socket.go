package zmtp

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// Options say what a Socket is and who hears from it.
type Options struct {
	Type   string // as peers are told: ROUTER, REP or XPUB
	Owner  int    // of the users of this machine another that may connect; root and our own may
	Limits Limits

	// Receive takes the messages of a peer, one after the other; those of several peers at a time.
	Receive func(*Peer, [][]byte)
	// Connected and Gone are told of peers that have made their handshake; nil for nobody.
	Connected, Gone func(*Peer)
	// Replaceable says that a peer which is not trusted may be dropped in favor of a new one. Without
	// it a socket whose peers have all made their handshakes is full.
	Replaceable bool
}

// Socket listens.
type Socket struct {
	o        Options
	listener net.Listener

	mu     sync.Mutex
	peers  []*Peer // the oldest first
	closed bool
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

// leastProven returns the peer that gives way to a new one: the oldest in its handshake, else the
// oldest that is not trusted if peers may be replaced, else nil.
func (s *Socket) leastProven() *Peer {
	if i := slices.IndexFunc(s.peers, func(p *Peer) bool { return !p.met.Load() }); i >= 0 {
		return s.peers[i]
	}
	if i := slices.IndexFunc(s.peers, func(p *Peer) bool { return !p.trusted.Load() }); i >= 0 && s.o.Replaceable {
		return s.peers[i]
	}
	return nil
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
