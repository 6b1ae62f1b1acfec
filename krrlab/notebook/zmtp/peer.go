package zmtp

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Peer is a connection of a Socket. What is sent to it waits in a queue of its own, so that one that
// does not read holds nobody up.
type Peer struct {
	socket  *Socket
	conn    *Conn
	met     atomic.Bool // the handshake is made
	trusted atomic.Bool

	mu      sync.Mutex
	wake    *sync.Cond
	queue   []outgoing
	waiting int // bytes of the queue, and of what is being written
	closed  bool
}

// outgoing is a message, or a PONG.
type outgoing struct {
	frames [][]byte
	pong   []byte
}

func newPeer(s *Socket, rw net.Conn) *Peer {
	p := &Peer{socket: s, conn: newConn(rw, s.o.Limits)}
	p.wake = sync.NewCond(&p.mu)
	p.conn.command = p.command
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

// command answers a PING, which is its time to live in two bytes and what the PONG repeats.
func (p *Peer) command(name string, body []byte) {
	if name == "PING" && len(body) >= 2 && len(body) <= 2+16 {
		p.put(outgoing{pong: body[2:]}, len(body)+frameOverhead)
	}
}

// Send queues a message. It reports whether the peer is there; a peer for which too much waits is
// dropped.
func (p *Peer) Send(frames [][]byte) bool {
	return len(frames) > 0 && p.put(outgoing{frames: frames}, size(frames))
}

func (p *Peer) put(o outgoing, size int) bool {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return false
	}
	if p.waiting > p.conn.limits.Queue {
		p.mu.Unlock()
		p.Close()
		return false
	}
	p.queue = append(p.queue, o)
	p.waiting += size
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
		o := p.queue[0]
		p.queue[0] = outgoing{}
		p.queue = p.queue[1:]
		p.mu.Unlock()
		n := size(o.frames)
		if o.pong != nil {
			n = len(o.pong) + 2 + frameOverhead
			writeCommand(p.conn.w, "PONG", o.pong)
		}
		if p.conn.Send(o.frames...) != nil {
			return
		}
		p.mu.Lock()
		p.waiting -= n
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
